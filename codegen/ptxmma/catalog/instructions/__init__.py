"""The instructions of a database, by spelling."""

from __future__ import annotations

import copyreg
import functools
import os
from collections.abc import Callable, Iterator

import msgspec

from ptxmma.arguments import shortened
from ptxmma.catalog.instructions.facts import Hints, Instruction
from ptxmma.catalog.instructions.spellings import Spellings, takes, without_hints
from ptxmma.catalog.operands.operand_form import Missing, OperandForm
from ptxmma.catalog.variants import Variant, expand, fixed_tokens
from ptxmma.model import Database, InstructionSet, operand_names

__all__ = [
    "Catalog", "DatabaseLike", "Instruction", "Missing", "OperandForm", "UnknownInstruction",
    "catalog", "load", "operand_names",
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
        self._meaning = functools.lru_cache(maxsize=1 << 12)(self._meant_by)

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
        return self._meaning(spelling)

    def _meant_by(self, spelling: str) -> Instruction | None:
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
