"""What the JSON Schemas say of keys: which of them are mandatory, and which values a key may have."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ptxmma import paths


class Vocabulary(NamedTuple):
    """Of the documents of one kind.

    Attributes:
        mandatory: keys that an object must have; a key that is mandatory in one object counts in all.
        values: key -> what it may be, where the schema lists that.
    """

    mandatory: frozenset[str]
    values: dict[str, frozenset[str]]


@functools.cache
def vocabulary(kind: str) -> Vocabulary:
    """The vocabulary of a kind of document."""
    objects = [entry for name in (kind, "common") for entry in _objects(json.loads((paths.SCHEMAS / f"{name}.schema.json").read_text()))]
    mandatory = frozenset(key for entry in objects for key in entry.get("required", ()))
    values: dict[str, frozenset[str]] = {}
    for entry in objects:
        for key, part in entry["properties"].items():
            values[key] = values.get(key, frozenset()) | frozenset(part.get("enum", ()))
    return Vocabulary(mandatory, values)


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """The parts of a schema that describe an object with named keys."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema
        for part in schema.values():
            yield from _objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _objects(part)
