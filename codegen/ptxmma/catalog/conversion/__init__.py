"""A fragment as another operand takes it: where each element of the target is in the source, and how it gets there.

Both layouts lead from places, the bits of ``i``, ``lane``, ``warp`` and ``cta``, to the elements of matrices.  Composed, they lead from
the places of the target to the places of the source; which parts of a place differ says what the conversion costs.
"""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from ptxmma.arguments import in_range
from ptxmma.catalog.conversion import cuda
from ptxmma.catalog.conversion.exchanges import SHUFFLED, TEXTS, Arrange, Bit, Kind, Registers, Shuffle, Step, expression, plan, word_size
from ptxmma.catalog.conversion.sides import GROUPS, Side, Stride, match, order, reordered, side
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.operands.tensor_fragment import TensorFragment

__all__ = ["Arrange", "Bit", "Conversion", "Shuffle", "Side", "Stride", "convert"]


class SideFacts(TypedDict):
    """A side of a conversion: an operand, and the first element of each of its tiles."""

    operand: str
    layout: str
    bits: int
    tiles: list[dict[str, int]]


class _ConversionFacts(TypedDict):
    kind: Kind
    text: str
    why: str
    shuffles: int
    source: SideFacts
    target: SideFacts
    steps: tuple[Step, ...]


class ConversionFacts(_ConversionFacts, total=False):
    """A conversion as plain data, with ``k`` and ``permuted`` where it has them."""

    k: tuple[int, ...]
    permuted: ConversionFacts


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of :func:`ptxmma.convert`.

    Elements are named by ``i``, their number in the thread, which counts on through the tiles of a side.

    Attributes:
        source, target: the two sides, each with its tiles and the element of each place.
        kind: the cost. ``"same"``: the same registers of the same threads; ``"registers"``: other registers; ``"prmt"``: other places
            within registers; ``"quad"``, ``"warp"``: a shuffle; ``"memory"``: an exchange through shared memory.
        why: the reason for an exchange between threads, in words; ``""`` for the first three kinds.
        origin: for each bit of a target place, the bit of the source place that it is.
        steps: the work of the threads, in order: :class:`~ptxmma.catalog.conversion.Arrange` and
            :class:`~ptxmma.catalog.conversion.Shuffle`; empty for an exchange through memory.
        k: the order along K where it is another, for each number along K of the target the number of the source that it holds; else empty.
            Of an operand that is stored, the same of its columns.
        permuted: the same conversion with an order of K, or of the columns, that makes it cheaper; None where there is none.
    """

    source: Side
    target: Side
    kind: Kind
    why: str
    origin: dict[Bit, Bit]
    steps: tuple[Step, ...]
    k: tuple[int, ...] = ()
    permuted: Conversion | None = None

    @property
    def shuffles(self) -> int:
        """The shuffles that a thread executes."""
        exchanged = sum(isinstance(step, Shuffle) and step.mask != 0 for step in self.steps)
        return exchanged * max(self.target.bits // SHUFFLED, 1)

    @property
    def word(self) -> int:
        """The elements of a register in a shuffle: a last :class:`Arrange` counts through such registers."""
        return word_size(self.steps, 1 << self.source.inside)

    def find(self, lane: Any, i: Any = 0, *, warp: Any = 0, cta: Any = 0) -> dict[str, Any]:
        """Return the source place of the element at a target place: ``{"lane": 5, "i": 2, "warp": 0, "cta": 0}``; integers or arrays.

        Raises:
            TypeError: a number is neither an integer nor an array.
            ValueError: a number is out of range.
        """
        given = {"lane": lane, "i": i, "warp": warp, "cta": cta}
        widths = {name: sum(place.name == name for place in self.target.places) for name in given}
        place = {name: in_range(name, value, 1 << widths[name]) for name, value in given.items()}
        found: dict[str, Any] = dict.fromkeys(place, 0 * (place["lane"] + place["i"] + place["warp"] + place["cta"]))
        for new, old in self.origin.items():
            found[old.name] = found[old.name] | (place[new.name] >> new.bit & 1) << old.bit
        return found

    def to_cuda(self) -> str:
        """Return a CUDA function for the registers of a thread, ``convert(target, source)``; with shuffles it also takes the lane.

        Where the widths of the elements differ, the source is an array of elements, and ``pack`` makes a register of some of them.  The
        registers of several tiles are one array.

        Raises:
            ValueError: the exchange needs memory.
        """
        if self.kind == "memory":
            raise ValueError(f"no function without memory: {self.why}")
        return cuda.function(self._header(), self._names(), self.source, self.target, self.steps)

    def to_dict(self) -> ConversionFacts:
        """Return the answer as plain data, for JSON."""
        facts: ConversionFacts = {
            "kind": self.kind,
            "text": TEXTS[self.kind],
            "why": self.why,
            "shuffles": self.shuffles,
            "source": _facts(self.source),
            "target": _facts(self.target),
            "steps": self.steps,
        }
        if self.k:
            facts["k"] = self.k
        if self.permuted is not None:
            facts["permuted"] = self.permuted.to_dict()
        return facts

    def __str__(self) -> str:
        lines = [*self._header(), *(f"  {line}" for line in self._program())]
        if self.permuted is not None:
            lines += ["", f"With another order of {self._ordered()}:", str(self.permuted)]
        return "\n".join(lines)

    def _header(self) -> list[str]:
        """The two operands, the cost of the conversion, and its tiles."""
        source, target = self.source, self.target
        lines = [f"{_named(source)} to {_named(target)}: {TEXTS[self.kind]}"]
        if self.why:
            lines.append(f"because {self.why}")
        lines += [part for one, name in zip((source, target), self._names(), strict=True) for part in _tiles(one, name)]
        if self.k:
            numbers = ", ".join(map(str, self.k))
            old, new = self._names()
            follows = "the other factor" if target.summed else "what reads it"
            lines.append(f"along {self._ordered()}, {new} holds what {old} has at {numbers}: {follows} has to follow")
        return lines

    def _ordered(self) -> str:
        return "K" if self.target.summed else "the columns"

    def _program(self) -> list[str]:
        """The steps, as assignments of registers: ``a0 = d0 d1``; ``v0[1]`` is an element of a register, the lowest first."""
        old, new = self._names()
        lines = []
        for number, step in enumerate(self.steps):
            final = number == len(self.steps) - 1
            if isinstance(step, Shuffle):
                arranged_after = isinstance(self.steps[-1], Arrange)
                word = f"{'w' if isinstance(self.steps[0], Arrange) else old}[{expression(step.sends)}]"
                sent = {0: word, None: f"shfl({word}, {expression(step.lanes)})"}.get(step.mask, f"shfl({word}, lane ^ {step.mask})")
                lines.append(f"{'v' if arranged_after else new}[{expression(step.takes)}] = {sent}")
                continue
            for register, elements in enumerate(step.registers):  # the first step counts as ``i`` does
                parts = [f"v{each // self.word}[{each % self.word}]" if number else f"{old}{each}" for each in elements]
                lines.append(f"{new if final else 'w'}{register} = {' '.join(parts)}")
        return lines

    def _names(self) -> tuple[str, str]:
        """The names of the two sides in the steps: of the operands, where they differ."""
        pair = self.source.name, self.target.name
        return pair if pair[0] != pair[1] else ("from", "to")


def _named(one: Side) -> str:
    return f"{one.name} ({one.layout}{f', {one.type}' if one.type else ''})"


def _tiles(one: Side, name: str) -> list[str]:
    """The tiles of a side, where there are several."""
    if one.tiles == 1:
        return []
    axes = [axis for axis in one.origins[0] if any(origin[axis] for origin in one.origins)]
    at = ", ".join(" ".join(f"{axis} {origin[axis]}" for axis in axes) for origin in one.origins)
    return [f"{name} counts through {one.tiles} tiles, which begin at {at}"]


def convert(source: Operand | TensorFragment, target: Operand | TensorFragment, *, transpose: bool = False) -> Conversion:
    """Return the steps that bring the elements of one operand's registers to the registers of another.

    >>> import ptxmma
    >>> mma = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    >>> reuse = ptxmma.convert(mma.operand("d"), mma.operand("a"))
    >>> reuse.kind, reuse.source.tiles
    ('same', 2)

    Each side has as many tiles as the other needs: two accumulators of 8 columns are an A of 16.  Where the widths of the elements differ,
    the threads convert them first, and the conversion packs them as the target does.  Each of the matrices of ``stmatrix`` is whichever
    part of the source makes it cheapest, and each warp of a warpgroup has tiles of its own where the other side is a warp's.  Where the
    target has copies, for other warps, they are filled too.

    Args:
        source: an operand in registers, or one in tensor memory through its load: :meth:`ptxmma.TensorOperand.through`.
        target: an operand in registers, or one in tensor memory through its store.
        transpose: the target holds the transposed matrix: its rows are the source's columns.

    Raises:
        TypeError: something else than these.
        ValueError: an operand without elements in registers, loads or stores that move more than the operand, or tiles of the two sides
            of which none is a multiple of the other.
    """
    old, new = side(source), side(target)
    if transpose:
        old = old.transposed()
    origin = match(old, new)
    plain = _conversion(old, new, origin)
    changed = reordered(new, origin)
    cheaper = plain if changed == origin else _conversion(old, new, changed)
    if _cost(cheaper) >= _cost(plain):
        return plain
    return msgspec.structs.replace(plain, permuted=msgspec.structs.replace(cheaper, k=order(new, origin, changed)))


def _cost(conversion: Conversion) -> tuple[int, int]:
    return list(TEXTS).index(conversion.kind), conversion.shuffles


def _conversion(source: Side, target: Side, origin: dict[Bit, Bit]) -> Conversion:
    """The steps of a matching, where none are needed between warps."""
    copied = {place: Bit(place.name, -1) for place in target.places if place.name != "i" and place not in origin}
    moved = {name for new, old in (origin | copied).items() if new != old for name in (new.name, old.name)}
    why = _why(source, target, origin | copied)
    answer = Conversion(source=source, target=target, kind="memory", why=why, origin=origin, steps=())
    if moved & GROUPS:
        return answer
    inner = {new: old for new, old in origin.items() if new.name not in GROUPS}
    free = source.bits != target.bits
    used = sorted(place.bit for place in origin.values() if place.name == "i")
    before, after = Registers(tuple(used), 0 if free else source.inside), Registers(tuple(range(target.numbers)), target.inside)
    kind, steps = plan(inner, before, after, free=free)
    return msgspec.structs.replace(answer, kind=kind, steps=steps)


def _why(source: Side, target: Side, origin: dict[Bit, Bit]) -> str:
    """The strides of the bits of threads, where the two sides differ: of the bits of warps and CTAs, where some of those do."""
    threads = sorted(new for new, old in origin.items() if new != old and new.name != "i")
    differ = [place for place in threads if place.name in GROUPS] or threads
    each = ((place, target.places[place] or "nothing", source.places.get(place) or "nothing") for place in differ)
    return "; ".join(f"bit {place.bit} of the {place.name} is {new} in the target, {old} in the source" for place, new, old in each)


def _facts(one: Side) -> SideFacts:
    return {"operand": one.name, "layout": one.layout, "bits": one.bits, "tiles": one.origins}
