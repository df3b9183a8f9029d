"""Questions without a verb: the verb that answers what the words say, with its options."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ptxmma.catalog.instructions import UnknownInstruction, words
from ptxmma.catalog.instructions.meanings import meanings, words_of
from ptxmma.catalog.instructions.user_names import compared_targets, is_target, named_part, type_named, types_named
from ptxmma.catalog.lookup import AmbiguousInstruction, resolve
from ptxmma.catalog.products import resolution
from ptxmma.catalog.summaries.glossary import explanation
from ptxmma.cli.explain import message_of, swizzle_of
from ptxmma.cli.options import catalog_of, usage_errors

if TYPE_CHECKING:
    from ptxmma.model import Question, Spec

#: More digits than an address has that anybody would ask about.
_MATRIX_DESCRIPTOR = re.compile(r"0x[0-9a-fA-F]{9,16}")
#: So many have the descriptors of one register.
_DESCRIPTOR = re.compile(r"0x[0-9a-fA-F]{1,8}")
#: A code of a message of ptxas.
_MESSAGE = re.compile(r"[cC]\d{4}")
#: A target, also one that does not exist.
_TARGET = re.compile(r"(?:sm|compute)_?\d+[a-z]*", re.IGNORECASE)
#: The name of an atom of CuTe, also among the arguments of a template.
_ATOM = re.compile(r"(?:^|[\W])SM\d+_\w+", re.IGNORECASE)
#: An opcode with modifiers, of an instruction that may not be covered: ``cvt.rn.bf16x2.f32``.
_SPELLING = re.compile(r"[a-z]+\d*(?:\.[a-z][\w:]*)+")
#: Signs of PTX or C++, which are not made of words.
_CODE = re.compile(r"[{}<>;%@]")
#: An element of an operand, as programs write it: ``A[9][3]``, or ``[9][3]`` beside its name.
_ELEMENT = re.compile(r"([a-z][\w-]*)?((?:\[\d+\])+)", re.IGNORECASE)
#: An element of a thread, or an operand alone: ``a1``, ``A``.
_OPERAND = re.compile(r"([a-d])(\d*)", re.IGNORECASE)
#: Coordinates in one pair of brackets: ``A[9, 3]``, ``A(9, 3)``.
_BRACKETED = re.compile(r"[\[(] *\d+(?:, *\d+)+ *[\])]")
_SIZES = re.compile(r"\d+(?:x\d+)+")
_WORD = re.compile(r"[\w-]+")
#: Characters of the longest question; a line of PTX with 256 registers is shorter.
_LONGEST = 3_000
#: More words that say nothing than a sentence has on each side of a name.
_AROUND = 12
_MAJORNESS = re.compile(r"(k|m|n|mn)[-_]?major", re.IGNORECASE)


def answered(arguments: Sequence[str]) -> list[str]:
    """The arguments with the verb for what they name: a descriptor, a message, a target, a place, an instruction; empty for none of these.

    Words of which instructions have only some are a question about instructions, too: ``show`` says which is at fault, and what is closest.
    """
    end = next((place for place, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    text, options = " ".join(arguments[:end]), [*arguments[end:]]
    if len(text) > _LONGEST:
        raise click.UsageError(f"the question has {len(text):,} characters; at most {_LONGEST:,} are read")
    for name in _names(text):
        if verb := _verb_of_name(name):
            return [*verb, *name.split(" "), *options]
    spec = catalog_of(None).database.spec
    said = [] if _CODE.search(text) else _said(spec, text)
    asked = _place(spec, said, alone=False) or _asked(spec, said) or _place(spec, said, alone=True)
    if asked:
        return [*asked, *options]
    if _is_about_instructions(text):
        return ["show", *(said or text.split()), *options]
    return ["explain", *arguments] if _is_rule(text) else []


def misspelt(text: str) -> str:
    """The question that a text may mean, with its unknown words replaced by close ones; empty where that has no answer, either."""
    known = catalog_of(None)
    unknown = {*words.missing(known, text)}
    meant = _WORD.sub(lambda word: (word[0].lower() in unknown and words.closest_word(known.database.spec, word[0])) or word[0], text)
    with contextlib.suppress(click.UsageError):
        return meant if meant != text and answered(meant.split()) else ""
    return ""


def _names(text: str) -> Iterator[str]:
    """A text, and the rest of it without the words that mean nothing, first the ones around a name: ``B200`` of ``what runs on B200``."""
    yield text
    spec, every = catalog_of(None).database.spec, text.split()
    first, last = (next((at for at, word in enumerate(side) if not _is_idle(spec, word)), 0) for side in (every, every[::-1]))
    first, last = min(first, _AROUND), min(last, _AROUND)
    around = [(begin, 0) for begin in range(1, first + 1)] + [(begin, end) for begin in (0, first) for end in range(1, last + 1)]
    yield from (" ".join(every[begin : len(every) - end]) for begin, end in around)
    rest = [word for word in every if not _is_idle(spec, word) and word not in ("a", "an")]
    if not re.fullmatch(r"[\d.]*", " ".join(rest)):  # a number alone says nothing
        yield " ".join(rest)


def _is_idle(spec: Spec, word: str) -> bool:
    """Return whether a word says nothing of an instruction: ``which``, ``of``."""
    return bool(said := words_of(word)) and meanings(spec, said) == [()]


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
    if _TARGET.fullmatch(text) or is_target(spec, text) or compared_targets(spec, text):
        return ["targets"]
    with usage_errors():
        return ["explain"] if explanation(known, text) else []


def _is_rule(text: str) -> bool:
    """Return whether a text is the code of a rule of ``ptxmma check``."""
    from ptxmma.check.rules import RULES  # the checker is large

    return text in RULES


# --- places and tables of operands ------------------------------------------------------------------------------------------


def _said(spec: Spec, text: str) -> list[str]:
    """The words of a question without the ones that mean nothing; an element is one word, ``A[9][3]``, the number of an axis another."""
    text = _BRACKETED.sub(lambda match: _indexed(match[0]), text)
    operands = "|".join(["[a-dr]", *(name.replace(" ", "(?: of)? ") for entry in spec.operand_names for name in entry.names)])
    placed = re.compile(rf"\b({operands})((?:[ ,]+\d+){{2,}}(?![\w.])|\s*(?:\[\d+\])+)", re.IGNORECASE)
    text = placed.sub(lambda match: (named_part(spec.operand_names, match[1]) if match[1][1:] else match[1]) + _indexed(match[2]), text)
    axes = "|".join(name for entry in spec.axis_names for name in entry.names)
    text = re.sub(rf"\b({axes}) ?[=:] ?(?=\d)", r"\1 ", text, flags=re.IGNORECASE)
    text = re.sub(r"\b([mnk]) ?= ?(?=\d)", r"\1", text, flags=re.IGNORECASE)
    telling = {word for question in spec.questions for phrase in (*question.names, *question.beside) for word in phrase.split()}
    every = [word.strip(",?!()") for word in text.split()]
    articles = {at for at, word in enumerate(every[:-1]) if word == "a" and is_target(spec, every[at + 1])}  # of a GPU, no operand
    return [word for at, word in enumerate(every) if word and at not in articles and (word.lower() in telling or not _is_idle(spec, word))]


def _indexed(numbers: str) -> str:
    """Numbers as indices: ``[9][3]`` for ``9, 3``."""
    return "".join(f"[{number}]" for number in re.findall(r"\d+", numbers))


def _place(spec: Spec, said: Sequence[str], *, alone: bool) -> list[str]:
    """The question to ``layout`` about a place in an operand, or, ``alone``, about the operand; empty where the words name none."""
    rest, place, operand = [*said], list[str](), ""
    while (at := next((at for at, word in enumerate(rest[:-1]) if _axis(spec, word) and rest[at + 1].isdecimal()), None)) is not None:
        place += [f"--{_axis(spec, rest[at])}", rest[at + 1]]
        held = _OPERAND.fullmatch(rest[at + 2]) if len(rest) > at + 2 and place[-2] == "--lane" else None
        if held:
            operand = held[1]
            place += ["--element", held[2]] if held[2] else []
        del rest[at : at + (3 if held else 2)]
    if (element := next((match for word in rest if (match := _ELEMENT.fullmatch(word))), None)) is not None:
        rest.remove(element[0])
        operand = element[1] or ""
        place += _element(" ".join(rest), operand, re.findall(r"\d+", element[2]))
    if not place and not alone:
        return []
    _taken(rest, (name for question in spec.questions if question.verb == "layout" for name in question.names))
    operand = operand or _taken(rest, (name for entry in spec.operand_names for name in entry.names))
    if not operand and (letter := next((word for word in rest if re.fullmatch("[A-Ea-e]", word)), "")):
        without = [word for word in rest if word is not letter]
        if place or (_means_some(" ".join(without)) and not _means_some(" ".join(rest))):
            rest, operand = without, letter
    if not (place or operand):
        return []
    rest = [word for at, word in enumerate(rest) if word != "and" or not _axis(spec, rest[at - 1])]  # lane and register
    rest = [word for word in rest if not _axis(spec, word) or word.lower() in words.vocabulary(spec)]
    if not (place or rest):
        return []
    return ["layout", *rest, *(["--operand", named_part(spec.operand_names, operand)] if operand else []), *place]


def _axis(spec: Spec, word: str) -> str:
    """The option for an axis of this name; empty for another word."""
    return next((entry.means for entry in spec.axis_names if word.lower() in entry.names), "")


def _element(text: str, name: str, numbers: Sequence[str]) -> list[str]:
    """The options for an element of an operand of the instruction in a text: a number for each of its axes."""
    axes: Sequence[str] = ("row", "col")
    if len(numbers) != len(axes) or not (name == "" or _OPERAND.fullmatch(name)):
        if not text:
            raise click.UsageError(f"{name}: name its instruction, too")
        with usage_errors((UnknownInstruction, ValueError)):
            found = resolve(catalog_of(None), text)
            product = found.arguments({})
            axes = (found.instruction.resolved(**product) if product else found.instruction).operand(name).axes or axes
        if len(numbers) != len(axes):
            raise click.UsageError(f"{name} has the axes {', '.join(axes)}: give a number for each, {name}{'[0]' * len(axes)}")
    return [part for axis, number in zip(axes, numbers, strict=True) for part in (f"--{axis}", number)]


def _taken(left: list[str], phrases: Iterable[str]) -> str:
    """Take the phrases that a list of words has out of it, the longest first; returns the first of them, empty where it has none."""
    first = ""
    for phrase in sorted(phrases, key=len, reverse=True):
        parts, lowered = phrase.split(), [word.lower() for word in left]
        for place in range(len(left) - len(parts) + 1):
            if lowered[place : place + len(parts)] == parts:
                del left[place : place + len(parts)]
                first = first or phrase
                break
    return first


# --- questions of the spec --------------------------------------------------------------------------------------------------


def _asked(spec: Spec, said: Sequence[str]) -> list[str]:
    """The verb and its options for a question that the spec lists; empty for another."""
    for question in spec.questions:
        left, given = [*said], dict[str, str]()
        for option, kind in question.options.items():
            if value := _value(spec, left, kind):
                given[option] = value
        left = [word for word in left if not _SIZES.fullmatch(word) or "rows" not in given]
        if not _taken(left, question.names):
            continue
        _taken(left, question.beside)
        if question.verb == "layout" and (place := _place(spec, said, alone=True)):
            return place
        if given.keys() >= {*question.needs} and (rest := _rest(question, left)) is not None:
            return [*question.verb.split(), *rest, *(part for name, value in given.items() for part in (f"--{name}", value))]
    return []


def _value(spec: Spec, left: list[str], kind: str) -> str:
    """The value of a kind in some words, without which they are left; empty where they have none."""
    for place, word in enumerate(left):
        sizes = word.split("x") if _SIZES.fullmatch(word) else []
        if kind in ("rows", "cols") and len(sizes) == 2:
            return sizes[kind == "cols"]  # the sizes stay for the other
        value, follows = "", word.lower() in ("swizzle", "swizzled")
        if kind == "swizzle" and (mode := swizzle_of(spec, " ".join(left[place : place + 1 + follows]))) and not word.isdigit():
            del left[place + follows]
            return mode.name.removesuffix("B")
        if kind == "sizes" and sizes:
            value = word
        elif kind == "major" and (majorness := _MAJORNESS.fullmatch(word)):
            value = "k" if majorness[1].lower() == "k" else "mn"
        elif kind == "type" and _is_type(spec, word):
            value = type_named(spec, word)
        elif kind == "family" and word in {entry.family for entry in spec.descriptors}:
            value = word
        if value:
            del left[place]
            return value
    return ""


def _is_type(spec: Spec, word: str) -> bool:
    try:
        return bool(types_named(spec, word))
    except ValueError:
        return False


def _rest(question: Question, left: Sequence[str]) -> list[str] | None:
    """The arguments that the other words of a question are; None where it does not take them."""
    text = " ".join(left)
    if question.takes == "bits":
        return [text] if re.fullmatch("0x[0-9a-fA-F]+", text) else None
    if question.takes == "instruction":
        return [*left] if left and _is_about_instructions(text) else None
    if question.takes == "target":
        return [text] if is_target(catalog_of(None).database.spec, text) else None
    if question.takes == "name":
        with usage_errors():
            return [text] if explanation(catalog_of(None), text) else None
    if question.takes == "product":
        return _descriptor(text)
    return None if left else []


def _descriptor(text: str) -> list[str] | None:
    """The kind and the bits of the instruction descriptor of a product; None where a text says none."""
    from ptxmma.catalog.descriptors.lookup import of_product

    known = catalog_of(None)
    opcode = next((entry.name for entry in known.database.spec.instructions if entry.operation == resolution.OPERATION), "")
    for words_of_product in (text, f"{opcode} {text}"):
        with contextlib.suppress(UnknownInstruction, ValueError):
            found = resolve(known, words_of_product)
            if found.instruction.operation == resolution.OPERATION and (product := found.arguments({})):
                kind = found.instruction.qualifiers["kind"].rpartition("::")[2]
                return [kind, f"{of_product(found.instruction.resolved(**product)):#010x}"]
    return None


# --- instructions -----------------------------------------------------------------------------------------------------------


def _means_some(text: str) -> bool:
    """Return whether a text means one instruction or several."""
    try:
        resolve(catalog_of(None), text)
    except AmbiguousInstruction:
        return True
    except (UnknownInstruction, ValueError):
        return False
    return True


def _is_about_instructions(text: str) -> bool:
    """Return whether a text names instructions, looks like a spelling, or begins with a word of an instruction, apart from a target."""
    known = catalog_of(None)
    if _ATOM.search(text) or _SPELLING.fullmatch(text) or any(entry.family.startswith(text) for entry in known.database.spec.instructions):
        return True
    if _means_some(text):
        return True
    first = next((word for word in words_of(text) if not is_target(known.database.spec, word)), None)
    return first is not None and first not in words.missing(known, text)
