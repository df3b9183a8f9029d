"""Questions without a verb: the verb that answers what the words name, with its options."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptxmma.cli.options import catalog_of

#: More digits than an address has that anybody would ask about.
_MATRIX_DESCRIPTOR = re.compile(r"0x[0-9a-fA-F]{9,16}")
#: So many have the descriptors of one register.
_DESCRIPTOR = re.compile(r"0x[0-9a-fA-F]{1,8}")
#: A code of a message of ptxas.
_MESSAGE = re.compile(r"[cC]\d{4}")
#: The name of an atom of CuTe.
_ATOM = re.compile(r"(?:[\w:]+::)?SM\d+_\w+", re.IGNORECASE)
#: An element of an operand, as programs write it, ``A[9][3]``, and as people say it: ``A row 9 col 3``.
_ELEMENT = re.compile(r"([a-z][\w-]*)(?:\[(\d+)\]\[(\d+)\]|,? row (\d+),? col(?:umn)? (\d+))", re.IGNORECASE)


def answered(arguments: Sequence[str]) -> list[str]:
    """The arguments with the verb for a descriptor, a message, a swizzle, a target, an element or an instruction; empty for none of these.

    Words of which instructions have only some are a question about instructions, too: ``show`` says which is at fault, and what is closest.
    """
    end = next((place for place, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    words, options = " ".join(arguments[:end]), [*arguments[end:]]
    if element := _ELEMENT.search(words):
        name, row, col = filter(None, element.groups())
        place = ["--operand", name.lower(), "--row", row, "--col", col]
        return ["layout", *f"{words[: element.start()]}{words[element.end() :]}".split(), *place, *options]
    verb = _verb_of(words)
    return [*verb, *arguments] if verb else []


def _verb_of(text: str) -> list[str]:
    """The verb that answers what a text names; empty where it names nothing."""
    from ptxmma.catalog.instructions import UnknownInstruction, words
    from ptxmma.catalog.instructions.user_names import is_target
    from ptxmma.catalog.lookup import AmbiguousInstruction, resolve
    from ptxmma.cli.explain import message_of, swizzle_of

    if _MATRIX_DESCRIPTOR.fullmatch(text):
        return ["descriptor", "decode"]
    if _DESCRIPTOR.fullmatch(text):
        return ["descriptor", "instruction"]
    spec = catalog_of(None).database.spec
    if _MESSAGE.fullmatch(text) or message_of(spec, text) or (not text.isdigit() and swizzle_of(spec, text)):
        return ["explain"]
    if is_target(spec, text) and (" " not in text or words.missing(catalog_of(None), text) == [*words.words_of(text)]):
        return ["targets"]
    if _ATOM.match(text) or any(entry.family.startswith(text) for entry in spec.instructions):
        return ["show"]
    try:
        resolve(catalog_of(None), text)
    except AmbiguousInstruction:
        return ["show"]
    except (UnknownInstruction, ValueError):
        first = words.words_of(text)[:1]
        return ["show"] if first and first[0] not in words.missing(catalog_of(None), text) else []
    return ["show"]
