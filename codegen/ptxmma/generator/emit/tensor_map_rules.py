"""The rules of tensor maps as conditions in C++ and JavaScript."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ptxmma.generator.emit.formula_text import to_c
from ptxmma.model import TensorMapRule, TensorMaps, formula

#: The arguments of the driver's calls.
_ARGUMENTS = (
    "shape", "interleave", "address", "strides", "box", "element_strides", "swizzle", "fill", "channels", "pixels", "lower", "upper",
)  # fmt: skip


class WrittenRule(NamedTuple):
    """A rule about an argument of the driver's calls.

    Attributes:
        rule: the rule of the spec.
        modes: the names of the modes in which it holds.
        names: the numbers that the condition and the text read, without the limits.
        broken: the condition of its breach.
    """

    rule: TensorMapRule
    modes: tuple[str, ...]
    names: tuple[str, ...]
    broken: str


def written(maps: TensorMaps, names: Mapping[str, str]) -> Iterator[WrittenRule]:
    """The rules of the driver's calls; the rules of copies and stores are left out.

    ``names`` has the numbers that are called otherwise in the other language.
    """
    limits = {name: str(getattr(maps.limits, name)) for name in ("largest_box", "padded_box", "alignment")}
    for rule in maps.rules:
        trees = [formula.parse(text) for text in (rule.need, rule.when) if text]
        read = {*formula.placeholders(rule.text), *(name for tree in trees for name in formula.names(tree))}
        if rule.argument not in _ARGUMENTS or read & {"load", "store"}:
            continue
        modes = tuple(mode.name for mode in maps.modes if not rule.modes or {mode.name, mode.like} & {*rule.modes})
        need, *when = (_condition(tree, {**names, **limits}) for tree in trees)
        broken = " && ".join([*(f"({each})" for each in when), f"!({need})"])
        yield WrittenRule(rule, modes, tuple(sorted(read - limits.keys())), broken)


def shown(rule: TensorMapRule, maps: TensorMaps, mark: str) -> str:
    """The text of a rule with the limits as numbers, and the other numbers under their names: ``mark`` is ``"<{}>"``."""
    return rule.text.format_map({name: getattr(maps.limits, name, mark.format(name)) for name in formula.placeholders(rule.text)})


def _condition(tree: ast.expr, names: Mapping[str, str]) -> str:
    """A formula over integers as a condition: ``and`` and chains of comparisons stop early, as a reader expects."""
    if isinstance(tree, ast.BoolOp):
        parts = [f"({_condition(part, names)})" if isinstance(part, ast.BoolOp) else _condition(part, names) for part in tree.values]
        return (" && " if isinstance(tree.op, ast.And) else " || ").join(parts)
    if isinstance(tree, ast.Compare) and len(tree.ops) > 1:
        terms = [tree.left, *tree.comparators]
        pairs = zip(tree.ops, terms, terms[1:], strict=False)
        return " && ".join(_condition(ast.Compare(left, [test], [right]), names) for test, left, right in pairs)
    return to_c(ast.unparse(_Folded().visit(tree)), names)


class _Folded(ast.NodeTransformer):
    """A formula with its constants computed: neither ``int`` nor the shifts of JavaScript have room for ``1 << 40``."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not (isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)):
            return node
        value: Any = formula.evaluate(node, {})
        return ast.Constant(value)
