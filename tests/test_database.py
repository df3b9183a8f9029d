"""The JSON, its schema and the SQL hold what the model holds."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import jsonschema
import msgspec
import pytest

from ptxmma.catalog import evidence, requirements
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.lookup import instruction
from ptxmma.catalog.requirements import targets_of
from ptxmma.generator import pipeline, sqlite
from ptxmma.generator.emit import database
from ptxmma.generator.emit.database import script
from ptxmma.model import Database
from ptxmma.model.bitmap import BitMap

_TOY = Path(__file__).parent / "toy"


def _texts(catalog: Catalog) -> dict[str, str]:
    return {Path(output.path).name: output.text for output in database.emit(catalog)}


@pytest.fixture(scope="module")
def texts(catalog: Catalog) -> dict[str, str]:
    return _texts(catalog)


@pytest.fixture(scope="module")
def sql(texts: dict[str, str]) -> Iterator[sqlite3.Connection]:
    yield from _opened(texts)


@pytest.fixture(scope="module", params=["catalog", "odd"])
def held(request: pytest.FixtureRequest) -> Iterator[tuple[Catalog, sqlite3.Connection]]:
    """The real families, and made-up ones, each with their database."""
    catalog = request.getfixturevalue(request.param)
    for connection in _opened(_texts(catalog)):
        yield catalog, connection


def _opened(texts: dict[str, str]) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(texts["ptxmma.sql"])
        yield connection


# --- JSON -------------------------------------------------------------------------------------------------------------------


def test_the_json_holds_the_database(catalog: Catalog, texts: dict[str, str]) -> None:
    read = msgspec.json.decode(texts["ptxmma.json"].encode(), type=Database)
    assert "Do not edit" in read.generated
    assert msgspec.structs.replace(read, generated="") == catalog.database


def test_the_library_answers_from_the_json(catalog: Catalog, texts: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "ptxmma.json"
    path.write_text(texts["ptxmma.json"], encoding="utf-8")
    for ours in list(catalog.all())[::50]:
        theirs = instruction(ours.canonical, database=path)
        assert theirs.accepted_by() == ours.accepted_by()
        assert theirs.forms == ours.forms


def test_the_json_matches_its_schema(texts: dict[str, str]) -> None:
    schema = json.loads(texts["ptxmma.schema.json"])
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    data = json.loads(texts["ptxmma.json"])
    validator.validate(data)
    data["spec"]["targets"][0]["colour"] = "green"
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        validator.validate(data)


def test_an_entry_of_the_json_is_a_line(catalog: Catalog, texts: dict[str, str]) -> None:
    """A change of the spec changes few lines."""
    lines = texts["ptxmma.json"].splitlines()
    assert max(map(len, lines)) < 800
    for layout in catalog.database.layouts:
        assert sum(f'"name":"{layout.name}"' in line for line in lines) == 1


# --- SQL --------------------------------------------------------------------------------------------------------------------


def test_foreign_keys_hold(held: tuple[Catalog, sqlite3.Connection]) -> None:
    _, sql = held
    assert sql.execute("PRAGMA foreign_key_check").fetchall() == []
    assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_no_view_and_no_derived_table_is_empty(sql: sqlite3.Connection) -> None:
    query = "SELECT name FROM sqlite_master WHERE type = 'view' OR (type = 'table' AND name GLOB ?)"
    for pattern in ("variant*", "operand*", "layout*", "conditional_*", "support*", "execution*", "peer_atoms", "assembler_answers"):
        for (name,) in sql.execute(query, (pattern,)).fetchall():
            assert sql.execute(f"SELECT count(*) FROM {name}").fetchone() > (0,), name


def test_the_view_has_a_row_for_each_variant_and_target(held: tuple[Catalog, sqlite3.Connection]) -> None:
    catalog, sql = held
    expected = {(ins.identifier, target): ptx for ins in catalog.all() for target, ptx in ins.accepted_by().items()}
    rows = sql.execute("SELECT identifier, target, ptx FROM variant_targets").fetchall()
    assert len(rows) == len(expected)
    assert {(identifier, target): ptx for identifier, target, ptx in rows} == expected


def test_variants_and_qualifiers(held: tuple[Catalog, sqlite3.Connection]) -> None:
    catalog, sql = held
    sql.row_factory = sqlite3.Row
    rows = {row["canonical"]: dict(row) for row in sql.execute("SELECT * FROM variant_targets")}
    sql.row_factory = None
    extents = {name for ins in catalog.all() for name in ins.extents.keys() - ins.qualifiers.keys()}
    assert {"rows", "cols"} <= extents
    for ins in catalog.all():
        row = rows[ins.canonical]
        assert row["documented"] == ins.documented
        assert {name: row[name] for name in extents} == {name: ins.extents.get(name) for name in extents}
        for name, value in ins.qualifiers.items():
            assert (row[name] or "") == value


def test_extents(catalog: Catalog, sql: sqlite3.Connection) -> None:
    """All of them; the view shows one with the name of a qualifier as that qualifier."""
    query = "SELECT identifier, name, value FROM variant_extents JOIN variants ON variants.id = variant"
    expected = {(ins.identifier, name, value) for ins in catalog.all() for name, value in ins.extents.items()}
    assert set(sql.execute(query)) == expected
    assert any(name in ins.qualifiers for ins in catalog.all() for name in ins.extents)


def test_operands(held: tuple[Catalog, sqlite3.Connection]) -> None:
    catalog, sql = held
    query = """
        SELECT o.identifier, o.name, o.elements, o.registers, layouts.name, granularities.name,
          (SELECT group_concat(register_type) FROM operand_registers WHERE operand = o.id ORDER BY position)
        FROM variant_operands AS o
          LEFT JOIN layouts ON layouts.name = o.layout
          LEFT JOIN granularities ON granularities.id = o.granularity
    """
    expected = Counter(
        (
            ins.identifier,
            operand.name,
            operand.elements,
            operand.registers,
            operand.layout.name if operand.layout else None,
            operand.sparsity.name if operand.sparsity else None,
            ",".join(operand.register_types) or None,
        )
        for ins in catalog.all()
        for form in ins.forms
        for operand in form.operands
    )
    assert Counter(sql.execute(query)) == expected


def test_intrinsics(held: tuple[Catalog, sqlite3.Connection]) -> None:
    catalog, sql = held
    query = """
        SELECT identifier, operand, register_type, asm_constraint, immediate_argument, scope, memory
        FROM variant_intrinsics ORDER BY identifier, form, position
    """
    expected = Counter[tuple[object, ...]]()
    for ins in catalog.all():
        entry = ins.variant.instruction
        of_variant = entry.scope, int(entry.memory)
        operands = ins.operands
        expected.update(
            (
                ins.identifier,
                operand.name,
                next(iter(operand.register_types), None),
                operand.constraint,
                int(operand.immediates is not None and not operand.takes_register),
                *of_variant,
            )
            for operand in operands
        )
        expected.update([(ins.identifier, None, None, None, None, *of_variant)] * (not operands))
    assert Counter(sql.execute(query)) == expected


def test_intrinsics_of_llvm(held: tuple[Catalog, sqlite3.Connection]) -> None:
    """Every record of LLVM is in its table, and the view has all of a variant in one row."""
    catalog, sql = held
    known = evidence.of(catalog.database).intrinsics
    pairs = Counter(sql.execute("SELECT canonical, intrinsic FROM llvm_intrinsics JOIN variants ON variants.id = variant"))
    assert pairs == Counter((canonical, each.name) for each in known for canonical in each.instructions)
    of_variant = "SELECT DISTINCT llvm_intrinsics, llvm_convergent, llvm_memory FROM variant_intrinsics WHERE canonical = ?"
    for canonical, row in (
        ("ldmatrix.sync.aligned.m8n8.x4.b16", ("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16", 1, "argmem: read")),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ("llvm.nvvm.mma.m16n8k8.row.col.tf32", 0, "none")),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", (None, None, None)),
    ):
        assert sql.execute(of_variant, [canonical]).fetchall() == ([row] if catalog.meaning(canonical) else [])


def test_immediates(held: tuple[Catalog, sqlite3.Connection]) -> None:
    catalog, sql = held
    query = """
        SELECT first, last, step FROM variant_operands JOIN operand_immediates ON operand = id
        WHERE identifier = ? AND name = ? ORDER BY first
    """
    for ins in list(catalog.all())[::20]:
        for operand in {operand.name: operand for operand in ins.operands}.values():
            spans = sorted(set(sql.execute(query, (ins.identifier, operand.name))))
            legal = operand.immediates or ()
            assert sum((last - first) // step + 1 for first, last, step in spans) == len(legal)
            assert all(first in legal and last in legal for first, last, _ in spans)


def test_layouts(held: tuple[Catalog, sqlite3.Connection]) -> None:
    catalog, sql = held
    query = "SELECT input, bit, output, output_bit FROM layout_bits WHERE layout = ? ORDER BY input, bit"
    for layout in catalog.database.layouts:
        bits: dict[str, list[tuple[str, int]]] = {name: [] for name in layout.map.inputs}
        for name, _, output, place in sql.execute(query, (layout.name,)):
            bits[name].append((output, place))
        assert BitMap(layout.map.inputs, layout.map.outputs, {name: tuple(places) for name, places in bits.items()}) == layout.map


def test_rules(catalog: Catalog, sql: sqlite3.Connection) -> None:
    """The rules of each variant, with their conditions decided."""
    query = "SELECT identifier, source, ptx FROM variant_{}"
    seen = Counter(sql.execute(query.format("requirements")))
    assert seen == Counter((ins.identifier, rule.source, rule.ptx) for ins in catalog.all() for rule in ins.requirements())
    seen = Counter(sql.execute(query.format("observations")))
    assert seen == Counter((ins.identifier, rule.source, rule.ptx) for ins in catalog.all() for rule in ins.observed())
    seen = Counter(sql.execute("SELECT identifier, field, text FROM variant_statements"))
    assert seen == Counter(
        (ins.identifier, field, statement.text)
        for ins in catalog.all()
        for field, statements in (("undefined", ins.undefined()), ("uniform", ins.uniform()), ("notes", ins.notes()))
        for statement in statements
    )


def test_what_each_variant_needs(catalog: Catalog, sql: sqlite3.Connection) -> None:
    """Every target that accepts a variant includes one of the least, and asks for its version or for a later one of its own."""
    rows = {
        identifier: (ptx, targets.split()) for identifier, ptx, targets in sql.execute("SELECT identifier, ptx, targets FROM variant_needs")
    }
    known = targets_of(catalog.database.spec)
    for ins in catalog.all():
        ptx, least = rows.pop(ins.identifier)
        assert ptx == requirements.floor(ins.variant)
        assert {target.name for target in known.common((tuple(least),), requirements.floor(ins.variant))} == set(ins.accepted_by())
        assert not any(known.features(one) & set(least) - {one} for one in least)
    assert not rows
    query = (
        "SELECT DISTINCT variant_needs.ptx, targets FROM variant_needs JOIN variant_targets USING (identifier) WHERE kind = 'kind::f8f6f4'"
    )
    assert ("8.7", "sm_120f") in sql.execute(query).fetchall()


def test_every_view_of_variants_has_their_identifier(sql: sqlite3.Connection) -> None:
    for (view,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'view' AND name LIKE 'variant%'").fetchall():
        columns = [column for column, *_ in sql.execute(f"SELECT * FROM {view}").description]
        assert columns[0] == "identifier", view
        assert len(set(columns)) == len(columns), view


def test_tables_follow_the_structs(sql: sqlite3.Connection, catalog: Catalog) -> None:
    """A field of the model becomes a column or a table by itself."""
    spec = catalog.database.spec
    rows = sql.execute("SELECT name, bits, numpy FROM element_types ORDER BY position").fetchall()
    assert rows == [(entry.name, entry.bits, entry.numpy) for entry in spec.types.elements]
    rows = sql.execute("SELECT container, element FROM container_elements ORDER BY container, position").fetchall()
    assert rows == [(number, name) for number, entry in enumerate(spec.types.containers, 1) for name in entry.elements]
    rows = sql.execute("SELECT units, choice_fields.name, value FROM choice_fields JOIN choices ON choice = id").fetchall()
    assert sorted(rows) == sorted((entry.units, *pair) for entry in spec.choices for pair in entry.fields.items())
    query = "SELECT register_layout, name, value FROM register_layout_axes"
    axes = [(number, *pair) for number, entry in enumerate(spec.register_layouts, 1) for pair in entry.axes.items()]
    assert sorted(sql.execute(query).fetchall()) == sorted(axes)
    query = """SELECT register_layout, name, position, value, "when" FROM cases WHERE register_layout IS NOT NULL"""
    formulas = [
        (number, name, position, case.value, case.when)
        for number, entry in enumerate(spec.register_layouts, 1)
        for name, cases in entry.at.items()
        for position, case in enumerate(cases)
    ]
    assert sorted(sql.execute(query).fetchall()) == sorted(formulas)
    rows = sql.execute("SELECT tool, target, ptx, compiled_for, asked, example, answer, database FROM sightings").fetchall()
    seen = evidence.of(catalog.database).sightings
    assert sorted(rows) == sorted(
        (one.tool, target, one.ptx, one.compiled_for, one.asked, one.example, one.answer, one.database)
        for one in seen
        for target in one.targets
    )
    query = "SELECT condition FROM requirements WHERE instruction = 'mma' ORDER BY position"
    mma = next(entry for entry in spec.instructions if entry.name == "mma")
    read = [json.loads(text) if text else [] for (text,) in sql.execute(query)]
    assert read == [json.loads(msgspec.json.encode(rule.when)) for rule in mma.requires]


def test_target_features(catalog: Catalog, sql: sqlite3.Connection) -> None:
    targets = targets_of(catalog.database.spec)
    expected = {(name, feature) for name in targets.by_name for feature in targets.features(name)}
    assert set(sql.execute("SELECT target, feature FROM target_features")) == expected


def test_text_of_a_spec_cannot_become_sql(tmp_path: Path) -> None:
    spec = Path(shutil.copytree(_TOY, tmp_path / "toy"))
    path = spec / "instructions" / "toy.yaml"
    title = "'); DROP TABLE variants; --"
    path.write_text(path.read_text(encoding="utf-8").replace("A toy multiply-accumulate", title), encoding="utf-8")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_texts(pipeline.read(spec))["ptxmma.sql"])
        assert connection.execute("SELECT title FROM instructions").fetchall() == [(title,)]
        assert connection.execute("SELECT count(*) FROM variants").fetchone() == (3,)
    assert script.name('a"b') == '"a""b"'


def test_the_command_line_of_sqlite_reads_the_script(texts: dict[str, str], tmp_path: Path) -> None:
    command = shutil.which("sqlite3")
    if command is None:
        pytest.skip("sqlite3 is not installed")
    ask = texts["ptxmma.sql"] + "SELECT count(*) FROM spec;\n"
    done = subprocess.run([command], input=ask, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


def test_the_sqlite_file_follows_its_script(tmp_path: Path) -> None:
    script = tmp_path / sqlite.SCRIPT
    target = script.with_suffix(".sqlite")
    sqlite.refresh(tmp_path)
    assert list(tmp_path.iterdir()) == [], "no script, no file"
    script.parent.mkdir(parents=True)

    def write(text: str, time: int) -> None:
        script.write_text(text, encoding="utf-8")
        os.utime(script, (time, time))
        sqlite.refresh(tmp_path)

    def answer() -> object:
        with closing(sqlite3.connect(target)) as connection:
            return connection.execute("SELECT a FROM t").fetchone()

    write("CREATE TABLE t (a); INSERT INTO t VALUES (1);", 1000)
    assert answer() == (1,)
    os.utime(target, (2000, 2000))
    write("CREATE TABLE t (a); INSERT INTO t VALUES (2);", 1500)
    assert answer() == (1,), "a newer file is left alone"
    write("CREATE TABLE t (a); INSERT INTO t VALUES (3);", 3000)
    assert answer() == (3,)
    with pytest.raises(sqlite3.Error):
        write("CREATE TABLE t (a); INSERT INTO nowhere VALUES (4);", 4_000_000_000)
    assert answer() == (3,), "a script that fails leaves the file as it was"
    assert sorted(path.name for path in script.parent.iterdir()) == ["ptxmma.sql", "ptxmma.sqlite"]
