"""Questions without a verb: the verb that answers what the words name, with its options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from ptxmma.catalog.instructions import UnknownInstruction, words
from ptxmma.catalog.instructions.meanings import meanings, words_of
from ptxmma.catalog.instructions.user_names import is_target
from ptxmma.catalog.lookup import AmbiguousInstruction, resolve
from ptxmma.catalog.summaries.glossary import explanation
from ptxmma.cli.explain import message_of, swizzle_of
from ptxmma.cli.options import catalog_of, usage_errors

#: More digits than an address has that anybody would ask about.
_MATRIX_DESCRIPTOR = re.compile(r"0x[0-9a-fA-F]{9,16}")
#: So many have the descriptors of one register.
_DESCRIPTOR = re.compile(r"0x[0-9a-fA-F]{1,8}")
#: A code of a message of ptxas.
_MESSAGE = re.compile(r"[cC]\d{4}")
#: The name of an atom of CuTe, also among the arguments of a template.
_ATOM = re.compile(r"(?:^|[\W])SM\d+_\w+", re.IGNORECASE)
#: An opcode with modifiers, of an instruction that may not be covered: ``cvt.rn.bf16x2.f32``.
_SPELLING = re.compile(r"[a-z]+\d*(?:\.[a-z][\w:]*)+")
#: An element of an operand, as programs write it, ``A[9][3]`` and ``A[9, 3]``, and as people say it: ``A row 9 col 3``.
_ELEMENT = re.compile(r"([a-z][\w-]*)((?:\[\d+(?:, *\d+)*\])+|,? row \d+,? col(?:umn)? \d+)", re.IGNORECASE)
#: A place before or after its operand: ``row 9 col 3 of A``, ``A lane 5``.
_PLACE_FIRST = re.compile(r"\b(row \d+,? col(?:umn)? \d+)(?: of)? ([a-d])\b", re.IGNORECASE)
_OPERAND_FIRST = re.compile(r"\b([a-d]) ((?:lane|thread) \d+)\b(?! (?:of )?[a-d]\d*\b)", re.IGNORECASE)
#: Elements that a lane holds: ``lane 5 a1``, ``lane 5 of A``, ``lane 5``.
_HELD = re.compile(r"\b(?:lane|thread) (\d+)(?:(?: of)? ([a-d])(\d*)\b)?", re.IGNORECASE)


def answered(arguments: Sequence[str]) -> list[str]:
    """The arguments with the verb for a descriptor, a message, a swizzle, a target, an element or an instruction; empty for none of these.

    Words of which instructions have only some are a question about instructions, too: ``show`` says which is at fault, and what is closest.
    """
    end = next((place for place, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    text, options = " ".join(arguments[:end]), [*arguments[end:]]
    text = _OPERAND_FIRST.sub(r"\2 \1", _PLACE_FIRST.sub(r"\2 \1", text))
    if asked := _ELEMENT.search(text) or _HELD.search(text):
        rest = f"{text[: asked.start()]}{text[asked.end() :]}"
        place = _element(rest, *asked.groups()) if asked.re is _ELEMENT else _held(*asked.groups())
        return ["layout", *(word for word in rest.split() if word not in ("lane", "thread")), *place, *options]
    for name in _names(text):
        if verb := _verb_of_name(name):
            return [*verb, *name.split(" "), *options]
    return ["show", *arguments] if _is_about_instructions(text) else []


def _names(text: str) -> Iterator[str]:
    """A text, and what is left of it without the words around a name that mean nothing: ``B200`` of ``what runs on B200``."""
    yield text
    spec, left = catalog_of(None).database.spec, text.split()
    for place in (0, -1):
        while left and meanings(spec, words_of(left[place])) == [()]:
            del left[place]
            yield " ".join(left)


def _element(text: str, name: str, place: str) -> list[str]:
    """The options for an element of an operand of the instruction in a text: a number for each of its axes."""
    numbers, axes = re.findall(r"\d+", place), ["row", "col"]
    if len(numbers) != len(axes):
        with usage_errors():
            axes = list(resolve(catalog_of(None), text).instruction.operand(name).axes)
        if len(numbers) != len(axes):
            raise click.UsageError(f"{name} has the axes {', '.join(axes)}: give a number for each, {name}{'[0]' * len(axes)}")
    return ["--operand", name.lower(), *(part for axis, number in zip(axes, numbers, strict=True) for part in (f"--{axis}", number))]


def _held(lane: str, operand: str | None, element: str | None) -> list[str]:
    """The options for what a lane holds: of all operands, of one, or one element of it."""
    return ["--lane", lane, *(["--operand", operand.lower()] if operand else []), *(["--element", element] if element else [])]


def _verb_of_name(text: str) -> list[str]:
    """The verb that answers for a name other than an instruction's; empty for another text."""
    if _MATRIX_DESCRIPTOR.fullmatch(text):
        return ["descriptor", "decode"]
    if _DESCRIPTOR.fullmatch(text):
        return ["descriptor", "instruction"]
    known = catalog_of(None)
    spec = known.database.spec
    if _MESSAGE.fullmatch(text) or message_of(spec, text) or (not text.isdigit() and swizzle_of(spec, text)):
        return ["explain"]
    if is_target(spec, text):
        return ["targets"]
    with usage_errors():
        return ["explain"] if explanation(known, text) else []


def _is_about_instructions(text: str) -> bool:
    """Return whether a text names instructions, looks like a spelling, or begins with a word of an instruction, apart from a target."""
    known = catalog_of(None)
    if _ATOM.search(text) or _SPELLING.fullmatch(text) or any(entry.family.startswith(text) for entry in known.database.spec.instructions):
        return True
    try:
        resolve(known, text)
    except AmbiguousInstruction:
        return True
    except (UnknownInstruction, ValueError):
        first = next((word for word in words_of(text) if not is_target(known.database.spec, word)), None)
        return first is not None and first not in words.missing(known, text)
    return True
