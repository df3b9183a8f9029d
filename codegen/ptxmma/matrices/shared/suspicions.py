"""Probable mistakes in matrix descriptors.

>>> [(each.field, each.rule) for each in suspicions(0x4000040000000040)]
[('stride_byte_offset', 'bytes')]
"""

from __future__ import annotations

import ast
import copy
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ptxmma.catalog.descriptors.bits import bit_range, ones, spare, width_of
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.instructions import Catalog, DatabaseLike, catalog
from ptxmma.catalog.products import product_rules
from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.matrices.product_operands import Multiplicand, product_operands
from ptxmma.matrices.shared.canonical import STRIDES, Canonical, canonical, matrix_codec, mode_of
from ptxmma.matrices.shared.descriptor import Descriptor
from ptxmma.matrices.shared.readable_types import majornesses, memory_of, paddings, readable
from ptxmma.model import Majorness, Padded, SharedMemory, SuspicionRule, Swizzle, formula

#: Names in texts that are words, of strides alone.
WORDS = frozenset({"name", "only"})
#: The numbers that every rule may read, besides the names of ``let``, and the numbers of a stride.
NUMBERS = frozenset(
    {"start_address", "base_offset", "leading_mode", "inside", "least_start", "span", "pattern", "alignment", "reach", "along_k"}
)
STRIDE_NUMBERS = frozenset({"lines", "value", "other", "units", "by_all"})


class Condition(NamedTuple):
    """A rule of the spec for a swizzle mode, over the numbers that :class:`ptxmma.model.Suspicions` lists; ``let`` is expanded."""

    rule: SuspicionRule
    when: tuple[str, ...]  # formulas that must all hold, the cheapest first as the spec writes them
    text: tuple[tuple[str, str], ...]  # literals, each followed by a formula, one of WORDS, or nothing
    names: frozenset[str]  # the numbers that the condition and the text read


def conditions(memory: SharedMemory, mode: Swizzle | None = None) -> list[Condition]:
    """The rules for descriptors with a swizzle mode, in the order of the spec; without one they read the numbers of patterns by name.

    Raises:
        FormulaError: a formula that does not parse.
    """
    let = {**memory.suspicions.let, **(_of_pattern(memory, mode) if mode else {})}
    made = []
    for rule in memory.suspicions.rules:
        parts = [(literal, name or "") for literal, name, _, _ in string.Formatter().parse(rule.text)]
        text = tuple((literal, name if name in WORDS or not name else expanded(name, let)) for literal, name in parts)
        tree = formula.parse(expanded(rule.when, let))
        when = tuple(map(ast.unparse, tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]))
        read = [*when, *(number for _, number in text if number and number not in WORDS)]
        made.append(Condition(rule, when, text, frozenset(name for each in read for name in formula.names(formula.parse(each)))))
    return made


def _of_pattern(memory: SharedMemory, mode: Swizzle) -> dict[str, str]:
    """The base offsets that patterns need, and a test for another that moves bytes otherwise: narrow swizzles heed its low bits only."""
    moved = mode.formula or memory.swizzle_formula
    ours, theirs = (expanded(moved, {"address": "phase", "base_offset": base}) for base in ("base_offset", "phase_needed"))
    return {
        "needed": expanded(memory.base_offset, {"start": "first"}),
        "phase_needed": expanded(memory.base_offset, {"start": "phase"}),
        "misplaced": f"({ours}) != ({theirs})",
    }


def expanded(text: str, let: Mapping[str, str]) -> str:
    """A formula with formulas in the place of names, and of names in these."""
    return ast.unparse(_Expansion(let).visit(copy.deepcopy(formula.parse(text))))


class _Expansion(ast.NodeTransformer):
    def __init__(self, let: Mapping[str, str]) -> None:
        self._let = let

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._let:
            return node
        within = {name: text for name, text in self._let.items() if name != node.id}  # no formula reads itself
        tree: ast.expr = formula.parse(expanded(self._let[node.id], within))
        return tree


class Suspicion(NamedTuple):
    """A probable mistake in a descriptor."""

    field: str  # ``"stride_byte_offset"``; ``""`` for bits that belong to no field
    rule: str  # "unused", "illegal", "type", "base", "pattern", "zero", "overlap", "phase", "bytes" or "reach"
    text: str
    severity: str = "warning"  # "note": right in a usual case that the descriptor does not tell


def suspicions(
    descriptor: int,
    majorness: str | None = None,
    *,
    element: str | None = None,
    matrix: Multiplicand | None = None,
    unknown: int = 0,
    family: str = "",
    target: str | None = None,
    database: DatabaseLike = None,
) -> list[Suspicion]:
    """The probable mistakes in the 64 bits of a descriptor; instructions accept all of them silently.

    - ``unused``: bits that belong to no field are set.
    - ``illegal``: a field holds what it must not, or bits that must be 0 are not.
    - ``type``: no instruction reads the element type with this swizzle and majorness.
    - ``base``: a base offset where nothing is swizzled.
    - ``pattern``: the base offset is not the one of a pattern that starts where the matrix does.
    - ``zero``, ``overlap``: a stride with which neighbouring groups of lines overlap.
    - ``phase``: a stride that is not a multiple of the swizzle's pattern.
    - ``bytes``: a stride that looks as if it had been written in bytes, where the field counts units: the stride of one group of lines,
      or of several if it would otherwise skip more than 64 groups.
    - ``reach``: a stride that leads to addresses that no descriptor reaches.

    Judges each stride that any operand with a descriptor uses.  Where only some of them do, the text names them, and a field of 0 or 1
    passes: both are customary for operands that ignore the stride.

    Args:
        descriptor: the 64 bits.
        majorness: ``"K"`` or ``"MN"``; by default only what is suspicious for both is reported, or for those that the matrix may have.
        element: the type of the matrix, ``"tf32"``; the type of ``matrix`` by default.
        matrix: the operand that it describes: only the strides that it uses are judged, without allowance for customary values.
        unknown: a mask of bits that are not known; what depends on them is not reported.
        family: the family of the instruction that reads it; by default the database's first with matrix descriptors.
        target: the target that reads it, by any name; any by default.
        database: the source of the facts; the packaged database by default.

    Raises:
        TypeError: something that is not an integer.
        ValueError: bits that are not a descriptor, an unknown majorness, or a target without instructions that read it.
    """
    memory, codec = memory_of(database), matrix_codec(family, database, target)
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
    mode = mode_of(memory, read.swizzle)
    rules, known = _rules(database, mode), _numbers(memory, codec, mode, descriptor, unknown)
    known |= {} if majorness is None else {"along_k": int(majorness == "K")}
    by_majorness: list[dict[tuple[str, str], Suspicion]] = []
    # Types of 6 bits without padding have no canonical layout.
    for each in every if majorness is None or not every else [majorness]:
        layout = canonical(memory, each, read.swizzle)
        if matrix is None:
            users, by_all = stride_users(layout, database, family), used_strides(layout, database, family)
        else:
            by_all = layout.used(matrix.lines, matrix.depth, matrix.element.bits)
            users = {stride: [matrix.name.upper()] for stride in by_all}
        values = {stride: getattr(read, STRIDES[stride]) for stride in users if STRIDES[stride] not in unread}
        judged: list[Suspicion] = []
        for stride, value in values.items():
            units = 1 << codec.field(STRIDES[stride]).shift
            numbers = known | {"lines": layout.layout.lines, "value": value, "units": units, "by_all": int(stride in by_all)}
            other = next((name for name in users if name != stride), None)
            if other is None or other in values:
                numbers["other"] = values[other] if other else 0
            only = "" if stride in by_all else f"; only {' and '.join(users[stride])} can use {stride.upper()} here"
            judged += _judged(rules, STRIDES[stride], numbers, {"name": stride.upper(), "only": only})
        by_majorness.append({(suspicion.field, suspicion.rule): suspicion for suspicion in judged})
    first, *others = by_majorness or [{}]
    shared = [suspicion for key, suspicion in first.items() if all(key in other for other in others)]
    return [*_unused(descriptor, codec, unknown), *_judged(rules, "", known, {}), *shared]


def _rules(database: DatabaseLike, mode: Swizzle) -> list[Condition]:
    """The rules of the spec for a swizzle mode."""
    memo = catalog(database).database.memo
    key = ("suspicion rules", mode.name)
    if key not in memo:
        memo[key] = conditions(memory_of(database), mode)
    made: list[Condition] = memo[key]
    return made


def _numbers(memory: SharedMemory, codec: Codec, mode: Swizzle, descriptor: int, unknown: int) -> dict[str, int]:
    """The numbers that rules read of a descriptor, without those that depend on unknown bits."""
    start = codec.field("start_address")
    stored = {each.field.name: each.stored << each.field.shift for each in codec.explain(descriptor)}
    read = {name: stored.get(name, 0) for name in ("start_address", "base_offset", "leading_mode")}
    unread = {field.name for field in codec.format.fields if unknown >> field.low & ones(field.width)}
    known = {name: value for name, value in read.items() if name not in unread}
    known |= {"span": mode.bytes, "pattern": mode.pattern, "alignment": memory.alignment, "reach": codec.reach("start_address")}
    if not unknown >> start.low & (mode.pattern >> start.shift) - 1:
        known["inside"] = stored["start_address"] % mode.pattern
    return known | {"least_start": stored["start_address"]}


def _judged(rules: Iterable[Condition], stride: str, numbers: Mapping[str, int], words: Mapping[str, str]) -> Iterator[Suspicion]:
    """The rules that hold, of a stride by the name of its field, or of the other fields: those whose numbers are all known."""
    for each in rules:
        rule = each.rule
        if bool(rule.field) != bool(stride) and each.names <= numbers.keys() and all(_number(part, numbers) for part in each.when):
            said = (words.get(name) or (str(_number(name, numbers)) if name and name not in WORDS else "") for _, name in each.text)
            text = "".join(literal + number for (literal, _), number in zip(each.text, said, strict=True))
            yield Suspicion(rule.field or stride, rule.rule, text, rule.severity)


def _number(text: str, numbers: Mapping[str, int]) -> object:
    return formula.evaluate(formula.parse(text), numbers)


def used_strides(layout: Canonical, database: DatabaseLike, family: str) -> set[str]:
    """The strides, ``"lbo"`` and ``"sbo"``, that all operands use which an instruction reads through a descriptor."""
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
    memo = entries.database.memo
    if ("described", family) not in memo:
        memo["described", family] = [*_described(entries, family), *_chosen(entries, family)]
    sizes: dict[tuple[int, int, int], set[str]] = {}
    for name, each in memo["described", family]:
        if each.element.name in types:
            sizes.setdefault((each.lines, each.depth, each.element.bits), set()).add(f"{each.name.upper()} of {name}")
    return sizes


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
    """Bits that instructions do not read, or need to be otherwise: fields first, then runs of bits without a field, lowest first."""
    if codec.format.spare == "zero":
        yield from (Suspicion(each.field, "illegal", each.text) for each in codec.mistakes(descriptor, unknown))
        return
    for low, width in spare(codec.format):
        if descriptor >> low & ones(width):
            bits = f"bit {low} is not 0; it is" if width == 1 else f"bits {bit_range(low, width)} are not 0; they are"
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
