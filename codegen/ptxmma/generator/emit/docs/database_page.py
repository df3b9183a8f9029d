"""The page of the SQL database: its views, its tables and their columns, as the structs describe them."""

from __future__ import annotations

import re
from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.database import script
from ptxmma.generator.emit.docs import rest

#: A view of the script, with the comment above the first of several that share one.
_VIEW = re.compile(r"((?:^-- .*\n)*)^CREATE VIEW (\w+)", re.M)


def page(catalog: Catalog) -> dict[str, Any]:
    """The values for the page's template."""
    tables = list(script.tables_of(catalog))
    columns = (
        (
            rest.code(table.name),
            rest.code(column.name),
            rest.text(column.type + ("" if not column.nullable else ", or NULL")),
            rest.text(column.description) + (f" {rest.NOTHING} of {rest.code(column.references)}" if column.references else ""),
        )
        for table in tables
        for column in table.columns
    )
    rows = ((rest.code(table.name), rest.text(table.description), f"{len(table.rows):,}") for table in tables)
    return {
        "views": rest.table(("View", "Rows"), _views(script.views(catalog))),
        "tables": rest.table(*rest.dense(("Table", "A row is", "Rows"), rows)),
        "columns": rest.table(*rest.dense(("Table", "Column", "Type", "Meaning"), columns)),
    }


def _views(sql: str) -> list[tuple[str, str]]:
    """The views with what the script says of them."""
    views = []
    said = ""
    for comment, name in _VIEW.findall(sql):
        said = " ".join(line.removeprefix("-- ") for line in comment.splitlines()) or said
        views.append((rest.code(name), rest.text(said)))
    return views
