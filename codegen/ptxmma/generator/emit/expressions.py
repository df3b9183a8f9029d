"""Bit maps and formulas as source text: C and Python for programs, LaTeX for people.

C and Python share the operators that bit maps need, so one text serves both; it works on C's unsigned integers, on Python's and
on arrays of either.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ptxmma import formula
from ptxmma.bitmap import BitMap, Run
from ptxmma.model import Cases


def gather(bit_map: BitMap, output: str, names: Mapping[str, str] | None = None) -> str:
    """The expression of one output over the inputs, e.g. ``(lane >> 2) | ((i & 2) << 2)``.

    ``names`` renames inputs.  Terms come in the order of the output's bits, highest first, as one reads a number.
    """
    runs = bit_map.runs(output)
    terms = [_term(run, bit_map.inputs[run.name], (names or {}).get(run.name, run.name)) for run in reversed(runs)]
    if not terms:
        return "0"
    if len(terms) == 1:
        return terms[0]
    return " | ".join(f"({term})" if " " in term else term for term in terms)


def _term(run: Run, width: int, name: str) -> str:
    """Bits ``source .. source+width`` of an input, moved to ``target``; no mask where the input has nothing above or below."""
    mask = (1 << run.width) - 1
    down = run.source - run.target
    has_above = run.source + run.width < width
    has_below = run.source > 0
    if down >= 0:
        moved = f"{name} >> {down}" if down else name
        # What lies below the run falls off the end only if the run lands at bit 0.
        if has_above or (has_below and run.target > 0):
            return f"({moved}) & {mask << run.target}" if down else f"{moved} & {mask << run.target}"
        return moved
    if has_above or has_below:
        return f"({name} & {mask << run.source}) << {-down}"
    return f"{name} << {-down}"


# --- formulas ---------------------------------------------------------------------------------------------------------------

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
_LATEX_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: r"\cdot",
    ast.Mod: r"\bmod",
    ast.BitAnd: r"\mathbin{\&}",
    ast.BitOr: r"\mathbin{|}",
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
    raise NotImplementedError(f"{type(tree).__name__} has no C text yet")


def _c_part(tree: ast.expr, names: Mapping[str, str]) -> str:
    text = _c(tree, names)
    return f"({text})" if isinstance(tree, ast.BinOp) else text


def to_python(text: str, names: Mapping[str, str] | None = None) -> str:
    """A formula in Python; only names change."""
    tree = formula.parse(text)
    renamed = _Rename(names or {}).visit(ast.parse(ast.unparse(tree), mode="eval").body)
    return ast.unparse(renamed)


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


def to_latex(text: str) -> str:
    """A formula in mathematics."""
    return _latex(formula.parse(text))


def cases_to_latex(cases: Cases) -> str:
    """Guarded cases in mathematics; a single formula stands alone."""
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
            return rf"\left\lfloor {_latex(tree.left)} / {_latex_part(tree.right, tight=True)} \right\rfloor"
        tight = not isinstance(tree.op, (ast.Add, ast.Sub))
        left, right = _latex_part(tree.left, tight=tight), _latex_part(tree.right, tight=tight or isinstance(tree.op, ast.Sub))
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


def _latex_part(tree: ast.expr, *, tight: bool) -> str:
    text = _latex(tree)
    if tight and isinstance(tree, ast.BinOp) and (isinstance(tree.op, (*_LOOSER, ast.Mod))):
        return rf"\left({text}\right)"
    return text
