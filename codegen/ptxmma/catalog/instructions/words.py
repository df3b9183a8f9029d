"""People's words for instructions: ``m16n8k8 tf32``, ``tcgen05.ld 32x32b x64``, ``wgmma n128 nvfp4``; the instructions that have them.

A word is a modifier without its dot, the end of one after ``::``, a shape or a part of one, an element type that the instruction or its
descriptor chooses, or a word of the spec, which means other words.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.catalog import roles
from ptxmma.catalog.instructions.facts import Instruction
from ptxmma.catalog.instructions.meanings import MOST, Words, joined, meanings, names, words_of
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.variants import expand, fixed_tokens, placeholders, qualifier_values, representatives
from ptxmma.model import InstructionSet, Preference, Spec

if TYPE_CHECKING:
    from ptxmma.catalog.instructions import Catalog

#: ``m16n8k8``, ``n128``, ``m64nNk16``, CuTe's ``16x8x8``, and ``1688`` of machine instructions.
_SHAPE = re.compile(r"(?:[mnk](?:[0-9]+|n))+")
_SIZE = re.compile(r"([mnk])([0-9]+|n)")
_CROSSED = re.compile(r"([0-9]+)x([0-9]+)x([0-9]+)|(16|8)(8)([0-9]{1,3})")
#: So many letters begin a word.
_BEGUN = 2
#: A shorter word is close to too many others.
_MISSPELT = 4
#: The part of two words that is equal, if one is meant by the other.
_LIKE = 0.75

#: Matrices and scale factors, whose types a descriptor may choose.
MATRICES = ("d", "a", "b", "c", "s")


class Match(NamedTuple):
    """An instruction that has all words of a text.

    Attributes:
        instruction: the instruction.
        rank: the place of the meaning that fits among the meanings of the text's words: 0 is the preferred.
        places: the places of its modifiers in its spelling, in the order of the words.
        words: the words of this meaning.
    """

    instruction: Instruction
    rank: int = 0
    places: tuple[int, ...] = ()
    words: Words = ()

    @property
    def ordered(self) -> bool:
        """True if its modifiers are in the order of the text."""
        return list(self.places) == sorted(self.places)

    @property
    def inputs(self) -> int:
        """The number of words that are types of A or B."""
        return sum(word in types(self.instruction, "a", "b") for word in self.words)


def matching(catalog: Catalog, text: str) -> list[Match]:
    """The instructions that have every word of a text; where none has, the ones with modifiers that begin with the words.

    A text with dots and without spaces is a spelling, from which modifiers are left out: the rest is in order.  The name of an intrinsic,
    which begins with a word that PTX does not have, is none.
    """
    words, spelling = words_of(text), "." in text and not re.search(r"\s", text)
    if not 0 < len(words) <= MOST or text.startswith(".") or max(map(len, words)) == 1:  # a letter names an operand
        return []
    known = names(catalog.database.spec)
    spelling = spelling and joined(known, words)[0] not in known
    every = meanings(catalog.database.spec, words)
    for begun in (False, True):
        found: dict[Instruction, Match] = {}
        for rank, meaning in enumerate(every):
            for instruction, places in _having(catalog, meaning, begun=begun):
                found.setdefault(instruction, Match(instruction, rank, tuple(places), meaning))
        if spelling and any(_is_misspelt(match) for match in found.values()):
            return []
        if matches := [match for match in found.values() if not spelling or _is_begun(match)]:
            return matches
    return []


def vocabulary(spec: Spec) -> frozenset[str]:
    """The words of PTX that some instruction has."""
    return frozenset().union(*(entry_vocabulary(spec, entry) for entry in spec.instructions))


def has_all(spec: Spec, words: Set[str]) -> bool:
    """Return whether some instruction has all of some words, with any of its hints."""
    entries = (entry for entry in spec.instructions if words <= entry_vocabulary(spec, entry))
    return any(words <= own for entry in entries for own in _by_variant(spec, entry))


def _by_variant(spec: Spec, entry: InstructionSet) -> list[frozenset[str]]:
    """The words that each variant of an instruction has, with all hints."""
    if "words of variants" not in entry.memo:
        hints = {text for hint in entry.hints for value in hint.values for text in _texts(value)}
        every = []
        for variant in expand(entry):
            tokens = (_texts(token) for token in variant.canonical.split("."))
            chosen = (roles.matrix_types(variant).values(), *resolution.types(spec, variant).values())
            every.append(frozenset(hints.union(*tokens, *chosen)))
        entry.memo["words of variants"] = every
    made: list[frozenset[str]] = entry.memo["words of variants"]
    return made


def missing(catalog: Catalog, text: str) -> list[str]:
    """The words of a text that no instruction has."""
    spec = catalog.database.spec
    known = vocabulary(spec)
    return [
        word
        for word in joined(names(spec), words_of(text))
        if not any({*meaning} <= known or sizes(word) for meaning in meanings(spec, (word,)))
    ]


def closest_word(spec: Spec, word: str) -> str:
    """The word that a misspelt one may mean: of an instruction, a GPU, a topic or a question; empty where none is close."""
    import difflib  # only when there is something to explain

    phrases = [name for topic in spec.topics for name in topic.names] + [name for question in spec.questions for name in question.names]
    phrases += [name.lower() for gpu in spec.gpus for name in (gpu.architecture, *gpu.names)]
    known = sorted({*vocabulary(spec), *names(spec), *" ".join(phrases).split()}, key=len)
    said = word.lower()
    begun = (each for each in known if each.startswith(said) and len(said) >= _LIKE * len(each))
    close = itertools.chain(begun, difflib.get_close_matches(said, known, 1, _LIKE))
    return next(close, "") if len(said) >= _MISSPELT and said not in known else ""


def preferred(spec: Spec, matches: Sequence[Match]) -> tuple[list[Match], list[str]]:
    """The matches that no preference puts after another, and the preferences of the spec that decided.

    Before these, an opcode that begins with one of the words is preferred, then a spelling that begins with all of them, the first meaning
    of the words, types of A and B before other types, and the order of the words.
    """
    left, reasons = list(matches), list[str]()
    left = [match for match in left if 0 in match.places] or left
    left = [match for match in left if f"{match.instruction.canonical.lower()}.".startswith(f"{'.'.join(match.words)}.")] or left
    rank = min(match.rank for match in left)
    left = [match for match in left if match.rank == rank]
    inputs = max(match.inputs for match in left)
    left = [match for match in left if match.inputs == inputs]
    left = [match for match in left if match.ordered] or left
    for preference in spec.preferences:
        first = _first(preference, left)
        if len(first) < len(left) and preference.text not in reasons:
            reasons.append(preference.text)
        left = first
    return left, reasons


def product(match: Match) -> dict[str, str | int]:
    """The arguments of a product that words say, for an opcode that states neither its shape nor its types.

    Types of A and B alone leave D the preferred one.
    """
    variant, spec = match.instruction.variant, match.instruction.database.spec
    rules, legal = spec.tensor_products, resolution.types(spec, variant)
    if rules is None or not legal:
        return {}
    said: dict[str, str | int] = {name: int(size) for word in match.words for name, size in sizes(word).items() if size != "n"}
    if stype := next((word for word in match.words if word in legal["stype"]), ""):
        said["stype"] = stype
    named = {word for word in match.words if any(word in types for types in legal.values())} - {stype}
    usual = next((preference.first for preference in spec.preferences if preference.fact == "dtype"), ())
    choices = [types for types in product_rules.typed(rules, variant.facts) if named <= {*types.values()}]
    if named and choices:
        said |= min(choices, key=lambda types: (types["atype"] != types["btype"], types["dtype"] not in usual))
    return said


def differences(instructions: Sequence[Instruction]) -> dict[str, list[str | int]]:
    """The fewest facts that tell instructions apart, each with its values: ``{"k": [8, 16], "atype": ["f16", "bf16"]}``."""
    names = list(dict.fromkeys(each.variant.instruction.opcode or each.variant.instruction.name for each in instructions))
    if len(names) > 1:
        return {"opcode": [*names]}
    first = instructions[0].variant
    facts: list[dict[str, str | int]] = [{**each.variant.sizes, **each.qualifiers} for each in instructions]
    telling = [*first.sizes, *(name for name in first.instruction.qualifiers if name != first.instruction.shape or not first.sizes)]
    for key in reversed(telling):
        fewer = [name for name in telling if name != key]
        if len({tuple(each.get(name) for name in fewer) for each in facts}) == len(facts):
            telling = fewer
    return {key: list(dict.fromkeys(each.get(key, "") for each in facts)) for key in telling}


def _is_begun(match: Match) -> bool:
    """Return whether a spelling begins with the opcode or a shape, and has its modifiers in order, without a letter for a size.

    Between the opcode and ``sync`` nothing is left out: ``mma.sync`` is no sparse instruction.
    """
    opcode = match.instruction.canonical.partition(".")[0]
    begins = match.words[0] == opcode or sizes(match.words[0])
    literals = _literals(match.instruction)
    first = next((number for number, word in enumerate(match.words) if word in literals), 0)
    whole = not 0 < first <= match.instruction.variant.instruction.name.count(".") + 1 or match.places[first : first + 1] == (first,)
    return bool(begins) and whole and match.ordered and not any("n" in sizes(word).values() for word in match.words)


def _is_misspelt(match: Match) -> bool:
    """Return whether a spelling has every qualifier of an instruction, and only some of the other modifiers."""
    variant, words, literals = match.instruction.variant, {*match.words}, _literals(match.instruction)
    if match.instruction.canonical.lower().startswith(".".join(match.words)):
        return False
    complete = all(value.lower() in words for name, value in variant.qualifiers.items() if name not in variant.form.unspelled and value)
    return complete and bool(literals & words) and not literals <= words


def _literals(instruction: Instruction) -> set[str]:
    """The modifiers that every variant of an instruction has beyond its opcode."""
    entry = instruction.variant.instruction
    return {*fixed_tokens(entry.syntax)} - {*entry.name.split(".")}


def _having(catalog: Catalog, words: Words, *, begun: bool) -> Iterator[tuple[Instruction, list[int]]]:
    """The instructions that have all of some words, each with the places of the words in its spelling."""
    spec = catalog.database.spec
    shapes_first = sorted(words, key=lambda word: not sizes(word))  # they leave out most sets, and no type is a shape

    def has(entry: InstructionSet, word: str) -> bool:
        sized = "mnk" if entry.operation == resolution.OPERATION else entry.extent_names
        if word in _stated(entry) or (sizes(word) and {*sizes(word)} <= {*sized}):
            return True
        known = _stated(entry) if sizes(word) else entry_vocabulary(spec, entry)
        return word in known or (begun and any(text.startswith(word) for text in known))

    for instruction in catalog.all(lambda entry: all(has(entry, word) for word in shapes_first)):
        if (places := _places(instruction, words, begun=begun)) is not None:
            yield instruction, places


def _stated(entry: InstructionSet) -> frozenset[str]:
    """The words of an instruction's syntax and of its hints, with every value of its qualifiers."""
    if "stated words" not in entry.memo:
        tokens = {*fixed_tokens(entry.syntax)}.union(*(qualifier_values(entry, name) for name in placeholders(entry.syntax)))
        tokens.update(value for hint in entry.hints for value in hint.values)
        entry.memo["stated words"] = _words_in(tokens)
    stated: frozenset[str] = entry.memo["stated words"]
    return stated


def entry_vocabulary(spec: Spec, entry: InstructionSet) -> frozenset[str]:
    """The words that some variant of an instruction has: the stated ones and the types of its matrices."""
    if "words" not in entry.memo:
        tokens = set[str]()
        for number, _ in enumerate(entry.forms):
            for variant in representatives(entry, number)[: None if entry.operation == resolution.OPERATION else 1]:
                tokens.update(roles.matrix_types(variant).values(), *resolution.types(spec, variant).values())
        entry.memo["words"] = _stated(entry) | _words_in(tokens)
    vocabulary: frozenset[str] = entry.memo["words"]
    return vocabulary


def _words_in(values: Iterable[str]) -> frozenset[str]:
    return frozenset(text for value in values for token in value.split(".") for text in _texts(token))


@functools.lru_cache(maxsize=1 << 12)
def _texts(token: str) -> tuple[str, ...]:
    """A modifier in small letters, and its last part, if that is no number: ``("kind::f16", "f16")``."""
    text = token.lower()
    last = text.rpartition("::")[2]
    return (text, last) if last != text and not last.isdecimal() else (text,)


def _places(instruction: Instruction, words: Words, *, begun: bool) -> list[int] | None:
    """The places of the words in the instruction's spelling, as far as they are modifiers; None where it lacks one of them."""
    tokens = [_texts(token) for token in instruction.canonical.split(".")]
    taken: list[int] = []
    for word in words:
        whole = [place for place, texts in enumerate(tokens) if word in texts]
        fitting = _free(tokens, taken, whole)
        if fitting is None and not whole and (_has_sizes(instruction, word) if sizes(word) else word in _beside(instruction)):
            continue
        if fitting is None and begun and len(word) >= _BEGUN and word[0].isalpha():
            fitting = _free(tokens, taken, [place for place, texts in enumerate(tokens) if any(text.startswith(word) for text in texts)])
        if fitting is None:
            return None
        taken.append(fitting)
    return taken


def _free(tokens: Sequence[Words], taken: Sequence[int], fitting: Sequence[int]) -> int | None:
    """The first fitting place that is not taken, after the last one taken if possible; a modifier of several parts may be taken twice."""
    free = [place for place in fitting if place not in taken or len(tokens[place]) > 1]
    return next((place for place in free if not taken or place >= taken[-1]), next(iter(free), None))


@functools.lru_cache(maxsize=1 << 8)
def sizes(word: str) -> dict[str, str]:
    """The sizes of M, N and K in a word; ``n`` for any: ``{"m": "64", "n": "n", "k": "16"}`` for ``m64nNk16``."""
    if crossed := _CROSSED.fullmatch(word):
        return dict(zip("mnk", filter(None, crossed.groups()), strict=True))
    return dict(_SIZE.findall(word)) if _SHAPE.fullmatch(word) else {}


def _has_sizes(instruction: Instruction, word: str) -> bool:
    own, rules, said = instruction.shape_sizes, instruction.database.spec.tensor_products, sizes(word)
    if instruction.operation == resolution.OPERATION and rules is not None and said:
        m, n, k = (int(said[name]) if said.get(name, "n") != "n" else None for name in "mnk")
        return product_rules.has_sizes(rules, instruction.variant.facts, m, n, k)
    return bool(said) and all(name in own and size in ("n", str(own[name])) for name, size in said.items())


def types(instruction: Instruction, *matrices: str) -> set[str]:
    """The element types of some of its matrices, stated or chosen by a descriptor."""
    chosen = resolution.types(instruction.database.spec, instruction.variant)
    return {instruction.matrix_types.get(name, "") for name in matrices}.union(*(chosen.get(f"{name}type", ()) for name in matrices))


def _beside(instruction: Instruction) -> set[str]:
    """The words beside the modifiers of its canonical spelling: types of its matrices, and hints."""
    hints = {text for _, values in instruction.possible_hints() for value in values for text in _texts(value)}
    return types(instruction, *MATRICES) | hints


def _first(preference: Preference, matches: Iterable[Match]) -> list[Match]:
    """The matches that a preference puts first, in each group that it compares."""
    groups: dict[tuple[object, ...], list[tuple[int, Match]]] = {}
    for match in matches:
        fact = _fact(match.instruction, preference.fact)
        rank = preference.first.index(fact) if fact in preference.first else len(preference.first) if preference.first else int(fact)
        key = tuple(_fact(match.instruction, name) for name in preference.among)
        groups.setdefault(key, []).append((rank, match))
    best = {key: min(rank for rank, _ in group) for key, group in groups.items()}
    return [match for key, group in groups.items() for rank, match in group if rank == best[key]]


def _fact(instruction: Instruction, name: str) -> str | int:
    """The value of a qualifier, or of another fact that preferences test."""
    variant = instruction.variant
    if name in FACTS:
        return FACTS[name](instruction)
    return variant.facts.get(name, "")


#: The facts that preferences test besides an instruction's own.
FACTS: dict[str, Callable[[Instruction], str | int]] = {
    "sparse": lambda instruction: "yes" if instruction.sparse else "no",
    "chosen": lambda instruction: "yes" if instruction.operation == resolution.OPERATION else "no",
    "documented": lambda instruction: "yes" if instruction.documented else "no",
    "opcode": lambda instruction: (instruction.variant.instruction.opcode or instruction.variant.instruction.name).count("."),
    "modifiers": lambda instruction: instruction.canonical.count("."),
    "shape": lambda instruction: instruction.variant.shape,
    "depth": lambda instruction: -instruction.shape_sizes.get("k", 0),
    "types": lambda instruction: len({instruction.matrix_types.get(name) for name in "ab"}),
}
