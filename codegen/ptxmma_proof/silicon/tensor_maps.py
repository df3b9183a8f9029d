"""Tensor maps that were given to a chip: the driver's verdict on each, and what copies with them moved."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from ptxmma.catalog.instructions import DatabaseLike
from ptxmma.matrices.shared.box import BoxGeometry, tensor_maps_of
from ptxmma.matrices.shared.tensor_map import TensorMap

_RECORD = Path(__file__).parents[1] / "recorded" / "tensor_maps.jsonl.gz"
#: A row: arguments with the driver's numbers, its verdict, and the copy.
Row = dict[str, Any]
#: Bytes that a copy leaves alone.
_BEFORE = 0xEE


def read() -> list[Row]:
    """Read a row for each tensor map given to a chip with CUDA 13.0.

    Raises:
        OSError: the record cannot be read.
    """
    with gzip.open(_RECORD, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def made(row: Row, kind: Any = BoxGeometry, database: DatabaseLike = None) -> Any:
    """Return the tensor map of a row.

    Raises:
        IllegalBoxError: it breaks a rule.
        KeyError, ValueError: nothing has one of its numbers, or its arguments do not fit.
    """
    maps, numbers = tensor_maps_of(database), dict(row["map"])
    words = {}
    for key, entries in (("type", maps.types), ("swizzle", maps.swizzles), ("interleave", maps.interleaves), ("fill", maps.fills)):
        words[key] = {entry.value: entry.name for entry in entries}[numbers.pop(key)]
    return kind(words.pop("type"), **words, **numbers, database=database)


def refused(row: Row, database: DatabaseLike = None) -> bool:
    """Return whether the rules refuse a tensor map."""
    try:
        made(row, database=database)
    except (KeyError, ValueError):
        return True
    return False


def images(row: Row, memory: np.ndarray[Any, Any], database: DatabaseLike = None) -> tuple[Any, Any]:
    """Return the bytes that our copy and the chip's leave in shared memory, the tensor being in some bytes of global memory.

    Raises:
        KeyError, ValueError: the rules refuse the tensor map or the copy.
    """
    box = made(row, TensorMap, database)
    before = np.full(box.size, _BEFORE, np.uint8)
    ours = box.load(
        _tensor(memory, row, box, database), row["at"], offsets=row.get("offsets", ()), destination=row["destination"], image=before
    )
    theirs, nan = before.copy(), np.frombuffer(b"\xf7\x7f" * (box.size // 2 + 1), np.uint8)
    for address, source, length in row["runs"]:
        start = address - row["destination"]
        taken = memory[row["map"]["address"] + source :][:length] if source >= 0 else 0 if source == -1 else nan[start % 2 :][:length]
        theirs[start : start + length] = taken
    return ours, theirs


def _tensor(memory: Any, row: Row, box: TensorMap, database: DatabaseLike) -> Any:
    """The tensor of a row in memory."""
    numbers, maps = row["map"], tensor_maps_of(database)
    unit = next(each.unit for each in maps.interleaves if each.value == numbers["interleave"])
    bytes_ = next(entry.bits for entry in maps.types if entry.value == numbers["type"]) // 8
    elements = memory[numbers["address"] :].view(f"u{bytes_}")
    shape, strides = list(box.shape[::-1]), [*box.strides[::-1], unit or bytes_]
    if unit:
        shape, strides = [*shape, unit // bytes_], [*strides, bytes_]
    return np.lib.stride_tricks.as_strided(elements, shape, strides)
