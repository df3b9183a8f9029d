"""What a wheel carries beside its two packages: the spec and everything generated, inside ``ptxmma/data``, and the README of indexes.

``codegen/ptxmma/paths.py`` finds the data there.  An editable install needs none of it: it reads the checkout.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_FOLDERS = (
    "spec",
    "generated/include",
    "generated/cmake",
    "generated/pkgconfig",
    "generated/database",
    "generated/javascript",
)
#: A link or a picture of Markdown whose address is a path of the repository: ``!``, the text, the path.
_RELATIVE = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)]+)\)")


def for_an_index(readme: str, repository: str) -> str:
    """The README where paths of the repository lead nowhere: with addresses below ``repository``, or without links if that is empty."""

    def absolute(match: re.Match[str]) -> str:
        picture, text, path = match.groups()
        if not repository:
            return "" if picture else text
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/main/{path})"

    return _RELATIVE.sub(absolute, readme)


class Readme(MetadataHookInterface):
    """Gives package indexes the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called before the metadata of a distribution is written."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_an_index(text, self.config.get("repository", ""))}


class Hook(BuildHookInterface[Any]):
    """Builds the SQLite file from its text and puts the data where an installed package looks for it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected; ``version`` is "standard" or "editable"."""
        if version == "editable":
            return
        root = Path(self.root)
        # By path: the package itself cannot be imported here, since its dependencies are not there.
        sqlite = runpy.run_path(str(root / "codegen" / "ptxmma" / "generator" / "sqlite.py"))
        sqlite["refresh"](root)
        build_data["force_include"] |= {str(root / folder): f"ptxmma/data/{folder}" for folder in _FOLDERS}
