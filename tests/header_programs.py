"""What the tests of the C and CUDA headers share: the headers of a spec in a folder, and programs that include them."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import pipeline, write
from ptxmma.generator.emit import EMITTERS

#: Warnings that must not appear in the strictest of builds.
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror", "-pedantic")
#: Makes every function of the headers external, so that a shared library has them.
EXTERNAL = ("-DPTXMMA_FN=", "-DPTXMMA_HOST_FN=")

_FOLDER = "generated/include/ptxmma"


def write_headers(catalog: Catalog, folder: Path, *only: str) -> Path:
    """Write the headers of a catalog below a folder: those of some emitters, or of all.

    Returns:
        The directory to include from.
    """
    names = only or [name for name, emitter in EMITTERS.items() if _FOLDER in emitter.folders]
    write.write(pipeline.changes(catalog, folder, names), folder)
    return folder / "generated" / "include"


def run(*command: str | Path) -> None:
    """Run a compiler or a program; the test fails with its errors."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


def library(compiler: str, source: str, folder: Path, *options: str | Path) -> ctypes.CDLL:
    """A shared library made of C source."""
    (folder / "library.c").write_text(source, encoding="utf-8")
    run(compiler, "-shared", "-fPIC", *options, folder / "library.c", "-o", folder / "library.so")
    return ctypes.CDLL(str(folder / "library.so"))
