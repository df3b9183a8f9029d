"""Looking instructions up: what users and generators ask of a database."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ptxmma import layouts, operands, requirements
from ptxmma.model import Database, Granularity, Layout, MetadataLayout, Observation, Requirement
from ptxmma.operands import Operand
from ptxmma.variants import Spellings, Variant, expand

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")

#: A database, the path of its ``ptxmma.json``, or None for the packaged one.
DatabaseLike = Database | str | os.PathLike[str] | None


class UnknownInstruction(LookupError):
    """No such instruction.

    Attributes:
        spelling: what was asked for.
        reason: why it is none.
        close: canonical spellings of the closest legal instructions.
    """

    def __init__(self, spelling: str, reason: str, close: list[str]) -> None:
        self.spelling, self.reason, self.close = spelling, reason, close
        hint = "".join(f"\n  {text}" for text in close)
        super().__init__(f"{spelling}: {reason}" + (f"; closest:{hint}" if close else ""))


class OperandForm(msgspec.Struct, frozen=True):
    """One operand list of an instruction.

    Attributes:
        name: ``"registers"`` or ``"descriptor"``, by where A comes from; ``""`` where there is one list only.
        syntax: the manual's text: ``"d, a, b-desc, scale-d"``.
        operands: the operands in order.
    """

    name: str
    syntax: str
    operands: tuple[Operand, ...]

    def operand(self, name: str) -> Operand:
        """The operand of that name; ``KeyError`` where the form has none."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise KeyError(f"no operand {name!r}; this form has {', '.join(operand.name for operand in self.operands)}")


class Metadata:
    """The sparsity metadata of an instruction (PTX ISA 9.7.14.6.1).

    Attributes:
        rows: rows of A; chunks: chunks in each row.
        selectors: legal values of the sparsity selector are 0..selectors-1.
        width: bits of the field of one chunk.
        granularity: the pattern of zeros that the fields describe.
    """

    def __init__(self, layout: Layout, entry: MetadataLayout, pattern: Granularity) -> None:
        self.layout = layout
        self.granularity = pattern
        self.rows, self.chunks = layout.rows, layout.cols
        self.selectors = entry.selectors
        self.width = pattern.index_bits * pattern.indices
        self.contributors = entry.contributors

    def locate(self, row: Any, chunk: Any, selector: Any = 0) -> tuple[Any, Any, int]:
        """``(lane, lowest bit, width)`` of the field that describes ``chunk`` of ``row``; row and chunk may be arrays.

        Raises:
            ValueError: a scalar out of range.
        """
        for name, value, limit in (("row", row, self.rows), ("chunk", chunk, self.chunks), ("selector", selector, self.selectors)):
            operands._in_range(name, value, limit)
        place = self.layout.map.apply({"row": row, "chunk": chunk, "selector": selector})
        return place["lane"], place["field"] * self.width, self.width

    def fields(self, lane: int, selector: int = 0) -> list[tuple[int, int, int]]:
        """The ``(row, chunk, lowest bit)`` of every field in the register of ``lane``; empty where that lane is ignored."""
        operands._in_range("lane", lane, self.layout.threads)
        operands._in_range("selector", selector, self.selectors)
        back = self.layout.map.inverse()
        found = (back.apply({"lane": lane, "field": field}) | {"bit": field * self.width} for field in range(32 // self.width))
        return [(place["row"], place["chunk"], place["bit"]) for place in found if place["selector"] == selector]


class Instruction:
    """One instruction: a canonical spelling with everything the database knows of it."""

    def __init__(self, database: Database, variant: Variant) -> None:
        self.database = database
        self.variant = variant
        self.canonical = variant.canonical
        self.identifier = variant.identifier
        self.family = variant.instruction.family
        self.documented = variant.form.documented
        self.sparse = variant.instruction.sparse

    def __repr__(self) -> str:
        return f"<ptxmma.Instruction {self.canonical}>"

    @property
    def shape(self) -> tuple[int, int, int] | None:
        """``(m, n, k)``; None for instructions without a shape."""
        facts = self.variant.facts
        return (int(facts["m"]), int(facts["n"]), int(facts["k"])) if self.variant.shape else None

    @property
    def qualifiers(self) -> dict[str, str]:
        """The value of each qualifier, without its dot; ``""`` where it is absent."""
        return {name: str(self.variant.facts.get(name, "")) for name in self.variant.instruction.qualifiers}

    def accepted_by(self) -> dict[str, str]:
        """Every target that accepts it, with the first PTX ISA version that does, by the newest assembler that knows the target."""
        return dict(self._accepted)

    @functools.cached_property
    def _accepted(self) -> dict[str, str]:
        return requirements.accepted_by(self.database.spec, self.variant)

    def requirements(self) -> list[Requirement]:
        """What the manual states, rule by rule, each with its source; all of them hold together."""
        return requirements.stated(self.variant)

    def observed(self) -> list[Observation]:
        """Where assemblers differ from the manual, or from each other."""
        return requirements.observed(self.variant)

    @functools.cached_property
    def forms(self) -> tuple[OperandForm, ...]:
        """Its operand lists, A in registers before A by descriptor."""
        instruction = self.variant.instruction
        found = []
        for text in instruction.operands.get(self.variant.form.operands, ()):
            names = operand_names(text)
            described = tuple(operands.describe(self.database, self.variant, name) for name in names)
            form = "descriptor" if "a-desc" in names else "registers" if "a-desc" in instruction.operand_kinds else ""
            found.append(OperandForm(form, text, described))
        return tuple(sorted(found, key=lambda form: form.name == "descriptor"))

    def operand(self, name: str) -> Operand:
        """The operand of that name in the first form that has it; ``KeyError`` where none has."""
        for form in self.forms:
            for operand in form.operands:
                if operand.name == name:
                    return operand
        known = dict.fromkeys(operand.name for form in self.forms for operand in form.operands)
        raise KeyError(f"{self.canonical} has no operand {name!r}; it has {', '.join(known)}")

    @functools.cached_property
    def metadata(self) -> Metadata:
        """The layout of its sparsity metadata.

        Raises:
            AttributeError: the instruction is not sparse.
        """
        entry = layouts.metadata_entry(self.database.spec, self.variant)
        pattern = layouts.granularity(self.database.spec, self.variant)
        plan = layouts.metadata_plan(self.database.spec, self.variant, "")
        if entry is None or pattern is None or plan is None:
            raise AttributeError(f"{self.canonical} is not sparse: it has no metadata")
        return Metadata(self.database.layout[plan.name], entry, pattern)


def operand_names(syntax: str) -> list[str]:
    """The names in an operand list such as ``"d, a, scale-a-data, {byte-id-a, thread-id-a}"``."""
    return [name.strip(" {}") for name in syntax.split(",")] if syntax else []


class Catalog:
    """All instructions of a database, made as they are asked for."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._instructions: dict[str, list[Instruction]] = {}
        self._spellings: dict[str, Spellings] = {}
        self._made: dict[str, Instruction] = {}

    def of(self, name: str) -> list[Instruction]:
        """Every variant of the PTX instruction ``name``."""
        if name not in self._instructions:
            entry = next(entry for entry in self.database.spec.instructions if entry.name == name)
            made = [Instruction(self.database, variant) for variant in expand(entry)]
            self._instructions[name] = made
            self._spellings[name] = Spellings(entry, (instruction.variant for instruction in made))
            self._made |= {instruction.canonical: instruction for instruction in made}
        return self._instructions[name]

    def all(self) -> Iterator[Instruction]:
        """Every instruction, in the order of the spec."""
        for entry in self.database.spec.instructions:
            yield from self.of(entry.name)

    def find(self, spelling: str) -> Instruction:
        """The instruction that any accepted spelling means; raises :class:`UnknownInstruction`."""
        text = spelling.strip()
        for entry in self.database.spec.instructions:
            if set(_fixed_tokens(entry.syntax)) <= set(text.split(".")):
                self.of(entry.name)
                variant = self._spellings[entry.name].find(text)
                if variant is not None:
                    return self._made[variant.canonical]
        raise self._unknown(text)

    def _unknown(self, spelling: str) -> UnknownInstruction:
        tokens = spelling.split(".")
        opcodes = {entry.name.split(".")[0] for entry in self.database.spec.instructions}
        if tokens[0] not in opcodes:
            return UnknownInstruction(spelling, f"{tokens[0]!r} is no matrix instruction", sorted(opcodes))
        close = self._closest(tokens)
        known = {token for instruction in self.all() for token in instruction.canonical.split(".")}
        strange = [token for token in tokens if token not in known]
        if strange:
            reason = "no matrix instruction has " + ", ".join(f"{'.' + token!r}" for token in strange)
        else:
            reason = "its qualifiers are not legal together"
        return UnknownInstruction(spelling, reason, close)

    def _closest(self, tokens: list[str], count: int = 3) -> list[str]:
        """The canonical spellings that share the longest runs of tokens with what was asked for; of equals, the nearest shapes."""
        import difflib  # only when there is something to explain

        matcher = difflib.SequenceMatcher(None, [], tokens, autojunk=False)
        wanted = next((match for match in map(_SHAPE.fullmatch, tokens) if match), None)

        def likeness(instruction: Instruction) -> tuple[float, int, str]:
            matcher.set_seq1(instruction.canonical.split("."))
            sizes = zip(instruction.shape or (), map(int, wanted.groups()) if wanted else (), strict=False)
            return -matcher.ratio(), sum(abs(ours - theirs) for ours, theirs in sizes), instruction.canonical

        return [instruction.canonical for instruction in sorted(self.all(), key=likeness)[:count]]


def _fixed_tokens(syntax: str) -> list[str]:
    """The tokens of a syntax line that every variant has."""
    return [token for token in syntax.split(".") if "{" not in token and "}" not in token]


def load(path: str | os.PathLike[str]) -> Database:
    """Read a ``ptxmma.json``."""
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=Database)


@functools.cache
def _packaged() -> Catalog:
    from ptxmma import paths  # not above: whoever only imports the library need not wait for pathlib

    return Catalog(load(paths.DATABASE))


@functools.lru_cache(maxsize=8)
def _from_path(path: str) -> Catalog:
    return Catalog(load(path))


def catalog(database: DatabaseLike = None) -> Catalog:
    """The :class:`Catalog` of a database, of the ``ptxmma.json`` at a path, or of the packaged database."""
    if database is None:
        return _packaged()
    if isinstance(database, Database):
        return Catalog(database)
    return _from_path(os.fspath(database))


def instruction(spelling: str, *, database: DatabaseLike = None) -> Instruction:
    """The instruction that ``spelling`` means: canonical, or any other that assemblers accept.

    Raises:
        UnknownInstruction: with the reason and the closest legal spellings.
    """
    return catalog(database).find(spelling)


def instructions(
    *,
    family: str | None = None,
    target: str | None = None,
    ptx: str | None = None,
    atype: str | None = None,
    sparse: bool | None = None,
    database: DatabaseLike = None,
) -> Iterator[Instruction]:
    """Iterate over the instructions for which every given filter holds.

    ``target`` and ``ptx`` are what a module declares: an instruction passes if that target accepts it in that version or an
    earlier one.  ``family`` is one of ``mma``, ``mma.sp``, ``wgmma``, ``wgmma.sp``.

    Raises:
        ValueError: a family, target or type that the database does not have.
    """
    held = catalog(database)
    spec = held.database.spec
    _known("family", family, (entry.family for entry in spec.instructions))
    _known("target", target, (entry.name for entry in spec.targets))
    _known("ptx", ptx, (entry.version for entry in spec.isa_versions))
    _known("atype", atype, (entry.name for entry in spec.types.elements))
    for found in held.all():
        if family is not None and found.family != family:
            continue
        if sparse is not None and found.sparse != sparse:
            continue
        if atype is not None and found.variant.facts.get("atype") != atype:
            continue
        if target is not None or ptx is not None:
            accepted = found.accepted_by()
            first = [accepted[target]] if target in accepted else [] if target else list(accepted.values())
            if not any(ptx is None or requirements.version_key(version) <= requirements.version_key(ptx) for version in first):
                continue
        yield found


def _known(what: str, value: str | None, allowed: Iterator[str]) -> None:
    if value is not None:
        names = list(dict.fromkeys(allowed))
        if value not in names:
            raise ValueError(f"unknown {what} {value!r}; known: {', '.join(names)}")
