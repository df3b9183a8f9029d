"""Sparse compression: each pattern and element type as a handful of constants, over which a few functions work on any chunk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ptxmma.generator.emit import c_text
from ptxmma.model import ElementType, Granularity, Spec

#: The C functions hold a chunk in 64 bits, the set of its units in 4, and a field in 4.
_CHUNK_BITS = 64
_MOST_UNITS = 4
_FIELD_BITS = 4
_NARROW = 4  # elements so narrow have a table of magnitudes


class Kind(NamedTuple):
    """One pattern for one element type.

    Attributes:
        name: ``"ptxmma_sparse_2_4_f16"``; pattern, element: what it is of.
        text: the pattern in words; source: section of the PTX ISA.
        constants: the members of ``ptxmma_sparse_kind`` with their values in C.
        chunk_bytes, value_bytes: bytes of a chunk, whole and compressed.
        chunk: elements of a chunk.
    """

    name: str
    pattern: str
    element: str
    text: str
    source: str
    constants: dict[str, str]
    chunk_bytes: int
    value_bytes: int
    chunk: int


def kinds(spec: Spec, pairs: Iterable[tuple[Granularity, ElementType]]) -> list[Kind]:
    """The kinds for some pairs of pattern and element type, in the order of the spec.

    Raises:
        ValueError: a pattern beyond what the C functions can hold.
    """
    order = {entry.name: place for place, entry in enumerate(spec.types.elements)}
    patterns = {id(entry): place for place, entry in enumerate(spec.granularities)}
    return [_kind(spec, *pair) for pair in sorted(pairs, key=lambda pair: (patterns[id(pair[0])], order[pair[1].name]))]


def memory_bits(element: ElementType) -> int:
    """Bits between neighbouring elements of a matrix in memory: a type that does not fill bytes evenly takes a whole one."""
    return element.bits if element.bits < 8 and 8 % element.bits == 0 else -(-element.bits // 8) * 8


def _kind(spec: Spec, pattern: Granularity, element: ElementType) -> Kind:
    width = memory_bits(element)
    units, kept, unit_bits = pattern.units, pattern.kept // pattern.unit, pattern.unit * width
    if pattern.chunk * width > _CHUNK_BITS or units > _MOST_UNITS or pattern.index_bits * pattern.indices != _FIELD_BITS:
        raise ValueError(
            f"{pattern.name} sparsity of {element.name} has chunks of {units} units of {unit_bits} bits with fields of "
            f"{pattern.index_bits * pattern.indices}; the C functions take {_MOST_UNITS} units, {_CHUNK_BITS} bits, fields of {_FIELD_BITS}"
        )
    fields = _fields(spec, units)
    ones = sum(1 << unit_bits * unit for unit in range(units))
    elements = sum(1 << width * place for place in range(pattern.unit))
    limit, indices = _limit(element), _indices(pattern, fields, kept)
    constants = {
        "element_bits": str(width),
        "chunk_elements": str(pattern.chunk),
        "chunk_bytes": str(pattern.chunk * width // 8),
        "value_bytes": str(pattern.kept * width // 8),
        "unit_elements": str(pattern.unit),
        "unit_shift": str(unit_bits.bit_length() - 1),
        "units": str(units),
        "kept": str(kept),
        "index_shifts": f"{sum(shift << 8 * place for place, (shift, _) in enumerate(indices)):#x}",
        "index_mask": str(indices[0][1]),
        "legal": f"{sum(1 << int(value, 2) for value in pattern.legal):#x}",
        "sets": f"{sum(1 << units for units in fields):#x}",
        "fields": _long(sum(field << _FIELD_BITS * units for units, field in fields.items())),
        "tops": _long(ones << unit_bits - 1),
        "significant": _long(ones * elements * _significant(element)),
        "unused": _long(sum(((1 << width) - (1 << element.bits)) << width * place for place in range(pattern.chunk))),
        "magnitude_mask": _long(_significant(element)),
        "sign": _long(1 << element.bits - 1 if element.form == "signed" else 0),
        "not_finite": _long(limit if limit is not None else 1 << width),
        "magnitudes": _long(_magnitudes(element) if width <= _NARROW else 0),
    }
    return Kind(
        name=f"ptxmma_sparse_{c_text.identifier(pattern.name)}_{c_text.identifier(element.name)}",
        pattern=pattern.name,
        element=element.name,
        text=pattern.text,
        source=pattern.source,
        constants=constants,
        chunk_bytes=pattern.chunk * width // 8,
        value_bytes=pattern.kept * width // 8,
        chunk=pattern.chunk,
    )


def _fields(spec: Spec, units: int) -> dict[int, int]:
    """The field of each set of units that are not zero."""
    choice = next((entry for entry in spec.choices if entry.units == units), None)
    if choice is None:
        raise ValueError(f"sparsity.choices has no entry for {units} units")
    return {int(nonzero, 2): int(field, 2) for nonzero, field in choice.fields.items()}


def _indices(pattern: Granularity, fields: dict[int, int], kept: int) -> list[tuple[int, int]]:
    """The shift and mask of each kept unit: these bits of a field number it within its chunk.

    They are worked out: the field of each full set must give its members in ascending order.
    """
    full = {
        field: [unit for unit in range(_MOST_UNITS) if units >> unit & 1] for units, field in fields.items() if units.bit_count() == kept
    }
    widths = range(1, _FIELD_BITS + 1)
    shifts = []
    for place in range(kept):
        fits = [
            (shift, (1 << width) - 1)
            for width in widths
            for shift in range(_FIELD_BITS - width + 1)
            if all(field >> shift & (1 << width) - 1 == members[place] for field, members in full.items())
        ]
        if not fits:
            raise ValueError(f"no bits of the fields of {pattern.name} tell which unit is kept")
        shifts.append(fits[0])
    return shifts


def _significant(element: ElementType) -> int:
    """The bits of an element that make it other than zero: a float's sign does not."""
    return (1 << element.bits - (element.form == "float" and element.sign)) - 1


def _limit(element: ElementType) -> int | None:
    """The smallest magnitude, as bits, that is an infinity or a NaN; None for a type without them."""
    largest = _significant(element)
    if element.infinity:
        return largest >> (largest.bit_length() - element.exponent) << (largest.bit_length() - element.exponent)
    return largest if element.nan else None


def _magnitudes(element: ElementType) -> int:
    """The magnitude of every code of a narrow type, scaled to integers, as 4-bit numbers of one constant."""
    table = 0
    for code in range(1 << element.bits):
        table |= _magnitude(element, code) << _NARROW * code
    return table


def _magnitude(element: ElementType, code: int) -> int:
    if element.form == "signed":
        return min(code, (1 << element.bits) - code)
    if element.form != "float":
        return code
    code &= _significant(element)
    exponent, fraction = code >> element.mantissa, code & (1 << element.mantissa) - 1
    return fraction if exponent == 0 else (fraction | 1 << element.mantissa) << exponent - 1


def _long(value: int) -> str:
    return f"UINT64_C({value:#x})"
