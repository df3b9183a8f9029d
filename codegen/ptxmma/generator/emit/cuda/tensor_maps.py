"""Tensor maps in C++: types, swizzles, and the rules of the driver as conditions."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import Any, NamedTuple

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.formula_text import to_c
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.model import BoxLimits, TensorMaps, formula

#: The arguments of a call that C++ judges.
_ARGUMENTS = ("shape", "interleave", "address", "strides", "box", "element_strides", "swizzle", "fill")
#: The numbers that rules read, where C++ has other names.
_NAMES = {"padded": "type.padded", "float": "type.floating", "fill": "filled", "swizzle": "number", "shape": "length", "box": "extent"}


class _Rule(NamedTuple):
    """A rule: the condition of its breach, and its text."""

    broken: str
    text: str


def values(catalog: Catalog, mode: str) -> dict[str, Any]:
    """The values for the template of tensor maps of a mode."""
    maps = catalog.database.spec.tensor_maps
    assert maps is not None
    spans = {}
    for swizzle in maps.swizzles:
        box = BoxGeometry("UINT8", (128, 8), (16, 8), swizzle=swizzle.name, database=catalog.database)
        spans[swizzle.value] = box.rows.pitch if swizzle.value else 0
    return {"types": maps.types, "interleaves": maps.interleaves, "spans": spans, "groups": _rules(maps, mode)}


def _rules(maps: TensorMaps, mode: str) -> dict[str, list[_Rule]]:
    """The rules of a mode, for the whole and for each dimension and stride; rules of stores need a copy."""
    groups = defaultdict[str, list[_Rule]](list)
    for rule in maps.rules:
        read = formula.names(formula.parse(rule.when)) if rule.when else {}
        if rule.argument in _ARGUMENTS and (not rule.modes or mode in rule.modes) and "store" not in read:
            broken = f"!({_condition(rule.need, maps.limits)})"
            if rule.when:
                broken = f"({_condition(rule.when, maps.limits)}) && {broken}"
            shown = {name: getattr(maps.limits, name, f"<{name}>") for name in formula.placeholders(rule.text)}
            groups[rule.each].append(_Rule(broken, f"{rule.argument}: {rule.text.format_map(shown)}"))
    return groups


def _condition(text: str, limits: BoxLimits) -> str:
    """A formula as a condition in C++."""
    names = _NAMES | {name: str(getattr(limits, name)) for name in ("largest_box", "padded_box", "alignment")}
    return _joined(formula.parse(text), names)


def _joined(tree: ast.expr, names: dict[str, str]) -> str:
    if isinstance(tree, ast.BoolOp):
        parts = [f"({_joined(part, names)})" if isinstance(part, ast.BoolOp) else _joined(part, names) for part in tree.values]
        return (" && " if isinstance(tree.op, ast.And) else " || ").join(parts)
    if isinstance(tree, ast.Compare) and len(tree.ops) > 1:
        terms = [tree.left, *tree.comparators]
        pairs = zip(tree.ops, terms, terms[1:], strict=False)
        return " && ".join(_joined(ast.Compare(left, [test], [right]), names) for test, left, right in pairs)
    return to_c(ast.unparse(_Folded().visit(tree)), names)


class _Folded(ast.NodeTransformer):
    """A formula with its constants computed: an ``int`` has no room for ``1 << 40``."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not (isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)):
            return node
        value: Any = formula.evaluate(node, {})
        return ast.Constant(value)
