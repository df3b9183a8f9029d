"""Messages of assemblers, with their causes and remedies."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ptxmma.model.fields import Entry, Text, like


class Message(Entry, frozen=True, kw_only=True):
    """A message of an assembler about matrix instructions."""

    code: Annotated[str, like(r"^(C[0-9]{4}|[a-z]+(-[a-z]+)+)$", "the code of a message, e.g. C7510, or a name of two words")]
    topic: Text  # messages of one topic stand together: "Fences and waits"
    error: bool = False  # the assembler makes no program; otherwise it makes one, which may be slow
    text: Annotated[Text, Meta(description="as the assembler says it; ... is a name or a number of the program")]
    cause: Text
    remedy: Text
    rules: Annotated[tuple[Text, ...], Meta(description="rules of ptxmma check that find the cause")] = ()  # ("missing-wait",)
    example: bool = False  # docs/examples/ptxas_messages has a program that causes it, and the same mended
