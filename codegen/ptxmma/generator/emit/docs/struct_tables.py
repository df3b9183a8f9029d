"""Tables of structs: a column for each field of the class.  The caller says what a page shows otherwise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.inspect import BoolType, DictType, IntType, StructType, Type, VarTupleType

from ptxmma.generator.emit.docs import rest
from ptxmma.generator.emit.struct_fields import Field, alternatives, bare, fields

#: The text of a cell, from the entry of its row.
Cell = Callable[[Any], str]
#: Titles that are not the name of the field.
_TITLES = {
    "c_type": "C type",
    "cuda": "CUDA",
    "cute": "CuTe",
    "k": "k",
    "lbo": "LBO",
    "m": "m",
    "nan": "NaN",
    "numpy": "NumPy",
    "of": "Where",
    "ptx": "PTX ISA",
    "sbo": "SBO",
    "sms": "SMs",
    "tma": "Tensor map (TMA)",
    "when": "Where",
}


def table(
    entries: Iterable[msgspec.Struct],
    *,
    titles: Mapping[str, str] | None = None,
    cells: Mapping[str, Cell] | None = None,
    first: Sequence[str] = (),
    code: Collection[str] = (),
    without: Collection[str] = (),
    kind: str = "",
) -> str:
    """A row for each entry and a column for each field; columns that are empty throughout are left out.

    Args:
        entries: structs of one class; no entries, no table.
        titles: the headings of columns, where they differ from the titles of the fields.
        cells: the texts of columns by field; columns of other names, which need a title, come last but for the source.
        first: the columns with which a row begins; the others follow in the order of the struct.
        code: the fields that are shown as literals.
        without: the fields that are left out.
        kind: the class of the table in HTML.
    """
    rows = list(entries)
    if not rows:
        return ""
    shown = [field for field in fields(type(rows[0])) if field.name not in without]
    columns = {field.name: _cell(field, field.name in code) for field in shown if _is_shown(field.type)} | dict(cells or {})
    if "source" in columns:
        columns["source"] = columns.pop("source")
    columns = {name: columns[name] for name in (*first, *(name for name in columns if name not in first))}
    known = {field.name: field.title[:1].upper() + field.title[1:] for field in shown} | _TITLES | dict(titles or {})
    header = [known[name] for name in columns]
    return rest.table(*rest.dense(header, ([cell(row) for cell in columns.values()] for row in rows)), kind=kind)


def _is_shown(kind: Type) -> bool:
    """Return whether a field fits into a cell: a scalar, or a list of scalars or conditions."""
    inner = [bare(each.item_type) for each in alternatives(kind) if isinstance(each, VarTupleType)]
    return not any(isinstance(each, (StructType, DictType)) for each in (*alternatives(kind), *inner)) or _is_condition(kind)


def _is_condition(kind: Type) -> bool:
    return any(isinstance(each, VarTupleType) and isinstance(bare(each.item_type), DictType) for each in alternatives(kind))


def _cell(field: Field, code: bool) -> Cell:
    """The text of a field."""
    name, write = field.name, rest.code if code else rest.text
    kinds = alternatives(field.type)
    if name == "source":
        return lambda row: rest.source(row.source)
    if _is_condition(field.type):
        return lambda row: rest.condition(getattr(row, name)) or "always"
    if any(isinstance(each, BoolType) for each in kinds):
        return lambda row: "yes" if getattr(row, name) else ""
    if any(isinstance(each, IntType) for each in kinds):
        return lambda row: "" if getattr(row, name) == field.default else str(getattr(row, name))
    for each in kinds:
        if isinstance(each, VarTupleType):
            items = rest.numbers if isinstance(bare(each.item_type), IntType) else rest.codes
            return lambda row: items(getattr(row, name))
    return lambda row: write(getattr(row, name) or "")
