"""The database: ``ptxmma.json`` with its JSON Schema, and the same as SQL text.

The JSON is the model, factored as the spec is, and what the library reads; the SQL is expanded, one row for each variant, for
people who would rather ask.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from ptxmma.catalog import evidence_summary as summary
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.database import rows as sql_rows
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import Database

_FOLDER = "generated/database"
#: A value longer than this is broken into a line for each of its parts.
_LONGEST = 600


def emit(catalog: Catalog) -> Iterator[Output]:
    """``ptxmma.json``, ``ptxmma.schema.json``, ``evidence.json`` and ``ptxmma.sql``."""
    about = " ".join(banner("", catalog, ["spec/"]).split())
    data = {"generated": about} | msgspec.to_builtins(catalog.database)
    yield Output(f"{_FOLDER}/ptxmma.json", _lines(data, "") + "\n")
    yield Output(f"{_FOLDER}/ptxmma.schema.json", _schema(catalog, about))
    yield Output(f"{_FOLDER}/{summary.FILE}", _lines({"generated": about} | msgspec.to_builtins(summary.of(catalog.database)), "") + "\n")
    tables = sql_rows.tables(catalog)
    names = dict.fromkeys(name for entry in catalog.database.spec.instructions for name in entry.qualifiers)
    text = render(
        "database/ptxmma.sql.jinja",
        banner=banner("--", catalog, ["spec/"]),
        qualifiers=[(sql_rows.text(name), sql_rows.name(name)) for name in names],
        data="\n".join(sql_rows.insert(table, rows) for table, rows in tables.items() if rows),
    )
    yield Output(f"{_FOLDER}/ptxmma.sql", text)


def _schema(catalog: Catalog, about: str) -> str:
    """The JSON Schema of ``ptxmma.json``."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "ptxmma.schema.json",
        "title": f"ptxmma.json {catalog.database.spec.version}",
        "$comment": about,
    } | msgspec.json.schema(Database)
    for definition in schema["$defs"].values():
        # From docstrings, whose indentation Python strips from 3.13 on.
        definition["description"] = inspect.cleandoc(definition["description"])
    return msgspec.json.format(msgspec.json.encode(schema).decode(), indent=1) + "\n"


def _lines(value: Any, indent: str) -> str:
    """JSON with one line for each entry of a list, so that a change of the spec is a change of few lines."""
    text = msgspec.json.encode(value).decode()
    if len(text) <= _LONGEST or not isinstance(value, (dict, list, tuple)):
        return text
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_lines(part, inner)}" for key, part in value.items()]
        opening, closing = "{", "}"
    else:
        parts = [_lines(part, inner) for part in value]
        opening, closing = "[", "]"
    separator = f",\n{inner}"
    return f"{opening}\n{inner}{separator.join(parts)}\n{indent}{closing}"
