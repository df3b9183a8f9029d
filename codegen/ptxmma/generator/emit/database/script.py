"""The SQL text: a table for each struct, a few views, and the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit.database import evidence_rows, variant_rows
from ptxmma.generator.emit.database.relations import Relations
from ptxmma.generator.emit.database.sql_tables import Column, Table
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import (
    BlockFormat,
    DescriptorFormat,
    ElementType,
    Erratum,
    InstructionSet,
    IsaVersion,
    Layout,
    RegisterType,
    Swizzle,
    Target,
    Version,
)
from ptxmma.model.bitmap import BitMap

#: Entries that are known by a name of their own.
_KEYS: dict[type[msgspec.Struct], str] = {
    BlockFormat: "name",
    DescriptorFormat: "name",
    ElementType: "name",
    Erratum: "id",
    InstructionSet: "name",
    IsaVersion: "version",
    Layout: "name",
    RegisterType: "name",
    Swizzle: "name",
    Target: "name",
}


def text(value: str) -> str:
    """A string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A name as an SQL identifier, whatever it is."""
    return '"' + value.replace('"', '""') + '"'


_LITERALS: dict[type, Callable[[Any], str]] = {
    str: text,
    Version: text,
    int: str,
    float: repr,
    bool: lambda value: str(int(value)),
    type(None): lambda _: "NULL",
}


def sql(catalog: Catalog) -> str:
    """The whole script."""
    return _script(catalog, list(tables_of(catalog)))


def views(catalog: Catalog) -> str:
    """The script without its tables: the views alone."""
    return _script(catalog, [])


def _script(catalog: Catalog, tables: Sequence[Table]) -> str:
    keys = {table.name: table.key[0] for table in tables if table.key}
    qualifiers = dict.fromkeys(qualifier for entry in catalog.database.spec.instructions for qualifier in entry.qualifiers)
    extents = dict.fromkeys(extent for instruction in catalog.all() for extent in instruction.extents if extent not in qualifiers)
    return render(
        "database/ptxmma.sql.jinja",
        banner=banner("--", catalog, ["spec/"]),
        tables=[_create(table, keys) for table in tables],
        extents=[(text(extent), name(extent)) for extent in extents if extent not in qualifiers],
        qualifiers=[(text(qualifier), name(qualifier)) for qualifier in qualifiers],
        data="\n".join(f"INSERT INTO {table.name} VALUES\n{_lines(table.rows)};\n" for table in tables if table.rows),
    )


def tables_of(catalog: Catalog) -> Iterator[Table]:
    """Every table with its rows."""
    model = Relations(catalog.database, _KEYS, without=[BitMap])
    yield from model.tables()
    yield variant_rows.layout_bits(catalog.database.layouts)
    yield from variant_rows.tables(catalog, model)
    yield from evidence_rows.tables(catalog)


def _create(table: Table, keys: dict[str, str]) -> str:
    """The statement that makes a table; what describes it and its columns are comments."""
    alone = table.key[0] if len(table.key) == 1 else ""
    lines = [_declaration(column, keys, key=column.name == alone) for column in table.columns]
    composite = f"PRIMARY KEY ({', '.join(map(name, table.key))})" if len(table.key) > 1 else ""
    ends = ["," if composite or number < len(lines) else "" for number in range(1, len(lines) + 1)]
    comments = [f"  -- {column.description}" if column.description else "" for column in table.columns]
    body = [f"  {line}{end}{comment}\n" for line, end, comment in zip(lines, ends, comments, strict=True)]
    body += [f"  {composite}\n"] if composite else []
    described = f"-- {table.description}\n" if table.description else ""
    return f"{described}CREATE TABLE {table.name} (\n{''.join(body)}){' WITHOUT ROWID' if composite else ''};\n"


def _declaration(column: Column, keys: dict[str, str], *, key: bool) -> str:
    parts = [name(column.name), column.type]
    parts += ["PRIMARY KEY"] if key else [] if column.nullable else ["NOT NULL"]
    parts += ["UNIQUE"] if column.unique else []
    parts += [f"REFERENCES {column.references}({name(keys[column.references])})"] if column.references else []
    return " ".join(parts)


def _lines(rows: Iterable[tuple[Any, ...]]) -> str:
    return ",\n".join([f"({','.join([_LITERALS[type(value)](value) for value in row])})" for row in rows])
