"""The database: ``ptxmma.json`` with its JSON Schema, and the same as SQL text.

The JSON is the model, factored as the spec is, and what the library reads; the SQL is the same as tables, with a row for each variant,
for people who would rather ask.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import msgspec

from ptxmma.catalog import evidence
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.database import script
from ptxmma.generator.emit.templating import banner, lines
from ptxmma.model import Database

_FOLDER = "generated/database"
#: A value longer than this is broken into a line for each of its parts.
_LONGEST = 600


def emit(catalog: Catalog) -> Iterator[Output]:
    """``ptxmma.json``, ``ptxmma.schema.json``, ``evidence.json`` and ``ptxmma.sql``."""
    about = " ".join(banner("", catalog, ["spec/"]).split())
    data = {"generated": about} | msgspec.to_builtins(catalog.database)
    yield Output(f"{_FOLDER}/ptxmma.json", lines(data, _LONGEST) + "\n")
    yield Output(f"{_FOLDER}/ptxmma.schema.json", _schema(catalog, about))
    yield Output(
        f"{_FOLDER}/{evidence.FILE}", lines({"generated": about} | msgspec.to_builtins(evidence.of(catalog.database)), _LONGEST) + "\n"
    )
    yield Output(f"{_FOLDER}/ptxmma.sql", script.sql(catalog))


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
