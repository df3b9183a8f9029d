"""The words that people use for instructions, and the instruction that they want first where several match."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ptxmma.model.fields import SOME, Entry, Identifier, Name, Source, Text, Values, like

#: Words of PTX: modifiers without their dots, opcodes and shapes, in small letters or as PTX has them.
Meaning = Annotated[
    str, like(r"^([A-Za-z0-9_:]+( [A-Za-z0-9_:]+)*)?$", "words of PTX with spaces between them, e.g. kind::mxf4 f32; none", 120)
]


class Word(Entry, frozen=True, kw_only=True):
    """A word that is no modifier of PTX: the name of a format, of a machine instruction, of a unit."""

    names: Annotated[  # ("nvfp4", "nvf4")
        tuple[Annotated[str, like(r"^[a-z0-9_]+(::[a-z0-9_]+)?$", "a word in small letters")], ...], SOME
    ]
    means: Annotated[  # ("kind::mxf4nvf4 scale_vec::4X", "kind::mxf4nvf4 block16")
        tuple[Meaning, ...], Meta(min_length=1, description="the words of PTX, or several alternatives, the preferred first")
    ]
    source: Source


#: Words in small letters, with spaces between them.
Phrase = Annotated[str, like(r"^[a-z0-9_.:-]+( [a-z0-9_.:-]+)*$", "words in small letters, with spaces between them", 60)]


class Part(Entry, frozen=True, kw_only=True):
    """A word for an operand, or for an axis of operands."""

    names: Annotated[tuple[Phrase, ...], SOME]  # ("sfa", "scale a")
    means: Name  # "scale-a"
    source: Source


class Question(Entry, frozen=True, kw_only=True):
    """The verb that answers a question, and the options that have what the question says."""

    names: Annotated[tuple[Phrase, ...], Meta(min_length=1, description="words of which the question has one")]  # ("box", "expect")
    beside: Annotated[tuple[Phrase, ...], Meta(description="words that it may have besides")] = ()  # ("bytes", "tile")
    verb: Annotated[str, like(r"^[a-z-]+( [a-z-]+)*$", "a verb of the command")]  # "tma"
    options: Annotated[  # {"box": "sizes", "type": "type"}
        dict[Identifier, Literal["sizes", "rows", "cols", "type", "swizzle", "major", "family"]],
        Meta(description="what each option takes of the question"),
    ] = {}
    needs: Annotated[tuple[Identifier, ...], Meta(description="options without which it is another question")] = ()  # ("box", "type")
    takes: Annotated[
        Literal["", "instruction", "target", "name", "product", "bits"],
        Meta(
            description="the other words: nothing, an instruction, a target, a name that is explained, a product, the bits of a descriptor"
        ),
    ] = ""
    source: Source


class Topic(Entry, frozen=True, kw_only=True):
    """A name of the field for something other than an instruction, with a sentence about it."""

    names: Annotated[tuple[Phrase, ...], SOME]  # ("tl.dot", "tl.dot scaled")
    text: Text
    commands: Annotated[tuple[Annotated[str, like(r"^ptxmma .+$", "a command that says more")], ...], SOME]
    source: Source


class Preference(Entry, frozen=True, kw_only=True):
    """A fact by which one of several instructions is preferred."""

    text: Text  # "f32 accumulators first"
    fact: Annotated[Identifier, Meta(description="a qualifier, name, or one of the facts in spec/README.md")]  # "dtype"
    first: Annotated[  # ("f32",)
        Values, Meta(description="the preferred values in order, before all others; none: the smallest number is preferred")
    ] = ()
    among: Annotated[  # ("shape", "atype", "btype")
        tuple[Identifier, ...], Meta(description="only instructions with equal values of these facts are compared")
    ] = ()
