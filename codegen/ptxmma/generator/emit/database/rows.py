"""The rows of the SQL tables, in the order in which ``templates/database/ptxmma.sql.jinja`` declares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ptxmma.catalog import evidence_summary as summary
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import Operand
from ptxmma.model import (
    Condition,
    Fragment,
    InstructionSet,
    MetadataLayout,
    Observation,
    Requirement,
    ScaleLayout,
    Semantics,
    Spec,
    Statement,
    matches,
)

#: What SQL has: text, integers (truth values too) and NULL.
Value = str | int | None
Rows = list[tuple[Value, ...]]
Tables = dict[str, Rows]


def text(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A name of the spec as an SQL identifier."""
    return '"' + value.replace('"', '""') + '"'


_LITERALS: dict[type, Callable[[Any], str]] = {str: text, int: str, bool: lambda value: str(int(value)), type(None): lambda _: "NULL"}


def insert(table: str, rows: Rows) -> str:
    """The statement that fills a table, a line for each row."""
    lines = ",\n".join([f"({','.join([_LITERALS[type(value)](value) for value in row])})" for row in rows])
    return f"INSERT INTO {table} VALUES\n{lines};\n"


def _condition(conditions: Sequence[Condition]) -> str | None:
    return _json(conditions) if conditions else None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def tables(catalog: Catalog) -> Tables:
    """Every table with its rows."""
    spec = catalog.database.spec
    found: Tables = {"spec": [(spec.version, spec.document)]}
    found |= _types(spec)
    found |= _targets(spec)
    found |= _instructions(spec)
    found |= _layouts(catalog)
    found |= _variants(catalog)
    found |= _shared_memory(spec)
    found |= _protocol(spec)
    found |= _throughput(spec)
    found |= _errata(spec)
    found |= _evidence(catalog)
    return found


def _evidence(catalog: Catalog) -> Tables:
    """Variants and layouts have their numbers in the order of the catalog."""
    told = summary.of(catalog.database)
    found: Tables = {"witnesses": [(tool.name, tool.kind, tool.version, tool.sha256, tool.date) for tool in told.tools]}
    found["assembler_answers"] = [
        (number, cuda, target) for number, answer in enumerate(told.answers) for cuda, targets in answer.items() for target in targets
    ]
    found |= {"evidence": [], "executions": [], "peer_atoms": []}
    for variant, instruction in enumerate(catalog.all(), 1):
        row = told.instructions.get(instruction.canonical)
        if row is None:
            continue
        found["evidence"].append((variant, row.assembled, " ".join(row.stale)))
        for ran in row.executed:
            found["executions"].append((variant, ran.chip, ran.launches, ran.wrong, " or ".join(ran.machine), ran.native))
        for agrees, atoms in ((True, row.peers), (False, row.differing)):
            found["peer_atoms"] += [(variant, atom, agrees) for atom in atoms]
    numbers = {layout.name: number for number, layout in enumerate(catalog.database.layouts, 1)}
    found["layout_launches"] = [(numbers[name], launches) for name, launches in told.layouts.items() if name in numbers]
    return found


def _throughput(spec: Spec) -> Tables:
    return {
        "throughput": [
            (
                chip.chip,
                chip.target,
                chip.sms,
                chip.clock,
                _condition(rate.of),
                rate.dense,
                rate.sparse or None,
                *_two(rate.published),
                chip.source,
            )
            for chip in spec.throughput
            for rate in chip.rates
        ]
    }


def _two(published: Sequence[str]) -> tuple[str, str | None]:
    return published[0], published[1] if len(published) > 1 else None


def _errata(spec: Spec) -> Tables:
    fields = ("tool", "target", "ptx", "compiled_for", "asked", "example", "answer", "database")
    return {
        "errata": _fields(spec.errata, "id", "family", "section", "says", "holds", "known", "textual"),
        "sightings": [(entry.id, *row) for entry in spec.errata for row in _fields(entry.seen, *fields)],
    }


# --- types and targets ------------------------------------------------------------------------------------------------------


def _fields(entries: Iterable[msgspec.Struct], *names: str) -> Rows:
    """The named fields of each entry."""
    return [tuple(getattr(entry, field) for field in names) for entry in entries]


def _types(spec: Spec) -> Tables:
    types = spec.types
    numbers = ("bits", "exponent", "mantissa", "bias", "sign", "infinity", "nan")
    return {
        "element_types": _fields(types.elements, "name", "title", "form", *numbers, "numpy", "source"),
        "containers": [
            (element, _condition(entry.when), entry.bits, entry.shift, entry.source)
            for entry in types.containers
            for element in entry.elements
        ],
        "register_types": _fields(types.registers, "name", "title", "bits", "c_type", "constraint", "source"),
    }


def _targets(spec: Spec) -> Tables:
    return {
        "isa_versions": [
            (entry.version, *map(int, entry.version.split(".")), entry.cuda, entry.note, entry.source) for entry in spec.isa_versions
        ],
        "targets": _fields(spec.targets, "name", "number", "suffix", "ptx", "until", "releases", "source"),
        "target_versions": [(entry.name, floor.cuda, floor.ptx) for entry in spec.targets for floor in entry.ptx_in],
        "target_includes": [(entry.name, included) for entry in spec.targets for included in entry.includes],
    }


# --- instructions and their rules -------------------------------------------------------------------------------------------

_TOPICS = ("undefined", "uniform", "notes")


def _instructions(spec: Spec) -> Tables:
    fields = ("name", "family", "title", "stem", "scope", "sparse", "asynchronous", "memory", "syntax", "source")
    found: Tables = {"instructions": _fields(spec.instructions, *fields)}
    for table in ("qualifiers", "qualifier_defaults", "requirements", "requirement_targets", "observations", "observation_targets"):
        found[table] = []
    found |= {"semantics": [], "statements": []}
    for entry in spec.instructions:
        _qualifiers(entry, found)
        for rule in entry.requires:
            number = len(found["requirements"]) + 1
            found["requirements"].append((number, entry.name, rule.ptx or None, rule.note, _condition(rule.when), rule.source))
            found["requirement_targets"] += [(number, target) for target in rule.targets]
        for seen in entry.observed:
            number = len(found["observations"]) + 1
            found["observations"].append((number, entry.name, seen.ptx or None, seen.releases, _condition(seen.when), seen.source))
            found["observation_targets"] += [(number, target) for target in seen.targets]
        for meaning in entry.semantics:
            promise = (meaning.multiply, meaning.accumulate, meaning.overflow, meaning.truncates, _json(meaning.unspecified), meaning.text)
            row = (len(found["semantics"]) + 1, entry.name, *promise, _condition(meaning.when), meaning.source)
            found["semantics"].append(row)
        for topic in _TOPICS:
            _statements(found["statements"], entry.name, topic, getattr(entry, topic))
    if spec.shared_memory is not None:
        _statements(found["statements"], None, "shared_memory", spec.shared_memory.notes)
    return found


def _qualifiers(entry: InstructionSet, found: Tables) -> None:
    for qualifier, what in entry.qualifiers.items():
        number = len(found["qualifiers"]) + 1
        found["qualifiers"].append((number, entry.name, qualifier, what.title, what.usual))
        found["qualifier_defaults"] += [(number, default.value, _condition(default.when), default.source) for default in what.default]


def _statements(rows: Rows, instruction: str | None, topic: str, statements: Iterable[Statement]) -> None:
    for entry in statements:
        rows.append((len(rows) + 1, instruction, topic, entry.over, entry.text, _condition(entry.when), entry.source))


# --- layouts ----------------------------------------------------------------------------------------------------------------


def _layouts(catalog: Catalog) -> Tables:
    spec = catalog.database.spec
    found: Tables = {table: [] for table in ("formula_sets", "formulas", "layouts", "layout_bits")}
    numbers: dict[tuple[str, int], int] = {}
    sets: list[tuple[str, Sequence[Fragment | MetadataLayout | ScaleLayout]]] = [
        ("fragment", spec.fragments),
        ("metadata", spec.metadata),
        ("scale", spec.scales),
    ]
    for kind, entries in sets:
        for index, entry in enumerate(entries):
            number = numbers[kind, index] = len(numbers) + 1
            extra = (entry.selectors, entry.contributors) if isinstance(entry, MetadataLayout) else (None, None)
            found["formula_sets"].append((number, kind, *extra, entry.source))
            found["formulas"] += [(number, position, *formula) for position, formula in enumerate(_formulas(entry))]
    for number, layout in enumerate(catalog.database.layouts, 1):
        sizes = (layout.bits, layout.rows, layout.cols, layout.threads)
        row = (number, layout.name, layout.kind, layout.family, layout.shape, *sizes, numbers[layout.kind, layout.entry])
        found["layouts"].append(row)
        found["layout_bits"] += [
            (number, source, bit, output, place)
            for source, targets in layout.map.bits.items()
            for bit, (output, place) in enumerate(targets)
        ]
    found |= {"granularities": [], "granularity_values": []}
    for number, pattern in enumerate(spec.granularities, 1):
        counts = (pattern.chunk, pattern.kept, pattern.unit, pattern.index_bits, pattern.indices)
        found["granularities"].append((number, pattern.name, *counts, pattern.text, _condition(pattern.of), pattern.source))
        ordered = pattern.ordered or pattern.legal
        found["granularity_values"] += [(number, value, value in ordered) for value in pattern.legal]
    found["choices"] = _fields(spec.choices, "units", "text", "source")
    found["choice_fields"] = [(entry.units, occupied, field) for entry in spec.choices for occupied, field in entry.fields.items()]
    found["block_scaling"] = [
        (entry.kind, entry.scale_vec, stype, entry.blocks, entry.source) for entry in spec.block_scaling for stype in entry.stypes
    ]
    found["block_formats"] = [
        (entry.name, entry.title, entry.element, entry.scale, entry.block, _condition(entry.of), entry.source)
        for entry in spec.block_formats
    ]
    return found


def _formulas(entry: Fragment | MetadataLayout | ScaleLayout) -> Iterator[tuple[str, int, str, str]]:
    """Name, whether it is a helper, guard and formula of each."""
    for helper, formula in entry.let.items():
        yield helper, 1, "", formula
    for result in ("row", "col", "computation", "lane", "bit", "byte"):
        for case in getattr(entry, result, ()):
            yield result, 0, case.when, case.value


# --- variants and their operands --------------------------------------------------------------------------------------------


#: What holds for some variants of an instruction only, by the table that says for which.
_RULES: dict[str, Callable[[InstructionSet], Sequence[Requirement | Observation | Semantics | Statement]]] = {
    "requirements": lambda entry: entry.requires,
    "observations": lambda entry: entry.observed,
    "semantics": lambda entry: entry.semantics,
    "statements": lambda entry: [statement for topic in _TOPICS for statement in getattr(entry, topic)],
}


class _Numbers(dict[Any, int]):
    """Numbers things from 1 in the order in which they are first asked for."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self) + 1
        return self[key]


def _variants(catalog: Catalog) -> Tables:
    found: Tables = {"supports": [], "support_targets": [], "variants": [], "variant_qualifiers": [], "variant_operand_lists": []}
    found |= {f"conditional_{link}": [] for link in _RULES}
    supports, operand_lists = _Numbers(), _Numbers()
    operands = _Operands(catalog)
    before = dict.fromkeys(("qualifiers", *_RULES), 0)  # entries of the instructions before this one
    variant = 0
    for entry in catalog.database.spec.instructions:
        qualifiers = {qualifier: before["qualifiers"] + number for number, qualifier in enumerate(entry.qualifiers, 1)}
        rules = {link: list(enumerate(entries(entry), before[link] + 1)) for link, entries in _RULES.items()}
        for instruction in catalog.of(entry.name):
            variant += 1
            facts = instruction.variant.facts
            support = supports[tuple(instruction.accepted_by().items())]
            sizes = instruction.shape or (None, None, None)
            row = (variant, instruction.identifier, instruction.canonical, entry.name, instruction.documented, *sizes, support)
            found["variants"].append((*row, instruction.variant.form.source))
            found["variant_qualifiers"] += [(variant, number, facts[key]) for key, number in qualifiers.items() if facts.get(key)]
            for position, form in enumerate(instruction.forms):
                number = operand_lists[form.name, form.syntax, tuple([operands.number(operand) for operand in form.operands])]
                found["variant_operand_lists"].append((variant, position, number))
            for link, numbered in rules.items():
                if link == "requirements" and not instruction.documented:  # the manual's rules are about what it has
                    continue
                found[f"conditional_{link}"] += [(variant, number) for number, rule in numbered if rule.when and matches(rule.when, facts)]
        before["qualifiers"] += len(qualifiers)
        for link, numbered in rules.items():
            before[link] += len(numbered)
    found["supports"] = [(number,) for number in supports.values()]
    found["support_targets"] = [(number, *pair) for pairs, number in supports.items() for pair in pairs]
    found |= operands.tables
    found["operand_lists"] = [(number, form, syntax) for (form, syntax, _), number in operand_lists.items()]
    found["operand_list_members"] = [
        (number, position, operand) for (*_, operands), number in operand_lists.items() for position, operand in enumerate(operands)
    ]
    return found


class _Operands:
    """The rows of operands, each distinct operand once."""

    def __init__(self, catalog: Catalog) -> None:
        self.tables: Tables = {"operands": [], "operand_registers": [], "operand_immediates": []}
        self._layouts = {layout.name: number for number, layout in enumerate(catalog.database.layouts, 1)}
        self._granularities = catalog.database.spec.granularities
        self._numbers = _Numbers()
        self._seen: dict[int, int] = {}  # many variants share one object

    def number(self, operand: Operand) -> int:
        """The row of an operand, made if it is new."""
        number = self._seen.get(id(operand))
        if number is None:
            number = self._seen[id(operand)] = self._row(operand)
        return number

    def _row(self, operand: Operand) -> int:
        layout = self._layouts[operand.layout.name] if operand.layout is not None else None
        pattern = self._granularities.index(operand.sparsity) + 1 if operand.sparsity is not None else None
        what = (operand.name, operand.kind, operand.title, operand.access, operand.element_type, operand.bits, operand.rows)
        held = (operand.cols, operand.elements, operand.registers, operand.constraint, operand.takes_register)
        rest = (operand.immediates is not None, operand.default, operand.uniform, layout, pattern, operand.source)
        row = (*what, *held, *rest)
        immediates = tuple(_spans(operand.immediates or ()))
        known = len(self._numbers)
        number = self._numbers[row, operand.register_types, immediates]
        if number > known:
            self.tables["operands"].append((number, *row))
            self.tables["operand_registers"] += [(number, position, kind) for position, kind in enumerate(operand.register_types)]
            self.tables["operand_immediates"] += [(number, *span) for span in immediates]
        return number


def _spans(values: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of neighbouring values, as first and last."""
    if isinstance(values, range) and values.step == 1:  # it may be too long to look at each
        return [(values[0], values[-1])]
    spans: list[tuple[int, int]] = []
    for value in values:
        if spans and spans[-1][1] + 1 == value:
            spans[-1] = (spans[-1][0], value)
        else:
            spans.append((value, value))
    return spans


# --- shared memory and protocol ---------------------------------------------------------------------------------------------


def _shared_memory(spec: Spec) -> Tables:
    memory = spec.shared_memory
    if memory is None:
        return {}
    swizzles = _fields(memory.swizzles, "name", "title", "encoding", "bytes", "pattern", "cute", "tma")
    texts = ("cute", "offset", "lbo", "sbo", "uses_lbo", "source")
    fields = ("name", "majorness", "swizzle", "type", "m", "k", "cute", "lbo", "sbo", "lbo_encoding", "sbo_encoding", "source")
    return {
        "shared_memory": _fields([memory], "alignment", "swizzle_formula", "base_offset", "source"),
        "banks": _fields([memory.banks], "count", "bytes", "source"),
        "swizzles": [(*row, *entry.atom_mn, *entry.atom_k, entry.source) for row, entry in zip(swizzles, memory.swizzles, strict=True)],
        "canonical_layouts": [
            (entry.majorness, swizzle, *_fields([entry], *texts)[0]) for entry in memory.layouts for swizzle in entry.swizzles
        ],
        "majorness": [(entry.majorness, entry.text, _condition(entry.of), entry.source) for entry in memory.majorness],
        "descriptor_fields": _fields(memory.descriptor, "name", "title", "low", "width", "shift", "unit", "source"),
        "shared_memory_examples": _fields(memory.examples, *fields),
    }


def _protocol(spec: Spec) -> Tables:
    protocol = spec.protocol
    if protocol is None:
        return {}
    return {
        "definitions": _fields(protocol.definitions, "name", "formula", "text", "source"),
        "protocol_steps": [
            (position, step.name, step.instruction or None, step.text, step.source) for position, step in enumerate(protocol.steps, 1)
        ],
        "protocol_orderings": _fields(protocol.orderings, "earlier", "later", "needs", "by", "text", "source"),
        "proxy_accesses": _fields(protocol.proxies, "access", "proxy", "source"),
    }
