"""Tensor maps that were given to a chip: the driver's verdict on each, and what copies with them moved."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ptxmma.catalog.instructions import DatabaseLike
from ptxmma.matrices.shared.box import BoxGeometry, tensor_maps_of
from ptxmma.matrices.shared.box_rules import IllegalBoxError
from ptxmma.matrices.shared.tensor_map import TensorMap

_RECORD = Path(__file__).parents[1] / "recorded" / "tensor_maps.jsonl.gz"
#: A row: arguments with the driver's numbers, its verdict, and the copy.
Row = dict[str, Any]
#: Bytes that a copy leaves alone.
_BEFORE = 0xEE


def read(path: Path = _RECORD) -> list[Row]:
    """Read a row for each tensor map given to a chip: an H200 with CUDA 13.0.

    Raises:
        OSError: the record cannot be read.
    """
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write the record; the same rows make the same bytes.

    Raises:
        OSError: the record cannot be written.
    """
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


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


def contradiction(row: Row, memory: np.ndarray[Any, Any] | None, database: DatabaseLike = None) -> str:
    """Return in words how the chip's answer differs from the rules and the images; empty where it agrees.

    Args:
        row: the tensor map and the copy.
        memory: bytes of global memory before the copy, random ones; None: what a copy moves is not compared.
        database: the database to compare with the chip.
    """
    try:
        box = made(row, TensorMap, database)
    except (KeyError, ValueError) as error:
        known = isinstance(error, IllegalBoxError) and all(any(one.accepted for one in each.rule.drivers) for each in error.broken)
        return f"the driver takes {row['map']}: {error}" if row["accepted"] and not known else ""
    if not row["accepted"]:
        return "" if _later(row, database) else f"the driver refuses {row['map']}"
    if "trap" in row:
        return "" if _traps(row, box) else f"the chip traps: {row}"
    if "runs" not in row or memory is None:
        return ""
    return f"the chip copies otherwise: {row}" if _wrong(row, box, memory, database) else ""


def _later(row: Row, database: DatabaseLike) -> bool:
    """Return whether a tensor map needs a chip after Hopper."""
    maps = tensor_maps_of(database)
    entries = [(each.value, row["map"]["type"]) for each in maps.types if each.targets]
    entries += [(each.value, row["map"]["swizzle"]) for each in maps.swizzles if each.targets]
    return any(value == given for value, given in entries)


def _traps(row: Row, box: TensorMap) -> bool:
    """Return whether the rules refuse a copy."""
    try:
        list(box.lines(row["at"], row.get("offsets", ()), store=row["copy"] == "store"))
        box.locate(row["destination"])
    except IllegalBoxError:
        return True
    return False


def _wrong(row: Row, box: TensorMap, memory: np.ndarray[Any, Any], database: DatabaseLike) -> bool:
    """Return whether a copy that the chip made differs from ours."""
    if "miscounted" in row or row["bytes"] != box.transaction_bytes:
        return True
    return (_wrong_store if row["copy"] == "store" else _wrong_load)(row, box, memory, database)


def _wrong_load(row: Row, box: TensorMap, memory: np.ndarray[Any, Any], database: DatabaseLike) -> bool:
    before = np.full(box.size, _BEFORE, np.uint8)
    ours = box.load(
        _tensor(memory, row, box, database), row["at"], offsets=row.get("offsets", ()), destination=row["destination"], image=before
    )
    theirs, nan = before.copy(), np.frombuffer(b"\xf7\x7f" * (box.size // 2 + 1), np.uint8)
    for address, source, length in row["runs"]:
        start = address - row["destination"]
        taken = memory[row["map"]["address"] + source :][:length] if source >= 0 else 0 if source == -1 else nan[start % 2 :][:length]
        theirs[start : start + length] = taken
    return bool((ours != theirs).any())


def _wrong_store(row: Row, box: TensorMap, memory: np.ndarray[Any, Any], database: DatabaseLike) -> bool:
    image, theirs = memory[-box.size :], memory.copy()
    for offset, address, length in row["runs"]:
        start = address - row["destination"]
        theirs[row["map"]["address"] + offset :][:length] = image[start : start + length]
    whole = _of_whole_units(row, box, database)
    ours = memory.copy()
    _tensor(ours, row, whole, database)[...] = whole.store(
        image, _tensor(memory, row, whole, database), row["at"], destination=row["destination"]
    )
    return bool((ours != theirs).any())


def _of_whole_units(row: Row, box: TensorMap, database: DatabaseLike) -> TensorMap:
    """The tensor map with lines of whole 16 bytes, which are what a store writes."""
    numbers, unit = row["map"], box.alignments["at"]
    shape = [-(-numbers["shape"][0] // unit) * unit, *numbers["shape"][1:]]
    whole: TensorMap = made(row | {"map": numbers | {"shape": shape}}, TensorMap, database)
    return whole


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
