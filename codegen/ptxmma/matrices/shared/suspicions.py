"""Probable mistakes in matrix descriptors.

>>> [(each.field, each.rule) for each in suspicions(0x4000040000000040)]
[('stride_byte_offset', 'bytes')]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog.descriptors.bits import ones, spare, width_of
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.instructions import Catalog, DatabaseLike, catalog
from ptxmma.catalog.products import product_rules
from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.matrices.product_operands import Multiplicand, product_operands
from ptxmma.matrices.shared.canonical import STRIDES, Canonical, canonical, matrix_codec, mode_of
from ptxmma.matrices.shared.descriptor import Descriptor, base_offset
from ptxmma.matrices.shared.readable_types import majornesses, memory_of, paddings, readable
from ptxmma.model import Majorness, Padded, SharedMemory

#: More groups of 8 lines than matrices in shared memory usually have: those of twice the largest N.
_MOST_GROUPS = 64


class Suspicion(NamedTuple):
    """A probable mistake in a descriptor."""

    field: str  # ``"stride_byte_offset"``; ``""`` for bits that belong to no field
    rule: str  # "unused", "illegal", "type", "base", "pattern", "zero", "overlap", "phase", "bytes" or "reach"
    text: str


def suspicions(
    descriptor: int,
    majorness: str | None = None,
    *,
    element: str | None = None,
    matrix: Multiplicand | None = None,
    unknown: int = 0,
    family: str = "",
    database: DatabaseLike = None,
) -> list[Suspicion]:
    """The probable mistakes in the 64 bits of a descriptor; instructions accept all of them silently.

    - ``unused``: bits that belong to no field are set.
    - ``illegal``: a field holds what it must not, or bits that must be 0 are not.
    - ``type``: no instruction reads the element type with this swizzle and majorness.
    - ``base``: a base offset where nothing is swizzled.
    - ``pattern``: the base offset is not that of a pattern that starts where the matrix does.
    - ``zero``, ``overlap``: a stride with which neighbouring groups of lines overlap.
    - ``phase``: a stride that is not a multiple of the swizzle's pattern.
    - ``bytes``: a stride that looks as if it had been written in bytes, where the field counts units: that of one group of lines, or of
      several if it would otherwise skip more than 64 groups.
    - ``reach``: a stride that leads to addresses that no descriptor reaches.

    Judges each stride that any operand behind a descriptor uses.  Where only some of them do, the text names them, and a field of 0 or 1
    passes: both are customary for operands that ignore the stride.

    Args:
        descriptor: the 64 bits.
        majorness: ``"K"`` or ``"MN"``; by default only what is suspicious for both is reported, or for those that the matrix may have.
        element: the type of the matrix, ``"tf32"``; that of ``matrix`` by default.
        matrix: the operand that it describes: only the strides that it uses are judged, without allowance for customary values.
        unknown: a mask of bits that are not known; what depends on them is not reported.
        family: of the instruction that reads it; by default the database's first with matrix descriptors.
        database: where the facts come from; the packaged database by default.

    Raises:
        TypeError: something that is not an integer.
        ValueError: bits that are not a descriptor, or an unknown majorness.
    """
    memory, codec = memory_of(database), matrix_codec(family, database)
    family = codec.format.family
    descriptor &= ~unknown
    unread = {field.name for field in codec.format.fields if unknown >> field.low & ones(field.width)}
    if "swizzle" in unread:
        return [*_unused(descriptor, codec, unknown)]
    read = Descriptor.decode(descriptor, family=family, database=database)
    if "leading_mode" in unread or read.leading_mode != "offset":
        unread.add("leading_byte_offset")  # an address
    name = matrix.element.name if matrix is not None else element
    ways: list[Majorness | Padded] = [*majornesses(family, database)]
    if matrix is None:
        ways += paddings(family, database)
    if unreadable := _unreadable(read.swizzle, majorness, name, ways):
        return [*_unused(descriptor, codec, unknown), unreadable]
    every = list(dict.fromkeys(each.majorness for each in majornesses(family, database) if read.swizzle in each.swizzles))
    if matrix is not None:
        every = [each for each in every if name in readable(each, database, family=family, swizzle=read.swizzle)]
    by_majorness = []
    for each in every if majorness is None else [majorness]:
        layout = canonical(memory, each, read.swizzle)
        if matrix is None:
            users, by_all = stride_users(layout, database, family), used_strides(layout, database, family)
        else:
            by_all = layout.used(matrix.lines, matrix.depth, matrix.element.bits)
            users = {stride: [matrix.name.upper()] for stride in by_all}
        known = {stride: names for stride, names in users.items() if STRIDES[stride] not in unread}
        strides = _Strides(codec, read, layout)
        judged = [*strides.alone(known, by_all & known.keys()), *(strides.in_bytes(users) if known == users else ())]
        by_majorness.append({(suspicion.field, suspicion.rule): suspicion for suspicion in judged})
    shared = [suspicion for key, suspicion in by_majorness[0].items() if all(key in other for other in by_majorness[1:])]
    second = _second_part(read, majorness, unread)
    return [*_unused(descriptor, codec, unknown), *second, *_of_pattern(read, memory, codec, unknown, database), *shared]


def _second_part(read: Descriptor, majorness: str | None, unread: set[str]) -> Iterator[Suspicion]:
    """What a descriptor must not say that leads to a second part at an address (PTX ISA 9.7.16.3.1.2.1)."""
    if "leading_mode" in unread or read.leading_mode == "offset":
        return
    if majorness == "MN":
        yield Suspicion("leading_mode", "illegal", f"leading_mode = {read.leading_mode} is for K-major matrices only")
    if read.base_offset:
        text = f"leading_mode = {read.leading_mode} needs base offset 0, not {read.base_offset}"
        yield Suspicion("leading_mode", "illegal", text)


def used_strides(layout: Canonical, database: DatabaseLike, family: str) -> set[str]:
    """Which of ``"lbo"`` and ``"sbo"`` all operands use that an instruction reads through a descriptor."""
    used = [strides for strides, _ in _used(layout, database, family)]
    return {stride for stride in STRIDES if all(stride in each for each in used)}


def stride_users(layout: Canonical, database: DatabaseLike, family: str) -> dict[str, list[str]]:
    """The operands that use ``"lbo"`` or ``"sbo"``, at least where they are largest: ``{"lbo": ["B of wgmma.sp"]}``.

    A stride that no operand uses is left out.
    """
    users: dict[str, set[str]] = {}
    for strides, operands in _used(layout, database, family):
        for stride in strides:
            users.setdefault(stride, set()).update(operands)
    return {stride: sorted(users[stride]) for stride in STRIDES if stride in users}


def _used(layout: Canonical, database: DatabaseLike, family: str) -> list[tuple[set[str], set[str]]]:
    """The strides that operands of each size use, with these operands."""
    majorness, memo = layout.layout.majorness, catalog(database).database.memo
    key = ("used strides", majorness, family, layout.layout.offset, layout.mode.bytes)
    if key not in memo:
        memo[key] = [(layout.used(*size), operands) for size, operands in _sizes(majorness, database, family).items()]
    used: list[tuple[set[str], set[str]]] = memo[key]
    return used


def _sizes(majorness: str, database: DatabaseLike, family: str) -> dict[tuple[int, int, int], set[str]]:
    """The operands that an instruction reads through a descriptor, by rows or columns, depth and bits of an element; a sparse A is packed.

    Of the many widths that a form has, only the largest: a stride that a narrow operand does not use is meant all the same.
    """
    entries, types = catalog(database), readable(majorness, database, family=family)
    known: dict[tuple[int, int, int], set[str]] | None = entries.database.memo.get(("described", majorness, family))
    if known is None:
        known = entries.database.memo[("described", majorness, family)] = {}
        for name, each in [*_described(entries, family), *_chosen(entries, family)]:
            if each.element.name in types:
                known.setdefault((each.lines, each.depth, each.element.bits), set()).add(f"{each.name.upper()} of {name}")
    return known


def _described(entries: Catalog, family: str) -> Iterator[tuple[str, Multiplicand]]:
    """The operands that the opcodes of a family describe completely, with the family of each."""
    for instruction in entries.all(lambda entry: any(kind.kind == "descriptor" for kind in entry.operand_kinds.values())):
        own = instruction.variant.instruction.family
        if reads(own, family) and instruction.variant.extents == instruction.variant.largest:
            operands = product_operands(instruction)
            yield from ((own, each) for each in (operands.a, operands.b) if each.described)


def _chosen(entries: Catalog, family: str) -> Iterator[tuple[str, Multiplicand]]:
    """The operands that an instruction descriptor describes, as large as they can be in one thread block."""
    rules = entries.database.spec.tensor_products
    if rules is None:
        return
    elements = {element.name: element for element in entries.database.spec.types.elements}
    opcodes = entries.all(lambda entry: entry.operation == OPERATION and reads(entry.family, family))
    lines = max(row.last for shape in rules.shapes for row in shape.n)
    known = {
        (rows.types["atype"], rows.types["btype"], rows.depth.k)
        for each in opcodes
        for rows in product_rules.rows(rules, each.variant.facts)
    }
    for a, b, k in sorted(known):
        yield from ((family, Multiplicand(name, elements[of], lines, k, described=True)) for name, of in (("a", a), ("b", b)))


def _unused(descriptor: int, codec: Codec, unknown: int = 0) -> Iterator[Suspicion]:
    """What instructions do not read, or need to be otherwise: fields first, then runs of bits that belong to none, from the lowest up."""
    if codec.format.spare == "zero":
        yield from (Suspicion(each.field, "illegal", each.text) for each in codec.mistakes(descriptor, unknown))
        return
    for low, width in spare(codec.format):
        if descriptor >> low & ones(width):
            bits = f"bit {low} is not 0; it is" if width == 1 else f"bits {low + width - 1}:{low} are not 0; they are"
            below = max((field for field in codec.format.fields if field.low < low), key=lambda field: field.low)
            most = ones(width_of(below)) << below.shift
            yield Suspicion("", "unused", f"{bits} ignored; was {below.name} larger than the {most} that its field holds?")


def _unreadable(swizzle: str, majorness: str | None, element: str | None, known: Iterable[Majorness | Padded]) -> Suspicion | None:
    """The suspicion that no instruction reads a type so; None where one does, or where the type is none that instructions read."""
    reading = [each for each in known if element in each.elements]
    wanted = [each for each in reading if majorness in (None, each.majorness)]
    if not reading or any(swizzle in each.swizzles for each in wanted):
        return None
    how = f" {majorness}-major" if majorness else ""
    text = f"{element} cannot be read{how} with swizzle {swizzle}"
    if wanted:
        swizzles = dict.fromkeys(name for each in wanted for name in each.swizzles)
        return Suspicion("swizzle", "type", f"{text}, only with {' or '.join(swizzles)}")
    return Suspicion("swizzle", "type", f"{element} cannot be read{how}, only {' or '.join(each.majorness for each in reading)}-major")


def _of_pattern(read: Descriptor, memory: SharedMemory, codec: Codec, unknown: int, database: DatabaseLike) -> Iterator[Suspicion]:
    """What is doubtful about a base offset; of the start address, only the bits within a pattern need be known."""
    base, start = codec.field("base_offset"), codec.field("start_address")
    if unknown >> base.low & ones(base.width):
        return
    mode = mode_of(memory, read.swizzle)
    if mode.bytes == memory.alignment:
        if read.base_offset:
            yield Suspicion("base_offset", "base", f"a base offset of {read.base_offset}, but nothing is swizzled: it has no effect")
        return
    if unknown >> start.low & (mode.pattern >> start.shift) - 1:
        return
    aligned = unknown >> start.low & ones(start.width)  # something above the pattern is not known
    first = read.start_address // mode.bytes * mode.bytes  # a step along the span stays in its line
    needed = base_offset(read.swizzle, first, database=database)
    layout = next(layout for layout in memory.layouts if read.swizzle in layout.swizzles)
    swizzled = canonical(memory, layout.majorness, read.swizzle).swizzled
    if swizzled(first, read.base_offset) == swizzled(first, needed):  # narrow swizzles heed the low bits of the base offset only
        return
    if read.base_offset:
        place = f"{first % mode.pattern} bytes after a multiple of {mode.pattern}" if aligned else f"at {first}"
        yield Suspicion("base_offset", "pattern", f"a base offset of {read.base_offset}, but a pattern that starts {place} needs {needed}")
    elif not aligned:
        text = (
            f"{read.start_address} is not in the first line of a pattern, which repeats every {mode.pattern} bytes: right where the "
            f"matrix is swizzled by absolute addresses, as TMA does; a pattern that starts at {first} needs base offset {needed}"
        )
        yield Suspicion("start_address", "pattern", text)


class _Strides:
    """Judges the strides of a descriptor by a layout."""

    def __init__(self, codec: Codec, read: Descriptor, layout: Canonical) -> None:
        self._codec, self._read, self._layout = codec, read, layout
        #: The smallest stride without overlap: a dense image has it from group to group.
        self._group = layout.layout.lines * layout.mode.bytes

    def alone(self, users: dict[str, list[str]], by_all: set[str]) -> Iterator[Suspicion]:
        """Each stride by itself, if an operand uses it."""
        read, mode, lines, end = self._read, self._layout.mode, self._layout.layout.lines, self._codec.reach("start_address")
        for stride in STRIDES:
            name, field, value = stride.upper(), self._codec.field(STRIDES[stride]), getattr(read, STRIDES[stride])
            if stride not in by_all and (stride not in users or value <= 1 << field.shift):
                continue
            only = "" if stride in by_all else f"; only {' and '.join(users[stride])} can use {name} here"
            if value == 0:
                yield Suspicion(field.name, "zero", f"{name} is 0: all groups of {lines} lines start at one address{only}")
            elif value < self._group:
                text = f"{name} is {value} bytes, but a group of {lines} lines takes {self._group}: they overlap{only}"
                yield Suspicion(field.name, "overlap", text)
            elif value % mode.pattern:
                text = f"{name} = {value} is not a multiple of {mode.pattern}, the bytes of a pattern: groups differ in their swizzle phase"
                yield Suspicion(field.name, "phase", text + only)
            if read.start_address + value >= end:
                text = f"{name} leads from {read.start_address} to {read.start_address + value}; descriptors reach below {end}"
                yield Suspicion(field.name, "reach", text + only)

    def in_bytes(self, used: Iterable[str]) -> Iterator[Suspicion]:
        """Strides that look as if they had been written in bytes."""
        values = {stride: getattr(self._read, STRIDES[stride]) for stride in used}
        for stride, value in values.items():
            field = self._codec.field(STRIDES[stride])
            raw, unit = value >> field.shift, 1 << field.shift
            others = [other for name, other in values.items() if name != stride]
            large = value > _MOST_GROUPS * max([self._group, *others])
            if raw and raw % self._group == 0 and (large or (raw == self._group and self._group not in values.values())):
                text = (
                    f"{stride.upper()} holds {raw}, which means {value} bytes, since the field counts units of {unit}: "
                    f"are {raw} bytes meant? They are {raw // unit} in the field"
                )
                yield Suspicion(field.name, "bytes", text)
