"""Two databases compared by what they mean: prose, sources and the wording of formulas do not count.

A change breaks consumers if code that was right with the old database need not be with the new one: an instruction or a target that is
gone, an element in another place, a name that generated code no longer has.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.requirements import version_key
from ptxmma.model import Database, Layout, SharedMemory, Spec, formula
from ptxmma.model.bitmap import domain
from ptxmma.model.formula import FormulaError


class Change(NamedTuple):
    """One way in which two databases differ.

    Attributes:
        kind: what it is about: ``"instruction"``, ``"targets"``, ``"operand"``, ``"layout"``, ``"function"``, ``"erratum"`` …
        text: what changed, in words.
        breaking: whether it breaks consumers.
        subjects: what it holds for: canonical spellings, names of layouts, types …
    """

    kind: str
    text: str
    breaking: bool
    subjects: tuple[str, ...]


#: A change without its subject.
Found = tuple[str, str, bool]
_Entry = TypeVar("_Entry", bound=msgspec.Struct)

#: Prose and origins.
_WORDS = frozenset({"title", "text", "note", "source", "lbo", "sbo", "known", "seen"})


def compare(old: Catalog, new: Catalog) -> list[Change]:
    """Everything that differs; what breaks consumers comes first."""
    gathered: dict[Found, list[str]] = {}
    for subject, found in itertools.chain(_instructions(old, new), _functions(old, new), _facts(old, new)):
        gathered.setdefault(found, []).append(subject)
    changes = [Change(kind, text, breaking, tuple(dict.fromkeys(subjects))) for (kind, text, breaking), subjects in gathered.items()]
    return sorted(changes, key=lambda change: not change.breaking)


# --- instructions -----------------------------------------------------------------------------------------------------------


def _instructions(old: Catalog, new: Catalog) -> Iterator[tuple[str, Found]]:
    same = _same_sets(old.database, new.database)
    ours, theirs = (
        {
            found.canonical: found
            for entry in catalog.database.spec.instructions
            if entry.name not in same
            for found in catalog.of(entry.name)
        }
        for catalog in (old, new)
    )
    comparer = _Operands()
    for spelling, before in ours.items():
        after = theirs.get(spelling)
        if after is None:
            yield spelling, ("instruction", "removed", True)
            continue
        differences = [
            *_names(before, after),
            *_acceptance(before, after),
            *_forms(before, after, comparer),
            *_metadata(before, after),
            *_statements(before, after),
        ]
        for found in differences:
            yield spelling, found
    for spelling in theirs:
        if spelling not in ours:
            yield spelling, ("instruction", "added", False)


#: What the variants of an instruction are worked out from, besides its own entry.
_COMMON = ("types", "targets", "fragments", "granularities", "choices", "metadata", "scales", "block_scaling")


def _same_sets(old: Database, new: Database) -> set[str]:
    """The instructions whose variants need no comparison: all that they are worked out from is the same."""
    if old.layouts != new.layouts or any(getattr(old.spec, section) != getattr(new.spec, section) for section in _COMMON):
        return set()
    there = {entry.name: entry for entry in new.spec.instructions}
    return {entry.name for entry in old.spec.instructions if there.get(entry.name) == entry}


def _names(before: Instruction, after: Instruction) -> Iterator[Found]:
    if before.identifier != after.identifier:
        yield "function", f"identifier {before.identifier} is now {after.identifier}", True
    if before.documented != after.documented:
        yield "instruction", "is now documented" if after.documented else "is no longer documented", False


def _acceptance(before: Instruction, after: Instruction) -> Iterator[Found]:
    """Targets and the first PTX ISA version on each; where these are the same, the rules that the manual states."""
    old, new = before.accepted_by(), after.accepted_by()
    lost, gained = ([name for name in one if name not in other] for one, other in ((old, new), (new, old)))
    if lost:
        yield "targets", f"no longer accepted by {' '.join(lost)}", True
    if gained:
        yield "targets", f"now accepted by {' '.join(gained)}", False
    moved: dict[tuple[str, str], list[str]] = {}
    for name in old:
        if name in new and old[name] != new[name]:
            moved.setdefault((old[name], new[name]), []).append(name)
    for (first, now), names in moved.items():
        yield "targets", f"from PTX ISA {now} on instead of {first} on {' '.join(names)}", version_key(now) > version_key(first)
    if old == new and before.documented == after.documented:
        rules = [{(rule.ptx, rule.targets) for rule in found.requirements()} for found in (before, after)]
        if rules[0] != rules[1]:
            yield "requirements", "the manual's rules are others, with the same result", False


def _forms(before: Instruction, after: Instruction, comparer: _Operands) -> Iterator[Found]:
    """Operand lists: those with the same operands belong together, of the others those in the same place."""
    old, new = list(before.forms), list(after.forms)
    pairs: list[tuple[OperandForm, OperandForm]] = []
    for form in before.forms:
        same = next((other for other in new if other.syntax == form.syntax), None)
        if same is not None:
            pairs.append((form, same))
            old.remove(form)
            new.remove(same)
    for form, other in itertools.zip_longest(old, new):
        if other is None:
            yield "operand", f"form {form.syntax!r} is gone", True
        elif form is None:
            yield "operand", f"form {other.syntax!r} is new", False
        else:
            yield "operand", f"form {form.syntax!r} is now {other.syntax!r}", True
            pairs.append((form, other))
    for form, other in pairs:
        there = {operand.name: operand for operand in other.operands}
        for operand in form.operands:
            if operand.name in there:
                yield from comparer.compare(operand, there[operand.name])


class _Operands:
    """Compares operands, which many instructions share, once each."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Operand, Operand, list[Found]]] = {}

    def compare(self, before: Operand, after: Operand) -> list[Found]:
        key = id(before), id(after)
        if key not in self._known:
            self._known[key] = before, after, [*_operand(before, after)]
        return self._known[key][2]


#: What code that uses an operand relies on.
_RELIED_ON = (
    "kind",
    "access",
    "element_type",
    "bits",
    "shift",
    "rows",
    "cols",
    "computations",
    "elements",
    "registers",
    "c_type",
    "constraint",
)


def _operand(before: Operand, after: Operand) -> Iterator[Found]:
    name = before.name
    for field in _RELIED_ON:
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            yield "operand", f"{name}: {field.replace('_', ' ')} {_shown(old)} is now {_shown(new)}", True
    yield from _sets(f"{name}: register types", before.register_types, after.register_types)
    yield from _sets(f"{name}: immediates", before.immediates or (), after.immediates or ())
    if before.takes_register != after.takes_register:
        yield "operand", f"{name}: a register may {'now' if after.takes_register else 'no longer'} stand there", before.takes_register
    if before.default != after.default:
        yield "operand", f"{name}: default {_shown(before.default)} is now {_shown(after.default)}", before.default is not None
    if before.uniform != after.uniform:
        yield "operand", f"{name}: the same over {_shown(before.uniform)} is now over {_shown(after.uniform)}", bool(after.uniform)
    if before.layout is not None and after.layout is not None:
        yield from _moved(name, before.layout, after.layout, min(before.elements, after.elements))


def _sets(what: str, old: Sequence[object], new: Sequence[object]) -> Iterator[Found]:
    if old != new:
        yield "operand", f"{what} {_several(old)} are now {_several(new)}", not _within(old, new)


def _within(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether every value is among the others; ranges may be far too long to go through."""
    if isinstance(some, range) and isinstance(others, range):
        return others.start <= some.start and some.stop <= others.stop
    return len(some) <= len(others) and all(value in others for value in some)


def _moved(name: str, old: Layout, new: Layout, elements: int) -> Iterator[Found]:
    """Elements, fields or scale factors that stand elsewhere."""
    if old.map == new.map:
        return
    if old.map.inputs.keys() != new.map.inputs.keys() or old.map.outputs.keys() != new.map.outputs.keys():
        yield "layout", f"{name}: a layout of another kind", True
        return
    points = domain({field: min(width, new.map.inputs[field]) for field, width in old.map.inputs.items()})
    if elements:
        kept = [place for place, i in enumerate(points["i"]) if i < elements]
        points = {field: [column[place] for place in kept] for field, column in points.items()}
    before, after = old.map.evaluate(points), new.map.evaluate(points)
    count = len(next(iter(points.values())))
    moved = [place for place in range(count) if any(before[field][place] != after[field][place] for field in before)]
    if moved:
        at, was, now = (_place(columns, moved[0]) for columns in (points, before, after))
        yield "layout", f"{name}: {len(moved)} of {count} moved; {at} was {was}, is {now}", True


def _place(columns: Mapping[str, Sequence[int]], place: int) -> str:
    return ", ".join(f"{field} {column[place]}" for field, column in columns.items())


def _metadata(before: Instruction, after: Instruction) -> Iterator[Found]:
    if not (before.sparse and after.sparse):
        return
    old, new = before.metadata, after.metadata
    if old.granularity.name != new.granularity.name:
        yield "metadata", f"pattern {old.granularity.name} is now {new.granularity.name}", True
    elif set(old.legal) != set(new.legal):
        yield "metadata", f"legal fields {' '.join(old.legal)} are now {' '.join(new.legal)}", not set(old.legal) <= set(new.legal)
    if old.padding != new.padding:
        yield "metadata", f"the field of zeros {old.padding} is now {new.padding}", True


def _statements(before: Instruction, after: Instruction) -> Iterator[Found]:
    arithmetic = ("multiply", "accumulate", "sums", "overflow", "rounds", "truncates", "unspecified")
    old, new = ([tuple(getattr(entry, field) for field in arithmetic) for entry in found.semantics()] for found in (before, after))
    if old != new:
        yield "semantics", "its arithmetic promises something else", False
    for kind in ("undefined", "uniform", "notes"):
        texts, others = ([entry.text for entry in getattr(found, kind)()] for found in (before, after))
        for text in texts:
            if text not in others:
                yield kind, f"no longer stated: {text}", False
        for text in others:
            if text not in texts:
                yield kind, f"now stated: {text}", False


def _sets_of_instructions(ours: Spec, theirs: Spec) -> Iterator[tuple[str, Found]]:
    """What an instruction's variants share: how they may be spelt, and who executes them."""
    there = {entry.name: entry for entry in theirs.instructions}
    for entry in ours.instructions:
        other = there.get(entry.name)
        if other is None:
            continue
        for field in ("opcode", "ordered", "repeatable", "ignored", "scope", "asynchronous", "memory"):
            before, after = getattr(entry, field), getattr(other, field)
            if before != after:
                yield entry.name, ("instruction", f"{field} {_shown(before)} is now {_shown(after)}", True)
        for name, qualifier in entry.qualifiers.items():
            values = [[(each.value, each.when) for each in held.default] for held in (qualifier, other.qualifiers.get(name, qualifier))]
            if values[0] != values[1]:
                yield entry.name, ("instruction", f"leaving out {name} means something else", True)


# --- names of generated functions -------------------------------------------------------------------------------------------


def _functions(old: Catalog, new: Catalog) -> Iterator[tuple[str, Found]]:
    """Layouts by name: generated code has functions of these names."""
    ours, theirs = old.database.layout, new.database.layout
    fresh = {name: layout for name, layout in theirs.items() if name not in ours}
    for name, layout in ours.items():
        if name not in theirs:
            heir = next((other for other, found in fresh.items() if _alike(layout, found)), None)
            yield name, ("function", f"is now {heir}" if heir else "removed", True)
            fresh.pop(heir or "", None)
    for name in fresh:
        yield name, ("function", "added", False)


def _alike(one: Layout, other: Layout) -> bool:
    return all(getattr(one, field) == getattr(other, field) for field in ("kind", "shape", "operands", "bits", "rows", "cols", "map"))


# --- facts beside the instructions ------------------------------------------------------------------------------------------


def _facts(old: Catalog, new: Catalog) -> Iterator[tuple[str, Found]]:
    ours, theirs = old.database.spec, new.database.spec
    if ours.document != theirs.document:
        yield theirs.document, ("document", f"instead of {ours.document}", False)
    yield from _sets_of_instructions(ours, theirs)
    yield from _entries("element type", ours.types.elements, theirs.types.elements, lambda entry: entry.name)
    yield from _entries("register type", ours.types.registers, theirs.types.registers, lambda entry: entry.name)
    # What a change of these does to instructions is told with the instructions.
    yield from _entries("target", ours.targets, theirs.targets, lambda entry: entry.name, changed=False)
    yield from _entries("PTX ISA version", ours.isa_versions, theirs.isa_versions, lambda entry: entry.version, changed=False)
    yield from _entries("compression", ours.choices, theirs.choices, lambda entry: f"{entry.units} units")
    yield from _entries("block format", ours.block_formats, theirs.block_formats, lambda entry: entry.name)
    yield from _shared_memory(ours, theirs)
    chips = (ours.throughput, theirs.throughput)
    yield from _entries("throughput", *chips, lambda entry: f"{entry.chip} at {entry.clock} MHz", removed=False, changed=False)
    if ours.protocol and theirs.protocol:
        orderings = (ours.protocol.orderings, theirs.protocol.orderings)
        yield from _entries("ordering", *orderings, lambda entry: f"{entry.earlier}; {entry.later}", removed=False, changed=False)
    yield from _entries("erratum", ours.errata, theirs.errata, lambda entry: entry.id, removed=False, changed=False)


def _entries(
    kind: str,
    old: Iterable[_Entry],
    new: Iterable[_Entry],
    key: Callable[[_Entry], str],
    *,
    removed: bool = True,
    changed: bool = True,
) -> Iterator[tuple[str, Found]]:
    """Entries of one list by name; ``removed`` and ``changed`` say whether that breaks consumers."""
    ours, theirs = ({key(entry): entry for entry in entries} for entries in (old, new))
    for name, entry in ours.items():
        if name not in theirs:
            yield name, (kind, "removed", removed)
            continue
        for field in entry.__struct_fields__:
            before, after = getattr(entry, field), getattr(theirs[name], field)
            if field not in _WORDS and before != after and not (_is_formula(field) and same_formula(before, after)):
                yield name, (kind, f"{field.replace('_', ' ')} {_shown(before)} is now {_shown(after)}", changed)
    for name in theirs:
        if name not in ours:
            yield name, (kind, "added", False)


def _shared_memory(ours: Spec, theirs: Spec) -> Iterator[tuple[str, Found]]:
    old, new = ours.shared_memory, theirs.shared_memory
    if old is None or new is None:
        if old is not new:
            yield "shared memory", ("shared memory", "added" if old is None else "removed", new is None)
        return
    yield from _entries("swizzle", old.swizzles, new.swizzles, lambda entry: entry.name)
    yield from _entries("descriptor field", old.descriptor, new.descriptor, lambda entry: entry.name)
    yield from _entries("canonical layout", old.layouts, new.layouts, lambda entry: f"{entry.majorness}-major, {' '.join(entry.swizzles)}")
    yield from _entries("shared memory", [_sizes(old)], [_sizes(new)], lambda _: "shared memory")


class _Sizes(msgspec.Struct):
    """The parts of shared memory that stand once."""

    alignment: int
    banks: tuple[int, int]
    largest_box: int
    box_alignment: int
    swizzle_formula: str
    base_offset_formula: str


def _sizes(memory: SharedMemory) -> _Sizes:
    boxes = memory.tensor_map
    banks = memory.banks.count, memory.banks.bytes
    return _Sizes(memory.alignment, banks, boxes.largest_box, boxes.alignment, memory.swizzle_formula, memory.base_offset)


def _is_formula(field: str) -> bool:
    return field == "offset" or field.endswith("formula")


#: Values that every variable of a formula takes in turn: odd, even, powers of two and none.
_TRIED = (1, 2, 7, 16, 40, 136)


def same_formula(one: str, other: str) -> bool:
    """Whether two formulas have the same value wherever it was tried: at every combination of a few values of their variables."""
    if one == other:
        return True
    trees = formula.parse(one), formula.parse(other)
    names = sorted({name for tree in trees for name in formula.names(tree)})
    points = list(zip(*itertools.product(_TRIED, repeat=len(names)), strict=True))
    variables = {name: list(column) for name, column in zip(names, points, strict=True)}
    try:
        return bool(formula.evaluate(trees[0], variables) == formula.evaluate(trees[1], variables))
    except FormulaError:
        return False


def _shown(value: Any) -> str:
    """A value in a sentence."""
    if value is None or value == "":
        return "nothing"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _several(values: Sequence[object]) -> str:
    if isinstance(values, range) and values:
        return f"{values[0]}..{values[-1]}"
    return " ".join(map(str, values)) or "none"
