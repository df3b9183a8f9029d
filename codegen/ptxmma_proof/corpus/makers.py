"""What makes the corpus: each maker with what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog, load
from ptxmma.evidence.corpus import Tool
from ptxmma_proof.corpus import extraction

#: Beside the modules: what made them.
_RECORD = "makers.json"


def build(folder: Path, cutlass: Path | None, googletest: Path | None, llvm: Path | None) -> Iterator[str]:
    """Make what is not there yet, with the makers that are at hand; a line about each module.

    Args:
        folder: of the corpus.
        cutlass: a checkout, or None to compile nothing of it.
        googletest: a checkout, or None to compile none of CUTLASS's unit tests.
        llvm: a checkout, or None to lower none of its tests.
    """
    made = {tool.name: tool for tool in recorded(folder)} if (folder / _RECORD).is_file() else {}
    folder.mkdir(parents=True, exist_ok=True)
    if find_spec("llvmlite"):
        from ptxmma_proof.corpus import lit
        from ptxmma_proof.corpus import llvm as intrinsics

        yield from map(str, intrinsics.build(folder / "llvm"))
        made["LLVM"] = Tool(name="LLVM", version=intrinsics.version())
        if llvm is not None:
            yield from lit.build(folder / "llvm-tests", llvm, extraction.stems(Catalog(load(paths.DATABASE))))
            made[lit.TOOL] = Tool(name=lit.TOOL, version=lit.version(llvm))
    if find_spec("triton"):
        from ptxmma_proof.corpus import kernels

        yield from map(str, kernels.build(folder / "triton"))
        made["Triton"] = Tool(name="Triton", version=kernels.version())
    if cutlass is not None:
        from ptxmma_proof.corpus import cutlass as tests

        yield from tests.build(folder / "cutlass", cutlass, googletest)
        made |= {tool.name: tool for tool in tests.tools(cutlass)}
    (folder / _RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(list(made.values()))))


def recorded(folder: Path) -> list[Tool]:
    """What made the modules in a folder.

    Raises:
        OSError: there is no record.
    """
    return msgspec.json.decode((folder / _RECORD).read_bytes(), type=list[Tool])
