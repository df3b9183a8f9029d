"""The database as JavaScript reads it: data that many instructions share is written once, and they name it by its number.

Forms, shapes and names are the same as in ``ptxmma.json``; ``instructions.js`` expands them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from ptxmma.catalog import layouts
from ptxmma.catalog.citations import renumbered
from ptxmma.catalog.conversion.exchanges import TEXTS
from ptxmma.catalog.evidence.witnesses import ATOMS, PEERS, SILICON
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.cplusplus import header, type_qualifiers
from ptxmma.catalog.names.links import first_matrix
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import matrices
from ptxmma.catalog.variants import each_number, recased
from ptxmma.generator.emit import templating
from ptxmma.generator.emit.javascript import compact_memory, compact_operands, compact_tensor
from ptxmma.generator.emit.javascript.shortening import (
    Interned,
    columns,
    condition,
    packed,
    runs,
    template,
    without_empty,
)
from ptxmma.generator.proven import aliases, attached, definitions
from ptxmma.matrices.pictures import colour
from ptxmma.model import Form, Hint, InstructionSet, Preference, Qualifier, Spec, Version, formula

_LONGEST_LINE = 200
#: Colours of threads: so many differ.
_COLOURS = 32
#: The orders of the tables, and of the columns of instructions, in which the page compresses best, found by trying.
#: Every instruction has a name, so that this column comes first.
_ORDER = (
    "aliases peers calls operand_types version maps accepted axes lists gpus operands targets colours layouts instructions roles types "
    "registers sections cases products parameters places headers patterns names tensor scopes words values containers parts descriptors "
    "conversions formulas qualifiers subjects fields granularities hints preferences remarks document memory"
)
_COLUMNS = (
    "name hints patterns qualifiers calls aliases accepted forms scope typed peers extents places memory headers shape family opcode stem "
    "ordered syntax title operation repeatable"
)
#: The columns of operands.
_CONTENTS = ("role", "registers", "register", "layout", "elements", "type", "bits", "shift", "row_bytes", "alignment", "default")
#: The data that is shared as records; other shared data are lists and texts.
_TABLES = ("qualifiers", "hints", "remarks", "subjects", "roles")


def texts(catalog: Catalog) -> tuple[str, str]:
    """The database as JavaScript: on lines that people can read; and packed, without what the page does not show."""
    data = _data(catalog)
    shown = data | {
        "instructions": _ordered(data["instructions"], _COLUMNS),
        "messages": columns([each for each in _messages(catalog.database.spec) if each["code"].startswith("C")]),
    }
    return templating.lines(data, _LONGEST_LINE), packed(_ordered(shown, _ORDER))


def _ordered(tables: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Tables in the order of some names, others last; without the titles of operands, the remedies and the topics."""
    order = [*names.split(), *tables]
    return {name: tables[name] for name in sorted(tables, key=order.index) if name not in ("titles", "remedies", "topics")}


def _data(catalog: Catalog) -> dict[str, Any]:
    spec = catalog.database.spec
    rows = _Rows(catalog)
    instructions = [rows.of(entry) for entry in spec.instructions]
    data = {
        "version": spec.version,
        "document": spec.document,
        "scopes": spec.scopes,
        "colours": [colour(number) for number in range(_COLOURS)],
        "conversions": TEXTS,
        **without_empty(sections=renumbered(spec)),
        "targets": {target.name: target.ptx for target in spec.targets},
        "gpus": [{"target": gpu.target, "architecture": gpu.architecture, "names": gpu.names} for gpu in spec.gpus],
        "words": [[" ".join(word.names), *word.means] for word in spec.words],
        "parts": [[part.means, *part.names] for part in spec.operand_names],
        "topics": columns([{"names": _shortest(topic.names), "text": topic.text} for topic in spec.topics]),
        "messages": columns(_messages(spec)),
        "remedies": [{"cause": message.cause, "remedy": message.remedy} for message in spec.messages],
        "preferences": columns([_preference(each) for each in spec.preferences]),
        "types": {entry.name: {"title": entry.title, "bits": entry.bits, "form": entry.form} for entry in spec.types.elements},
        "registers": {entry.name: {"bits": entry.bits, "c_type": entry.c_type} for entry in spec.types.registers},
        "formulas": compact_operands.formulas(catalog),
        **compact_operands.records(catalog.database.layouts),
        **{name: columns(interned.values) if name in _TABLES else interned.values for name, interned in rows.shared.items()},
        "operands": columns([dict(zip(_CONTENTS, row, strict=True)) for row in rows.shared["operands"].values]),
        "instructions": columns(instructions),
    }
    return data | compact_memory.descriptors(spec.descriptors) | compact_memory.shared_memory(catalog) | compact_tensor.tables(spec)


class _Rows:
    """The instructions of a catalog, and what they share."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        names = (
            "qualifiers", "hints", "names", "values", "remarks", "parameters", "subjects", "roles", "operand_types", "operands", "lists",
            "calls", "accepted", "headers", "peers", "aliases", "granularities", "places", "patterns",
        )  # fmt: skip
        self._layouts = [*catalog.database.layout]
        self._numbers: dict[tuple[int, ...], int] = {}
        self._calls: dict[tuple[int, ...], str] = {}
        self._acceptances: dict[tuple[tuple[str, Version], ...], list[Any]] = {}
        self._registers = ["", *(register.name for register in catalog.database.spec.types.registers)]
        self._targets = {target.name: number for number, target in enumerate(catalog.database.spec.targets)}
        witnesses = attached(catalog.database)
        self._definitions = definitions(witnesses[PEERS])
        self._aliases = aliases(witnesses[ATOMS], witnesses[SILICON])
        self.shared = {name: Interned() for name in names}
        self.shared["operand_types"].number("")  # an operand without elements has type 0

    def of(self, entry: InstructionSet) -> dict[str, Any]:
        """An instruction with a row for each combination of qualifiers, in the order of its forms; extents that range share a row."""
        known: dict[str, Any] = msgspec.to_builtins(entry)
        known["opcode"] = entry.opcode or entry.syntax.split(".")[0]
        known["shape"] = entry.shape
        known["typed"] = matrices(entry).get(first_matrix(self._catalog.of(entry.name)[0]), "")
        known["places"] = _places(self._catalog.database.spec, self._catalog.of(entry.name)[0])
        kept = (
            "name", "family", "title", "stem", "scope", "operation", "memory", "opcode", "syntax", "ordered", "repeatable", "extents",
            "shape", "typed", "places",
        )  # fmt: skip
        usual = {"opcode": entry.name, "stem": recased(entry.name)}
        data = {key: known[key] for key in kept if known.get(key) and known[key] != usual.get(key)}
        data["qualifiers"] = runs([self.shared["qualifiers"].number(_qualifier(name, kind)) for name, kind in entry.qualifiers.items()])
        if entry.hints:
            data["hints"] = runs([self.shared["hints"].number(each) for hint in entry.hints for each in _hint_values(hint)])
        data["titles"] = {name: kind.title for name, kind in entry.operand_kinds.items()}
        data["forms"] = [runs([number for number in column if number is not None]) for column in zip_longest(*map(self._form, entry.forms))]
        rows = [self._row(group) for group in _groups(self._catalog.of(entry.name))]
        return data | {name: _of_rows([row[name] for row in rows]) for name in rows[0]}

    def _form(self, form: Form) -> list[int]:
        """Numbers of what a form says of itself, of the names of its qualifiers, and of the values of each."""
        ranges = {name: [(span.first, span.last, span.step) for span in spans] for name, spans in form.ranges.items()}
        remark = without_empty(unspelled=form.unspelled, ranges=ranges) | ({} if form.documented else {"documented": False})
        names, values = self.shared["names"].number(" ".join(form.qualifiers)), form.qualifiers.values()
        numbers = (self.shared["values"].number(" ".join(each)) for each in values)
        return [self.shared["remarks"].number(remark | {"source": form.source}), names, *numbers]

    def _row(self, group: Sequence[Instruction]) -> dict[str, int]:
        last = group[-1]
        shared: dict[str, Any] = {
            "calls": self._call(group),
            "accepted": self._accepted(last),
            "headers": template(header(last), _types(last)),
            "peers": self._named(group, self._definitions),
            "aliases": self._named(group, self._aliases),
        }
        if last.sparse:
            shared["patterns"] = self._pattern(last)
        return {name: self.shared[name].number(value) for name, value in shared.items()}

    def _call(self, group: Sequence[Instruction]) -> str:
        """The numbers of the operands of each list, which groups with the same operand lists share."""
        key = tuple(id(instruction.forms) for instruction in group)
        if key not in self._calls:
            forms = []
            for form in group[-1].forms:
                words = self.shared["lists"].number(without_empty(name=form.name, syntax=compact_operands.places_in(form)))
                forms.append(runs([words, *(self._operand(group, operand.name) for operand in form.operands)]))
            self._calls[key] = ";".join(forms)
        return self._calls[key]

    def _named(self, group: Sequence[Instruction], names_of: Mapping[str, Sequence[str]]) -> list[str]:
        """The names elsewhere of all instructions of a group, with ``{n}`` for the extent that ranges and ``{atype}`` for that type."""
        ranging = next(iter(group[-1].variant.ranging), "")

        def names(instruction: Instruction) -> list[str]:
            types = _types(instruction)
            number = rf"(?<=[bx]){instruction.extents[ranging]}(?=x)" if ranging else "(?!)"
            parts = (re.split(number, name) for name in names_of.get(instruction.canonical, ()))
            return [f"{{{ranging}}}".join(template(part, types) for part in each) for each in parts]

        first, *others = map(names, group)
        return [name for name in first if all(name in each for each in others)]

    def _accepted(self, instruction: Instruction) -> list[Any]:
        """The first version, the targets, and versions of targets that differ.

        The others take the instruction from that version on, or from the first one that knows the target.
        """
        accepted = tuple(instruction.accepted_by().items())
        if accepted not in self._acceptances:
            since = min((version for _, version in accepted), default=Version(""))
            known = {target.name: Version(target.ptx) for target in self._catalog.database.spec.targets}
            others = {name: str(version) for name, version in accepted if version != max(since, known[name])}
            self._acceptances[accepted] = [str(since), runs([self._targets[name] for name, _ in accepted]), *([others] if others else [])]
        return self._acceptances[accepted]

    def _pattern(self, instruction: Instruction) -> list[Any]:
        """The packing of an instruction's sparse matrix: the pattern, the units of a chunk that each field keeps, and their threads."""
        spec, metadata = instruction.database.spec, getattr(instruction, "metadata", None)
        pattern = layouts.granularity(spec, instruction.variant)
        assert pattern is not None
        about = {name: getattr(pattern, name) for name in ("name", "chunk", "kept", "unit", "index_bits", "indices", "text")}
        about["fields"] = spec.choice(pattern).fields
        places = {field: pattern.kept_units(field) for field in (metadata or pattern).legal}
        contributors = metadata.contributors if metadata else ""
        return [self.shared["granularities"].number(about), self.shared["places"].number(places), contributors]

    def _operand(self, group: Sequence[Instruction], name: str) -> int:
        """The number of an operand, which other groups may share."""
        own = [instruction.operand(name) for instruction in group]
        key = tuple(map(id, own))
        if key not in self._numbers:
            self._numbers[key] = self._number(group, own)
        return self._numbers[key]

    def _number(self, group: Sequence[Instruction], own: Sequence[Operand]) -> int:
        """The number of the largest member, by which the others are in proportion."""
        largest = own[-1]
        growing = largest.layout is not None and bool(largest.layout.growing)
        for instruction, operand in zip(group, own, strict=True):
            share = (operand.cols, largest.cols) if growing else (1, 1)
            in_proportion = not growing or operand.registers * share[1] == largest.registers * share[0]
            if operand.elements * share[1] != largest.elements * share[0] or not in_proportion:
                raise ValueError(f"{instruction.canonical}: operand {operand.name!r} does not grow in proportion to its columns")
        counts = [operand.registers for operand in own]
        variant = group[-1].variant
        counted = variant.instruction.operand_kinds[largest.name].count
        if counted and set(formula.names(formula.parse(counted))) <= variant.extents.keys():
            registers: int | str | list[int] = counted
        else:
            registers = largest.registers if growing or len(set(counts)) == 1 else counts
        subject = self.shared["subjects"].number(compact_operands.subject(largest))
        cpp = self.shared["parameters"].number(compact_operands.cpp(largest))
        role = self.shared["roles"].number({"subject": subject} | compact_operands.role(largest) | {"cpp": cpp})
        return self.shared["operands"].number([role, *self._contents(group[-1], largest, registers)])

    def _contents(self, instruction: Instruction, operand: Operand, registers: int | str | list[int]) -> list[Any]:
        """The content of an operand, and its place, in the order of ``_CONTENTS``."""
        register = self._registers.index(operand.register_types[0]) if operand.register_types else 0
        layout = self._layouts.index(operand.layout.name) + 1 if operand.layout is not None else 0
        qualifier = instruction.variant.instruction.operand_kinds[operand.name].type
        said = operand.element_type and instruction.variant.facts.get(qualifier) == operand.element_type
        element = f"{{{qualifier}}}" if said else operand.element_type or ""
        type_ = self.shared["operand_types"].number(element)
        fields: list[Any] = [registers, register, layout, operand.elements, type_, operand.bits, operand.shift]
        return [*fields, operand.row_bytes, operand.alignment, operand.default]


def _groups(members: Sequence[Instruction]) -> Iterator[Sequence[Instruction]]:
    """The instructions of a set that differ in nothing but extents that range, in the order in which a form expands."""
    place = 0
    while place < len(members):
        count = _points(members[place].variant.form)
        yield members[place : place + count]
        place += count


def _points(form: Form) -> int:
    return math.prod(len(each_number(form, name)) for name in form.ranges)


def _of_rows(numbers: Sequence[int]) -> str:
    """A number for each row; one number is for all rows."""
    return runs(numbers if len(set(numbers)) > 1 else numbers[:1])


def _qualifier(name: str, kind: Qualifier) -> dict[str, Any]:
    """A qualifier: what it is, and what it means to leave it out."""
    defaults = [{"value": default.value} | without_empty(when=condition(default.when)) for default in kind.default]
    return {"name": name, "title": kind.title} | without_empty(usual=kind.usual, default=defaults)


def _messages(spec: Spec) -> list[dict[str, str]]:
    return [{"code": message.code, "text": message.text} for message in spec.messages]


def _shortest(names: Sequence[str]) -> list[str]:
    """Names without those that have all words of a shorter one."""
    return [name for name in names if not any({*other.split()} < {*name.split()} for other in names)]


def _preference(preference: Preference) -> dict[str, Any]:
    return {"fact": preference.fact, "text": preference.text} | without_empty(first=preference.first, among=preference.among)


def _hint_values(hint: Hint) -> Iterator[dict[str, str]]:
    """The values of a hint, each with the hint's conditions and its own."""
    for value, entry in hint.values.items():
        yield {"name": hint.name, "value": value} | without_empty(of=condition(hint.when), when=condition(entry.when))


def _types(instruction: Instruction) -> dict[str, str]:
    """The qualifiers that name types, with their values."""
    facts = instruction.variant.facts
    return {name: str(facts[name]) for name in type_qualifiers(instruction.variant.instruction) if facts.get(name)}


def _places(spec: Spec, instruction: Instruction) -> dict[str, str]:
    """The place of each matrix in a picture of the product: ``"left"`` of the result, ``"top"``, or in the ``"middle"``.

    A matrix with the rows of the result is drawn on its left, any other on top.
    """
    if instruction.operation != "multiply":
        return {}
    kinds = instruction.variant.instruction.operand_kinds
    rows: dict[str, set[str]] = {}
    for operand in instruction.operands:
        if operand.layout is not None and operand.layout.kind == "fragment":
            size = spec.register_layouts[operand.layout.entry].axes[operand.layout.plane[0]]
            rows[operand.name] = set(formula.names(formula.parse(size)))
    results = [name for name, kind in kinds.items() if kind.kind == "accumulator"]
    matrices = [name for name, kind in kinds.items() if kind.kind == "fragment"]
    matrices += [kind.of for kind in kinds.values() if kind.kind == "descriptor"]
    left = {name for name in matrices if rows.get(name) == rows[results[0]]}
    return dict.fromkeys(results, "middle") | {name: "left" if name in left else "top" for name in matrices}
