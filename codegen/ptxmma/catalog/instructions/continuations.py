"""Continuations of an opcode: the modifiers that may come next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.instructions.spellings import ordered_tokens, takes, without_hints
from ptxmma.model import InstructionSet


def continuations(known: Catalog, tokens: Sequence[str], accepted: Callable[[Instruction], bool]) -> dict[str, Instruction]:
    """The modifiers that may come next in an opcode, each with the first instruction that it leads to.

    Args:
        known: the instructions.
        tokens: the tokens before the place, in any order in which assemblers take them: ``["mma", "sync", "aligned"]``; none for the first
            words of all instructions.
        accepted: whether an instruction counts, such as one that a target accepts.
    """
    found: dict[str, Instruction] = {}
    for entry in known.database.spec.instructions:
        opcode = entry.start.decode().split(".")
        if opcode[: len(tokens)] == list(tokens[: len(opcode)]):
            for token, instruction in _of_entry(entry, known.of(entry.name), tokens):
                if token not in found and accepted(instruction):
                    found[token] = instruction
    return found


def _of_entry(entry: InstructionSet, instructions: Sequence[Instruction], tokens: Sequence[str]) -> Iterator[tuple[str, Instruction]]:
    """The next token of each instruction of an entry that the tokens begin: of a whole spelling, each hint that it may have."""
    rest, hints = without_hints(entry, tokens)
    groups = ordered_tokens(entry)
    given = {hint.name for hint, _ in hints}
    for instruction in instructions:
        if not takes(instruction.variant, hints):
            continue
        left = _left(instruction.canonical.split("."), rest, groups)
        if left:
            yield left[0], instruction
        elif left is not None:
            for hint, values in instruction.possible_hints():
                yield from ((value, instruction) for value in values if hint.name not in given)


def _left(own: Sequence[str], given: Sequence[str], groups: Mapping[str, int]) -> list[str] | None:
    """The tokens of a spelling that are not given, in order; None if another is given, or an ordered one without those before it."""
    left = list(own)
    for token in given:
        if token not in left:
            return None
        left.remove(token)
    for group in {groups[token] for token in given if token in groups}:
        whole, begun = ([token for token in tokens if groups.get(token) == group] for tokens in (own, given))
        if whole[: len(begun)] != begun:
            return None
    return left
