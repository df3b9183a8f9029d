"""What makes the corpus: each maker with what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from ptxmma.evidence.corpus import Tool

#: Beside the modules: what made them.
_RECORD = "makers.json"


def build(folder: Path, cutlass: Path | None, googletest: Path | None) -> Iterator[str]:
    """Make what is not there yet, with the makers that are at hand; a line about each module."""
    made = {tool.name: tool for tool in recorded(folder)} if (folder / _RECORD).is_file() else {}
    folder.mkdir(parents=True, exist_ok=True)
    if find_spec("llvmlite"):
        from ptxmma.verify.corpus import llvm

        yield from map(str, llvm.build(folder / "llvm"))
        made["LLVM"] = Tool(name="LLVM", version=llvm.version())
    if find_spec("triton"):
        from ptxmma.verify.corpus import kernels

        yield from map(str, kernels.build(folder / "triton"))
        made["Triton"] = Tool(name="Triton", version=kernels.version())
    if cutlass is not None:
        from ptxmma.verify.corpus import cutlass as tests

        yield from tests.build(folder / "cutlass", cutlass, googletest)
        made |= {tool.name: tool for tool in tests.tools(cutlass)}
    (folder / _RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(list(made.values()))))


def recorded(folder: Path) -> list[Tool]:
    """What made the modules in a folder.

    Raises:
        OSError: there is no record.
    """
    return msgspec.json.decode((folder / _RECORD).read_bytes(), type=list[Tool])
