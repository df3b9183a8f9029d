"""The indices that CuTe's layout functions must return for each thread and value, from our layouts.

CuTe counts places column by column: A as (M, K), B as (N, K), C as (M, N).  In a sparse A it counts the columns of the full matrix, so
that each stored element covers as many neighbouring values as there are columns for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.layouts.interop import CuteLayout
from ptxmma.catalog.operands import Operand

Values = npt.NDArray[np.int64]

#: The byte id of the scale factors in a register's lowest bytes, which peers use.
_FIRST_BYTE_ID = 0


class OtherSizeError(Exception):
    """Our instruction has another size than the peer's layout; the message has both."""


def fragment(operand: Operand, threads: Values, values: int, full_columns: int = 0) -> Iterator[Values]:
    """The indices of a register operand, (threads, values); once for each independent product of the instruction.

    Args:
        operand: one of ours.
        threads: the threads of the first product, in the peer's order.
        values: the number of values that each thread has in the peer's layout.
        full_columns: K of the full matrix, for a sparse A.

    Raises:
        OtherSizeError: the peer has another number of values or threads.
    """
    ratio = full_columns // operand.cols if full_columns else 1
    if values != operand.elements * ratio:
        raise OtherSizeError(f"{values} values in each thread; ours has {operand.elements}" + (f" x {ratio}" if ratio > 1 else ""))
    layout = operand.fragment()
    if threads.size * operand.computations != layout.threads:
        raise OtherSizeError(f"{threads.size} threads; ours has {layout.threads // operand.computations}")
    value = np.arange(values)
    for product in range(operand.computations):
        lane = threads[:, np.newaxis]
        if operand.computations > 1:
            first, own = (int(operand.locate(computation=number, row=0, col=0)[0]) for number in (0, product))
            lane = lane + own - first
        place = dict(zip(operand.axes, operand.coords(lane, value // ratio), strict=True))
        row, col = place["row"], place["col"]
        index = row + operand.rows * (col * ratio + value % ratio) if "b" not in layout.operands else col + operand.cols * row
        yield np.where(operand.computation(lane, value // ratio) == product, index, -1)


def metadata(instruction: Instruction, values: int) -> Values:
    """The indices of the columns of A that the metadata in each thread's register describes, (threads, values).

    A thread that the selector leaves out has the values of its own selector.

    Raises:
        OtherSizeError: a register describes another number of columns.
    """
    own = instruction.metadata
    chunk = own.granularity.chunk
    if values != 32 // own.width * chunk:
        raise OtherSizeError(f"{values} columns in each thread's register; ours has {32 // own.width * chunk}")
    value = np.arange(values)
    place = _inverse(own.layout.map, lane=np.arange(own.layout.threads)[:, np.newaxis], bit=value // chunk)
    return np.asarray(place["row"] + own.rows * (place["chunk"] * chunk + value % chunk))


def scales(instruction: Instruction, matrix: str, values: int, vector: int) -> Values:
    """The indices of the columns of A or B to which the scale factors in each thread's lowest bytes belong, (threads, values).

    A thread that the thread id leaves out has the values of its own thread id.

    Raises:
        OtherSizeError: other blocks along K.
    """
    own = instruction.scales(matrix)
    assert instruction.shape
    if values != instruction.shape[2] or values != vector * own.blocks:
        raise OtherSizeError(f"{values} columns in blocks of {vector}; ours has {instruction.shape[2]} in {own.blocks} blocks")
    value = np.arange(values)
    place = _inverse(own.layout.map, lane=np.arange(own.layout.threads)[:, np.newaxis], byte=value // vector)
    first = np.array([byte_id == _FIRST_BYTE_ID for byte_id in own.byte_ids])[place["byte_id"]]
    return np.where(first, place[own.line] + own.rows * (place["block"] * vector + value % vector), -1)


def _inverse(layout_map: Any, **places: Any) -> dict[str, Any]:
    lanes, others = np.broadcast_arrays(*places.values())
    axes: dict[str, Any] = layout_map.inverse().apply(dict(zip(places, (lanes, others), strict=True)))
    return axes


def evaluated(layout: CuteLayout) -> Values:
    """A layout of two modes at all its places, (threads, values)."""
    shape = layout.shape
    assert isinstance(shape, tuple)
    threads, values = (CuteLayout(mode, mode).size for mode in shape)
    indices = layout(np.arange(threads)[:, np.newaxis], np.arange(values))
    return np.asarray(np.broadcast_to(indices, (threads, values)), np.int64)
