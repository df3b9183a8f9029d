"""Looks instructions up as people name them: by a spelling, by words, by the name of a function, an atom or a machine instruction."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from ptxmma.arguments import one_of, shortened
from ptxmma.catalog.instructions import Catalog, DatabaseLike, Instruction, UnknownInstruction, catalog, words
from ptxmma.catalog.instructions.meanings import joined, meanings, names, words_of
from ptxmma.catalog.instructions.user_names import is_format, is_target, target_named, types_named
from ptxmma.catalog.names import mentions
from ptxmma.catalog.products import resolution
from ptxmma.catalog.roles import multiplicands
from ptxmma.catalog.summaries.listing import least_targets, spans
from ptxmma.catalog.summaries.target_summary import summary
from ptxmma.catalog.variants import fixed_tokens, placeholders, qualifier_values
from ptxmma.model import InstructionSet, Spec

#: So many instructions are offered where several are meant.
_OFFERED = 8
#: So many instructions are offered where none is meant.
_CLOSE = 3
#: Each word of a longer text is not tried: one instruction has no such number of words, and a server must answer soon.
_MOST_WORDS = 64


class Found(NamedTuple):
    """The instruction that a text means.

    Attributes:
        instruction: the instruction.
        others: the other instructions that the text may mean.
        reasons: the preferences that decided against them: ``["dense before sparse"]``.
        product: the sizes and types that the text says and the opcode does not state: ``{"m": 128, "n": 256}``.
    """

    instruction: Instruction
    others: Sequence[Instruction] = ()
    reasons: Sequence[str] = ()
    product: Mapping[str, str | int] = MappingProxyType({})

    def arguments(self, given: Mapping[str, str | int]) -> dict[str, str | int]:
        """The arguments of the product that the text and further arguments say; empty for an opcode alone."""
        return {**self.product, **given} if given or {"m", "n"} <= self.product.keys() else {}


class AmbiguousInstruction(UnknownInstruction):
    """A text means several instructions, and no preference decides between them.

    Attributes:
        differences: the facts in which they differ, each with its values: ``{"k": [8, 16]}``.
        instructions: the instructions, the preferred of each kind.
    """

    def __init__(self, text: str, instructions: Sequence[Instruction]) -> None:
        self.instructions, self.differences = list(instructions), words.differences(instructions)
        differing = "; ".join(f"{name} ({_values(values)})" for name, values in self.differences.items())
        reason = f"{len(instructions)} instructions are meant; say which: they differ in {differing}"
        super().__init__(text, reason, [each.canonical for each in instructions[:_OFFERED]])

    def __str__(self) -> str:
        more = "\n  ..." * (len(self.instructions) > len(self.close))
        return f"{shortened(self.spelling)}: {self.reason}" + "".join(f"\n  {text}" for text in self.close) + more

    def __reduce__(self) -> tuple[type[UnknownInstruction], tuple[str, Sequence[Instruction]]]:  # type: ignore[override]
        return type(self), (self.spelling, self.instructions)


def _values(values: Sequence[str | int]) -> str:
    """The values of a fact in a sentence."""
    numbers = sorted(value for value in values if isinstance(value, int))
    return spans(numbers) if numbers else ", ".join(str(value) or "none" for value in values)


def resolve(known: Catalog, text: str) -> Found:
    """The instruction that a text means.

    Raises:
        UnknownInstruction: none; with the reason and the closest legal spellings.
        AmbiguousInstruction: several, of which no preference of the spec chooses one.
        IllegalProductError: the text is a type of a product in C++ that its opcode does not have.
    """
    if not isinstance(text, str):
        raise TypeError(f"the spelling of an instruction must be a string, not {type(text).__name__}")
    return _resolved(known, text.strip())


@functools.lru_cache(maxsize=4)  # a question without a verb is resolved for its verb, and then by it
def _resolved(known: Catalog, text: str) -> Found:
    if instruction := known.meaning(text):
        return Found(instruction)
    matches = [words.Match(each) for each in mentions.by_intrinsic(known, text) or mentions.by_machine_code(known, text)]
    matches = matches or words.matching(known, text) or [words.Match(each) for each in mentions.named(known, text)]
    matches = matches or _without_unknown(known, text)
    if not matches and (atoms := mentions.nearest_atoms(known, text)):
        raise UnknownInstruction(
            text, f"no atom of CuTe has this name; the nearest are {', '.join(atoms)}", list(dict.fromkeys(atoms.values()))
        )
    if text.lower() in {name for entry in known.database.spec.instructions for name in entry.operand_kinds}:
        raise UnknownInstruction(text, f"{text!r} is an operand: name its instruction, too", [])
    if not matches:
        return Found(known.find(mentions.spelling_in(known, text)))
    preferred, reasons = words.preferred(known.database.spec, matches)
    if len(preferred) > 1:
        raise AmbiguousInstruction(text, [match.instruction for match in preferred])
    taken = preferred[0].instruction
    others = [match.instruction for match in matches if match.instruction is not taken]
    return Found(taken, others, reasons, words.product(preferred[0]))


def _without_unknown(known: Catalog, text: str) -> list[words.Match]:
    """The instructions with the words of a text that some instruction has, if the others name a target: the ones that it accepts.

    Raises:
        UnknownInstruction: words or a shape that no instruction has with the others; with instructions that have the others.
        ValueError: the target is older than tensor cores, or one of several.
    """
    every = joined(names(known.database.spec), words_of(text))
    if ("." in text and " " not in text) or len(every) > _MOST_WORDS:  # a spelling, explained elsewhere; or no question
        return []
    spec, unknown = known.database.spec, words.missing(known, text)
    shape = next((word for word in every if len(words.sizes(word)) > 1 and not words.matching(known, f"{word} ")), "")
    if shape and (nearest := _nearest(known, shape, [word for word in every if word != shape])):
        label = nearest[0].instruction.variant.shape
        raise UnknownInstruction(text, f"no instruction has the shape {shape}; the nearest is {label}", _usual(spec, nearest))
    single = [[*unknown, word] for word in reversed(every) if word not in unknown]
    tails = [[word for word in every if word in {*unknown, *every[end:]}] for end in reversed(range(1, len(every)))]
    for left_out in [unknown] * bool(unknown) + single + tails:
        rest = " ".join(word for word in every if word not in left_out)
        matches = words.matching(known, f"{rest} ") if rest else []
        if not matches:
            continue
        listed = " ".join(left_out)
        if unknown and is_target(spec, listed) and not _is_small(listed):
            target = target_named(spec, listed)
            if accepted := [match for match in matches if match.instruction.accepted_by(target)]:
                return accepted
            others = least_targets(spec, {name for match in matches for name in match.instruction.accepted_by()})
            said = " ".join(
                word for word in text.split() if meanings(spec, words_of(word)) != [()] and not {*words_of(word)} <= {*left_out}
            )
            reason = f"{target} accepts no instruction with {said}; accepted by {' '.join(others)}"
            reason += _instead(known, matches, target)
        else:
            wrong = [word for word in left_out if not is_target(spec, word) or _is_small(word)] or left_out
            reason = f"no instruction {'' if left_out == unknown else 'with the other words '}has {', '.join(wrong)}"
            close = [words.closest_word(spec, word) for word in wrong] if left_out == unknown else []
            if meant := [word for word in close if word and not words.missing(known, word)]:
                reason += f" (is {', '.join(meant)} meant?)"
        raise UnknownInstruction(text, reason, _usual(spec, matches))
    return []


def _is_small(word: str) -> bool:
    """Return whether a word is a number that may count something: ``setmaxnreg 90``; of four digits it is a GPU's: ``5090``."""
    return word.isdigit() and len(word) < len("5090")


def _instead(known: Catalog, matches: Sequence[words.Match], target: str) -> str:
    """The families of a target that do the work of the usual of some matches, or of all; or the types that it has of their family."""
    about = summary(known, target)
    usual = words.preferred(known.database.spec, matches)[0]
    lacked = {entry["family"]: entry["instead"] for entry in about["lacks"]}
    for these in (usual, matches):
        instead = dict.fromkeys(other for match in these for other in lacked.get(match.instruction.family, ()))
        if instead:
            return f"; it has {', '.join(instead)} instead"
        if has := next((each for each in about["families"] if each["family"] == usual[0].instruction.family and each["types"]), None):
            return f"; its {has['family']} takes {' '.join(has['types'])}"
    return ""


def _nearest(known: Catalog, shape: str, others: Sequence[str]) -> list[words.Match]:
    """The instructions with some words whose shape has the nearest sizes, by their ratios; of all instructions where none has the words."""
    wanted = {name: int(size) for name, size in words.sizes(shape).items() if size != "n"}
    having = words.matching(known, f"{' '.join(others)} ") or [words.Match(each) for each in known.all()]
    distances: dict[float, list[words.Match]] = {}
    for match in having:
        own = match.instruction.shape_sizes
        if wanted.keys() <= own.keys():
            distance = sum(abs(math.log2(max(size, 1) / own[name])) for name, size in wanted.items())
            distances.setdefault(distance, []).append(match)
    return distances[min(distances)] if distances else []


def _usual(spec: Spec, matches: Sequence[words.Match]) -> list[str]:
    """The spellings of some matches that no preference puts after another."""
    return [match.instruction.canonical for match in words.preferred(spec, matches)[0][:_CLOSE]]


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
    """The instruction that ``spelling`` means: canonical, any other that assemblers accept, or words: ``"m16n8k8 tf32"``.

    Words are modifiers without their dots, shapes, element types and names such as ``nvfp4``, in any order.  Of several instructions that
    have them the usual one is meant: dense before sparse, unmarked before marked, f32 accumulators first.  A line of PTX, a function of the
    headers, an atom of CuTe and a machine instruction name theirs, too.

    The opcode of ``tcgen05.mma`` states neither its shape nor its types; the other arguments do.  One that has a single legal value may be
    left out, and ``k`` is the usual depth.  Without any of them the instruction answers what does not depend on them.

    Args:
        spelling: the opcode with its modifiers, or words.
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
        AmbiguousInstruction: the words mean several; it lists what separates them.
        IllegalProductError: an argument is missing, illegal, or not for this instruction; a ``ValueError`` that lists what is legal.
    """
    found = resolve(catalog(database), spelling)
    arguments = {"m": m, "n": n, "k": k, "dtype": dtype, "atype": atype, "btype": btype, "stype": stype}
    arguments |= {"sparsity_version": sparsity_version, "scale_a_lanes": scale_a_lanes, **unknown}
    given: dict[str, str | int] = {name: value for name, value in arguments.items() if value is not None}
    product = found.arguments(given)
    return found.instruction.resolved(**product) if product else found.instruction


def instructions(
    *,
    family: str | None = None,
    target: str | None = None,
    ptx: str | None = None,
    atype: str | None = None,
    type: str | None = None,  # the word of users and of the command
    shape: str | None = None,
    sparse: bool | None = None,
    documented: bool | None = None,
    pattern: str | None = None,
    database: DatabaseLike = None,
) -> Iterator[Instruction]:
    """Iterates over the instructions that pass every given filter.  The filters are checked before the first is returned.

    ``target`` and ``ptx`` are what a module declares: an instruction passes if that target accepts it in that version or an earlier
    one.  A target may have the name of a GPU: see :func:`~ptxmma.catalog.instructions.user_names.target_named`.  ``family`` names a page
    of the reference, ``mma.sp``, or the start of several, ``tcgen05``.  ``atype`` is the type of A, ``type`` the type of any operand,
    by any of its names: ``half``, ``torch.float16``; ``fp8``, ``fp4``, ``int8`` … name all types of that many bits, ``nvfp4``, ``mxfp8`` …
    the products with blocks of that format.  ``shape`` is
    ``m16n8k16``, or ``m64nNk16`` for every N.  A type or a shape that a descriptor may choose, as for ``tcgen05.mma``, counts.
    ``documented`` selects those that the manual has, or lacks.  ``pattern`` is a part of the spelling, in which ``*`` is anything:
    ``"m16n8k*.e4m3"``; or words, as :func:`instruction` takes them.

    Raises:
        ValueError: an unknown family, target, version, type or shape; the message names the closest.
    """
    in_database = catalog(database)
    spec = in_database.database.spec
    families = _families(spec, family)
    target = None if target is None else target_named(spec, target)
    one_of("ptx", ptx, (entry.version for entry in spec.isa_versions))
    formats = [name for name in (atype, type) if name is not None and is_format(spec, name)]
    atypes = None if atype is None or atype in formats else types_named(spec, atype)
    elements = None if type is None or type in formats else types_named(spec, type)
    scaled = [{match.instruction for match in words.matching(in_database, name)} for name in formats]
    if shape is not None and not any(_has_shape(entry, shape) for entry in in_database.all()):
        one_of("shape", shape, (text for entry in in_database.all() for text in _shapes(entry)))
    fits, may_have = _fitting(in_database, pattern or "")
    among = in_database.all(lambda entry: entry.family in families and sparse in (None, entry.sparse) and may_have(entry))
    passing = _passing(among, target, ptx, atypes, elements, shape)
    return (each for each in passing if documented in (None, each.documented) and fits(each) and all(each in own for own in scaled))


def _families(spec: Spec, name: str | None) -> Collection[str]:
    """The family of a name, or all that begin with it and a dot: ``tcgen05``; every family for None."""
    every = dict.fromkeys(entry.family for entry in spec.instructions)
    begun = [family for family in every if name is not None and family.startswith(f"{name}.")]
    if name not in every and (entry := next((entry for entry in spec.instructions if entry.name == name), None)) is not None:
        raise ValueError(f"{name} is an instruction of the family {entry.family}")
    if name in every or not begun:
        one_of("family", name, every)
    return every if name is None else [name] if name in every else begun


def _fitting(known: Catalog, pattern: str) -> tuple[Callable[[Instruction], bool], Callable[[InstructionSet], bool]]:
    """The test of a pattern: a part of the spelling, in which ``*`` is anything; else words that an instruction has, or a name of it.

    The second test is for whole sets: it fails where no instruction of a set passes the first, and need not make them.
    """
    part = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    pieces = list(filter(None, re.split(r"[.*]", pattern)))

    def may_have(entry: InstructionSet) -> bool:
        tokens = {*fixed_tokens(entry.syntax)}.union(*(qualifier_values(entry, name) for name in placeholders(entry.syntax)))
        return all(any(piece in token for token in tokens) for piece in pieces)

    several = re.search(r"\s", pattern) is not None  # no spelling has a blank
    if "*" in pattern or (not several and any(part.search(each.canonical) for each in known.all(may_have))):
        return lambda each: part.search(each.canonical) is not None, may_have
    named = {match.instruction for match in words.matching(known, pattern)} or {*mentions.named(known, pattern)}
    names = {each.variant.instruction.name for each in named}
    return named.__contains__, lambda entry: entry.name in names


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
    among: Iterable[Instruction],
    target: str | None,
    ptx: str | None,
    atypes: Collection[str] | None,
    elements: Collection[str] | None,
    shape: str | None,
) -> Iterator[Instruction]:
    for instruction in among:
        if atypes is not None and set(_types_of_a(instruction)).isdisjoint(atypes):
            continue
        if elements is not None and _types(instruction).isdisjoint(elements):
            continue
        if shape is not None and not _has_shape(instruction, shape):
            continue
        if target is not None or ptx is not None:
            accepted = instruction.accepted_by()
            first = list(accepted.values()) if target is None else [accepted[target]] if target in accepted else []
            if not any(ptx is None or version <= ptx for version in first):
                continue
        yield instruction
