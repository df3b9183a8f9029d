"""Formulas as source text: C, Python and JavaScript for programs, LaTeX for people."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ptxmma.model import Cases, formula

_C_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_PYTHON_OPERATORS = _C_OPERATORS | {ast.FloorDiv: "//"}
_LATEX_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: r"\cdot",
    ast.Mod: r"\bmod",
    ast.BitAnd: r"\ \&\ ",
    ast.BitOr: r"\mid",
    ast.BitXor: r"\oplus",
    ast.LShift: r"\ll",
    ast.RShift: r"\gg",
}
_COMPARISONS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<"),
    ast.LtE: ("<=", r"\le"),
    ast.Gt: (">", ">"),
    ast.GtE: (">=", r"\ge"),
    ast.Eq: ("==", "="),
    ast.NotEq: ("!=", r"\ne"),
}
#: Comparisons that JavaScript writes in another way.
_STRICT: dict[type[ast.AST], str] = {ast.Eq: "===", ast.NotEq: "!=="}


def to_c(text: str, names: Mapping[str, str] | None = None) -> str:
    """A formula in C, over unsigned integers; every nested operation in parentheses, so that no reader needs the precedences."""
    return _c(formula.parse(text), names or {})


def _c(tree: ast.expr, names: Mapping[str, str]) -> str:
    if isinstance(tree, ast.Constant):
        return str(tree.value)
    if isinstance(tree, ast.Name):
        return names.get(tree.id, tree.id)
    if isinstance(tree, ast.BinOp):
        return f"{_c_part(tree.left, names)} {_C_OPERATORS[type(tree.op)]} {_c_part(tree.right, names)}"
    if isinstance(tree, ast.UnaryOp):
        return f"0 - {_c_part(tree.operand, names)}" if isinstance(tree.op, ast.USub) else f"{_c_part(tree.operand, names)} == 0"
    if isinstance(tree, ast.BoolOp):
        # Both sides are always evaluated, so that no branch is asked for.
        join = " & " if isinstance(tree.op, ast.And) else " | "
        return join.join(f"({_c_part(part, names)} != 0)" for part in tree.values)
    assert isinstance(tree, ast.Compare)
    terms = [_c_part(part, names) for part in (tree.left, *tree.comparators)]
    tests = [f"{a} {_COMPARISONS[type(test)][0]} {b}" for test, a, b in zip(tree.ops, terms, terms[1:], strict=False)]
    return tests[0] if len(tests) == 1 else " & ".join(f"({test})" for test in tests)


def _c_part(tree: ast.expr, names: Mapping[str, str]) -> str:
    text = _c(tree, names)
    return text if isinstance(tree, (ast.Constant, ast.Name)) else f"({text})"


def to_python(text: str, names: Mapping[str, str] | None = None) -> str:
    """A formula in Python; parentheses wherever a reader might wonder which operator binds tighter."""
    return _python(formula.parse(text), names or {})


def _python(tree: ast.expr, names: Mapping[str, str]) -> str:
    if isinstance(tree, ast.Constant):
        return str(tree.value)
    if isinstance(tree, ast.Name):
        return names.get(tree.id, tree.id)
    if isinstance(tree, ast.BinOp):
        left, right = (_python(side, names) for side in (tree.left, tree.right))
        left = left if _plainly(tree.left, tree.op, first=True) else f"({left})"
        right = right if _plainly(tree.right, tree.op, first=False) else f"({right})"
        return f"{left} {_PYTHON_OPERATORS[type(tree.op)]} {right}"
    if isinstance(tree, ast.UnaryOp):
        return ("-" if isinstance(tree.op, ast.USub) else "not ") + _python_part(tree.operand, names)
    if isinstance(tree, ast.BoolOp):
        return (" and " if isinstance(tree.op, ast.And) else " or ").join(_python_part(part, names) for part in tree.values)
    assert isinstance(tree, ast.Compare)
    text = _python_part(tree.left, names)
    for test, right_side in zip(tree.ops, tree.comparators, strict=True):
        text += f" {_COMPARISONS[type(test)][0]} {_python_part(right_side, names)}"
    return text


def _plainly(side: ast.expr, parent: ast.operator, *, first: bool) -> bool:
    """Return whether an operand needs no parentheses: a chain of one operator, or a term of a sum."""
    if not isinstance(side, ast.BinOp):
        return isinstance(side, (ast.Name, ast.Constant))
    sums, products = (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv, ast.Mod)
    if isinstance(parent, sums) and isinstance(side.op, products):
        return True
    return first and (type(side.op) is type(parent) or (isinstance(parent, sums) and isinstance(side.op, sums)))


def _python_part(tree: ast.expr, names: Mapping[str, str]) -> str:
    text = _python(tree, names)
    return text if isinstance(tree, (ast.Name, ast.Constant)) else f"({text})"


def to_javascript(text: str, names: Mapping[str, str] | None = None) -> str:
    """A formula in JavaScript, over integers; ``mod(a, b)`` must be there, since ``%`` takes the sign of ``a``."""
    return _javascript(formula.parse(text), names or {})


def _javascript(tree: ast.expr, names: Mapping[str, str]) -> str:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.FloorDiv, ast.Mod)):
        left, right = (_javascript(side, names) for side in (tree.left, tree.right))
        if isinstance(tree.op, ast.Mod):
            return f"mod({left}, {right})"
        return f"Math.floor({_javascript_part(tree.left, names)} / {_javascript_part(tree.right, names)})"
    if isinstance(tree, ast.BinOp):
        return f"{_javascript_part(tree.left, names)} {_C_OPERATORS[type(tree.op)]} {_javascript_part(tree.right, names)}"
    if isinstance(tree, ast.UnaryOp):
        sign = "-" if isinstance(tree.op, ast.USub) else "!"
        text = f"{sign}{_javascript_part(tree.operand, names)}"
        return text if sign == "-" else f"Number({text})"
    if isinstance(tree, (ast.Constant, ast.Name)):
        return _c(tree, names)
    if isinstance(tree, ast.BoolOp):
        join = " && " if isinstance(tree.op, ast.And) else " || "
        return f"Number({join.join(f'{_javascript_part(part, names)} !== 0' for part in tree.values)})"
    assert isinstance(tree, ast.Compare)
    terms = [_javascript_part(part, names) for part in (tree.left, *tree.comparators)]
    tests = [
        f"{a} {_STRICT.get(type(test), _COMPARISONS[type(test)][0])} {b}" for test, a, b in zip(tree.ops, terms, terms[1:], strict=False)
    ]
    return f"Number({' && '.join(tests)})"


def _javascript_part(tree: ast.expr, names: Mapping[str, str]) -> str:
    text = _javascript(tree, names)
    return text if isinstance(tree, (ast.Constant, ast.Name)) or _called(tree) else f"({text})"


def _called(tree: ast.expr) -> bool:
    """Return whether a formula becomes a call in JavaScript, which needs no parentheses around it."""
    return isinstance(tree, (ast.Compare, ast.BoolOp)) or (isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.FloorDiv, ast.Mod)))


def to_latex(text: str) -> str:
    """A formula in mathematics."""
    return _latex(formula.parse(text))


def cases_to_latex(cases: Cases) -> str:
    """Guarded cases in mathematics; a single formula without braces."""
    if len(cases) == 1:
        return to_latex(cases[0].value)
    rows = [rf"{to_latex(case.value)} & \text{{if }} {to_latex(case.when)}" for case in cases if case.when]
    rows += [rf"{to_latex(case.value)} & \text{{otherwise}}" for case in cases if not case.when]
    return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"


_LOOSER = (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)


def _latex(tree: ast.expr) -> str:
    if isinstance(tree, ast.Constant):
        return str(tree.value)
    if isinstance(tree, ast.Name):
        return tree.id if len(tree.id) == 1 else rf"\mathrm{{{tree.id}}}".replace("_", r"\_")
    if isinstance(tree, ast.BinOp):
        if isinstance(tree.op, ast.FloorDiv):
            left, right = _latex_part(tree.left, tight=True), _latex_part(tree.right, tight=True)
            if isinstance(tree.right, ast.BinOp) and isinstance(tree.right.op, ast.Mult):
                right = rf"\left({right}\right)"
            return rf"\left\lfloor {left} / {right} \right\rfloor"
        tight = not isinstance(tree.op, (ast.Add, ast.Sub))
        left = _latex_part(tree.left, tight=tight or _is_bitwise(tree.left))
        right = _latex_part(tree.right, tight=tight or _is_bitwise(tree.right) or isinstance(tree.op, ast.Sub))
        return f"{left} {_LATEX_OPERATORS[type(tree.op)]} {right}"
    if isinstance(tree, ast.UnaryOp):
        return ("-" if isinstance(tree.op, ast.USub) else r"\lnot ") + _latex_part(tree.operand, tight=True)
    if isinstance(tree, ast.BoolOp):
        join = r" \land " if isinstance(tree.op, ast.And) else r" \lor "
        return join.join(_latex(part) for part in tree.values)
    assert isinstance(tree, ast.Compare)
    text = _latex(tree.left)
    for test, comparator in zip(tree.ops, tree.comparators, strict=True):
        text += f" {_COMPARISONS[type(test)][1]} {_latex(comparator)}"
    return text


def _is_bitwise(tree: ast.expr) -> bool:
    """Return whether an operation has no precedence that every reader knows: in a sum it needs parentheses."""
    return isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift))


def _latex_part(tree: ast.expr, *, tight: bool) -> str:
    text = _latex(tree)
    if tight and isinstance(tree, ast.BinOp) and (isinstance(tree.op, (*_LOOSER, ast.Mod))):
        return rf"\left({text}\right)"
    if tight and isinstance(tree, (ast.Compare, ast.BoolOp)):  # Iverson's bracket: 1 where it holds, else 0
        return rf"\left[{text}\right]"
    return text
