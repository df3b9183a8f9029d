"""Questions without a verb: the verb that answers what the first words name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptxmma.cli.options import catalog_of

#: More digits than an address has that anybody would ask about.
_DESCRIPTOR = re.compile(r"0x[0-9a-fA-F]{9,16}")

#: A code of a message of ptxas.
_MESSAGE = re.compile(r"[cC]\d{4}")


def verb_of(arguments: Sequence[str]) -> list[str]:
    """The verb for a descriptor, a message, a target or an instruction; empty where the words up to the first option name none.

    Words of which instructions have only some are a question about instructions, too: ``show`` says which is at fault, and what is closest.
    """
    from ptxmma.catalog.instructions import UnknownInstruction, words
    from ptxmma.catalog.instructions.user_names import is_target
    from ptxmma.catalog.lookup import AmbiguousInstruction, resolve

    end = next((place for place, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    text = " ".join(arguments[:end])
    if _DESCRIPTOR.fullmatch(text):
        return ["descriptor", "decode"]
    known = catalog_of(None)
    if _MESSAGE.fullmatch(text):
        return ["explain"]
    if is_target(known.database.spec, text):
        return ["targets"]
    if any(entry.family.startswith(text) for entry in known.database.spec.instructions):
        return ["show"]
    try:
        resolve(known, text)
    except AmbiguousInstruction:
        return ["show"]
    except UnknownInstruction:
        first = words.words_of(text)[:1]
        return ["show"] if first and first[0] not in words.missing(known, text) else []
    except ValueError:
        return []
    return ["show"]
