"""Conversions of codes: which the spec has, the order of codes that their steps want, and the proof that they are exact."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.matrices.quantised import steps
from ptxmma.matrices.quantised.steps import WORD
from ptxmma.model import Dequantisation, ElementType, Spec

#: The factor that puts a zero point into both halves of a register.
BOTH_HALVES = 0x00010001


def conversions(spec: Spec, codes: str, to: str) -> list[Dequantisation]:
    """The conversions from a type of codes to a type of numbers, all of one order.

    Raises:
        ValueError: the spec has none.
    """
    found = [entry for entry in spec.dequantisations if (entry.codes, entry.to) == (codes, to)]
    if not found:
        known = ", ".join(dict.fromkeys(f"{entry.codes} to {entry.to}" for entry in spec.dequantisations))
        raise ValueError(f"no conversion from {codes} to {to}; there are {known or 'none'}")
    return found


def functions(spec: Spec) -> dict[str, list[Dequantisation]]:
    """The conversions by the name of their C++ function, ``dequantise_u4_f16``."""
    found: dict[str, list[Dequantisation]] = {}
    for entry in spec.dequantisations:
        found.setdefault(f"dequantise_{entry.codes}_{entry.to}", []).append(entry)
    return found


@functools.cache
def order(entry: Dequantisation, bits: int) -> tuple[int, ...]:
    """The place in the word of the code of each number, in the order of the registers and their halves.

    Place p is bits p * ``bits`` and up.  ``(0, 4, 1, 5, 2, 6, 3, 7)``: the low half of the first register comes from the lowest code, its
    high half from the fifth.

    Raises:
        ValueError: a number depends on no code or on several, or the steps cannot be run.
    """
    places = np.arange(WORD // bits)
    alone = np.uint32((1 << bits) - 1) << (places * bits).astype(np.uint32)
    numbers = _numbers(entry, np.concatenate([np.zeros(1, np.uint32), alone]), {})
    depends = numbers[1:] != numbers[0]
    if numbers.shape[1] != len(places) or not (depends.sum(0) == 1).all() or not (depends.sum(1) == 1).all():
        raise ValueError(f"{len(places)} codes must give as many numbers, each from one code")
    return tuple(map(int, depends.argmax(0)))


def held(entry: Dequantisation, bits: int) -> tuple[int, ...]:
    """The number that each code of a word becomes, the lowest code first: the inverse of :func:`order`."""
    return tuple(map(int, np.argsort(order(entry, bits))))


def problem(entry: Dequantisation, code: ElementType, number: ElementType) -> str:
    """The reason why steps are not an exact conversion of every code at every place; empty if they are.

    Every code is tried at every place among others, without a zero point and with the largest, and in every place with every zero point.
    """
    if late := steps.reads_after_results(entry.steps):
        return f"{late} is read after the first result is written"
    try:
        places = order(entry, code.bits)
        single = _single(np.arange(1 << code.bits, dtype=np.uint32), len(places))
        zero, alike = np.divmod(np.arange(entry.largest_zero + 1 << code.bits, dtype=np.uint32), 1 << code.bits)
        zeros = np.stack([zero, entry.largest_zero - zero], axis=-1)
        return _mistake(entry, code, number, single, np.array([0, entry.largest_zero], np.uint32)) or _mistake(
            entry, code, number, np.repeat(alike[:, None], len(places), axis=1), zeros
        )
    except ValueError as error:
        return str(error)


def _single(every: Array, count: int) -> Array:
    """Codes by place: each code at each of ``count`` places, among others that are all low, all high or mixed bits."""
    others = every[:: max((len(every) - 1) // 3, 1)]
    codes = np.broadcast_to(others[:, None, None, None], (len(others), count, len(every), count)).copy()
    for place in range(count):
        codes[:, place, :, place] = every
    single: Array = codes.reshape(-1, count)
    return single


def _mistake(entry: Dequantisation, code: ElementType, number: ElementType, codes: Array, zeros: Array) -> str:
    """The first of some codes that becomes another number than its own less the zero point of its register.

    ``codes`` are (words, places); ``zeros`` the zero points of the even and the odd registers, (words, 2) or (2,).
    """
    places = order(entry, code.bits)
    words = np.bitwise_or.reduce(codes << (np.arange(len(places)) * code.bits).astype(np.uint32), axis=1)
    given = {f"zero{parity}": zeros[..., parity] * np.uint32(BOTH_HALVES) for parity in range(2)}
    found = elements.numbers(_numbers(entry, words, given), number)
    own = elements.numbers(codes[:, places].astype(elements.bits_dtype(code)), code).astype(np.float64)
    right = own - zeros[..., np.arange(len(places)) // 2 % 2]
    same = (found == right) & (np.signbit(found) == np.signbit(right)) | np.isnan(found) & np.isnan(right)
    wrong = ~same & (np.isfinite(right) | (not entry.finite))
    if not wrong.any():
        return ""
    row, column = map(int, np.argwhere(wrong)[0])
    return f"code {int(codes[row, places[column]]):#x} becomes {found[row, column]:g}, not {right[row, column]:g}"


def _numbers(entry: Dequantisation, words: Array, zeros: Mapping[str, Array]) -> Array:
    """The bits of the numbers that words become: (words, numbers)."""
    names = steps.inputs(entry.steps)
    given = {name: np.broadcast_to(zeros.get(name, np.uint32(0)), words.shape) for name in names} | {"codes": words}
    made = steps.run(entry.steps, given)
    registers = np.stack([made[name] for name in steps.results(entry.steps)], axis=-1)
    return np.ascontiguousarray(registers).view(np.uint16)
