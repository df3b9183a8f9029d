"""The products that an instruction descriptor chooses: a table of kinds, and the pictures of their operands in tensor memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.legal_products import facts_of
from ptxmma.generator.emit.docs import rest, tensor_page
from ptxmma.generator.emit.docs.family import boxes, needs
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.docs.tensor_page import TensorUse
from ptxmma.model import InstructionSet, Requirement, Spec

#: The coordinates of a product by which rows of the table merge, before its sizes.
_MERGED = 8


def kinds(spec: Spec, opcodes: Sequence[Instruction]) -> str:
    """The table of kinds: types, K, the sizes for each number of thread blocks, blocks of scale factors, requirements.

    Opcodes that limits narrow, such as ``.ashift``, are left out: the page has the limits.
    """
    rules, entry = spec.tensor_products, opcodes[0].variant.instruction
    if rules is None or entry.operation != resolution.OPERATION:
        return ""
    columns: dict[str, None] = {}
    sizes: dict[tuple[str, ...], dict[str, dict[str, None]]] = {}
    for opcode in opcodes:
        facts = facts_of(spec, opcode.variant)
        if not opcode.documented or rules.fitting.limits(facts):
            continue
        column = ".".join(str(facts[name]) for name in entry.extents)
        columns[column] = None
        for key, size in _products(spec, opcode, entry):
            sizes.setdefault(key, {}).setdefault(column, {})[size] = None
    points = [((*key, *("\n\n".join(found.get(column, ())) for column in columns)), None) for key, found in sizes.items()]
    rows = [values for values, _ in boxes(points)]
    header = ("Kind", "A and B", "D", "K", *map(rest.code, columns), "Block", "Scale factors", "Needs")
    return rest.table(*rest.dense(header, map(_cells, rows)), kind="kinds")


def _products(spec: Spec, opcode: Instruction, entry: InstructionSet) -> Iterator[tuple[tuple[str, ...], str]]:
    """The values by which products of an opcode are told apart, and the M and N of each."""
    rules, variant = spec.tensor_products, opcode.variant
    assert rules is not None
    said = [str(variant.facts[name]) for name in variant.qualifiers if name not in entry.extents]
    name = " ".join(rest.code(f".{value}") for value in said if value)
    for found in product_rules.rows(rules, facts_of(spec, variant)):
        for scale in found.scales or (None,):
            chosen = [rule for rule in (found.depth, scale) if rule is not None and rule.targets]
            more = [Requirement(targets=rule.targets, source=rule.source) for rule in chosen]
            accepted = dict(requirements.accepted_by(spec, variant, more=more))
            types = (found.types["btype"], found.types["atype"], found.types["dtype"])
            block = "" if scale is None else str(scale.block)
            for factor in ("",) if scale is None else scale.stype:
                size = f"M {' or '.join(map(str, found.shape.m))}, N {product_rules.ranges(found.shape.n)}"
                yield (*types, factor, name, str(found.depth.k), block, needs(spec, accepted)), size


def _cells(row: Sequence[Sequence[str]]) -> list[str]:
    """The cells of a row of merged products, in the order of the header."""
    b, a, d, factors, names, k, block, wants = row[:_MERGED]
    sizes = [" ".join(size) for size in row[_MERGED:]]
    factors_of = [rest.codes(a) if a == b else f"{rest.codes(a)} {rest.TIMES} {rest.codes(b)}", rest.codes(d)]
    return ["\n\n".join(names), *factors_of, *k, *sizes, *block, rest.codes(filter(None, factors)), *wants]


def pictures(uses: Iterable[TensorUse], gallery: Gallery, root: str) -> list[dict[str, Any]]:
    """A picture for each layout of an operand in tensor memory; of scale factors with several in a row the smallest."""
    by_layout: dict[str, list[TensorUse]] = {}
    for use in uses:
        by_layout.setdefault(use.places.layout.name, []).append(use)
    return [_figure(group, gallery, root) for group in by_layout.values()]


def _figure(group: Sequence[TensorUse], gallery: Gallery, root: str) -> dict[str, Any]:
    drawn = {tensor_page.picture(use, gallery): use for use in group}
    name = min(drawn, key=gallery.area)
    layout = drawn[name].places.layout
    return {
        "picture": name,
        "width": gallery.width(name),
        "alt": tensor_page.title(layout),
        "explorer": f"{root}{drawn[name].explorer}",
        "caption": f"{rest.code(drawn[name].operand)}: {rest.link(tensor_page.title(layout), tensor_page.label(layout))}",
    }
