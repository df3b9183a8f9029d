"""Makes the corpus with the compilers that are installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from ptxmma.catalog.evidence.witnesses import Tool

#: The file beside the modules with the version of each compiler.
_RECORD = "makers.json"


def build(folder: Path, cutlass: Path | None, googletest: Path | None) -> Iterator[str]:
    """Make the missing modules with the compilers that are installed, and yield a line about each.

    Args:
        folder: the folder of the corpus.
        cutlass: a checkout, or None to compile nothing of it.
        googletest: a checkout, or None to compile none of CUTLASS's unit tests.
    """
    made = _recorded(folder) if (folder / _RECORD).is_file() else {}
    folder.mkdir(parents=True, exist_ok=True)
    if find_spec("llvmlite"):
        from ptxmma_proof.corpus import llvm

        yield from map(str, llvm.build(folder / "llvm"))
        made["LLVM"] = llvm.version()
    if find_spec("triton"):
        from ptxmma_proof.corpus import triton_kernels

        yield from map(str, triton_kernels.build(folder / "triton"))
        made["Triton"] = triton_kernels.version()
    if cutlass is not None:
        from ptxmma_proof.corpus import cutlass as tests

        yield from tests.build(folder / "cutlass", cutlass, googletest)
        made |= tests.versions(cutlass)
    (folder / _RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(made)))


def recorded(folder: Path, date: str) -> list[Tool]:
    """The compilers that made the modules in a folder.

    Raises:
        OSError: the record is missing.
    """
    return [Tool(kind="compiler", name=name, version=version, date=date) for name, version in _recorded(folder).items()]


def _recorded(folder: Path) -> dict[str, str]:
    return msgspec.json.decode((folder / _RECORD).read_bytes(), type=dict[str, str])
