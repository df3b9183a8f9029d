"""The whole database for other tools: SQLite, JSON, CSV.

All formats have the tables of ``ptxmma.sql``, which documents each column.  Its views can be exported by name.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ptxmma import paths

#: Beside ``ptxmma.json``.
SCRIPT = "ptxmma.sql"

Value = str | int | None
#: The date of all files of an archive, the earliest that ZIP can store, so that equal databases give equal bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Relation(NamedTuple):
    """A table or view: its name, the names of its columns, and its rows."""

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]


class UnknownTableError(LookupError):
    """No such table or view; the message names the closest, or all."""

    def __init__(self, name: str, known: list[str]) -> None:
        import difflib

        close = difflib.get_close_matches(name, known, 3)
        super().__init__(f"unknown table {name!r}; " + ("closest: " if close else "known: ") + ", ".join(close or known))


def connect(database: str | os.PathLike[str] | None = None) -> sqlite3.Connection:
    """The tables and views in memory, from the SQL text beside a ``ptxmma.json``, or the packaged one.

    Raises:
        OSError: the text is missing or cannot be read.
        ValueError: it is not SQL.
    """
    script = Path(database or paths.DATABASE).with_name(SCRIPT)
    text = script.read_text(encoding="utf-8")
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(text)
    except sqlite3.Error as error:
        connection.close()
        raise ValueError(f"{script}: no SQL of ptxmma: {error}") from None
    return connection


def tables(connection: sqlite3.Connection) -> list[str]:
    """The names of the tables, in the order in which the script makes them."""
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]


def views(connection: sqlite3.Connection) -> list[str]:
    """The names of the views."""
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY rowid")]


def relation(connection: sqlite3.Connection, name: str) -> Relation:
    """A table or view with all its rows.

    Raises:
        UnknownTableError: the database lacks a table or view of that name.
    """
    known = [*tables(connection), *views(connection)]
    if name not in known:
        raise UnknownTableError(name, known)
    cursor = connection.execute(f'SELECT * FROM "{name}"')
    return Relation(name, tuple(column for column, *_ in cursor.description), cursor.fetchall())


def relations(connection: sqlite3.Connection) -> Iterator[Relation]:
    """All tables with their rows."""
    for name in tables(connection):
        yield relation(connection, name)


# --- one table --------------------------------------------------------------------------------------------------------------


def to_csv(table: Relation) -> bytes:
    """A table as CSV with a line of names; NULL is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return out.getvalue().encode()


def to_json(table: Relation) -> bytes:
    """A table as a JSON list with an object, on a line of its own, for each row."""
    return (_rows(table) + "\n").encode()


def _rows(table: Relation) -> str:
    rows = (json.dumps(dict(zip(table.columns, row, strict=True)), ensure_ascii=False) for row in table.rows)
    return "[" + ",\n ".join(rows) + "]"


#: Formats of one table by their name.
TABLE_FORMATS: dict[str, Callable[[Relation], bytes]] = {"csv": to_csv, "json": to_json}


# --- the whole --------------------------------------------------------------------------------------------------------------


def all_json(connection: sqlite3.Connection) -> bytes:
    """All tables as one JSON object: name to list of rows."""
    return ("{" + ",\n".join(f"{json.dumps(table.name)}: {_rows(table)}" for table in relations(connection)) + "}\n").encode()


def save_sqlite(connection: sqlite3.Connection, target: Path) -> None:
    """A SQLite file with all tables and views.

    Raises:
        OSError: it cannot be written.
    """
    with _replacing(target) as name:
        os.unlink(name)  # SQLite wants to make it
        try:
            connection.execute("VACUUM INTO ?", (name,))
        except sqlite3.Error as error:
            raise OSError(0, str(error), str(target)) from None


def save_csv(connection: sqlite3.Connection, target: Path) -> None:
    """Write each table as a CSV file, in a directory, or in an archive if ``target`` ends in ``.zip``.

    Raises:
        OSError: it cannot be written.
    """
    files = {f"{table.name}.csv": to_csv(table) for table in relations(connection)}
    if target.suffix == ".zip":
        with _replacing(target) as name, zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, data in files.items():
                archive.writestr(zipfile.ZipInfo(file, _EPOCH), data, zipfile.ZIP_DEFLATED)
        return
    target.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        save(data, target / file)


def save(data: bytes, target: Path) -> None:
    """Write a file.  An older file is replaced only once the new one is complete.

    Raises:
        OSError: it cannot be written.
    """
    if target.exists() and not target.is_file():  # a device or a pipe, which must stay one
        target.write_bytes(data)
        return
    with _replacing(target) as name:
        Path(name).write_bytes(data)


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[str]:
    """The name of a new file that replaces ``target`` on success."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    try:
        yield name
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
