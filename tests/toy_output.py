"""An output as a contributor adds it: a table of the layouts.  Only the line that registers it mentions it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.templating import banner


def emit(catalog: Catalog) -> Iterator[Output]:
    """A line for each layout: its name, its threads, and the size of each axis."""
    lines = [f"{layout.name},{layout.threads},{'x'.join(map(str, layout.axes.values()))}\n" for layout in catalog.database.layouts]
    yield Output("generated/csv/layouts.csv", banner("#", catalog, ["spec/"]) + "".join(lines))
