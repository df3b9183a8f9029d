"""Why a spelling means no instruction, and which legal instructions are closest."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ptxmma.arguments import shortened
from ptxmma.catalog.instruction_facts import Instruction
from ptxmma.catalog.variants import ordered_tokens, qualifier_values, sizes_in

#: So many numbers are listed one by one.
_FEW = 6


def explain(
    spelling: str, instructions: Sequence[Instruction], meaning: Callable[[str], Instruction | None]
) -> tuple[str, list[Instruction]]:
    """The reason why ``spelling`` means none of the instructions, and those that are closest, the nearest first.

    ``meaning`` gives the instruction that a legal spelling means.
    """
    opcode, *rest = spelling.split(".")
    opcodes = sorted({instruction.canonical.split(".")[0] for instruction in instructions})
    if opcode not in opcodes:
        likely = difflib.get_close_matches(opcode.lower(), opcodes, 1)
        return f"{shortened(opcode)!r} is not a matrix instruction", _closest(instructions, [*likely, *rest], least=0.5)
    if meant := _of_every_size(spelling, instructions, meaning):
        numbers = {extent: sorted({each.extents[extent] for each in meant}) for extent in meant[0].variant.ranging}
        reasons = [f"{extent.upper()} stands for any of its values; name one: {_listed(sizes)}" for extent, sizes in numbers.items()]
        return "; ".join(reasons), meant[:3]
    closest = _closest(instructions, [opcode, *rest])
    known = {token for instruction in instructions for token in instruction.canonical.split(".")}
    return shortened("; ".join(dict.fromkeys(_differences([opcode, *rest], closest[0], known)))), closest


def _of_every_size(spelling: str, instructions: Iterable[Instruction], meaning: Callable[[str], Instruction | None]) -> list[Instruction]:
    """The instructions that a spelling with capital letters for sizes stands for, ``m64nNk16``; none for other spellings."""
    tokens = spelling.split(".")
    sizes: dict[str, tuple[int, ...]] = {}
    for instruction in instructions:
        variant = instruction.variant
        if variant.ranging and (label := variant.shape_label) in tokens:
            sizes.setdefault(spelling.replace(label, variant.shape), tuple(variant.extents[extent] for extent in variant.ranging))
    meanings = (meaning(text) for text in sorted(sizes, key=lambda text: sizes[text]))
    return [instruction for instruction in meanings if instruction is not None]


def _closest(instructions: Iterable[Instruction], tokens: list[str], count: int = 3, least: float = 0.0) -> list[Instruction]:
    """The instructions that share most tokens; of equals, those with the longest runs of them, then the nearest shapes.

    None with a share of common tokens below ``least``.
    """
    wanted = Counter(tokens)
    shares = []
    for instruction in instructions:
        own = instruction.canonical.split(".")
        share = 2 * (Counter(own) & wanted).total() / (len(own) + len(tokens))
        shares.append((share, instruction))
    shares = [pair for pair in shares if pair[0] >= least]
    shares.sort(key=lambda pair: -pair[0])
    if not shares:
        return []
    last = shares[:count][-1][0]
    matcher = difflib.SequenceMatcher(None, [], tokens, autojunk=False)

    def likeness(pair: tuple[float, Instruction]) -> tuple[float, float, int, str]:
        share, instruction = pair
        matcher.set_seq1(instruction.canonical.split("."))
        return -share, -matcher.ratio(), _distance(instruction, tokens), instruction.canonical

    return [instruction for _, instruction in sorted((pair for pair in shares if pair[0] >= last), key=likeness)[:count]]


def _distance(instruction: Instruction, tokens: Iterable[str]) -> int:
    """How far the sizes that tokens say are from an instruction's own; 0 where they say none."""
    return sum(
        abs(size - instruction.extents[name])
        for entry in instruction.variant.instruction.extents.values()
        for token in tokens
        for name, size in (sizes_in(entry, token) or {}).items()
        if name in instruction.extents
    )


def _listed(sizes: list[int]) -> str:
    """Few numbers one by one, of many the first ones and the last."""
    shown = sizes if len(sizes) <= _FEW else [*sizes[:3], "…", sizes[-1]]
    return ", ".join(map(str, shown))


def _differences(tokens: list[str], closest: Instruction, known: set[str]) -> Iterator[str]:
    """How a spelling differs from the closest instruction's, in words; ``known`` are the tokens of all instructions."""
    own = closest.canonical.split(".")
    missing = list((Counter(own) - Counter(tokens)).elements())
    extra = list((Counter(tokens) - Counter(own)).elements())
    for token in list(extra):
        other = next((other for other in missing if _alike(token, other, closest)), None)
        if other is None and len(extra) == len(missing):
            other = missing[0]
        if other is not None:
            extra.remove(token)
            missing.remove(other)
            where = "where the closest has" if token in known else "is in no matrix instruction; the closest has"
            yield f"'.{token}' {where} '.{other}'"
    if missing:
        yield "it lacks " + ", ".join(f"'.{token}'" for token in dict.fromkeys(missing))
    for token in dict.fromkeys(extra):
        fault = "stands twice" if token in own else "does not belong" if token in known else "is in no matrix instruction"
        yield f"'.{token}' {fault}"
    if sorted(tokens) == sorted(own):
        opcode = closest.variant.instruction.opcode or own[0]
        if not ".".join(tokens).startswith(f"{opcode}."):
            yield f"'{opcode}' must stand first"
        else:
            groups = ordered_tokens(closest.variant.instruction)
            for group in sorted(set(groups.values())):
                ours, theirs = (".".join(token for token in text if groups.get(token) == group) for text in (tokens, own))
                if ours != theirs:
                    yield f"'.{ours}' stands in another order than the closest's '.{theirs}'"


def _alike(token: str, other: str, closest: Instruction) -> bool:
    """Whether ``token`` could stand for the same thing as ``other`` does in the closest instruction."""
    instruction = closest.variant.instruction
    for entry in instruction.extents.values():
        if sizes_in(entry, other):
            return sizes_in(entry, token) is not None
    return any(value == other and token in qualifier_values(instruction, name) for name, value in closest.qualifiers.items())
