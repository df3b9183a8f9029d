"""Descriptors in C: a struct of fields for each format, their values, the expressions that encode and decode them; zero-column masks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog.descriptors.bits import ones, spare, width_of
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.generator.emit.formula_text import to_c
from ptxmma.model import ColumnMask, Condition, DescriptorField, DescriptorFormat, Spec, formula

#: Bits of a field whose numbers a mask of 32 bits counts.
_SMALL = 5


class Member(NamedTuple):
    """A field as a member of a struct."""

    c_type: str
    name: str
    brief: str  # its meaning, its bits, its encoding
    encode: str
    decode: str
    enumerators: list[tuple[str, int]]  # values with names: ("PTXMMA_TCGEN05_INSTRUCTION_DTYPE_F32", 1)


class Check(NamedTuple):
    """A condition on the values of a field, or of several."""

    field: str
    condition: str  # an expression in C, over the descriptor and its decoded fields


class Struct(NamedTuple):
    """A format as a struct with its functions."""

    format: DescriptorFormat
    name: str  # "ptxmma_tcgen05_instruction"
    c_type: str  # the type of the bits: "uint32_t"
    fixed: str  # bits that are always set; "" without any
    members: list[Member]
    checks: list[tuple[str, list[Check]]]  # kind, and the conditions on its fields
    zero: str  # mask of the bits that must be 0; "" without any

    @property
    def reads_fields(self) -> bool:
        """True if a check reads a field of the struct."""
        return any("fields." in check.condition for _, checks in self.checks for check in checks)

    @property
    def sized(self) -> bool:
        """True if a check reads M and N."""
        return any(check.field == "m, n" for _, checks in self.checks for check in checks)


def struct(spec: Spec, format: DescriptorFormat) -> Struct:
    """All that the template needs of a format."""
    name = f"ptxmma_{format.name}"
    fixed = sum(field.fixed << field.low for field in format.fields if field.fixed is not None)
    zero = sum(ones(width) << low for low, width in spare(format)) if format.spare == "zero" else 0
    return Struct(
        format=format,
        name=name,
        c_type=f"uint{format.bits}_t",
        fixed=_constant(fixed, format) if fixed else "",
        members=[_member(format, field, name) for field in format.fields if field.fixed is None],
        checks=[(kind, [*_checks(Codec(spec, format, kind)), *_size_checks(spec, format, kind)]) for kind in format.kinds or ("",)],
        zero=_constant(zero, format) if zero else "",
    )


def kinds(formats: Iterable[DescriptorFormat]) -> dict[tuple[str, str], list[str]]:
    """The kinds on which formats depend, by the family and its qualifier whose values they are."""
    families: dict[tuple[str, str], list[str]] = {}
    for format in formats:
        if format.kinds:
            families.setdefault((format.family, format.qualifier), []).extend(format.kinds)
    return {place: list(dict.fromkeys(names)) for place, names in families.items()}


def bit_text(field: DescriptorField) -> str:
    """The bits of a field in words: ``bits 24 to 28``."""
    last = field.low + field.width - 1
    own = f"bits {field.low} to {last}" if field.width > 1 else f"bit {field.low}"
    return own if field.upper is None else f"{own}, with bit {field.upper} above"


def _constant(bits: int, format: DescriptorFormat) -> str:
    return f"UINT64_C({bits:#x})" if format.bits > 32 else f"{bits:#x}u"


def _member(format: DescriptorFormat, field: DescriptorField, stem: str) -> Member:
    c_type = _c_type(field)
    mask, word = f"{ones(field.width):#x}", f"uint{format.bits}_t"
    value = f"({word})fields.{field.name}"
    value = f"({value} - {field.less})" if field.less else value
    value = f"({value} >> {field.shift})" if field.shift else value
    encoded = f"(({value} & {mask}) << {field.low})" if field.low else f"({value} & {mask})"
    if field.upper is not None:
        encoded = f"{encoded} | (({value} >> {field.width} & 1) << {field.upper})"
    notes = [field.title, bit_text(field)]
    if field.shift:
        notes.append(f"without its low {field.shift} bits")
    if field.less:
        notes.append(f"less {field.less}")
    names = _names(field)
    if field.cases and names is None:
        notes.append("as the field holds it: " + ", ".join(dict.fromkeys(f"{stored} for {name}" for name, stored in _pairs(field))))
    return Member(
        c_type,
        field.name,
        f"{notes[0]}; {', '.join(notes[1:])}",
        encoded,
        decoded(field),
        [(f"{stem}_{field.name}_{name}".upper(), stored) for name, stored in (names or {}).items()],
    )


def decoded(field: DescriptorField, descriptor: str = "descriptor") -> str:
    """The value of a field, in C; ``descriptor`` is the expression that holds it."""
    read = f"{f'({descriptor} >> {field.low})' if field.low else descriptor} & {ones(field.width):#x}"
    if field.upper is not None:
        read = f"({read}) | ({descriptor} >> {field.upper} & 1) << {field.width}"
    read = f"({_c_type(field)})({read})"
    read = f"({read} << {field.shift})" if field.shift else read
    return f"{read} + {field.less}" if field.less else read


def _c_type(field: DescriptorField) -> str:
    return "uint32_t" if width_of(field) + field.shift <= 32 else "uint64_t"


def _pairs(field: DescriptorField) -> Iterator[tuple[str, int]]:
    return (pair for case in field.cases for pair in case.values.items())


def _names(field: DescriptorField) -> dict[str, int] | None:
    """The values with names; None where one name means two numbers.  Numbers that mean themselves have no names."""
    names: dict[str, int] = {}
    for name, stored in _pairs(field):
        if names.setdefault(name, stored) != stored:
            return None
    return {} if all(name == str(stored) for name, stored in names.items()) else names


# --- what is legal ----------------------------------------------------------------------------------------------------------


def _checks(codec: Codec) -> Iterator[Check]:
    """A condition for each field that not every number of its width is legal for, with the codec's kind and on any target."""
    format = codec.format
    for field in format.fields:
        if field.fixed is not None:
            yield Check(field.name, f"(descriptor >> {field.low} & {ones(field.width):#x}) == {field.fixed}")
            continue
        if any(not (case.when or case.values or case.below) for case in field.cases):  # any number, on some target
            continue
        tested = codec.needed(field)
        masks: dict[int, list[tuple[int, ...]]] = {}
        for stored in itertools.product(*(range(1 << width_of(each)) for each in tested)) if field.cases else ():
            legal = codec.legal(field, {each.name: number for each, number in zip(tested, stored, strict=True)})
            masks.setdefault(_mask(legal), []).append(stored)
        if masks.keys() <= {_mask(range(1 << width_of(field)))}:
            continue
        *others, last = masks
        if width_of(field) > _SMALL:
            chosen = [f"{_hold(tested, masks[mask])} ? {_has_bit(field, mask)} : " for mask in others]
            yield Check(field.name, f"{''.join(chosen)}{_has_bit(field, last)}")
            continue
        text = f"{last:#x}u"
        for mask in others:
            text = f"({_hold(tested, masks[mask])} ? {mask:#x}u : {text})"
        yield Check(field.name, f"{text} >> {_stored(field)} & 1")


def _size_checks(spec: Spec, format: DescriptorFormat, kind: str) -> Iterator[Check]:
    """A condition for M and N together: some product of the kind has them, with any of its opcodes and depths."""
    fields = {field.name: field for field in format.fields}
    products = spec.tensor_products
    if products is None or not {"m", "n"} <= fields.keys() or not any(_fits(row.of, **format.chosen_by(kind)) for row in products.types):
        return
    readers = [entry for entry in spec.instructions if entry.operation == OPERATION and reads(entry.family, format.family)]
    names = [entry.name for entry in readers if not kind or any(kind in form.qualifiers.get(format.qualifier, ()) for form in entry.forms)]
    rows = [row for row in products.shapes if any(_fits(row.of, **format.chosen_by(kind), name=name) for name in names)]
    columns: dict[int, set[int]] = {}
    for row in rows:
        numbers = {number for span in row.n for number in range(span.first, span.last + 1, span.step)}
        for size in row.m:
            columns.setdefault(_number(fields["m"], size), set()).update(_number(fields["n"], number) for number in numbers)
    together: dict[int, list[int]] = {}
    for size, stored in columns.items():
        together.setdefault(_mask(stored), []).append(size)
    legal = [f"({_among(fields['m'], sizes)} && {_has_bit(fields['n'], mask)})" for mask, sizes in together.items()]
    if legal:
        yield Check("m, n", " || ".join(legal))


def _fits(conditions: Iterable[Condition], **facts: str) -> bool:
    """Return whether one of the conditions leaves room for these facts; it may ask for others."""
    return any(all(value in condition.get(name, (value,)) for name, value in facts.items()) for condition in conditions)


def _number(field: DescriptorField, value: int) -> int:
    """The number that a field holds for a value."""
    named = dict(_pairs(field))
    return named.get(str(value), (value - field.less) >> field.shift)


def _mask(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _hold(fields: Sequence[DescriptorField], numbers: Sequence[tuple[int, ...]]) -> str:
    """Return whether fields hold the numbers of one of the tuples."""
    first, *rest = fields
    if not rest:
        return _among(first, [number for (number,) in numbers])
    together: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for number in dict.fromkeys(each[0] for each in numbers):
        together.setdefault(tuple(each[1:] for each in numbers if each[0] == number), []).append(number)
    parts = []
    for others, own in together.items():
        both = [
            *([f"({_among(first, own)})"] if len(own) < 1 << width_of(first) else []),
            *([f"({_hold(rest, others)})"] if len(others) < math.prod(1 << width_of(each) for each in rest) else []),
        ]
        parts.append(" && ".join(both) if len(both) == 1 or len(together) == 1 else f"({' && '.join(both)})")
    return " || ".join(parts)


def _among(field: DescriptorField, numbers: list[int]) -> str:
    """Return whether a field holds one of the numbers."""
    if width_of(field) == 1:
        return _stored(field) if numbers == [1] else f"!{_stored(field)}"
    return f"{_mask(numbers):#x}u >> {_stored(field)} & 1" if width_of(field) <= _SMALL else _has_bit(field, _mask(numbers))


def _has_bit(field: DescriptorField, mask: int) -> str:
    """Return whether a mask has the bit that a field counts; of a wide field, a word of the mask for each 64 numbers."""
    first, *words = (mask >> low & ones(64) for low in range(0, 1 << width_of(field), 64))
    stored = _stored(field)
    if not words:
        return f"UINT64_C({first:#x}) >> {stored} & 1"
    chosen = "".join(f"{stored} >> 6 == {number} ? UINT64_C({word:#x}) : " for number, word in enumerate(words, 1))
    return f"({chosen}UINT64_C({first:#x})) >> ({stored} & 63) & 1"


def _stored(field: DescriptorField) -> str:
    """The bits that encode a field of a decoded struct."""
    value = f"fields.{field.name}"
    value = f"({value} - {field.less})" if field.less else value
    return f"({value} >> {field.shift})" if field.shift else value


class Mask(NamedTuple):
    """The function of a mask."""

    stem: str  # the stem of the functions of its descriptor: "ptxmma_tcgen05_zero_column_mask"
    parts: str  # the number of parts in C, over m
    sizes: str  # the values of M with a mask, in words
    numbers: list[tuple[str, str]]  # numbers that the formula reads, with their C expressions over `descriptor` and `part`
    zero: str  # the formula in C, over `column` of the part and the numbers
    source: str


def mask(spec: Spec, entry: ColumnMask) -> Mask:
    """All that the template needs of a mask."""
    format = next(each for each in spec.descriptors if each.name == entry.descriptor)
    fields = {field.name: field for field in format.fields}
    read = sorted(set(formula.names(formula.parse(entry.zero))))
    common = [(name, decoded(fields[name])) for name in read if name in fields]
    own = [(name, _of_part(fields[f"{name}_0"], fields[f"{name}_1"])) for name in read if f"{name}_0" in fields]
    *others, (_, last_count) = entry.parts.items()
    parts = "".join(f"m == {m} ? {count} : " for m, count in others) + str(last_count)
    return Mask(f"ptxmma_{format.name}", parts, " or ".join(entry.parts), common + own, to_c(entry.zero), entry.source)


def _of_part(first: DescriptorField, second: DescriptorField) -> str:
    """The field of a part, in C: the parts have theirs at equal distances."""
    step = second.low - first.low
    return decoded(first, f"(descriptor >> {f'{step} * part' if step > 1 else 'part'})")
