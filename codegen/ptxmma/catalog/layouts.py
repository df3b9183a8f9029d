"""Which layout belongs to which operand of which variant, and what each layout is called.

The spec has one formula for many shapes; here stand the sizes that turn it into one layout, and its name,
``mma_m16n8k16_a_b16``: stem, shape (the letter N where one formula serves every n), operands, container bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ptxmma.catalog.variants import SHAPE, Variant, shape_token
from ptxmma.model import (
    Condition,
    Container,
    ElementType,
    Facts,
    Fragment,
    Granularity,
    MetadataLayout,
    ScaleLayout,
    Spec,
    formula,
    matches,
)

#: Threads that execute together, by scope.
THREADS = {"thread": 1, "warp": 32, "warpgroup": 128}


class Plan(msgspec.Struct, frozen=True):
    """One layout to derive: an entry of the spec with its sizes.

    ``facts`` are the variables of its formulas: ``m``, ``n``, ``k``, ``bits`` and ``ratio`` (2 for a sparse A, else 1).
    """

    name: str
    kind: str  # "fragment", "metadata" or "scale"
    family: str
    operands: tuple[str, ...]
    shape: str
    entry: int
    bits: int
    rows: int
    cols: int
    threads: int
    facts: Facts


def element_type(spec: Spec, name: str) -> ElementType:
    """The spec's entry of an element type."""
    return next(entry for entry in spec.types.elements if entry.name == name)


def container(spec: Spec, element: str, facts: Facts) -> Container | None:
    """The container that a type sits in, where it has one."""
    return next((entry for entry in spec.types.containers if element in entry.elements and matches(entry.when, facts)), None)


def container_bits(spec: Spec, element: str, facts: Facts) -> int:
    """Bits between neighbouring elements of a type in a register: its own, or its container's."""
    held = container(spec, element, facts)
    return held.bits if held else element_type(spec, element).bits


def fragment_facts(spec: Spec, variant: Variant, operand: str, element: str) -> dict[str, str | int]:
    """What the conditions and formulas of fragments see: the variant's facts, ``operand``, ``bits`` and ``ratio``."""
    facts = dict(variant.facts) | {"operand": operand, "bits": container_bits(spec, element, variant.facts)}
    facts["ratio"] = 2 if variant.instruction.sparse and operand == "a" else 1
    return facts


def key(variant: Variant) -> tuple[object, ...]:
    """Equal for variants whose operands have the same layouts and register types: all that differ in n of a range only."""
    facts = variant.facts
    ignored = {SHAPE, "n"} if variant.ranges_over_n else {SHAPE}
    return tuple(value for name, value in facts.items() if name not in ignored)


def fragment_plan(spec: Spec, variant: Variant, operand: str, element: str) -> Plan | None:
    """The layout of a register operand, or None where the spec has no formula for it."""
    facts = fragment_facts(spec, variant, operand, element)
    index = first_match([entry.of for entry in spec.fragments], facts, [operand in entry.operands for entry in spec.fragments])
    if index is None:
        return None
    entry: Fragment = spec.fragments[index]
    assert variant.shape is not None
    facts["n"] = max(variant.shape.each_n())
    shape = _shape(variant)
    label = f"_{entry.label}" if entry.label else ""
    return Plan(
        name=f"{_stem(variant)}_{shape}_{''.join(entry.operands)}{label}_b{facts['bits']}",
        kind="fragment",
        family=variant.instruction.family,
        operands=entry.operands,
        shape=shape,
        entry=index,
        bits=int(facts["bits"]),
        rows=size(entry.rows, facts),
        cols=size(entry.cols, facts),
        threads=THREADS[variant.instruction.scope],
        facts=facts,
    )


def granularity(spec: Spec, variant: Variant) -> Granularity | None:
    """The sparsity pattern of a sparse variant's A."""
    return next((entry for entry in spec.granularities if matches(entry.of, variant.facts)), None) if variant.instruction.sparse else None


def metadata_entry(spec: Spec, variant: Variant) -> MetadataLayout | None:
    """The spec's entry for the metadata of a sparse variant."""
    if not variant.instruction.sparse:
        return None
    return next((entry for entry in spec.metadata if matches(entry.of, metadata_facts(spec, variant))), None)


def metadata_facts(spec: Spec, variant: Variant) -> Facts:
    """The variant's facts and ``bits``, the container width of A."""
    return dict(variant.facts) | {"bits": container_bits(spec, str(variant.facts["atype"]), variant.facts)}


def metadata_plan(spec: Spec, variant: Variant, operand: str) -> Plan | None:
    """The layout of the sparsity metadata: rows of A by chunks of a row."""
    entry, pattern = metadata_entry(spec, variant), granularity(spec, variant)
    if entry is None or pattern is None:
        return None
    facts = metadata_facts(spec, variant)
    shape = _shape(variant)
    return Plan(
        name=f"{_stem(variant)}_{shape}_metadata_b{facts['bits']}",
        kind="metadata",
        family=variant.instruction.family,
        operands=(operand,),
        shape=shape,
        entry=spec.metadata.index(entry),
        bits=int(facts["bits"]),
        rows=int(facts["m"]),
        cols=int(facts["k"]) // pattern.chunk,
        threads=THREADS[variant.instruction.scope],
        facts=facts,
    )


def scale_entry(spec: Spec, variant: Variant, matrix: str) -> ScaleLayout | None:
    """The spec's entry for the scale factors of ``matrix`` ("a" or "b")."""
    return next((entry for entry in spec.scales if entry.operand == matrix and matches(entry.of, variant.facts)), None)


def scale_plan(spec: Spec, variant: Variant, matrix: str) -> Plan | None:
    """The layout of the scale factors of A (by its rows) or B (by its columns)."""
    entry = scale_entry(spec, variant, matrix)
    if entry is None:
        return None
    rows = int(variant.facts["m" if matrix == "a" else "n"])
    shape = _shape(variant)
    vector = str(variant.facts["scale_vec"]).replace("::", "_").lower()
    return Plan(
        name=f"{_stem(variant)}_{shape}_scale_{matrix}_{vector}",
        kind="scale",
        family=variant.instruction.family,
        operands=(f"scale-{matrix}-data",),
        shape=shape,
        entry=spec.scales.index(entry),
        bits=8,
        rows=rows,
        cols=entry.blocks,
        threads=THREADS[variant.instruction.scope],
        facts=variant.facts,
    )


def first_match(conditions: Sequence[tuple[Condition, ...]], facts: Facts, allowed: Sequence[bool]) -> int | None:
    """Index of the first entry whose condition holds among those allowed."""
    return next((index for index, of in enumerate(conditions) if allowed[index] and matches(of, facts)), None)


def _stem(variant: Variant) -> str:
    return variant.instruction.family.replace(".", "_")


def _shape(variant: Variant) -> str:
    assert variant.shape is not None
    n = "N" if variant.ranges_over_n else int(variant.facts["n"])
    return shape_token(variant.shape.m, n, variant.shape.k)


def size(text: str, facts: Facts) -> int:
    """The value of a formula over the numbers among ``facts``, e.g. ``k // ratio``."""
    numbers = {name: value for name, value in facts.items() if isinstance(value, int)}
    value = formula.evaluate(formula.parse(text), numbers)
    assert isinstance(value, int)
    return value
