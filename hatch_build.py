"""What a wheel carries beside its two packages: the spec and everything generated, inside ``ptxmma/data``.

``codegen/ptxmma/paths.py`` finds it there.  An editable install needs none of it: it reads the checkout.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDERS = (
    "spec",
    "generated/include",
    "generated/cmake",
    "generated/pkgconfig",
    "generated/database",
    "generated/javascript",
)


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
