"""Stage 5, emit: the database -> (path, text) pairs.

One module per output; each has ``emit(catalog)``, touches no disk, holds no facts and takes no decisions about instructions.
A new output is one module here, its templates, and one line in :data:`EMITTERS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog


class Emitter(NamedTuple):
    """An output as :data:`EMITTERS` lists it.

    Attributes:
        folders: what belongs to it below the output directory: a generated file there that it does not emit is stale.
        module: the module with its ``emit``; that of this package with the name of the output where it is empty.
        of_the_generator: whether it is the same for every spec: made only in the checkout that the generator runs from, or where asked
            for by name.
        on_request: whether it is made only where asked for by name: the site makes its reference whenever it is built.
    """

    folders: tuple[str, ...] = ()
    module: str = ""
    of_the_generator: bool = False
    on_request: bool = False


#: Outputs by the name that ``ptxmma generate --only`` takes.
EMITTERS: dict[str, Emitter] = {
    "database": Emitter(("generated/database",)),
    "c_headers": Emitter(("generated/include/ptxmma",)),
    "cuda": Emitter(("generated/include/ptxmma",)),
    "matrices": Emitter(("generated/include/ptxmma",)),
    "block_scaling": Emitter(("generated/include/ptxmma",)),
    "shared_layout": Emitter(("generated/include/ptxmma",)),
    "tcgen05_products": Emitter(("generated/include/ptxmma",)),
    "tcgen05_calls": Emitter(("generated/include/ptxmma",)),
    "tensor_moves": Emitter(("generated/include/ptxmma",)),
    "python_layouts": Emitter(("generated/python/ptxmma_layouts",)),
    "javascript": Emitter(("generated/javascript",)),
    "cmake": Emitter(("generated/cmake", "generated/pkgconfig")),
    "docs": Emitter(("docs/reference",), on_request=True),
    "readme": Emitter(),
    "schemas": Emitter(("spec/schema",), of_the_generator=True),
}


class Output(NamedTuple):
    """One generated file: its path below the output directory, with forward slashes, and its text.

    With ``section`` it is only the part of a hand-written file between ``<!-- begin section -->`` and ``<!-- end section -->``.
    """

    path: str
    text: str
    section: str = ""


def emit(catalog: Catalog, only: Iterable[str] = ()) -> Iterator[Output]:
    """Every file that the named outputs consist of; without names, of all that are not on request."""
    for name in only or [name for name, emitter in EMITTERS.items() if not emitter.on_request]:
        yield from importlib.import_module(EMITTERS[name].module or f"{__name__}.{name}").emit(catalog)
