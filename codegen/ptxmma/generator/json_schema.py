"""The JSON Schemas of the spec's YAML documents, generated from the structs of the model.

A field's type, its annotations and its short form (:mod:`ptxmma.generator.short_forms`) define the schema: what is mandatory, which values
are allowed, and the text that error messages show.
"""

from __future__ import annotations

import functools
import inspect
import typing
from typing import Annotated, Any, Literal

import msgspec

from ptxmma.generator.documents import KINDS
from ptxmma.generator.short_forms import Schema, bare, fields, short_form

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/"


def schemas() -> dict[str, Schema]:
    """The schema of each kind of document."""
    return {kind: schema(kind) for kind in KINDS}


def schema(kind: str) -> Schema:
    """The schema of a kind of document; what several entries share is under ``$defs``."""
    definitions: dict[str, Schema] = {}
    top = _both_forms(KINDS[kind], definitions)
    top["properties"] = {"kind": {"const": kind}} | top["properties"]
    top["required"] = ["kind", *top["required"]]
    about = {"$schema": _DIALECT, "$id": f"{kind}.schema.json", "title": top.pop("description")}
    return about | top | ({"$defs": definitions} if definitions else {})


def inlined(part: Any, definitions: dict[str, Schema]) -> Any:
    """A schema with its references inlined: resolving them takes half of the time of validation."""
    if isinstance(part, list):
        return [inlined(entry, definitions) for entry in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        rest = {key: value for key, value in part.items() if key != "$ref"}
        return inlined(definitions[part["$ref"].removeprefix(_REFERENCE)], definitions) | rest
    return {key: inlined(entry, definitions) for key, entry in part.items() if key != "$defs"}


def _schema(hint: Any, definitions: dict[str, Schema]) -> Schema:
    """The schema of a type, a reference where it has a name."""
    inner, short = bare(hint), short_form(hint)
    struct = isinstance(inner, type) and issubclass(inner, msgspec.Struct)
    name = inner.__name__ if struct else short.name if short and hint == inner else ""
    if not name:
        return _both_forms(hint, definitions)
    if name not in definitions:
        definitions[name] = {}  # its place: before its parts
        definitions[name] = _both_forms(inner, definitions)
    return {"$ref": _REFERENCE + name}


def _both_forms(hint: Any, definitions: dict[str, Schema]) -> Schema:
    """The schema of a type's long form and, if it has one, its short form."""
    long, short = _long_form(hint, definitions), short_form(hint)
    return short.schema(long) if short else long


def _long_form(hint: Any, definitions: dict[str, Schema]) -> Schema:
    inner = bare(hint)
    arguments = typing.get_args(inner)
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        return _struct(inner, definitions)
    if typing.get_origin(inner) is tuple and arguments[1:] == (...,):
        made, items = _around(hint, list[Any]), _schema(arguments[0], definitions)
        scalar = items.get("type") in ("string", "integer") or "enum" in items
        once = {"uniqueItems": True} if scalar and "uniqueItems" not in made else {}
        return made | once | {"items": items}
    if typing.get_origin(inner) is dict:
        key, value = (_schema(argument, definitions) for argument in arguments)
        if "pattern" not in key:
            return _around(hint, dict[str, Any]) | {"additionalProperties": value}
        return _around(hint, dict[str, Any]) | {"patternProperties": {key["pattern"]: value}, "additionalProperties": False}
    return _leaf(hint)


@functools.cache
def _leaf(hint: Any) -> Schema:
    """The schema of a type without parts; ``""`` is how the model says that there is none of a few values."""
    if typing.get_origin(bare(hint)) is Literal:
        return _around(hint, Any) | {"enum": [value for value in typing.get_args(bare(hint)) if value != ""]}
    long = msgspec.json.schema(hint)
    types = [part.get("type") for part in long.get("anyOf", ()) if len(part) == 1]
    return long if not types else {"type": types}


def _around(hint: Any, inner: Any) -> Schema:
    """The schema of a type's annotations, with ``inner`` in the place of the type."""
    for annotation in getattr(hint, "__metadata__", ()):
        inner = Annotated[inner, annotation]
    return msgspec.json.schema(inner)


def _struct(struct: type[msgspec.Struct], definitions: dict[str, Schema]) -> Schema:
    members = fields(struct)
    return {
        "description": inspect.cleandoc(struct.__doc__ or "").splitlines()[0].rstrip(".").replace("``", ""),
        "type": "object",
        "properties": {key: _schema(hint, definitions) for key, (_, hint) in members.items()},
        "required": [key for key, (field, _) in members.items() if field.required],
        "additionalProperties": False,
    }
