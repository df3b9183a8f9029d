"""Steps of PTX on registers of 32 bits, for arrays of values at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np

from ptxmma.arrays.elements import Array

#: Bits of a register.
WORD = 32

_STEP = re.compile(r"(\S+) (\{[^}]*\}|\w+), (.*);")
_RESULT = re.compile(r"out\d+")


class Step(NamedTuple):
    """An instruction: ``lop3.b32 t0, codes, 0x000f000f, 0x64006400, 0xea;``.

    Attributes:
        opcode: ``"lop3.b32"``.
        written: the registers that it writes.
        sources: the registers and constants that it reads: ``("codes", "0x000f000f", …)``.
    """

    opcode: str
    written: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def read(self) -> tuple[str, ...]:
        """The registers among the sources."""
        return tuple(source for source in self.sources if not source[0].isdigit())


def parsed(text: str) -> Step:
    """The step that a line of PTX is.

    Raises:
        ValueError: another form.
    """
    match = _STEP.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a step: opcode destination, sources;")
    opcode, written, sources = match.groups()
    return Step(opcode, _names(written), _names(sources))


def _names(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text))


def inputs(steps: Sequence[str]) -> tuple[str, ...]:
    """The registers that steps read before any writes them, in order."""
    written: set[str] = set()
    found: dict[str, None] = {}
    for step in map(parsed, steps):
        found.update(dict.fromkeys(name for name in step.read if name not in written))
        written.update(step.written)
    return tuple(found)


def results(steps: Sequence[str]) -> tuple[str, ...]:
    """The registers ``out0``, ``out1`` … that steps write."""
    return tuple(sorted({name for step in map(parsed, steps) for name in step.written if _RESULT.fullmatch(name)}))


def temporaries(steps: Sequence[str]) -> dict[int, list[str]]:
    """The other registers that steps write, in order, by their bits."""
    found: dict[int, dict[str, None]] = {}
    for step in map(parsed, steps):
        names = [name for name in step.written if not _RESULT.fullmatch(name)]
        found.setdefault(WORD // len(step.written), {}).update(dict.fromkeys(names))
    return {bits: [*names] for bits, names in found.items() if names}


def count(steps: Sequence[str], register: str) -> int:
    """The number of instructions that depend on an input, but for moves, which become none."""
    depending, found = {register}, 0
    for step in map(parsed, steps):
        if depending.intersection(step.read):
            depending.update(step.written)
            found += not step.opcode.startswith("mov.")
    return found


def reads_after_results(steps: Sequence[str]) -> str:
    """An input that is read after a result has been written, which may lie in its register; empty without one."""
    given, done = set(inputs(steps)), False
    for step in map(parsed, steps):
        if done and (late := given.intersection(step.read)):
            return min(late)
        done = done or any(_RESULT.fullmatch(name) for name in step.written)
    return ""


def run(steps: Sequence[str], given: Mapping[str, Array]) -> dict[str, Array]:
    """The registers after the steps.

    Args:
        steps: lines of PTX.
        given: ``uint32`` arrays of one shape, the values of each input.

    Raises:
        ValueError: a step of another form, an unknown opcode or register, or a floating-point result that is rounded.
    """
    registers = dict(given)
    for text in steps:
        step = parsed(text)
        if step.opcode not in _OPERATIONS:
            raise ValueError(f"{text!r}: unknown opcode {step.opcode}; known: {', '.join(_OPERATIONS)}")
        if missing := [name for name in step.read if name not in registers]:
            raise ValueError(f"{text!r} reads {missing[0]}, which no step before it writes")
        values = [registers[source] if source in registers else np.uint32(int(source, 0)) for source in step.sources]
        try:
            made = _OPERATIONS[step.opcode](*values)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{text!r}: {error}") from None
        bits = WORD // len(step.written)
        for place, name in enumerate(step.written):
            registers[name] = made >> np.uint32(place * bits) & np.uint32((1 << bits) - 1)
    return registers


def _lop3(a: Array, b: Array, c: Array, table: Array) -> Array:
    """The bits that a table gives for three bits each; bit 4a + 2b + c of it is the answer."""
    result = np.zeros_like(a | b | c)
    for row in range(8):
        if int(table) >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def _prmt(a: Array, b: Array, selector: Array) -> Array:
    """Four of the eight bytes of b and a, a lowest.

    Raises:
        ValueError: a selector that copies a sign.
    """
    result = np.zeros_like(a | b)
    for place in range(4):
        which = int(selector) >> 4 * place & 15
        if which > 7:
            raise ValueError("a selector of steps is 0 to 7")
        source = b if which > 3 else a
        result |= (source >> np.uint32(8 * (which & 3)) & np.uint32(0xFF)) << np.uint32(8 * place)
    return result


def _exact(kind: type, compute: Callable[..., Array]) -> Callable[..., Array]:
    """An operation on pairs of numbers that refuses to round."""
    dtype = np.dtype(kind)

    def operate(*sources: Array) -> Array:
        shape = np.broadcast_shapes(*(np.shape(source) for source in sources))
        words = (np.ascontiguousarray(np.broadcast_to(source, shape), np.uint32) for source in sources)
        with np.errstate(invalid="ignore"):
            return _pairs(compute(*(word.reshape(-1).view(dtype).astype(np.float64) for word in words)), dtype).reshape(shape)

    return operate


def _pairs(numbers: Array, dtype: np.dtype[np.generic]) -> Array:
    """Numbers of which two neighbours fill a register.

    Raises:
        ValueError: one has more bits than the type.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = numbers.astype(dtype)
        if not np.array_equal(rounded.astype(np.float64), numbers, equal_nan=True):
            raise ValueError("a number is rounded, so that the steps are not exact")
    return rounded.view(np.uint32)


def _converted(source: type, bits: int, target: type) -> Callable[[Array], Array]:
    """A conversion of two narrow numbers to a pair."""

    def convert(value: Array) -> Array:
        codes = np.stack([value >> np.uint32(place * bits) & np.uint32((1 << bits) - 1) for place in range(2)], axis=-1)
        return _pairs(codes.astype(np.uint8).view(source).astype(np.float64).reshape(-1), np.dtype(target)).reshape(value.shape)

    return convert


def _widened(value: Array) -> Array:
    """The bits of a number of f16 as f32."""
    with np.errstate(invalid="ignore"):
        return value.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)


_PAIRS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
_NARROW = {"e4m3": (ml_dtypes.float8_e4m3fn, 8), "e5m2": (ml_dtypes.float8_e5m2, 8), "e2m1": (ml_dtypes.float4_e2m1fn, 4)}
#: The operations of steps on ``uint32`` arrays.
_OPERATIONS: dict[str, Callable[..., Array]] = {
    "mov.b32": lambda a: a,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: a << b,
    "shr.u32": lambda a, b: a >> b,
    "lop3.b32": _lop3,
    "prmt.b32": _prmt,
    **{
        f"{name}.{kind}x2": _exact(dtype, compute)
        for kind, dtype in _PAIRS.items()
        for name, compute in (
            ("sub.rn", lambda a, b: a - b),
            ("mul.rn", lambda a, b: a * b),
            ("fma.rn", lambda a, b, c: a * b + c),
        )
    },
    **{
        f"cvt.rn.{kind}x2.{name}x2": _converted(source, bits, dtype)
        for kind, dtype in _PAIRS.items()
        for name, (source, bits) in _NARROW.items()
    },
    "cvt.f32.f16": _widened,
}
