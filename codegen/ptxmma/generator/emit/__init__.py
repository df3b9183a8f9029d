"""Stage 5, emit: the database -> (path, text) pairs.

One module per output; each has ``emit(catalog)``, touches no disk, holds no facts and takes no decisions about instructions.
A new output is one module here, its templates, and one line in :data:`EMITTERS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog

#: Outputs by the name that ``ptxmma generate --only`` takes; each names a module of this package.
EMITTERS = ("database", "c_headers", "cuda", "matrices", "block_scaling", "shared_layout", "python_layouts", "cmake", "docs", "readme")


class Output(NamedTuple):
    """One generated file: its path below the output directory, with forward slashes, and its text.

    With ``section`` it is only the part of a hand-written file between ``<!-- begin section -->`` and ``<!-- end section -->``.
    """

    path: str
    text: str
    section: str = ""


def emit(catalog: Catalog, only: Iterable[str] = EMITTERS) -> Iterator[Output]:
    """Every file that the named outputs consist of."""
    for name in only:
        yield from importlib.import_module(f"{__name__}.{name}").emit(catalog)


#: The files and folders that belong to each output: what lies there and is not emitted is stale.
OWNED: dict[str, tuple[str, ...]] = {
    "database": ("generated/database",),
    "c_headers": ("generated/include/ptxmma",),
    "cuda": ("generated/include/ptxmma",),
    "matrices": ("generated/include/ptxmma",),
    "block_scaling": ("generated/include/ptxmma",),
    "shared_layout": ("generated/include/ptxmma",),
    "python_layouts": ("generated/python/ptxmma_layouts",),
    "cmake": ("generated/cmake", "generated/pkgconfig"),
    "docs": ("docs/reference",),
    "readme": (),
}
