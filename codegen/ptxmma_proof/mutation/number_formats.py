"""Compares mutants with libraries: the number formats of ml_dtypes and NumPy, C's types, PyTorch's sparsity."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Catalog
from ptxmma.model import ElementType, RegisterType, Spec
from ptxmma_proof.peers import pytorch

#: A register type of PTX: a letter for its kind, its width, and how many it packs: "f16x2".
REGISTER = re.compile(r"([bsuf])(\d+)(?:x(\d+))?")
#: Bits of the narrowest and the widest operand of inline assembly; a wider register is joined from several.
_NARROWEST, _WIDEST = 16, 64
#: The most bits of a type whose every code is compared; of wider types some are.
_ALL_CODES = 16


def types(catalog: Catalog) -> str:
    """The first number format that differs from ml_dtypes or NumPy, in words."""
    spec = catalog.database.spec
    return _first_wrong_type(spec.types.elements, tuple(_dropped(spec)))


def c_types(catalog: Catalog) -> str:
    """The first register type whose C type has another size or sign in C, in words."""
    return next(_c_types(catalog.database.spec.types.registers), "")


def sparsity(catalog: Catalog) -> str:
    """The first type that PyTorch compresses differently, in words; "" without PyTorch."""
    comparison = pytorch.compare(catalog)
    differences = comparison.differences if comparison else []
    return f"PyTorch compresses {differences[0].subject} otherwise: {differences[0].theirs}" if differences else ""


# --- number formats ---------------------------------------------------------------------------------------------------------


def _dropped(spec: Spec) -> Iterator[tuple[str, int]]:
    """The types of A whose low bits an instruction ignores, with the number of bits."""
    for instruction in spec.instructions:
        for entry in instruction.semantics:
            if entry.truncates:
                yield from ((str(name), entry.truncates) for condition in entry.when for name in condition.get("atype", ()))


@functools.lru_cache(maxsize=16)
def _first_wrong_type(types: tuple[ElementType, ...], dropped: tuple[tuple[str, int], ...]) -> str:
    return next(_wrong_types(types, dropped), "")


def _wrong_types(types: tuple[ElementType, ...], all_dropped: tuple[tuple[str, int], ...]) -> Iterator[str]:
    for name, count in all_dropped:
        for element in types:
            if element.name == name and element.bits - int(element.sign) - element.exponent - element.mantissa != count:
                yield f"{name}: {count} low bits are dropped, and that is not what its sign, exponent and mantissa leave"
    dropped = dict(all_dropped)
    for element in types:
        try:
            dtype = elements.dtype(element)
        except TypeError:
            yield f"neither NumPy nor ml_dtypes has {element.numpy}"
            continue
        if elements.lacks_dtype(element) or element.form == "sign-magnitude":
            continue  # no library has its numbers, only room for its bits
        if element.form != "float":
            yield from _integer(element, dtype)
        else:
            yield from _float(element, dtype, dropped.get(element.name, 0))


def _integer(element: ElementType, dtype: np.dtype[Any]) -> Iterator[str]:
    if dtype == np.bool_:
        fits = element.bits == 1 and element.form == "bits"
    else:
        try:
            limits = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
        except ValueError:
            yield f"{element.name}: {dtype} holds no integers"
            return
        fits = element.bits == limits.bits and (element.form == "signed") == (limits.min < 0)
    if not fits or element.sign != (element.form == "signed"):
        yield f"{element.name}: {dtype} has other bits or another sign"


def _float(element: ElementType, dtype: np.dtype[Any], dropped: int) -> Iterator[str]:
    try:
        limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    except ValueError:
        yield f"{element.name}: {dtype} holds no floating point"
        return
    if limits.bits != element.bits or (element.sign and 1 + element.exponent + element.mantissa + dropped != element.bits):
        yield f"{element.name}: {dtype} has {limits.bits} bits, and its parts must fill them"
        return
    codes = _codes(element, dropped)
    with np.errstate(all="ignore"):
        theirs = elements.numbers(codes, element)
        ours = _decoded(codes >> codes.dtype.type(dropped), element)
    wrong = np.flatnonzero(~((theirs == ours) | (np.isnan(theirs) & np.isnan(ours))))
    if len(wrong):
        yield f"{element.name}: code {int(codes[wrong[0]]):#x} is {theirs[wrong[0]]} in {dtype}"


def _codes(element: ElementType, dropped: int) -> Array:
    """Every code of a type, or some of a wide one, without the dropped bits."""
    width = element.bits if element.sign else element.exponent + element.mantissa
    if element.bits <= _ALL_CODES:
        codes = np.arange(1 << width, dtype=np.uint64)
    else:
        random = np.random.default_rng(element.bits)
        edges = np.array([code for bit in range(width) for code in (1 << bit, (1 << bit) - 1, (1 << width) - (1 << bit))], np.uint64)
        codes = np.concatenate([edges, random.integers(0, 1 << width, 1 << 12, np.uint64, endpoint=False)])
    return np.asarray(codes >> np.uint64(dropped) << np.uint64(dropped)).astype(elements.bits_dtype(element))


def _decoded(codes: Array, element: ElementType) -> Array:
    """The values of codes by definition: sign, exponent with its bias, mantissa."""
    words = [int(code) for code in codes]
    highest = (1 << element.exponent) - 1
    result = np.empty(len(words))
    for index, code in enumerate(words):
        mantissa = code & (1 << element.mantissa) - 1
        exponent = code >> element.mantissa & highest
        sign = -1.0 if element.sign and code >> element.mantissa + element.exponent & 1 else 1.0
        last = exponent == highest
        if last and element.infinity and not mantissa:
            value = np.inf
        elif last and element.nan and (element.infinity or mantissa == (1 << element.mantissa) - 1):
            value = np.nan
        elif exponent == 0 and element.mantissa:
            value = _scaled(mantissa, 1 - element.bias - element.mantissa)
        else:
            value = _scaled(mantissa + (1 << element.mantissa), exponent - element.bias - element.mantissa)
        result[index] = sign * value
    return result


def _scaled(value: int, exponent: int) -> float:
    return float(np.ldexp(float(value), exponent))


# --- C ----------------------------------------------------------------------------------------------------------------------


def _c_types(registers: tuple[RegisterType, ...]) -> Iterator[str]:
    for register in registers:
        match = REGISTER.fullmatch(register.name)
        if match is None:
            continue
        c_type = getattr(ctypes, f"c_{register.c_type.removesuffix('_t')}", None)
        if c_type is None or ctypes.sizeof(c_type) * 8 != min(max(register.bits, _NARROWEST), _WIDEST):
            yield f"{register.name} has {register.bits} bits, {register.c_type} another number"
            continue
        number = c_type(-1).value
        own = "f" if isinstance(number, float) else "s" if number < 0 else "u"
        if own != {"b": "u"}.get("b" if match[3] else match[1], match[1]):
            yield f"{register.name} does not fit {register.c_type}"
