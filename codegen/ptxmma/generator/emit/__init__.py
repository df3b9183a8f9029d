"""Stage 5, emit: the database -> (path, text) pairs.

One module per output; each has ``emit(catalog)``, touches no disk, holds no facts and takes no decisions about instructions.
A new output is one module here, its templates, and one line in :data:`EMITTERS`; or a module of another package, which
:func:`load` finds: it has ``emit(catalog)``, too, and ``FOLDERS``, its folders below the output directory.
"""

from __future__ import annotations

import importlib
import itertools
import reprlib
import sys
import traceback
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog


class Emitter(NamedTuple):
    """An output as :data:`EMITTERS` lists it.

    Attributes:
        folders: its folders below the output directory: all its files are there, and a generated file there that it does not emit is stale.
        module: the module with its ``emit``; empty for the module of this package that has the name of the output.
        of_the_generator: whether it is the same for every spec: made only in the checkout that the generator runs from, or where asked
            for by name.
        on_request: whether it is made only where asked for by name: the site makes its reference whenever it is built.
        headers: the stems of its C headers and lists, and the folders beside them, that belong to no family: no family may be called so.
    """

    folders: tuple[str, ...] = ()
    module: str = ""
    of_the_generator: bool = False
    on_request: bool = False
    headers: tuple[str, ...] = ()


_HEADERS = ("generated/include/ptxmma",)
_LISTS = ("descriptor_fields", "isa_versions", "register_types")
_TABLES = ("config", "descriptors", "ptxmma", "shared_memory", "targets", "types", "variants")
#: Outputs by the name that ``ptxmma generate --only`` takes, the slowest first: they are made in parallel.
EMITTERS: dict[str, Emitter] = {
    "database": Emitter(("generated/database",)),
    "cuda": Emitter(_HEADERS, headers=("cuda", "ptxmma")),
    "javascript": Emitter(("generated/javascript",)),
    "c_headers": Emitter(_HEADERS, headers=(*_TABLES, *_LISTS)),
    "matrices": Emitter(_HEADERS, headers=("pack", "sparse", "status")),
    "block_scaling": Emitter(_HEADERS, headers=("block_scaling",)),
    "shared_layout": Emitter(_HEADERS, headers=("shared_layout",)),
    "products": Emitter(_HEADERS),
    "python_layouts": Emitter(("generated/python/ptxmma_layouts",)),
    "cmake": Emitter(("generated/cmake", "generated/pkgconfig", "generated/share")),
    "docs": Emitter(("docs/reference",), on_request=True),
    "readme": Emitter(),
    "schemas": Emitter(("spec/schema",), of_the_generator=True),
}

#: The entry-point group of installed packages: the name of an output, and its module.
GROUP = "ptxmma.emitters"


class Output(NamedTuple):
    """One generated file: its path below the output directory, with forward slashes, and its text.

    With ``section`` it is only the part of a hand-written file between ``<!-- begin section -->`` and ``<!-- end section -->``.
    """

    path: str
    text: str
    section: str = ""


class EmitterError(Exception):
    """An emitter that cannot be loaded, that fails, or that yields no legal output; the message names it."""


def emit(catalog: Catalog, name: str, emitter: Emitter) -> list[Output]:
    """Return the files of one output.

    Raises:
        EmitterError: the emitter fails, or yields something else than outputs in its folders.
    """
    module = importlib.import_module(emitter.module or f"{__name__}.{name}")
    made: dict[str, Output] = {}
    try:
        for output in module.emit(catalog):
            if wrong := _wrong(output, emitter.folders, made):
                raise EmitterError(f"the emitter {name} {wrong}")
            made[output.path] = output
    except EmitterError:
        raise
    except (Exception, SystemExit) as error:
        raise EmitterError(f"the emitter {name} failed:\n{trace(error)}") from error
    return [*made.values()]


def trace(error: BaseException) -> str:
    """The traceback of an error, from the code that the caller called or imported."""
    calls = error.__traceback__ and error.__traceback__.tb_next
    while calls and calls.tb_next and "importlib" in calls.tb_frame.f_code.co_filename:
        calls = calls.tb_next
    return "".join(traceback.format_exception(type(error), error, calls)).rstrip()


def _wrong(output: object, folders: tuple[str, ...], made: dict[str, Output]) -> str:
    """The reason why something is not a legal output of an emitter with these folders; empty if it is one."""
    if not isinstance(output, Output) or not all(isinstance(part, str) for part in output):
        return f"yields {reprlib.repr(output)}; it must yield ptxmma.generator.emit.Output(path, text) of two strings"
    if output.path in made:
        return f"yields {output.path} twice; each path names one file"
    path = PurePosixPath(output.path)
    inside = any(PurePosixPath(folder) in path.parents for folder in folders)
    if not output.section and (not inside or ".." in path.parts or str(path) != output.path or "\0" in output.path):
        return f"yields {output.path!r}; its paths are plain, with forward slashes, and below its folders: {', '.join(folders)}"
    return ""


def installed() -> dict[str, str]:
    """The module of each output that installed packages register, by name; a name of ours stays ours."""
    from importlib.metadata import entry_points  # it takes longer to import than all of this package, and few callers need it

    return {point.name: point.value for point in entry_points(group=GROUP) if point.name not in EMITTERS}


def load(module: str) -> Emitter:
    """Import a module, of the working directory too, and return it as an emitter.

    Raises:
        EmitterError: it cannot be imported or lacks what an emitter has.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module and not module.startswith(f"{error.name}."):
            raise EmitterError(f"the emitter {module} cannot be imported:\n{trace(error)}") from error
        hint = "install its package, or run in the directory that holds it"
        if module.endswith(".py"):
            hint = f"give the name without .py: {module.removesuffix('.py')}"
        raise EmitterError(f"there is no module {module}; {hint}") from None
    except (Exception, SystemExit) as error:
        raise EmitterError(f"the emitter {module} cannot be imported:\n{trace(error)}") from error
    if not callable(getattr(found, "emit", None)):
        raise EmitterError(f"the emitter {module} has no function emit(catalog); it yields ptxmma.generator.emit.Output(path, text)")
    folders = getattr(found, "FOLDERS", None)
    if not isinstance(folders, tuple) or not folders or not all(map(_plain, folders)):
        raise EmitterError(f'the emitter {module} has FOLDERS = {folders!r}; it is a tuple of folders below --out, such as ("rust",)')
    return Emitter(folders, module)


def _plain(folder: object) -> bool:
    """Return whether something is the name of a folder below another one."""
    if not isinstance(folder, str):
        return False
    path = PurePosixPath(folder)
    return str(path) == folder and bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def check_apart(others: Mapping[str, Emitter], ours: Collection[str]) -> None:
    """Check that no two emitters own a folder together: each would delete the other's files.

    Args:
        others: the emitters of other packages.
        ours: the folders of our emitters.

    Raises:
        EmitterError: a folder is, or is inside of, the folder of another emitter.
    """
    owned = [("ptxmma", folder) for folder in ours]
    owned += [(name, folder) for name, emitter in others.items() for folder in emitter.folders]
    for (name, folder), (other, its) in itertools.combinations(owned, 2):
        inner, outer = sorted((PurePosixPath(folder), PurePosixPath(its)), key=lambda path: -len(path.parts))
        if name != other and (inner == outer or outer in inner.parents):
            raise EmitterError(f"the emitter {other} owns {its}, and {name} owns {folder}; choose another folder in FOLDERS")
