"""Which generated files differ between two catalogs; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ptxmma.catalog.comparison import Change
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator import evidence
from ptxmma.generator.emit import emit

#: What consumers build with; the rest is for reading.
_BUILT_WITH = "generated/"


def files(old: Catalog, new: Catalog) -> list[Change]:
    """The generated files that are gone, new or other; the version of the spec in their banners does not count.

    A file that is gone breaks whoever builds with it; whether what another one says now does is told by its own changes.  Where one of
    the catalogs has reports that this version of ptxmma cannot read, evidence counts in neither.
    """
    if not (_readable(old) and _readable(new)):
        old, new = (Catalog(msgspec.structs.replace(catalog.database)) for catalog in (old, new))
    before, after = dict(_texts(old)), dict(_texts(new))
    gone = [path for path in before if path not in after]
    groups = [
        ("removed", True, [path for path in gone if path.startswith(_BUILT_WITH)]),
        ("removed", False, [path for path in gone if not path.startswith(_BUILT_WITH)]),
        ("added", False, [path for path in after if path not in before]),
        ("changed", False, [path for path in before if path in after and before[path] != after[path]]),
    ]
    return [Change("file", text, breaking, tuple(paths)) for text, breaking, paths in groups if paths]


def _readable(catalog: Catalog) -> bool:
    """Whether the reports beside a catalog can be used."""
    try:
        evidence.attached(catalog)
    except evidence.EvidenceError:
        return False
    return True


def _texts(catalog: Catalog) -> Iterator[tuple[str, str]]:
    banner = f"(spec {catalog.database.spec.version})"
    for output in emit(catalog):
        yield output.path, output.text.replace(banner, "")
