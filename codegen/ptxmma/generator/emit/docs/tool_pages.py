"""The pages of the tools: the rules of the checker, and the tables of the SQL database."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

from ptxmma.catalog.instructions import Catalog
from ptxmma.check.rules import RULES
from ptxmma.generator.emit.database import script
from ptxmma.generator.emit.docs import rest

# --- rules of the checker ---------------------------------------------------------------------------------------------------


def rules() -> dict[str, Any]:
    """The values for the page of all rules."""
    rows = [(rest.link(code, f"rule-{code}"), rest.text(rule.what)) for code, rule in RULES.items()]
    return {"rules": rest.table(("Rule", "What it requires"), rows), "codes": [*RULES]}


def rule_pages() -> Iterator[tuple[str, dict[str, Any]]]:
    """The code of each rule, and what its page shows."""
    for code, rule in RULES.items():
        texts = {"what": rule.what, "why": rule.why, "fix": rule.fix}
        highlighted = "cuda" if rule.language == ".cu" else "none"
        examples = {"bad": _block(rule.bad, highlighted), "good": _block(rule.good, highlighted)}
        yield code, {"code": code} | {name: rest.text(text) for name, text in texts.items()} | examples


def _block(example: str, language: str) -> str:
    return f".. code-block:: {language}\n\n{textwrap.indent(example.rstrip(), '   ')}" if example else ""


# --- the SQL database -------------------------------------------------------------------------------------------------------


#: A view of the script, with the comment above the first of several that share one.
_VIEW = re.compile(r"((?:^-- .*\n)*)^CREATE VIEW (\w+)", re.M)


def database(catalog: Catalog) -> dict[str, Any]:
    """The values for the page's template."""
    tables = list(script.tables_of(catalog))
    columns = (
        (
            rest.code(table.name),
            rest.code(column.name),
            rest.text(column.type + ("" if not column.nullable else ", or NULL")),
            ": ".join(filter(None, (column.references and f"a row of {rest.code(column.references)}", rest.text(column.description)))),
        )
        for table in tables
        for column in table.columns
        if column.name != "position"  # the page says what it counts
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
