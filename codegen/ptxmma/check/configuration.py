"""The configuration of the checker: ``ptxmma.toml``, or ``[tool.ptxmma.check]`` in ``pyproject.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from ptxmma.check.selection import Selection


class ConfigurationError(ValueError):
    """The configuration cannot be used; the message names the file."""


class Configuration(NamedTuple):
    """The content of a configuration file.

    Attributes:
        selection: the findings that are reported.
        root: the folder of the file, to which its patterns are relative.
    """

    selection: Selection
    root: Path


class _Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a file that is for this project."""

    check: Selection = msgspec.field(default_factory=Selection)


class _Tools(msgspec.Struct, frozen=True):
    ptxmma: _Tool | None = None


class _Project(msgspec.Struct, frozen=True):
    tool: _Tools = msgspec.field(default_factory=_Tools)


def configuration(folder: Path) -> Configuration:
    """The configuration for a folder: the nearest file's, in it or in a folder around it.

    ``ptxmma.toml`` goes before ``pyproject.toml``, which counts if it has a table ``[tool.ptxmma]``.

    Raises:
        ConfigurationError: a file cannot be read, is not TOML, or has something unknown.
    """
    for place in (folder, *folder.parents):
        for name in ("ptxmma.toml", "pyproject.toml"):
            file = place / name
            if file.is_file() and (tool := _read(file)) is not None:
                return Configuration(tool.check, place)
    return Configuration(Selection(), folder)


def _read(file: Path) -> _Tool | None:
    try:
        data = file.read_bytes()
        if file.name == "ptxmma.toml":
            return msgspec.toml.decode(data, type=_Tool)
        return msgspec.toml.decode(data, type=_Project).tool.ptxmma if b"ptxmma" in data else None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file}: {error}") from None
