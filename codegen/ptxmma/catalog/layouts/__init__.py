"""The layout of each operand of each variant, and the layouts' names.

The spec has one formula for many shapes.  A :class:`Plan` has the numbers that turn it into one layout, and its name,
``mma_m16n8k16_a_b16``: the family, the shape (the letter N where one formula serves every n), and what the entry says.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction

import msgspec

from ptxmma.catalog.variants import Variant, placeholders, recased
from ptxmma.model import Container, ElementType, Facts, Granularity, Layout, RegisterLayout, Spec, formula, matches

#: The extent along which products add up: K of (M, K) times (K, N).
SUMMED = "k"


class Plan(msgspec.Struct, frozen=True):
    """One layout to derive: an entry of the spec with its numbers.

    Attributes:
        name, family, shape: as in :class:`ptxmma.model.Layout`.
        entry: index of the spec's entry.
        bits: width of an element's container; 0 without elements.
        threads: threads that hold it together.
        variables: the numbers that its formulas may read.
        axes: the size of each axis, the largest where an extent ranges.
        growing: the axes whose size depends on an extent that ranges.
        grown: their size in words: ``"2N"``.
        summed: the axis along which a product adds up.
        steps: the axes whose numbers are multiples of more than 1.
        facts: the facts that the conditions of entries test.
    """

    name: str
    family: str
    shape: str
    entry: int
    bits: int
    threads: int
    variables: dict[str, int]
    axes: dict[str, int]
    growing: tuple[str, ...]
    grown: str
    summed: str
    steps: dict[str, int]
    facts: Facts


def element_type(spec: Spec, name: str) -> ElementType:
    """The spec's entry of an element type."""
    return next(entry for entry in spec.types.elements if entry.name == name)


def container(spec: Spec, element: str, facts: Facts) -> Container | None:
    """The container that a type sits in, where it has one."""
    return next((entry for entry in spec.types.around(facts) if element in entry.elements), None)


def container_bits(spec: Spec, element: str, facts: Facts) -> int:
    """Bits between neighbouring elements of a type in a register: its own, or its container's."""
    around = container(spec, element, facts)
    return around.bits if around else element_type(spec, element).bits


def key(variant: Variant) -> tuple[object, ...]:
    """Equal for variants whose operands have the same layouts and register types: all that differ in a ranging extent only."""
    ignored = {variant.instruction.shape, *variant.ranging}
    return tuple(value for name, value in variant.facts.items() if name not in ignored)


def granularity(spec: Spec, variant: Variant) -> Granularity | None:
    """The sparsity pattern of a sparse variant's A."""
    if not variant.instruction.sparse:
        return None
    return next(iter(spec.patterns(variant.facts)), None)


def operand_facts(spec: Spec, variant: Variant, operand: str) -> Facts:
    """The facts that the conditions of layouts test: the variant's, ``operand``, and ``bits`` and ``ratio`` as formulas read them."""
    return {**variant.facts, "operand": operand, **_numbers(spec, variant, operand)}


def _numbers(spec: Spec, variant: Variant, operand: str) -> dict[str, int]:
    """Variables of formulas besides extents: ``bits``, ``ratio`` (2 for a sparse A, else 1) and ``chunk_size`` (sparse instructions)."""
    kinds = variant.instruction.operand_kinds
    entry = kinds[operand]
    typed = entry if entry.type or entry.of not in kinds else kinds[entry.of]  # what describes a matrix has the bits of the matrix
    element = str(variant.facts.get(typed.type, ""))
    numbers = {"ratio": 1}
    if element:
        numbers["bits"] = container_bits(spec, element, variant.facts)
    pattern = granularity(spec, variant)
    if pattern is not None:
        numbers["chunk_size"] = pattern.chunk
        numbers["ratio"] = pattern.chunk // pattern.kept if entry.sparse else 1
    return numbers


def variables(spec: Spec, variant: Variant, operand: str) -> dict[str, int]:
    """The variables of formulas about an operand: its variant's extents, ``bits``, ``ratio``, ``chunk_size``."""
    return variant.extents | _numbers(spec, variant, operand)


def entry_index(spec: Spec, facts: Facts) -> int | None:
    """The index of the entry that lays out an operand, by its facts; None where the spec has none."""
    operand = facts["operand"]
    return next(
        (index for index, entry in enumerate(spec.register_layouts) if operand in entry.operands and matches(entry.of, facts)), None
    )


def plan(spec: Spec, variant: Variant, operand: str) -> Plan | None:
    """The layout of an operand, or None where the spec has no formula for it."""
    numbers = _numbers(spec, variant, operand)
    facts: Facts = {**variant.facts, "operand": operand, **numbers}
    index = entry_index(spec, facts)
    if index is None:
        return None
    entry = spec.register_layouts[index]
    variables = variant.largest | numbers
    shape = variant.shape_label.replace(".", "_")
    axes, growing = sizes(entry.axes, variables), reading(entry, variant.ranging)
    return Plan(
        name="_".join(filter(None, [recased(variant.instruction.family), shape, _spelled(ending(entry), facts)])) + _seen(entry),
        family=variant.instruction.family,
        shape=shape,
        entry=index,
        bits=numbers.get("bits", 0),
        threads=spec.scopes[variant.instruction.scope],
        variables=variables,
        axes=axes,
        growing=growing,
        grown=next((_share(axes[axis], variant.largest[name]) for axis in growing for name in variant.ranging), ""),
        summed=next(iter(reading(entry, {SUMMED})), ""),
        steps={axis: step for axis, step in sizes(entry.steps, variables).items() if step > 1},
        facts=facts,
    )


def _share(size: int, number: int) -> str:
    """A size in proportion to a number N: ``"2N"`` for 16 of 8, ``"N / 2"`` for 4 of 8."""
    share = Fraction(size, number)
    times = f"{share.numerator}N" if share.numerator > 1 else "N"
    return times if share.denominator == 1 else f"{times} / {share.denominator}"


def thread_bytes(plan: Plan) -> int:
    """Bytes of a matrix that one thread holds."""
    return math.prod(plan.axes.values()) // plan.threads * plan.bits // 8


def reading(entry: RegisterLayout, extents: Collection[str]) -> tuple[str, ...]:
    """The axes of an entry whose sizes read some of these extents."""
    # Of a list: only so does Python 3.10 make the one empty tuple that JSON leaves out as the default.
    return tuple([axis for axis, text in entry.axes.items() if formula.names(formula.parse(text)).keys() & set(extents)])


def ending(entry: RegisterLayout) -> str:
    """The end of the names of an entry's layouts, with facts in braces: what it says itself, or its operands and their width."""
    return entry.name or "".join(entry.operands) + "_b{bits}"


def modifiers(spec: Spec, variant: Variant, layout: Layout) -> str:
    """The modifiers that decide on an operand's layout, beside its shape and types: ``.x4.trans``."""
    entry, instruction = spec.register_layouts[layout.entry], variant.instruction
    decisive = {name for condition in entry.of for name in condition} | set(formula.placeholders(ending(entry)))
    decisive -= {instruction.shape, *(kind.type for kind in instruction.operand_kinds.values())}
    return "".join(f".{value}" for name in placeholders(instruction.syntax) if name in decisive and (value := variant.facts.get(name)))


def _spelled(template: str, facts: Facts) -> str:
    return template.format_map({name: recased(str(facts[name])) for name in formula.placeholders(template)})


def _seen(entry: RegisterLayout) -> str:
    """A layout that the manual leaves open carries the target on which it was measured: ``_observed_sm_90``."""
    return f"_observed_{entry.observed}" if entry.observed else ""


def sizes(texts: Mapping[str, str], variables: Mapping[str, int]) -> dict[str, int]:
    """The values of several formulas over plain numbers, e.g. ``{"col": "k // ratio"}``."""
    return {name: size(text, variables) for name, text in texts.items()}


def size(text: str, variables: Mapping[str, int]) -> int:
    """The value of a formula over plain numbers, e.g. ``k // ratio``."""
    value = formula.evaluate(formula.parse(text), variables)
    assert isinstance(value, int)
    return value
