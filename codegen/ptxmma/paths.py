"""The places of the packaged data: the same answer in a checkout, an editable install and a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
#: A wheel carries ``spec/`` and ``generated/`` inside the package; in a checkout they are at its top.
INSTALLED = (_PACKAGE / "data").is_dir()
_ROOT = _PACKAGE / "data" if INSTALLED else _PACKAGE.parent.parent

SPEC = _ROOT / "spec"
SCHEMAS = SPEC / "schema"
GENERATED = _ROOT / "generated"
DATABASE = GENERATED / "database" / "ptxmma.json"
INCLUDE = GENERATED / "include"
CMAKE = GENERATED / "cmake"
PKGCONFIG = GENERATED / "pkgconfig"
EXPLORER = GENERATED / "javascript" / "explorer.html"
#: The checkout, where ``ptxmma generate`` writes; with an installed wheel the working directory, where it writes only if it is named.
CHECKOUT = Path() if INSTALLED else _ROOT
ASSEMBLERS = CHECKOUT / ".cache" / "assemblers"
