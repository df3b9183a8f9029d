"""``ptxmma export``: `pytest -n 0 tests/test_export.py`."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

from commands import invoke
from ptxmma import paths
from ptxmma.catalog.summaries import exports

_TABLE = "swizzles"


def _invoke(*arguments: str) -> Result:
    return invoke("export", *arguments)


def _export(*arguments: str) -> Result:
    result = _invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def packaged() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(paths.DATABASE.with_name("ptxmma.sql").read_text(encoding="utf-8"))
        yield connection


def _rows(connection: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT * FROM {table}").fetchall()


def _names(connection: sqlite3.Connection, kind: str = "table") -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = ?", (kind,))]


def test_sqlite_has_every_table_and_view(packaged: sqlite3.Connection, tmp_path: Path) -> None:
    out = tmp_path / "ptxmma.sqlite"
    out.write_text("an older file")
    _export("--format", "sqlite", "--out", str(out))
    with closing(sqlite3.connect(out)) as made:
        for kind in ("table", "view", "index"):
            assert sorted(_names(made, kind)) == sorted(_names(packaged, kind))
        for table in _names(packaged):
            assert sorted(map(repr, _rows(made, table))) == sorted(map(repr, _rows(packaged, table)))
    assert [path.name for path in tmp_path.iterdir()] == ["ptxmma.sqlite"]


def test_csv_is_a_file_for_each_table(packaged: sqlite3.Connection, tmp_path: Path) -> None:
    _export("--format", "csv", "--out", str(tmp_path / "tables"))
    assert {path.stem for path in (tmp_path / "tables").iterdir()} == set(_names(packaged))
    for table in _names(packaged):
        with (tmp_path / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            _, *lines = csv.reader(file)
        assert lines == [["" if value is None else str(value) for value in row] for row in _rows(packaged, table)]


def test_csv_in_an_archive(packaged: sqlite3.Connection, tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        _export("--format", "csv", "--out", str(tmp_path / name))
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert {Path(name).stem for name in archive.namelist()} == set(_names(packaged))
        text = archive.read(f"{_TABLE}.csv").decode()
    assert text == _export("--format", "csv", "--table", _TABLE).output
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_json_is_an_object_of_tables(packaged: sqlite3.Connection, tmp_path: Path) -> None:
    text = _export("--format", "json").output
    tables = json.loads(text)
    assert list(tables) == _names(packaged)
    for table, rows in tables.items():
        assert [tuple(row.values()) for row in rows] == _rows(packaged, table)
    _export("--format", "json", "--out", str(tmp_path / "all.json"))
    assert (tmp_path / "all.json").read_text(encoding="utf-8") == text


def test_one_table_or_view(packaged: sqlite3.Connection, tmp_path: Path) -> None:
    text = _export("--format", "csv", "--table", "variant_needs").output
    assert len(text.splitlines()) == 1 + len(_rows(packaged, "variant_needs"))
    rows = json.loads(_export("--format", "json", "--table", _TABLE).output)
    assert [tuple(row.values()) for row in rows] == _rows(packaged, _TABLE)
    _export("--format", "csv", "--table", "variant_needs", "--out", str(tmp_path / "one.csv"))
    assert (tmp_path / "one.csv").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing option '--format'"),
        (("--format", "xml"), "'xml' is not one of 'sqlite', 'json', 'csv'"),
        (("--format", "sqlite"), "needs a place: --format sqlite --out FILE"),
        (("--format", "sqlite", "--table", "variants", "--out", "x"), "a SQLite file has all tables"),
        (("--format", "csv"), "give --out DIRECTORY, --out FILE.zip, or one --table NAME"),
        (("--format", "csv", "--table", "variant"), "unknown table 'variant'; closest: variants"),
        (("--format", "csv", "--table", "zzzzzz"), "unknown table 'zzzzzz'; known: spec, "),
    ],
)
def test_usage(arguments: tuple[str, ...], message: str) -> None:
    result = _invoke(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    result = _invoke("--format", "sqlite", "--out", str(tmp_path / "no" / "where"))
    assert result.exit_code == 2
    assert "cannot be written: No such file or directory" in result.output


def test_a_folder_is_not_mistaken_for_a_file(tmp_path: Path) -> None:
    result = _invoke("--format", "csv", "--out", str(tmp_path / "all.csv"))
    assert result.exit_code == 2
    assert "all tables as csv are many files: give --out DIRECTORY or --out FILE.zip" in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


def test_a_folder_that_takes_nothing_keeps_what_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If writing fails, the older file stays, and nothing is left beside it."""
    (tmp_path / "one.csv").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    result = _invoke("--format", "csv", "--table", "banks", "--out", str(tmp_path / "one.csv"))
    assert result.exit_code == 2
    assert "one.csv: cannot be written: No space left on device" in result.output
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_another_database(toy_database: Path, tmp_path: Path) -> None:
    text = _export("--format", "csv", "--table", "instructions", "--database", str(toy_database)).output
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == ["toy"]
    (tmp_path / "ptxmma.json").write_text("{}")
    result = _invoke("--format", "json", "--database", str(tmp_path / "ptxmma.json"))
    assert result.exit_code == 2
    assert "ptxmma.sql" in result.output
    (tmp_path / "ptxmma.sql").write_text("SELECT nothing;")
    result = _invoke("--format", "json", "--database", str(tmp_path / "ptxmma.json"))
    assert result.exit_code == 2
    assert "no SQL of ptxmma" in result.output


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path) -> None:
    with closing(exports.connect()) as connection:
        (tmp_path / "there").mkdir()
        with pytest.raises(OSError, match="there"):
            exports.save_sqlite(connection, tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(pipe.read_bytes)
        exports.save(b"a,b\n", pipe)
        assert received.result(timeout=30) == b"a,b\n"
    assert pipe.is_fifo()
