"""A conversion between fragments in words, and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxmma.catalog.exchanges import TEXTS, Arrange, Shuffle

if TYPE_CHECKING:
    from ptxmma.catalog.conversion import Conversion, Side


def text(conversion: Conversion) -> str:
    """The kind, the tiles that take part, and the steps as a program for each thread."""
    lines = [*header(conversion), *(f"  {line}" for line in program(conversion))]
    if conversion.permuted is not None:
        lines += ["", "With another order of K:", text(conversion.permuted)]
    return "\n".join(lines)


def header(conversion: Conversion) -> list[str]:
    """What becomes what, and at what cost."""
    source, target = conversion.source, conversion.target
    lines = [f"{_named(source)} to {_named(target)}: {TEXTS[conversion.kind]}"]
    if conversion.why:
        lines.append(f"because {conversion.why}")
    lines += [part for side, name in zip((source, target), names(conversion), strict=True) for part in _parts(side, name)]
    if conversion.k:
        order = ", ".join(map(str, conversion.k))
        lines.append(f"along K, {target.name} holds what {source.name} has at {order}: the other factor has to follow")
    return lines


def program(conversion: Conversion) -> list[str]:
    """The steps, as assignments of registers: ``a0 = d0 d1``; ``v0[1]`` is an element of a register, the lowest first."""
    old, new = names(conversion)
    lines = []
    for number, step in enumerate(conversion.steps):
        final = number == len(conversion.steps) - 1
        if isinstance(step, Shuffle):
            arranged_after = isinstance(conversion.steps[-1], Arrange)
            word = f"{'w' if isinstance(conversion.steps[0], Arrange) else old}[{expression(step.sends)}]"
            sent = {0: word, None: f"shfl({word}, {expression(step.lanes)})"}.get(step.mask, f"shfl({word}, lane ^ {step.mask})")
            lines.append(f"{'v' if arranged_after else new}[{expression(step.takes)}] = {sent}")
            continue
        size = conversion.word if number else 0  # elements in a register of the step before; the first step counts as ``i`` does
        for register, elements in enumerate(step.registers):
            parts = [f"v{each // size}[{each % size}]" if size else f"{old}{each}" for each in elements]
            lines.append(f"{new if final else 'w'}{register} = {' '.join(parts)}")
    return lines


def names(conversion: Conversion) -> tuple[str, str]:
    """What the steps call the two sides: the names of the operands, where they differ."""
    pair = conversion.source.name, conversion.target.name
    return pair if pair[0] != pair[1] else ("from", "to")


def expression(values: Sequence[int]) -> str:
    """A number for each lane as a formula: ``((lane & 1) * 2) ^ 1``; each bit of it is one bit of the lane, or constant."""
    terms = []
    bits, bit = len(values).bit_length() - 1, 0
    while bit < bits:
        moved, width = values[1 << bit] ^ values[0], 1
        while moved and bit + width < bits and values[1 << bit + width] ^ values[0] == moved << width:
            width += 1
        if moved:
            part = f"lane >> {bit}" if bit else "lane"
            part += "" if bit + width == bits else f" & {(1 << width) - 1}"
            terms.append((part, moved))
        bit += width
    if not terms:
        return str(values[0])
    alone = len(terms) == 1 and not values[0]
    texts = [part if part == "lane" or (alone and moved == 1) else f"({part})" for part, moved in terms]
    total = " + ".join(text if moved == 1 else f"{text} * {moved}" for text, (_, moved) in zip(texts, terms, strict=True))
    if not values[0]:
        return total
    return f"({total}) ^ {values[0]}" if "*" in total or "+" in total else f"{total} ^ {values[0]}"


def record(conversion: Conversion) -> dict[str, Any]:
    """The answer as plain data, for JSON."""
    answer: dict[str, Any] = {
        "kind": conversion.kind,
        "text": TEXTS[conversion.kind],
        "why": conversion.why,
        "shuffles": conversion.shuffles,
        "source": _side(conversion.source),
        "target": _side(conversion.target),
        "steps": conversion.steps,
    }
    if conversion.k:
        answer["k"] = conversion.k
    if conversion.permuted is not None:
        answer["permuted"] = record(conversion.permuted)
    return answer


def _side(side: Side) -> dict[str, Any]:
    return {"operand": side.name, "layout": side.layout, "bits": side.bits, "tiles": side.origins}


def _named(side: Side) -> str:
    return f"{side.name} ({side.layout}{f', {side.type}' if side.type else ''})"


def _parts(side: Side, name: str) -> list[str]:
    """The tiles of a side, where there are several."""
    if side.tiles == 1:
        return []
    axes = [axis for axis in side.origins[0] if any(origin[axis] for origin in side.origins)]
    at = ", ".join(" ".join(f"{axis} {origin[axis]}" for axis in axes) for origin in side.origins)
    return [f"{name} counts through {side.tiles} tiles, which begin at {at}"]
