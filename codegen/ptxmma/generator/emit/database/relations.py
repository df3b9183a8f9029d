"""Tables from structs: each struct is a table, each scalar field a column, and each field that holds many a table of its own.

The rules, for a struct that is reached from the root of a model:

- Its table is named after the field where that is a field of the spec (``targets``), else after the struct: ``Requirement`` has the table
  ``requirements``.
- An entry is identified by a number, ``id``, or by the field that ``keys`` lists for it (``targets.name``).
- An entry that another one owns has a column for the owner (``requirements.instruction``) and, where several fields hold such entries,
  one for the ``field``.  ``position`` counts the entries of a list from 0; the entries of a mapping have their key as ``name``.
- A list of scalars is a table of the owner, the position and the value (``requirement_targets``); a mapping has a ``name`` for each too;
  in a mapping of lists the position counts in each list.
- Conditions, and whatever is nested deeper, are JSON.  None and an empty list of conditions are NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.inspect import DictType, StructType, TupleType, Type, VarTupleType

from ptxmma.generator.emit.database.sql_tables import (
    Column,
    Table,
    Value,
    column_of,
    is_scalar,
    plural,
    singular,
    snake,
    sql_type,
)
from ptxmma.generator.emit.struct_fields import Field, alternatives, bare, described, fields

#: The containers of fields with many values that have a table of their own.
_TABLES = (("list",), ("mapping",), ("mapping", "list"))
#: Fields of conditions, which say for whom an entry is.
_CONDITIONS = ("when", "of")


class _Place(NamedTuple):
    """The place of structs of one kind: the struct that owns them (None: nothing does), its field, and the field's container."""

    owner: type[msgspec.Struct] | None
    field: str
    layers: tuple[str, ...]  # "mapping" and "list", the outer one first


class _Entry(NamedTuple):
    value: msgspec.Struct
    owner: msgspec.Struct | None
    field: str
    name: str | None
    position: int | None


#: A function that gives the value of a column in an entry's row.
_Getter = Callable[[_Entry], Value]


def _structs(kind: Type) -> list[type[msgspec.Struct]]:
    """The structs that a field holds, alone or as many."""
    layers, inner = _layers(kind)
    return [each.cls for each in alternatives(inner) if isinstance(each, StructType)] if layers in (*_TABLES, ()) else []


def _layers(kind: Type) -> tuple[tuple[str, ...], Type]:
    """The containers of a field's values, the outer one first, and the type of the values."""
    for each in alternatives(kind):
        layer = {VarTupleType: "list", TupleType: "list", DictType: "mapping"}.get(type(each))
        if layer is not None:
            layers, inner = _layers(bare(_item_type(each)))
            return (layer, *layers), inner
    return (), kind


def _item_type(kind: Type) -> Type:
    """The type of what a list or a mapping holds."""
    if isinstance(kind, VarTupleType):
        return kind.item_type
    if isinstance(kind, TupleType):
        return kind.item_types[0]
    assert isinstance(kind, DictType)
    return kind.value_type


def _json(value: Any) -> str | None:
    return msgspec.json.encode(value).decode() if value else None


class Relations:
    """The tables of a model: every struct that can be reached from its root, except the structs in ``without``.

    ``keys`` has the field by which entries are known, for structs whose entries have a name of their own.
    """

    def __init__(
        self, root: msgspec.Struct, keys: Mapping[type[msgspec.Struct], str], without: Sequence[type[msgspec.Struct]] = ()
    ) -> None:
        self._root = type(root)
        self._named = keys
        self._without = without
        self._singletons: set[type] = set()
        self._places: dict[type[msgspec.Struct], list[_Place]] = {}
        self._entries: dict[type[msgspec.Struct], list[_Entry]] = {}
        self._top: dict[type[msgspec.Struct], str] = {}  # what the root's fields hold
        self._plan(self._root, _Place(None, "", ()))
        self._collect(root, _Entry(root, None, "", None, None))
        self._keys: dict[int, Value] = {
            id(entry.value): getattr(entry.value, keys[struct]) if struct in keys else number
            for struct, entries in self._entries.items()
            for number, entry in enumerate(entries, 1)
        }

    def key(self, entry: msgspec.Struct) -> Value:
        """The key of the row of an entry of the model."""
        return self._keys[id(entry)]

    def tables(self) -> Iterator[Table]:
        """Every table, an owner before what it owns."""
        for struct in self._places:
            if struct is not self._root and any(map(self._is_column, fields(struct))):
                yield self._table(struct)
            yield from (self._values(struct, field) for field in fields(struct) if self._is_table(field))

    def name(self, struct: type[msgspec.Struct]) -> str:
        """The name of a struct's table."""
        own = snake(struct.__name__)
        return self._top.get(struct) or (own if struct in self._singletons else plural(own))

    def number(self, entry: msgspec.Struct) -> int:
        """The number of an entry's row, for structs that have no name of their own."""
        number = self.key(entry)
        assert isinstance(number, int), f"{entry!r} is known by its name"
        return number

    # --- the plan -----------------------------------------------------------------------------------------------------------

    def _plan(self, struct: type[msgspec.Struct], place: _Place) -> None:
        """Note the places of structs, from the types alone."""
        seen = struct in self._places
        self._places.setdefault(struct, []).append(place)
        self._entries.setdefault(struct, [])
        if seen:
            return
        if place.owner is None and not place.layers:
            self._singletons.add(struct)
        for field in fields(struct):
            layers, _ = _layers(field.type)
            for inner in _structs(field.type):
                if inner in self._without:
                    continue
                if layers and self._is_top(struct):
                    self._top[inner] = field.name
                self._plan(inner, _Place(None if struct in self._singletons else struct, field.name, layers))

    def _is_top(self, struct: type[msgspec.Struct]) -> bool:
        """Return whether it is the root, or a part of it that its own fields name: the spec of a database."""
        return struct is self._root or struct in [inner for field in fields(self._root) for inner in _structs(field.type)]

    def _collect(self, value: msgspec.Struct, entry: _Entry) -> None:
        """The entries of every struct, in the order of the model."""
        struct = type(value)
        self._entries[struct].append(entry)
        owner = None if struct in self._singletons else value
        for field in fields(struct):
            for name, position, inner in _parts(getattr(value, field.name)):
                if isinstance(inner, msgspec.Struct) and type(inner) in self._entries:
                    self._collect(inner, _Entry(inner, owner, field.name, name, position))

    # --- the tables ---------------------------------------------------------------------------------------------------------

    def _table(self, struct: type[msgspec.Struct]) -> Table:
        own = [_own(field) for field in fields(struct) if self._is_column(field)]
        if struct in self._singletons:
            key, columns = [], own
        elif struct in self._named:
            key, columns = [self._named[struct]], [*own, *self._whereabouts(struct)]  # the name first, as people read it
        else:
            key, columns = ["id"], [(Column("id", "INTEGER"), lambda entry: self.key(entry.value)), *self._whereabouts(struct), *own]
        getters = [getter for _, getter in columns]
        rows = [tuple([getter(entry) for getter in getters]) for entry in self._entries[struct]]
        return Table(self.name(struct), described(struct), [column for column, _ in columns], key, rows)

    def _whereabouts(self, struct: type[msgspec.Struct]) -> Iterator[tuple[Column, _Getter]]:
        """The columns that say where an entry lies: its owner, the field, and its name and position there."""
        places = self._places[struct]
        names = list(dict.fromkeys(place.field for place in places))
        for owner in dict.fromkeys(place.owner for place in places):
            if owner is not None:
                yield self._reference(owner, nullable=any(place.owner is not owner for place in places)), self._owner(owner)
        if len(names) > 1:
            yield Column("field", "TEXT", description=", ".join(names)), lambda entry: entry.field
        for layer, column in (("mapping", Column("name", "TEXT")), ("list", Column("position", "INTEGER"))):
            if any(layer in place.layers for place in places):
                everywhere = all(layer in place.layers for place in places)
                yield column._replace(nullable=not everywhere), operator.attrgetter(column.name)

    def _owner(self, struct: type[msgspec.Struct]) -> _Getter:
        return lambda entry: self.key(entry.owner) if isinstance(entry.owner, struct) else None

    def _values(self, struct: type[msgspec.Struct], field: Field) -> Table:
        """The table of a field that holds many scalars, or lists of them by name."""
        layers, scalar = _layers(field.type)
        owned = struct not in self._singletons
        owner = [self._reference(struct)] if owned else []
        places = [Column("name", "TEXT")] if "mapping" in layers else []
        places += [Column("position", "INTEGER")] if "list" in layers else []
        order = [] if "list" in layers else [Column("position", "INTEGER")]
        noun = "value" if "mapping" in layers else singular(field.name)
        columns = [*owner, *places, *order, Column(noun, *sql_type(scalar), field.description, field.extra.get("references", ""))]
        rows: list[tuple[Value, ...]] = []
        for entry in self._entries[struct]:
            start = (self.key(entry.value),) if owned else ()
            for number, (*place, value) in enumerate(_parts(getattr(entry.value, field.name))):
                among = (number,) if order else ()
                rows.append((*start, *(each for each in place if each is not None), *among, value))
        name = f"{singular(self.name(struct))}_{field.name}"
        return Table(name, "", columns, [column.name for column in (*owner, *places)], rows)

    def _reference(self, owner: type[msgspec.Struct], *, nullable: bool = False) -> Column:
        return Column(singular(self.name(owner)), "TEXT" if owner in self._named else "INTEGER", nullable, references=self.name(owner))

    def _is_column(self, field: Field) -> bool:
        """Return whether a field is a column of its struct's table: a scalar, or JSON."""
        return not _structs(field.type) and not self._is_table(field)

    def _is_table(self, field: Field) -> bool:
        """Return whether a field is a table of scalars."""
        layers, scalar = _layers(field.type)
        return layers in _TABLES and is_scalar(scalar)


def _own(field: Field) -> tuple[Column, _Getter]:
    """The column of a field that is a scalar, or JSON."""
    if is_scalar(field.type):
        return column_of(field), lambda entry: getattr(entry.value, field.name)
    column = Column("condition" if field.name in _CONDITIONS else field.name, "TEXT", True, field.description or "JSON")
    return column, lambda entry: _json(getattr(entry.value, field.name))


def _parts(value: Any) -> Iterator[tuple[str | None, int | None, Any]]:
    """The values in a field, each with its name and its position."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from ((name, position, part) for _, position, part in _parts(inner))
    elif isinstance(value, (tuple, list)):
        yield from ((None, position, part) for position, part in enumerate(value))
    elif value is not None:
        yield None, None, value
