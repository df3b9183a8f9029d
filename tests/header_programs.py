"""What the tests of the C and CUDA headers share: the headers of a spec in a folder, and programs that include them."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import diskcache

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import pipeline, write
from ptxmma.generator.emit import EMITTERS

#: Warnings that must not appear in the strictest of builds.
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror", "-pedantic")
#: Makes every function of the headers external, so that a shared library has them.
EXTERNAL = ("-DPTXMMA_FN=", "-DPTXMMA_HOST_FN=")

_FOLDER = "generated/include/ptxmma"
#: What compilers of C and C++ made of sources.
_KEPT = paths.CHECKOUT / ".cache" / "cc"
_MOST_BYTES = 1 << 28
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)


def write_headers(catalog: Catalog, folder: Path, *only: str) -> Path:
    """Write the headers of a catalog below a folder: those of some emitters, or of all.

    Returns:
        The directory to include from.
    """
    names = only or [name for name, emitter in EMITTERS.items() if _FOLDER in emitter.folders]
    write.write(pipeline.changes(catalog, folder, names), folder)
    return folder / "generated" / "include"


def run(*command: str | Path) -> None:
    """Run a program, or a compiler by its name; the test fails with its errors.

    What a compiler made of the same files and headers before is kept, as with :class:`cuda_calls.Nvcc`.
    """
    if isinstance(command[0], Path):
        _run(command)
        return
    named = [Path(str(part).removeprefix("-I")) for part in command if isinstance(part, Path) or part.startswith("-I/")]
    words = [part.name if isinstance(part, Path) else part for part in command if not str(part).startswith("-I/")]
    given, folders = _digests(named), [path for path in named if path.is_dir()]
    read = [*((path.name, digest) for path, digest in given.items()), included(given, *folders)]
    key = hashlib.sha256(repr((_version(command[0]), words, read)).encode()).hexdigest()
    with diskcache.Cache(str(_KEPT), size_limit=_MOST_BYTES) as kept:
        made: dict[str, tuple[int, bytes]] | None = kept.get(key)
        if made is None:
            _run(command)
            written = [path for path, digest in _digests(named).items() if given.get(path) != digest]
            kept[key] = {path.name: (path.stat().st_mode, path.read_bytes()) for path in written}
            return
    for path in named:
        if path.name in made:
            mode, data = made[path.name]
            path.write_bytes(data)
            path.chmod(mode)


def _run(command: Iterable[str | Path]) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


@functools.cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout


def _digests(named: Iterable[Path]) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in named if path.is_file()}


def included(sources: Iterable[Path], *folders: Path) -> dict[str, str]:
    """The headers that sources include, and those that they include in turn, each with a digest of its bytes.

    A header lies beside the file that includes it, or in one of the folders; any other is the compiler's own.
    """
    found: dict[str, str] = {}
    waiting = [(path, path.name) for path in sources]
    while waiting:
        source, name = waiting.pop()
        for text in _includes(source, source.stat().st_mtime_ns)[1]:
            beside = (source.parent / text, os.path.normpath(Path(name).parent / text))
            path, place = next((each for each in (beside, *((folder / text, text) for folder in folders)) if each[0].is_file()), (None, ""))
            if path is not None and place not in found:
                found[place] = _includes(path, path.stat().st_mtime_ns)[0]
                waiting.append((path, place))
    return dict(sorted(found.items()))


@functools.cache
def _includes(path: Path, _changed: int) -> tuple[str, list[str]]:
    """A digest of a file, and what it includes."""
    data = path.read_bytes()
    return hashlib.sha256(data).hexdigest(), [name.decode() for name in _INCLUDE.findall(data)]


def files(folder: Path) -> dict[str, str]:
    """The files below a folder, each with a digest of its bytes."""
    every = _digests(sorted(folder.rglob("*")))
    return {path.relative_to(folder).as_posix(): digest for path, digest in every.items()}


def library(compiler: str, source: str, folder: Path, *options: str | Path) -> ctypes.CDLL:
    """A shared library made of C source."""
    (folder / "library.c").write_text(source, encoding="utf-8")
    run(compiler, "-shared", "-fPIC", *options, folder / "library.c", "-o", folder / "library.so")
    return ctypes.CDLL(str(folder / "library.so"))


def pointer(array: Any) -> ctypes.c_void_p:
    """The address of an array, for C."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)
