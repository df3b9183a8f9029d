"""A table of SQL with its columns and rows, and the table of a flat struct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.inspect import BoolType, FloatType, IntType, LiteralType, NoneType, StrType, Type

from ptxmma.generator.emit.struct_fields import Field, alternatives, described, fields

#: The value of a column.
Value = str | int | float | None
#: Plurals that no rule gives, with their singulars.
_PLURALS = {"errata": "erratum", "majorness": "majorness", "semantics": "semantics"}


class Column(NamedTuple):
    """A column: its type in SQL, what it means, the table whose key it holds, and whether no two rows share a value."""

    name: str
    type: str
    nullable: bool = False
    description: str = ""
    references: str = ""
    unique: bool = False


class Table(NamedTuple):
    """A table with its rows; ``key`` names the columns that identify a row."""

    name: str
    description: str
    columns: Sequence[Column]
    key: Sequence[str]
    rows: list[tuple[Value, ...]]


def snake(name: str) -> str:
    """``RegisterType`` -> ``register_type``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def plural(noun: str) -> str:
    """``register_type`` -> ``register_types``; a participle, as in ``stated``, is left alone."""
    if noun in _PLURALS or noun.endswith("ed"):
        return noun
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es" if noun.endswith(("ch", "ss")) else noun.removesuffix("s") + "s"


def singular(noun: str) -> str:
    """``granularities`` -> ``granularity``."""
    return _PLURALS.get(noun) or (f"{noun[:-3]}y" if noun.endswith("ies") else re.sub(r"(?<!s)s$", "", noun))


def table(struct: type[msgspec.Struct], rows: Iterable[msgspec.Struct], name: str = "") -> Table:
    """The table of a flat struct, all of whose fields are scalars; ``name`` where it is not the plural of the struct's.

    ``extra`` of a field says what it ``references`` and whether it belongs to the ``key``.
    """
    own = fields(struct)
    return Table(
        name or plural(snake(struct.__name__)),
        described(struct),
        [column_of(field) for field in own],
        [field.name for field in own if field.extra.get("key")],
        [msgspec.structs.astuple(row) for row in rows],
    )


def column_of(field: Field) -> Column:
    """The column of a scalar field."""
    said = field.extra
    return Column(field.name, *sql_type(field.type), field.description, said.get("references", ""), said.get("unique", False))


def sql_type(kind: Type) -> tuple[str, bool]:
    """The type of a scalar in SQL, and whether it may be NULL."""
    kinds = [each for each in alternatives(kind) if not isinstance(each, NoneType)]
    nullable = len(kinds) < len(alternatives(kind))
    if all(isinstance(each, (IntType, BoolType)) for each in kinds):
        return "INTEGER", nullable
    return ("REAL" if all(isinstance(each, (IntType, FloatType)) for each in kinds) else "TEXT"), nullable


def is_scalar(kind: Type) -> bool:
    """Return whether values of that type fit into a column."""
    return all(isinstance(each, (StrType, IntType, BoolType, FloatType, LiteralType, NoneType)) for each in alternatives(kind))
