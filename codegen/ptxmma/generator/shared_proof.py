"""Proof of the canonical layouts of shared memory over whole images: each place alone, and back again, with and without the swizzle."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ptxmma.generator.build import Positions
from ptxmma.generator.digit_proof import Values, difference, evaluated
from ptxmma.generator.problems import Problem
from ptxmma.model import CanonicalLayout, SharedMemory, Spec, Swizzle, TensorMapSwizzle
from ptxmma.model.digit_map import DigitMap
from ptxmma.model.digits import NotDigitsError
from ptxmma.model.formula import FormulaError

#: The panels and groups of an image: the digits that count them have no end, and a third one follows the second as that the first.
_PANELS, _GROUPS = 3, 3
#: Lines of a swizzle after which it has repeated.
_LINES = 16


def problems(spec: Spec, positions: Positions) -> Iterator[Problem]:
    """The first fault of each canonical layout and of each swizzle, also in tensor maps alone."""
    memory = spec.shared_memory
    if memory is None:
        return
    for index, mode in enumerate(memory.swizzles):
        if message := _fault_of_swizzle(memory, mode):
            where = ("swizzles", index, "formula") if mode.formula else ("swizzle_formula",)
            yield Problem(positions.at("shared_memory", *where), f"swizzle {mode.name}: {message}")
        else:
            for key, message in _misstated(memory, mode):
                where = (key,) if key == "base_offset" else ("swizzles", index, key)
                yield Problem(positions.at("shared_memory", *where), f"swizzle {mode.name}: {message}")
    for index, swizzle in enumerate(spec.tensor_maps.swizzles if spec.tensor_maps else ()):
        if message := _fault_of_own(swizzle):
            yield Problem(positions.at("tensor_maps", "swizzles", index, "formula"), f"swizzle {swizzle.name}: {message}")
    for index, layout in enumerate(memory.layouts):
        modes = [mode for mode in memory.swizzles if mode.name in layout.swizzles]
        if message := next(filter(None, (_fault(layout, mode) for mode in modes)), ""):
            yield Problem(positions.at("shared_memory", "layouts", index, "offset"), f"{layout.majorness}-major: {message}")


def _fault(layout: CanonicalLayout, mode: Swizzle) -> str:
    """The fault of a canonical layout; ``""`` without one."""
    try:
        shape = {(term.axis == layout.contiguous, bool(term.size)): term for term in layout.terms}
    except NotDigitsError as error:
        return str(error)
    strides = {term.weight for (_, within), term in shape.items() if not within}
    if len(layout.terms) != len(shape) or len(shape) != 4 or strides != {"lbo", "sbo"}:
        return f"{layout.offset!r} does not cut each of x and k into two digits, of which lbo moves one and sbo another"
    atom = mode.atom_k[0] if layout.contiguous == "k" else mode.atom_mn[1]
    if layout.lines != atom:
        return f"a group has {layout.lines} lines, and an atom of swizzle {mode.name} {atom}"
    group = layout.lines * mode.bytes
    numbers = {layout.group_stride: group, layout.panel_stride: _GROUPS * group, "span": mode.bytes}
    inner, outer = _PANELS * mode.bytes, _GROUPS * layout.lines
    sizes = {"x": outer, "k": inner} if layout.contiguous == "k" else {"x": inner, "k": outer}
    try:
        digits = DigitMap.of(layout.terms, sizes, ("byte",), numbers)
    except NotDigitsError as error:
        return f"swizzle {mode.name}: {error}"
    if difference(digits, {"byte": layout.offset}, {}, numbers):
        return f"{layout.offset!r} is not a sum of digits with swizzle {mode.name}"
    if digits.reach("byte") + 1 != inner * outer:
        return f"swizzle {mode.name}: an image of {inner * outer} bytes reaches byte {digits.reach('byte')}; panels are {mode.bytes} wide"
    return ""


def _fault_of_swizzle(memory: SharedMemory, mode: Swizzle) -> str:
    """The fault of a swizzle mode, ``""`` without one: applied twice it must lead back, within spans, in units that stay together."""
    text = mode.formula or memory.swizzle_formula
    addresses = np.arange(2 * mode.pattern, dtype=np.int64)
    try:
        faults = (_fault_of_moves(mode, memory.alignment, text, base, addresses) for base in range(mode.pattern // mode.bytes))
        return next(filter(None, faults), "")
    except FormulaError as error:
        return str(error)


def _fault_of_own(swizzle: TensorMapSwizzle) -> str:
    """The fault of a swizzle that only copies have, ``""`` without one or without a formula of its own."""
    if not (swizzle.formula and swizzle.bytes):
        return ""
    addresses = np.arange(_LINES * swizzle.bytes, dtype=np.int64)
    try:
        moved = evaluated(swizzle.formula, {"address": addresses}, addresses.size)
        back = evaluated(swizzle.formula, {"address": moved}, addresses.size)
    except FormulaError as error:
        return str(error)
    if (back != addresses).any():
        return f"{swizzle.formula!r} does not lead back when it is applied twice"
    if (moved // swizzle.bytes != addresses // swizzle.bytes).any():
        return f"{swizzle.formula!r} moves bytes out of their {swizzle.bytes}"
    return ""


def _misstated(memory: SharedMemory, mode: Swizzle) -> Iterator[tuple[str, str]]:
    """The parts of a swizzle mode that differ from its formula, each with the difference."""
    units = mode.bytes // memory.alignment
    for key, stated in (("atom_mn", mode.atom_mn[0]), ("atom_k", mode.atom_k[1] or units)):
        if stated != units:
            yield key, f"an atom has {units} units of {memory.alignment} bytes along its span, not {stated}"
    text = mode.formula or memory.swizzle_formula
    addresses = np.arange(2 * mode.pattern, dtype=np.int64)
    moved = evaluated(text, {"span": mode.bytes, "base_offset": 0, "address": addresses}, addresses.size)
    if (numbers := re.fullmatch(r"Swizzle<(\d+),(\d+),(\d+)>", mode.cute)) is None:
        yield "cute", f"{mode.cute!r} is not CuTe's text of a swizzle, such as 'Swizzle<3,4,3>'"
    else:
        bits, base, shift = map(int, numbers.groups())
        if ((addresses ^ (addresses >> shift & ((1 << bits) - 1) << base)) != moved).any():
            yield "cute", f"{mode.cute} moves other bytes than {text!r}"
    # A pattern that starts at any line of the banks lies there as it does at 0.
    starts = np.arange(0, 2 * mode.pattern, memory.banks.count * memory.banks.bytes, dtype=np.int64)
    try:
        offsets = evaluated(memory.base_offset, {"start": starts, "pattern": mode.pattern}, starts.size)
    except FormulaError as error:
        yield "base_offset", str(error)
        return
    for start, offset in zip(starts.tolist(), offsets.tolist(), strict=True):
        there = evaluated(text, {"span": mode.bytes, "base_offset": offset, "address": start + addresses}, addresses.size)
        if (there != start + moved).any():
            yield "base_offset", f"with {offset}, a pattern that starts at {start} lies otherwise than one at 0"
            return


def _fault_of_moves(mode: Swizzle, alignment: int, text: str, base_offset: int, addresses: Values) -> str:
    known = {"base_offset": base_offset, "span": mode.bytes}
    moved = evaluated(text, {**known, "address": addresses}, addresses.size)
    if (evaluated(text, {**known, "address": moved}, addresses.size) != addresses).any():
        return f"{text!r} does not lead back when it is applied twice"
    if (moved // mode.bytes != addresses // mode.bytes).any() or (moved % alignment != addresses % alignment).any():
        return f"{text!r} moves bytes out of their {mode.bytes}, or splits {alignment} that lie together"
    if (moved[mode.pattern :] != moved[: mode.pattern] + mode.pattern).any():
        return f"{text!r} does not repeat after {mode.pattern} bytes"
    return ""
