"""Looking instructions up: what users and generators ask of a database."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ptxmma.catalog import layouts, operands, requirements
from ptxmma.catalog.metadata import Metadata
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.scales import Scales
from ptxmma.catalog.variants import Spellings, Variant, expand, fixed_tokens, ordered_tokens, qualifier_values, sizes_in
from ptxmma.model import Database, Erratum, InstructionSet, Observation, Requirement, Semantics, Statement, Version, matches

if TYPE_CHECKING:
    from ptxmma.catalog.evidence import Evidence

#: So many numbers are listed one by one.
_FEW = 6

_Stated = TypeVar("_Stated", Semantics, Statement)

#: A database, the path of its ``ptxmma.json``, or None for the packaged one.
DatabaseLike = Database | str | os.PathLike[str] | None


class UnknownInstruction(LookupError):
    """No such instruction.

    Attributes:
        spelling: what was asked for.
        reason: why it is none; ``the closest`` in it is the first of ``close``.
        close: canonical spellings of the closest legal instructions; empty where nothing is near.
    """

    def __init__(self, spelling: str, reason: str, close: list[str]) -> None:
        self.spelling, self.reason, self.close = spelling, reason, close
        hint = "".join(f"\n  {text}" for text in close)
        super().__init__(f"{_shortened(spelling)}: {reason}" + (f"; closest:{hint}" if close else ""))

    def __reduce__(self) -> tuple[type[UnknownInstruction], tuple[str, str, list[str]]]:
        return type(self), (self.spelling, self.reason, self.close)


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


class Missing(ValueError, KeyError, AttributeError):
    """An instruction has not what was asked of it: an operand, sparsity metadata, scale factors.

    A ``ValueError``; a ``KeyError`` too, and an ``AttributeError``, so that ``hasattr(instruction, "metadata")`` tells.
    """

    __str__ = Exception.__str__  # a KeyError would quote the message


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

    def __repr__(self) -> str:
        return f"<OperandForm {self.name + ': ' if self.name else ''}{self.syntax}>"

    def operand(self, name: str) -> Operand:
        """The operand of that name; :class:`Missing` where the form has none."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise Missing(f"no operand {name!r}; this form has {', '.join(operand.name for operand in self.operands)}")


class Instruction:
    """One instruction: a canonical spelling with everything the database knows of it."""

    def __init__(self, database: Database, variant: Variant) -> None:
        self.database = database
        self.variant = variant
        self.canonical = variant.canonical
        self.family = variant.instruction.family
        self.documented = variant.form.documented
        self.sparse = variant.instruction.sparse

    def __repr__(self) -> str:
        return f"<ptxmma.Instruction {self.canonical}>"

    @property
    def identifier(self) -> str:
        """Its name in generated code: ``mma_sp_m16n8k32_f32_f16_f16_f32``."""
        return self.variant.identifier

    @property
    def extents(self) -> dict[str, int]:
        """The sizes that its qualifiers say: ``{"m": 16, "n": 8, "k": 16}``, ``{"rows": 8, "cols": 8, "num": 4}``."""
        return dict(self.variant.extents)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes of its shape, ``(m, n, k)`` of one that multiplies; None for instructions without a shape."""
        return tuple(self.shape_sizes.values()) or None

    @property
    def shape_sizes(self) -> dict[str, int]:
        """The sizes that its shape says: ``{"m": 16, "n": 8, "k": 16}``; none for instructions without a shape."""
        variant = self.variant
        return sizes_in(variant.instruction.extents[variant.instruction.shape], variant.shape) or {} if variant.shape else {}

    @property
    def operation(self) -> str:
        """What it does: ``"multiply"``, ``"load"``, ``"store"``, ``"transpose"`` or ``"synchronise"``."""
        return self.variant.instruction.operation

    @property
    def qualifiers(self) -> dict[str, str]:
        """The value of each qualifier, without its dot; ``""`` where it is absent."""
        return {name: str(self.variant.facts.get(name, "")) for name in self.variant.instruction.qualifiers}

    def accepted_by(self) -> dict[str, Version]:
        """Every target that accepts it, with the first PTX ISA version that does, by the newest assembler that knows the target."""
        return dict(self._accepted)

    @functools.cached_property
    def _accepted(self) -> dict[str, Version]:
        return requirements.accepted_by(self.database.spec, self.variant)

    def requirements(self) -> list[Requirement]:
        """What the manual states, rule by rule, each with its source; all of them hold together.

        Empty for an instruction that the manual does not have: see :meth:`accepted_by` and :meth:`observed`.
        """
        return requirements.stated(self.variant) if self.documented else []

    def observed(self) -> list[Observation]:
        """Where assemblers differ from the manual, or from each other."""
        return requirements.observed(self.variant)

    def releases(self) -> dict[str, str]:
        """Where releases of the assembler differ, in words.

        Keys are the names of accepting targets (``"sm_70": "dropped in CUDA 13.0"``), and the canonical spelling where the
        releases differ about the instruction itself.
        """
        return requirements.releases(self.database.spec, self.variant)

    def semantics(self) -> list[Semantics]:
        """What its arithmetic promises."""
        return self._matching(self.variant.instruction.semantics)

    def undefined(self) -> list[Statement]:
        """When its behaviour is undefined."""
        return self._matching(self.variant.instruction.undefined)

    def uniform(self) -> list[Statement]:
        """What must be the same over the threads that execute it."""
        return self._matching(self.variant.instruction.uniform)

    def notes(self) -> list[Statement]:
        """What else is worth knowing about it."""
        return self._matching(self.variant.instruction.notes)

    def errata(self) -> list[Erratum]:
        """Where the manual is wrong about its family."""
        return [entry for entry in self.database.spec.errata if entry.family == self.family]

    @property
    def evidence(self) -> Evidence:
        """What stands behind it: which assemblers accept it where, what chips did with it, which other projects agree."""
        from ptxmma.catalog import evidence

        return evidence.of(self.database).of(self.canonical)

    def _matching(self, entries: Iterable[_Stated]) -> list[_Stated]:
        return [entry for entry in entries if matches(entry.when, self.variant.facts)]

    @functools.cached_property
    def forms(self) -> tuple[OperandForm, ...]:
        """Its operand lists, A in registers before A by descriptor."""
        instruction = self.variant.instruction
        forms = []
        for text in instruction.operands.get(self.variant.form.operands, ()):
            described = tuple(operands.describe(self.database, self.variant, name) for name in operand_names(text))
            forms.append(OperandForm(_form_name(instruction, described), text, described))
        return tuple(sorted(forms, key=lambda form: form.name == "descriptor"))

    def operand(self, name: str) -> Operand:
        """The operand of that name in the first form that has it; :class:`Missing` where none has."""
        for form in self.forms:
            for operand in form.operands:
                if operand.name == name:
                    return operand
        known = {operand.name: operand for form in self.forms for operand in form.operands}
        described = [each for each, operand in known.items() if operand.kind == "descriptor" and operand.of == name]
        hint = f"; {described[0]} describes {name} in shared memory: ptxmma.shared_memory.SharedLayout makes both" if described else ""
        raise Missing(f"{self.canonical} has no operand {name!r}; it has {', '.join(known)}{hint}")

    @functools.cached_property
    def metadata(self) -> Metadata:
        """The layout of its sparsity metadata.

        Raises:
            Missing: the instruction is not sparse.
        """
        pattern = layouts.granularity(self.database.spec, self.variant)
        kinds = self.variant.instruction.operand_kinds
        name = next((name for name, entry in kinds.items() if entry.kind == "metadata"), "")
        plan = layouts.plan(self.database.spec, self.variant, name) if name else None
        if pattern is None or plan is None:
            raise Missing(f"{self.canonical} is not sparse: it has no metadata")
        spec = self.database.spec
        return Metadata(self.database.layout[plan.name], spec.register_layouts[plan.entry], pattern, spec.choice(pattern), self.variant)

    def scales(self, matrix: str) -> Scales:
        """The layout of the scale factors of ``matrix``, ``"a"`` or ``"b"``.

        Raises:
            Missing: the instruction does not scale that matrix.
        """
        spec, kinds = self.database.spec, self.variant.instruction.operand_kinds
        operand = next((name for name, kind in kinds.items() if kind.kind == "scale-data" and kind.of == matrix), "")
        present = {part.name for form in self.forms for part in form.operands}
        plan = layouts.plan(spec, self.variant, operand) if operand in present else None
        if plan is None:
            raise Missing(f"{self.canonical} has no scale factors for {matrix!r}")
        element = layouts.element_type(spec, str(self.variant.facts[kinds[operand].type]))
        return Scales(self.database.layout[plan.name], matrix, element, operand)


def _form_name(instruction: InstructionSet, described: Iterable[Operand]) -> str:
    """``"registers"`` or ``"descriptor"`` where a matrix may come from either; ``""`` elsewhere."""
    kinds = instruction.operand_kinds
    either = {entry.of for entry in kinds.values() if entry.kind == "descriptor"} & kinds.keys()
    for operand in described:
        if operand.name in either:
            return "registers"
        if operand.kind == "descriptor" and operand.of in either:
            return "descriptor"
    return ""


def operand_names(syntax: str) -> list[str]:
    """The names in an operand list such as ``"d, a, scale-a-data, {byte-id-a, thread-id-a}"``."""
    return [name.strip(" {}[]") for name in syntax.split(",")] if syntax else []


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
            self._made |= {instruction.canonical: instruction for instruction in made}
        return self._instructions[name]

    def all(self, among: Callable[[InstructionSet], bool] = lambda _: True) -> Iterator[Instruction]:
        """Every instruction, in the order of the spec; of the sets for which ``among`` holds, the others need not be made."""
        for entry in self.database.spec.instructions:
            if among(entry):
                yield from self.of(entry.name)

    def find(self, spelling: str) -> Instruction:
        """The instruction that any accepted spelling means; raises :class:`UnknownInstruction`."""
        if not isinstance(spelling, str):
            raise TypeError(f"an instruction is named by a string, not by {type(spelling).__name__}")
        text = spelling.strip()
        found = self.meaning(text)
        if found is None:
            raise self._unknown(text)
        return found

    def meaning(self, spelling: str) -> Instruction | None:
        """The instruction that a spelling means; None where it means none, without a look for what is close."""
        for entry in self.database.spec.instructions:
            if set(fixed_tokens(entry.syntax)) <= set(spelling.split(".")):
                variant = self._spellings_of(entry).find(spelling)
                if variant is not None:
                    return self._made[variant.canonical]
        return None

    def _spellings_of(self, entry: InstructionSet) -> Spellings:
        if entry.name not in self._spellings:
            self._spellings[entry.name] = Spellings(entry, (instruction.variant for instruction in self.of(entry.name)))
        return self._spellings[entry.name]

    def _unknown(self, spelling: str) -> UnknownInstruction:
        import difflib  # only when there is something to explain

        opcode, *rest = spelling.split(".")
        opcodes = sorted({entry.name.split(".")[0] for entry in self.database.spec.instructions})
        if opcode not in opcodes:
            likely = difflib.get_close_matches(opcode.lower(), opcodes, 1)
            close = self._closest([*likely, *rest], least=0.5)
            return UnknownInstruction(spelling, f"{_shortened(opcode)!r} is no matrix instruction", [ins.canonical for ins in close])
        if found := self._of_every_n(spelling):
            sizes = [instruction.extents[next(iter(instruction.variant.ranging))] for instruction in found]
            return UnknownInstruction(
                spelling, f"N stands for any of its values; name one: {_listed(sizes)}", [ins.canonical for ins in found[:3]]
            )
        close = self._closest([opcode, *rest])
        known = {token for instruction in self.all() for token in instruction.canonical.split(".")}
        reason = _shortened("; ".join(dict.fromkeys(_differences([opcode, *rest], close[0], known))))
        return UnknownInstruction(spelling, reason, [ins.canonical for ins in close])

    def _of_every_n(self, spelling: str) -> list[Instruction]:
        """The instructions that a spelling with the letter N stands for, ``m64nNk16``; none for other spellings."""
        tokens = spelling.split(".")
        spelled: dict[str, int] = {}
        for instruction in self.all():
            variant = instruction.variant
            if variant.ranging and (label := variant.shape_label) in tokens:
                spelled.setdefault(spelling.replace(label, variant.shape), variant.extents[next(iter(variant.ranging))])
        meanings = (self.meaning(text) for text in sorted(spelled, key=lambda text: spelled[text]))
        return [instruction for instruction in meanings if instruction is not None]

    def _closest(self, tokens: list[str], count: int = 3, least: float = 0.0) -> list[Instruction]:
        """The instructions that share most tokens; of equals, those with the longest runs of them, then the nearest shapes.

        None with a share of common tokens below ``least``.
        """
        import difflib

        wanted = Counter(tokens)
        shares = []
        for instruction in self.all():
            own = instruction.canonical.split(".")
            share = 2 * (Counter(own) & wanted).total() / (len(own) + len(tokens))
            shares.append((share, instruction))
        shares = [pair for pair in shares if pair[0] >= least]
        shares.sort(key=lambda pair: -pair[0])
        if not shares:
            return []
        last = shares[:count][-1][0]
        matcher = difflib.SequenceMatcher(None, [], tokens, autojunk=False)

        def likeness(pair: tuple[float, Instruction]) -> tuple[float, float, int, str]:
            share, instruction = pair
            matcher.set_seq1(instruction.canonical.split("."))
            return -share, -matcher.ratio(), _distance(instruction, tokens), instruction.canonical

        return [instruction for _, instruction in sorted((pair for pair in shares if pair[0] >= last), key=likeness)[:count]]


def _distance(instruction: Instruction, tokens: Iterable[str]) -> int:
    """How far the sizes that tokens say are from an instruction's own; 0 where they say none."""
    return sum(
        abs(size - instruction.extents[name])
        for entry in instruction.variant.instruction.extents.values()
        for token in tokens
        for name, size in (sizes_in(entry, token) or {}).items()
        if name in instruction.extents
    )


def _listed(sizes: list[int]) -> str:
    """Few numbers one by one, of many the first ones and the last."""
    shown = sizes if len(sizes) <= _FEW else [*sizes[:3], "…", sizes[-1]]
    return ", ".join(map(str, shown))


def _differences(tokens: list[str], closest: Instruction, known: set[str]) -> Iterator[str]:
    """How a spelling differs from the closest instruction's, in words; ``known`` are the tokens of all instructions."""
    own = closest.canonical.split(".")
    missing = list((Counter(own) - Counter(tokens)).elements())
    extra = list((Counter(tokens) - Counter(own)).elements())
    for token in list(extra):
        other = next((other for other in missing if _alike(token, other, closest)), None)
        if other is None and len(extra) == len(missing):
            other = missing[0]
        if other is not None:
            extra.remove(token)
            missing.remove(other)
            where = "where the closest has" if token in known else "is in no matrix instruction; the closest has"
            yield f"'.{token}' {where} '.{other}'"
    if missing:
        yield "it lacks " + ", ".join(f"'.{token}'" for token in dict.fromkeys(missing))
    for token in dict.fromkeys(extra):
        fault = "stands twice" if token in own else "does not belong" if token in known else "is in no matrix instruction"
        yield f"'.{token}' {fault}"
    if sorted(tokens) == sorted(own):
        opcode = closest.variant.instruction.opcode or own[0]
        if not ".".join(tokens).startswith(f"{opcode}."):
            yield f"'{opcode}' must stand first"
        else:
            groups = ordered_tokens(closest.variant.instruction)
            for group in sorted(set(groups.values())):
                ours, theirs = (".".join(token for token in text if groups.get(token) == group) for text in (tokens, own))
                if ours != theirs:
                    yield f"'.{ours}' stands in another order than the closest's '.{theirs}'"


def _alike(token: str, other: str, closest: Instruction) -> bool:
    """Whether ``token`` could stand for the same thing as ``other`` does in the closest instruction."""
    instruction = closest.variant.instruction
    for entry in instruction.extents.values():
        if sizes_in(entry, other):
            return sizes_in(entry, token) is not None
    return any(value == other and token in qualifier_values(instruction, name) for name, value in closest.qualifiers.items())


def load(path: str | os.PathLike[str]) -> Database:
    """Read a ``ptxmma.json``.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no database of this version of ptxmma.
    """
    with open(path, "rb") as file:
        text = file.read()
    try:
        database = msgspec.json.decode(text, type=Database)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{os.fspath(path)}: no database of this version of ptxmma: {error}") from None
    database.memo["path"] = os.fspath(path)
    return database


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
        TypeError: ``spelling`` is no string.
        UnknownInstruction: with the reason and the closest legal spellings.
    """
    return catalog(database).find(spelling)


def instructions(
    *,
    family: str | None = None,
    target: str | None = None,
    ptx: str | None = None,
    atype: str | None = None,
    element: str | None = None,
    shape: str | None = None,
    sparse: bool | None = None,
    database: DatabaseLike = None,
) -> Iterator[Instruction]:
    """The instructions for which every given filter holds, as an iterator; the filters are checked at once.

    ``target`` and ``ptx`` are what a module declares: an instruction passes if that target accepts it in that version or an
    earlier one.  ``family`` is one of ``mma``, ``mma.sp``, ``wgmma``, ``wgmma.sp``.  ``atype`` is the type of A, ``element`` that of
    any operand.  ``shape`` is ``m16n8k16``, or ``m64nNk16`` for every N.

    Raises:
        ValueError: a family, target, version, type or shape that the database does not have; it names the closest.
    """
    held = catalog(database)
    spec = held.database.spec
    _known("family", family, (entry.family for entry in spec.instructions))
    _known("target", target, (entry.name for entry in spec.targets))
    _known("ptx", ptx, (entry.version for entry in spec.isa_versions))
    _known("atype", atype, (entry.name for entry in spec.types.elements))
    _known("element type", element, (entry.name for entry in spec.types.elements))
    if shape is not None:
        _known("shape", shape, (text for found in held.all() for text in _shapes(found)))
    return _passing(held, family, target, ptx, atype, element, shape, sparse)


def _shapes(found: Instruction) -> tuple[str, ...]:
    """The texts that name an instruction's shape, the one for every N last."""
    if found.shape is None:
        return ()
    return found.variant.shape, found.variant.shape_label


def _passing(
    held: Catalog,
    family: str | None,
    target: str | None,
    ptx: str | None,
    atype: str | None,
    element: str | None,
    shape: str | None,
    sparse: bool | None,
) -> Iterator[Instruction]:
    for found in held.all(lambda entry: family in (None, entry.family) and sparse in (None, entry.sparse)):
        if atype is not None and found.variant.facts.get("atype") != atype:
            continue
        if element is not None and element not in found.qualifiers.values():
            continue
        if shape is not None and shape not in _shapes(found):
            continue
        if target is not None or ptx is not None:
            accepted = found.accepted_by()
            first = [accepted[target]] if target in accepted else [] if target else list(accepted.values())
            if not any(ptx is None or version <= ptx for version in first):
                continue
        yield found


def _known(what: str, value: str | None, allowed: Iterable[str]) -> None:
    if value is None:
        return
    names = list(dict.fromkeys(allowed))
    if value in names:
        return
    import difflib  # only when there is something to explain

    close = difflib.get_close_matches(value, names, 3)
    raise ValueError(f"unknown {what} {value!r}; " + (f"closest: {', '.join(close)}" if close else f"known: {', '.join(names)}"))
