"""Forms that TVM's ``T.ptx`` has: its table of instructions, rendered as inline assembly by its own functions.

The table states no version, and of targets only one on which every form of an entry assembles.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import Any

from ptxmma_proof.peers.forms import Form, Ours
from ptxmma_proof.peers.headers import statements_of
from ptxmma_proof.peers.sources import MissingPeerError

#: The package below TVM's checkout; it imports nothing of TVM.
TABLE = Path("python/tvm/backend/cuda/ptx")
_PACKAGE = "tvm_ptx"


def forms(checkout: Path, ours: Ours) -> Iterator[Form]:
    """Yield the forms of the entries of which a variant begins as an opcode of ours.

    Raises:
        MissingPeerError: the table is not there.
    """
    if not (checkout / TABLE / "table.py").is_file():
        raise MissingPeerError(f"{checkout / TABLE}: no table.py; give a checkout of TVM")
    package = ModuleType(_PACKAGE)
    package.__path__ = [str(checkout / TABLE)]
    sys.modules[_PACKAGE] = package
    table, render = (import_module(f"{_PACKAGE}.{name}") for name in ("table", "render"))
    for entry in table.TABLE.values():
        for tokens in table.variants(entry) if ours.may_have(entry.ptx_name) else ():
            for immediates in _immediates(table, entry):
                _, _, source = render.render_variant(entry, tokens, imms=immediates)
                yield from (Form("TVM", each, "") for each in statements_of(source))


def _immediates(table: ModuleType, entry: Any) -> Iterator[tuple[str, ...]]:
    """Assignments in which each immediate has each of its values once."""
    choices = [slot.choices or ("0",) for slot in table.imm_slots(entry)]
    first = [values[0] for values in choices]
    for values in zip_longest(*choices) if choices else [()]:
        yield tuple(default if value is None else value for value, default in zip(values, first, strict=True))
