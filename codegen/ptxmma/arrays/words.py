"""Registers of 32 bits, one of each thread: what holds metadata or scale factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import not_empty

#: A register of metadata or scale factors.
REGISTER = np.dtype(np.uint32)


def words(registers: Any, threads: int) -> Array:
    """One 32-bit register of each thread, checked."""
    words = elements.bits(registers, REGISTER.itemsize, "registers")
    if words.shape[-1:] != (threads,):
        raise ValueError(f"registers have shape {words.shape}; they are (..., {threads}): one of each thread")
    not_empty(words, "registers")
    return np.ascontiguousarray(words)
