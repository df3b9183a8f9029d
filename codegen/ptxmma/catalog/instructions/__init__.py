"""Looks instructions up in a database, by spelling or by filters."""

from __future__ import annotations

import copyreg
import functools
import os
import re
from collections.abc import Callable, Collection, Iterator
from typing import NoReturn

import msgspec

from ptxmma.arguments import one_of, shortened
from ptxmma.catalog.instructions.facts import Hints, Instruction
from ptxmma.catalog.instructions.spellings import Spellings, takes, without_hints
from ptxmma.catalog.instructions.user_names import target_named, types_named
from ptxmma.catalog.operands.operand_form import Missing, OperandForm
from ptxmma.catalog.products import resolution
from ptxmma.catalog.roles import multiplicands
from ptxmma.catalog.variants import Variant, expand, fixed_tokens
from ptxmma.model import Database, InstructionSet, operand_names

__all__ = [
    "Catalog", "DatabaseLike", "Instruction", "Missing", "OperandForm", "UnknownInstruction",
    "catalog", "instruction", "instructions", "load", "operand_names",
]  # fmt: skip

#: A database, the path of its ``ptxmma.json``, or None for the packaged one.
DatabaseLike = Database | str | os.PathLike[str] | None


class UnknownInstruction(LookupError):
    """A spelling is not an instruction.

    Attributes:
        spelling: the unknown spelling.
        reason: the mistake in it; ``the closest`` in it is the first of ``close``.
        close: canonical spellings of the closest legal instructions; empty where nothing is near.
    """

    def __init__(self, spelling: str, reason: str, close: list[str]) -> None:
        self.spelling, self.reason, self.close = spelling, reason, close
        hint = "".join(f"\n  {text}" for text in close)
        super().__init__(f"{shortened(spelling)}: {reason}" + (f"; closest:{hint}" if close else ""))

    def __reduce__(self) -> tuple[type[UnknownInstruction], tuple[str, str, list[str]]]:
        return type(self), (self.spelling, self.reason, self.close)


class Catalog:
    """All instructions of a database, created on demand."""

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
        """Every instruction of the sets for which ``among`` holds, in the order of the spec; other sets are not expanded."""
        for entry in self.database.spec.instructions:
            if among(entry):
                yield from self.of(entry.name)

    def find(self, spelling: str) -> Instruction:
        """The instruction that any accepted spelling means; raises :class:`UnknownInstruction`."""
        if not isinstance(spelling, str):
            raise TypeError(f"the spelling of an instruction must be a string, not {type(spelling).__name__}")
        text = spelling.strip()
        instruction = self.meaning(text)
        if instruction is None:
            from ptxmma.catalog.instructions import explanation  # only when there is something to explain

            reason, close = explanation.explain(text, list(self.all()), self.meaning)
            raise UnknownInstruction(text, reason, [each.canonical for each in close])
        return instruction

    def meaning(self, spelling: str) -> Instruction | None:
        """The instruction that a spelling means, or None; does not search for close spellings."""
        tokens = spelling.split(".")
        for entry in self.database.spec.instructions:
            if set(fixed_tokens(entry.syntax)) <= set(tokens):
                rest, hints = without_hints(entry, tokens)
                variant = self._spellings_of(entry).find(".".join(rest))
                if variant is not None and takes(variant, hints):
                    return self._made[variant.canonical] if not hints else self._hinted(variant, hints)
        return None

    def _hinted(self, variant: Variant, hints: Hints) -> Instruction:
        made = Instruction(self.database, variant, hints)
        return self._made.setdefault(made.canonical, made)

    def _spellings_of(self, entry: InstructionSet) -> Spellings:
        if entry.name not in self._spellings:
            self._spellings[entry.name] = Spellings(entry, (instruction.variant for instruction in self.of(entry.name)))
        return self._spellings[entry.name]


def load(path: str | os.PathLike[str]) -> Database:
    """Read a ``ptxmma.json``.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a database of this version of ptxmma.
    """
    with open(path, "rb") as file:
        text = file.read()
    try:
        database = msgspec.json.decode(text, type=Database)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{os.fspath(path)}: not a database of this version of ptxmma: {error}") from None
    database.memo["path"] = os.fspath(path)
    return database


@functools.cache
def _packaged() -> Catalog:
    from ptxmma import paths  # not above: importing the library alone need not wait for pathlib

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


def instruction(
    spelling: str,
    *,
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    dtype: str | None = None,
    atype: str | None = None,
    btype: str | None = None,
    stype: str | None = None,
    sparsity_version: str | None = None,
    scale_a_lanes: int | None = None,
    database: DatabaseLike = None,
    **unknown: NoReturn,
) -> Instruction:
    """The instruction that ``spelling`` means: canonical, or any other that assemblers accept.

    The opcode of ``tcgen05.mma`` states neither its shape nor its types; the other arguments do.  One that has a single legal value may be
    left out, and ``k`` is the usual depth.  Without any of them the instruction answers what does not depend on them.

    Args:
        spelling: the opcode with its modifiers.
        m: rows of A and D; in a pair of CTAs the rows of both.
        n: columns of B and D.
        k: columns of A and rows of B.
        dtype: the element type of D.
        atype: the element type of A.
        btype: the element type of B.
        stype: the type of scale factors.
        sparsity_version: ``"v1"`` for sparse products of 4-bit elements on sm_107a; others have ``"v0"``.
        scale_a_lanes: the lanes over which scale factors of A lie: 32, with copies in the others, or 128 on sm_107f.
        database: another than the packaged one.
        unknown: nothing else; taken so that the error about it can list the legal arguments.

    Raises:
        TypeError: ``spelling`` is not a string, ``m``, ``n`` or ``k`` is not an integer, or there is an argument of another name.
        UnknownInstruction: with the reason and the closest legal spellings.
        IllegalProductError: an argument is missing, illegal, or not for this instruction; a ``ValueError`` that lists what is legal.
    """
    opcode = catalog(database).find(spelling)
    arguments = {"m": m, "n": n, "k": k, "dtype": dtype, "atype": atype, "btype": btype, "stype": stype}
    arguments |= {"sparsity_version": sparsity_version, "scale_a_lanes": scale_a_lanes, **unknown}
    given: dict[str, str | int] = {name: value for name, value in arguments.items() if value is not None}
    return opcode.resolved(**given) if given else opcode


def instructions(
    *,
    family: str | None = None,
    target: str | None = None,
    ptx: str | None = None,
    atype: str | None = None,
    element: str | None = None,
    shape: str | None = None,
    sparse: bool | None = None,
    documented: bool | None = None,
    pattern: str | None = None,
    database: DatabaseLike = None,
) -> Iterator[Instruction]:
    """Iterates over the instructions that pass every given filter.  The filters are checked before the first is returned.

    ``target`` and ``ptx`` are what a module declares: an instruction passes if that target accepts it in that version or an earlier
    one.  A target may have the name of a GPU: see :func:`~ptxmma.catalog.instructions.user_names.target_named`.  ``family`` names a page of
    the reference: ``mma.sp``.  ``atype`` is the type of A, ``element`` the type of any operand; ``fp8``, ``fp4``, ``int8`` … name all
    types of that many bits.  ``shape`` is ``m16n8k16``, or ``m64nNk16`` for every N.  A type or a shape that a descriptor may choose, as
    for ``tcgen05.mma``, counts.  ``documented`` selects those that the manual has, or lacks.  ``pattern`` is a part of the spelling, in
    which ``*`` is anything: ``"m16n8k*.e4m3"``.

    Raises:
        ValueError: an unknown family, target, version, type or shape; the message names the closest.
    """
    in_database = catalog(database)
    spec = in_database.database.spec
    one_of("family", family, (entry.family for entry in spec.instructions))
    target = None if target is None else target_named(spec, target)
    one_of("ptx", ptx, (entry.version for entry in spec.isa_versions))
    one_of("atype", atype, (entry.name for entry in spec.types.elements))
    elements = None if element is None else types_named(spec, element)
    if shape is not None and not any(_has_shape(entry, shape) for entry in in_database.all()):
        one_of("shape", shape, (text for entry in in_database.all() for text in _shapes(entry)))
    passing = _passing(in_database, family, target, ptx, atype, elements, shape, sparse)
    part = re.compile(".*".join(map(re.escape, (pattern or "").split("*"))))
    return (each for each in passing if documented in (None, each.documented) and part.search(each.canonical))


def _reduced(instruction: Instruction) -> tuple[Callable[..., Instruction], tuple[object, ...]]:
    """Return the content of a pickle or copy of an instruction: its spelling and choices, and its database if it is a foreign one."""
    from ptxmma import paths

    database = instruction.database
    packaged = database.memo.get("path") == os.fspath(paths.DATABASE)
    return _restored, (instruction.canonical, instruction.variant.chosen, None if packaged else database)


def _restored(spelling: str, chosen: tuple[tuple[str, str | int], ...], database: Database | None) -> Instruction:
    opcode = catalog(database).find(spelling)
    return opcode.resolved(**dict(chosen)) if chosen else opcode


copyreg.pickle(Instruction, _reduced)


def _shapes(instruction: Instruction) -> tuple[str, ...]:
    """The names of an instruction's shape, the one for every N last."""
    return () if instruction.shape is None else (instruction.variant.shape, instruction.variant.shape_label)


def _has_shape(instruction: Instruction, shape: str) -> bool:
    """Return whether it states a shape, or a descriptor may choose it."""
    return shape in _shapes(instruction) or resolution.has_shape(instruction.database.spec, instruction.variant, shape)


def _types_of_a(instruction: Instruction) -> Collection[str]:
    """The element type of the first matrix that it multiplies, or those that a descriptor may choose; empty for other operations."""
    names = multiplicands(instruction.variant.instruction) if instruction.operation == "multiply" else ()
    chosen = resolution.types(instruction.database.spec, instruction.variant)
    return [instruction.matrix_types[names[0]]] if names else chosen.get("atype", ())


def _types(instruction: Instruction) -> set[str]:
    """The element types that it states, or that a descriptor may choose."""
    return set(instruction.qualifiers.values()).union(*resolution.types(instruction.database.spec, instruction.variant).values())


def _passing(
    in_database: Catalog,
    family: str | None,
    target: str | None,
    ptx: str | None,
    atype: str | None,
    elements: Collection[str] | None,
    shape: str | None,
    sparse: bool | None,
) -> Iterator[Instruction]:
    for instruction in in_database.all(lambda entry: family in (None, entry.family) and sparse in (None, entry.sparse)):
        if atype is not None and atype not in _types_of_a(instruction):
            continue
        if elements is not None and _types(instruction).isdisjoint(elements):
            continue
        if shape is not None and not _has_shape(instruction, shape):
            continue
        if target is not None or ptx is not None:
            accepted = instruction.accepted_by()
            first = [accepted[target]] if target in accepted else [] if target else list(accepted.values())
            if not any(ptx is None or version <= ptx for version in first):
                continue
        yield instruction
