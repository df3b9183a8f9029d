"""Emitters of other packages: modules named on the command line, and entry points of installed packages.

Such a module has what ours have, ``emit(catalog)``, which yields :class:`ptxmma.generator.emit.Output`, and ``FOLDERS``: its folders below
the output directory.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Collection, Mapping
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath

from ptxmma.generator.emit import EMITTERS, Emitter, EmitterError, trace

#: The entry-point group of installed packages: the name of an output, and its module.
GROUP = "ptxmma.emitters"


def installed() -> dict[str, str]:
    """The module of each output that installed packages register, by name; a name of ours stays ours."""
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
