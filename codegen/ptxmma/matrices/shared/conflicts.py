"""The cost of an access of a warp to shared memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxmma.arguments import integer
from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.arrays.shapes import not_empty
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.matrices.shared.readable_types import memory_of

#: Bytes that one access of a thread covers: ``ld`` and ``st`` of 8 to 64 bits, ``.v2`` and ``.v4``.
_WIDTHS = (1, 2, 4, 8, 16)


class BankConflicts(NamedTuple):
    """The cost of an access of a warp; integers for one access, arrays for many."""

    wavefronts: Any  # cycles in which the banks serve it
    least: int  # without conflicts and with all lanes: one for each part of the warp that is served together
    words: Array  # (..., least, banks): different words that each part asks of each bank


def bank_conflicts(addresses: Any, width: int = 4, active: Any = None, *, database: DatabaseLike = None) -> BankConflicts:
    """Return the wavefronts that shared memory needs for an access of a warp.

    Each bank serves one word at a time; lanes that ask for the same word, or for bytes of it, are served together.  Of accesses of 8
    bytes half a warp is served at a time, of 16 bytes a quarter.  Each part costs as many wavefronts as its busiest bank has different
    words.

    Args:
        addresses: addresses of the first byte that each lane accesses, (..., 32): lane after lane.
        width: bytes that each lane accesses: 1, 2, 4, 8 or 16.
        active: the lanes that take part, bool (32,) or of the shape of ``addresses``; all by default.  The addresses of the others are
            ignored.
        database: the source of the facts; the packaged database by default.

    Raises:
        TypeError: a width that is not an integer.
        ValueError: another width or shape, no integers, an empty array, a negative or unaligned address.

    >>> import numpy as np
    >>> bank_conflicts(np.arange(32) * 128).wavefronts, bank_conflicts(np.arange(32) * 16, width=16).wavefronts
    (32, 4)
    """
    banks, lanes = memory_of(database).banks, catalog(database).database.spec.lanes
    if integer("width", width) not in _WIDTHS:
        raise ValueError(f"width = {width}; a lane accesses {', '.join(map(str, _WIDTHS))} bytes")
    places = elements.as_array(addresses, "addresses")
    if places.dtype.kind not in "iu" or places.shape[-1:] != (lanes,):
        raise ValueError(f"addresses must be integers of shape (..., {lanes}), not {places.dtype} of shape {places.shape}")
    not_empty(places, "addresses")
    asking = _active(active, places.shape)
    wrong = asking & ((places < 0) | (places % width != 0))
    if wrong.any():
        raise ValueError(f"address {places[wrong][0]} of lane {int(np.argwhere(wrong)[0, -1])} is not a multiple of {width}, 0 or more")

    least = -(-width // banks.bytes)
    words = np.where(asking, places // banks.bytes, 0).astype(np.int64)[..., np.newaxis] + np.arange(least)
    words[~asking] = -1
    words = np.sort(words.reshape(*places.shape[:-1], least, lanes), axis=-1)
    different = words >= 0
    different[..., 1:] &= words[..., 1:] != words[..., :-1]
    parts = np.arange(words.size // lanes).reshape(*words.shape[:-1], 1)
    distinct = np.bincount((parts * banks.count + words % banks.count)[different], minlength=parts.size * banks.count)
    distinct = distinct.reshape(*words.shape[:-1], banks.count)
    wavefronts = distinct.max(axis=-1).sum(axis=-1)
    return BankConflicts(wavefronts if wavefronts.ndim else int(wavefronts), least, distinct)


def _active(active: Any, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """The lanes that take part, in the shape of the addresses."""
    if active is None:
        return np.ones(shape, np.bool_)
    lanes = elements.as_array(active, "active")
    if lanes.dtype != np.bool_ or lanes.shape not in (shape, shape[-1:]):
        raise ValueError(f"active must be bool of shape {shape} or {shape[-1:]}, not {lanes.dtype} of shape {lanes.shape}")
    return np.broadcast_to(lanes, shape)
