"""A JSON Schema as a function that tests data.

jsonschema explains what is wrong with data; to find that nothing is wrong takes it ten times as long.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

from ptxmma.generator.short_forms import Schema

#: Tells whether data suits a schema, or one keyword of it.
Predicate = Callable[[Any], bool]


def _type(names: str | list[str]) -> Predicate:
    types = {_TYPES[name] for name in ([names] if isinstance(names, str) else names)}
    return lambda data: type(data) in types  # type() and not isinstance: True is an int


def _every(tests: Sequence[Predicate]) -> Predicate:
    """The test that all of some tests are: a chain of two each, which takes half of the time of a loop."""
    if len(tests) < 2:
        return tests[0] if tests else lambda _: True
    first, others = tests[0], _every(tests[1:])
    return lambda data: first(data) and others(data)


def _any_of(schemas: Sequence[Schema]) -> Predicate:
    first = predicate(schemas[0])
    if len(schemas) == 1:
        return first
    others = _any_of(schemas[1:])
    return lambda data: first(data) or others(data)


def _pattern(text: str) -> Predicate:
    search = re.compile(text).search
    return lambda data: search(data) is not None


_TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": NoneType}
#: The keywords that are about data of any type.
_ANY: dict[str, Callable[[Any], Predicate]] = {
    "type": _type,
    "const": lambda value: lambda data: type(data) is type(value) and data == value,
    "enum": lambda values: lambda data: any(type(data) is type(value) and data == value for value in values),
    "anyOf": _any_of,
}
#: The keywords that are about data of one type, with that type; other data suits them.
_ABOUT: dict[str, tuple[type, Callable[[Any], Predicate]]] = {
    "pattern": (str, _pattern),
    "minLength": (str, lambda bound: lambda data: len(data) >= bound),
    "maxLength": (str, lambda bound: lambda data: len(data) <= bound),
    "minimum": (int, lambda bound: lambda data: data >= bound),
    "maximum": (int, lambda bound: lambda data: data <= bound),
    "minItems": (list, lambda bound: lambda data: len(data) >= bound),
    "maxItems": (list, lambda bound: lambda data: len(data) <= bound),
    "uniqueItems": (list, lambda asked: lambda data: not asked or all(item not in data[:index] for index, item in enumerate(data))),
    "minProperties": (dict, lambda bound: lambda data: len(data) >= bound),
    "required": (dict, lambda names: lambda data: all(name in data for name in names)),
}
_ITEMS = {"items", "prefixItems"}
_MEMBERS = {"properties", "patternProperties", "additionalProperties"}
_WORDS = {"$schema", "$id", "title", "description", "patternErrorMessage"}


def predicate(schema: Schema | bool) -> Predicate:
    """Return the function that tells whether data suits a schema without references.

    Raises:
        KeyError: a keyword that our schemas do not use.
    """
    if isinstance(schema, bool):
        return lambda _: schema
    tests = [_ANY[name](schema[name]) for name in schema if name in _ANY]
    about: dict[type, list[Predicate]] = {}
    for name in schema.keys() - _ANY.keys() - _ITEMS - _MEMBERS - _WORDS:
        of, test = _ABOUT[name]
        about.setdefault(of, []).append(test(schema[name]))
    if schema.keys() & _ITEMS:
        about.setdefault(list, []).append(_items(schema))
    if schema.keys() & _MEMBERS:
        about.setdefault(dict, []).append(_members(schema))
    of_any, of_type = _every(tests), {kind: _every(tests) for kind, tests in about.items()}
    return lambda data: of_any(data) and (type(data) not in of_type or of_type[type(data)](data))


def _items(schema: Schema) -> Predicate:
    first, rest = [*map(predicate, schema.get("prefixItems", ()))], predicate(schema.get("items", True))
    if not first:
        return lambda data: all(map(rest, data))
    return lambda data: all(test(item) for test, item in zip(itertools.chain(first, itertools.repeat(rest)), data, strict=False))


def _members(schema: Schema) -> Predicate:
    named = {name: predicate(part) for name, part in schema.get("properties", {}).items()}
    patterns = [(re.compile(pattern).search, predicate(part)) for pattern, part in schema.get("patternProperties", {}).items()]
    others = predicate(schema.get("additionalProperties", True))

    def test(data: dict[str, Any]) -> bool:
        for name, value in data.items():
            tests = [named[name]] if name in named else []
            tests += [each for search, each in patterns if search(name)]
            for each in tests or [others]:
                if not each(value):
                    return False
        return True

    return test
