"""The short forms that YAML may use, and their expansions.

:data:`SHORT_FORMS` lists them by type.  ``schema`` describes both forms of a type, and ``write_out`` expands the short one:

* the size of a coordinate on every target may be a number;
* what is a list of values, conditions, ranges or cases may be a single one;
* a case without a condition may be its formula;
* the sizes of a qualifier may be a pattern, and one number is the size of the qualifier's own name;
* a form holds its qualifiers beside its other keys, and ``optional`` means "absent, or the qualifier's own name";
* an instruction with one operand list has it without a name; ``{, x}`` in a list is an operand that may be left out, and ``{, x if q}`` one
  that goes with the qualifier ``q``.
"""

from __future__ import annotations

import functools
import itertools
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from ptxmma.model import Case, Cases, Condition, CoordinateSize, Extents, Form, InstructionSet, Range
from ptxmma.model.fields import Formula, Identifier, Values
from ptxmma.ptx.lines import items

#: A JSON Schema, or a part of one.
Schema = dict[str, Any]


class ShortForm(NamedTuple):
    """A short way in which YAML may write a value of some type.

    ``schema`` makes the schema of both forms from the schema of the long form, whose parts may have short forms of their own;
    ``write_out`` makes the long form of either.  With a ``name`` the schema is written once and referred to.
    """

    schema: Callable[[Schema], Schema]
    write_out: Callable[[Any], Any]
    name: str = ""


# --- one short form after the other -----------------------------------------------------------------------------------------


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _one_or_many(description: str, name: str = "") -> ShortForm:
    """A list of one entry may be the entry."""

    def schema(long: Schema) -> Schema:
        return {"description": description, "anyOf": [long["items"], long | {"minItems": 1}]}

    return ShortForm(schema, _listed, name)


def _or(short: Schema, description: str, write_out: Callable[[Any], Any], long_type: type = dict) -> ShortForm:
    """Another way to write a struct, or a list."""
    return ShortForm(
        lambda long: {"description": description, "anyOf": [short, long]},
        lambda value: value if isinstance(value, long_type) else write_out(value),
    )


_NUMBER: Schema = {"type": "integer", "minimum": 1, "maximum": 4096}
_SIZES: Schema = {
    "type": "object",
    "patternProperties": {"^[a-z][a-z0-9_]*$": _NUMBER},
    "additionalProperties": False,
}
_EXTENTS: Schema = {
    "description": 'a pattern ("m{m}n{n}k{k}"), or the sizes of each value, one number for the size of the qualifier\'s own name',
    "anyOf": [
        {"type": "string", "pattern": r"^[A-Za-z0-9_.]*(\{[a-z]\w*\}[A-Za-z0-9_.]*)+$"},
        {"type": "object", "additionalProperties": {"anyOf": [_NUMBER, _SIZES]}},
    ],
}


def _extents_schema(long: Schema) -> Schema:
    return long | {"patternProperties": dict.fromkeys(long["patternProperties"], _EXTENTS)}


def _extents(value: Any) -> Any:
    return {name: {"pattern": entry} if isinstance(entry, str) else {"values": _sizes(name, entry)} for name, entry in value.items()}


def _sizes(name: str, values: Any) -> Any:
    return {value: {name: sizes} if isinstance(sizes, int) else sizes for value, sizes in values.items()}


#: The keys of a form as YAML has them; every other key is a qualifier.
_FORM_KEYS = [name for name in Form.__struct_fields__ if name != "qualifiers"]
#: A modifier; or one with names of ranges in braces, for several.
_TOKEN = r"[A-Za-z0-9_]+(::?[A-Za-z0-9_]+)*|[A-Za-z0-9.]*(\{[a-z]\w*\}[A-Za-z0-9.]*)+"
_VALUE = 'a modifier without its dot; "m64n{n}k16" with ranges for n is many; "=" and a qualifier takes its value'
_QUALIFIER: Schema = {
    "description": 'a value, a list of values ("" for absent), optional, or "=" and the qualifier whose value it takes',
    "anyOf": [
        {"type": "string", "pattern": f"^(=[a-z_]+|{_TOKEN})$", "patternErrorMessage": _VALUE},
        {"type": "array", "items": {"type": "string", "pattern": f"^({_TOKEN})?$", "patternErrorMessage": _VALUE}, "minItems": 1},
    ],
}


def _form_schema(long: Schema) -> Schema:
    properties = {key: long["properties"][key] for key in _FORM_KEYS}
    others = f"^(?!({'|'.join(properties)})$)[a-z_]+$"
    return long | {"properties": properties, "patternProperties": {others: _QUALIFIER}}


def _form(value: Any) -> Any:
    form = {key: entry for key, entry in value.items() if key in _FORM_KEYS}
    form["qualifiers"] = {
        key: ["", key] if entry == "optional" else _listed(entry) for key, entry in value.items() if key not in _FORM_KEYS
    }
    return form


_OPERANDS: Schema = {
    "type": "string",
    "description": "an operand list as the manual prints it",
    "pattern": r"^[A-Za-z_\[]([A-Za-z0-9, |\[\]-]|\{[A-Za-z0-9, \[\]-]+( if [a-z_]+)?\})*$",
    "patternErrorMessage": 'operands with ", " between them: [p] an address, {x, y} a list, x|y a pair, {, z} one that may be left out, '
    "{, z if q} one that goes with the qualifier q",
}
_OPERAND_LISTS: Schema = {
    "description": "an operand list, or several for one spelling",
    "anyOf": [_OPERANDS, {"type": "array", "items": _OPERANDS, "minItems": 1}],
}


def _instruction_schema(long: Schema) -> Schema:
    named = {"type": "object", "patternProperties": {"^[a-z_]+$": _OPERAND_LISTS}, "additionalProperties": False}
    operands = {"description": "an operand list, or a mapping of names to operand lists", "anyOf": [_OPERANDS, named]}
    return long | {"properties": long["properties"] | {"operands": operands}}


def _instruction(value: Any) -> Any:
    operands = value.get("operands", {})
    lists = operands if isinstance(operands, dict) else {"": operands}
    return value | {"operands": {name: every_list(_listed(texts)) for name, texts in lists.items()}}


def _same(value: Any) -> Any:
    return value


#: The short form of each type that has one; a list may have an annotation around it.
SHORT_FORMS: dict[Any, ShortForm] = {
    Values: _one_or_many("a token or a number, or a list of them", "values"),
    tuple[Condition, ...]: _one_or_many("a condition, or a list of which any may hold", "conditions"),
    Case: _or(msgspec.json.schema(Formula), "a formula, or {when: condition, is: formula}", lambda formula: {"is": formula}),
    Cases: _one_or_many("a formula, or guarded cases: [{when: condition, is: formula}, ..., {is: formula}]", "cases"),
    tuple[Range, ...]: _one_or_many("a range {first, last, step} or a list of them"),
    tuple[CoordinateSize, ...]: _or({"type": "integer", "minimum": 1}, "a size, or some for targets", lambda size: [{"size": size}], list),
    dict[Identifier, Extents]: ShortForm(_extents_schema, _extents),
    Form: ShortForm(_form_schema, _form),
    InstructionSet: ShortForm(_instruction_schema, _instruction),
}  # fmt: skip


# --- types of the model -----------------------------------------------------------------------------------------------------


def bare(hint: Any) -> Any:
    """A type without the annotations around it; those inside stay."""
    return hint.__origin__ if typing.get_origin(hint) is Annotated else hint


def short_form(hint: Any) -> ShortForm | None:
    """The short form of a type, if it has one."""
    return SHORT_FORMS.get(hint) or SHORT_FORMS.get(bare(hint))


@functools.cache
def fields(struct: type[msgspec.Struct]) -> dict[str, tuple[msgspec.structs.FieldInfo, Any]]:
    """The fields of a struct with their annotated types, by the keys that YAML has for them."""
    return {field.encode_name: (field, field.type) for field in msgspec.structs.fields(struct)}


def written_out(value: Any, hint: Any) -> Any:
    """The data with every short form of the type written out; ``value`` must suit its schema."""
    return _writer(hint)(value)


@functools.cache
def _writer(hint: Any) -> Callable[[Any], Any]:
    """The function that writes out the values of a type: the type's own short form first, then the short forms of its parts."""
    parts = _parts(hint)
    if (short := short_form(hint)) is None:
        return parts
    write_out = short.write_out
    return write_out if parts is _same else lambda value: parts(write_out(value))


def _parts(hint: Any) -> Callable[[Any], Any]:
    inner = bare(hint)
    arguments = typing.get_args(inner)
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        writers = {key: writer for key, (_, part) in fields(inner).items() if (writer := _writer(part)) is not _same}
        if writers:
            return lambda value: {key: writers[key](entry) if key in writers else entry for key, entry in value.items()}
    elif typing.get_origin(inner) is tuple and arguments[1:] == (...,):
        if (item := _writer(arguments[0])) is not _same:
            return lambda value: [item(entry) for entry in value]
    elif typing.get_origin(inner) is dict and (item := _writer(arguments[1])) is not _same:
        return lambda value: {key: item(entry) for key, entry in value.items()}
    return _same


# --- operand lists with optional operands ------------------------------------------------------------------------------------


_OPTIONAL = re.compile(r"\{(, [^{}, ]+)\}")
_CONDITIONAL = re.compile(r"\{(, [^{}]+) if (\w+)\}")


def every_list(texts: Iterable[str]) -> list[str]:
    """Every list that the texts write: ``["a{, b}"]`` is ``["a", "a, b"]``.

    First come the lists without optional operands, then those with the first one of each text, and so on.
    """
    parts = [_OPTIONAL.split(text) for text in texts]
    most = max(len(part) // 2 for part in parts)
    written = []
    for chosen in itertools.product((False, True), repeat=most):
        taken = chosen[::-1]  # the first optional operand varies fastest
        for part in parts:
            if not any(taken[len(part) // 2 :]):
                options = (option if take else "" for option, take in zip(part[1::2], taken, strict=False))
                written.append("".join(itertools.chain(*itertools.zip_longest(part[::2], options, fillvalue=""))))
    return written


def divided(entry: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """An instruction whose forms have the same operands each, and the number of the form that each was a part of.

    A form is divided by the presence of each qualifier with which operands of its list go.
    """
    lists: dict[str, list[str]] = {}
    forms, origins = [], []
    for origin, form in enumerate(entry["forms"]):
        own = form.get("operands", "")
        texts = entry["operands"].get(own, [])
        names = list(dict.fromkeys(name for text in texts for _, name in _CONDITIONAL.findall(text)))
        for given in itertools.product((False, True), repeat=len(names)):
            present = {name for name, has in zip(names, given, strict=True) if has}
            values = {name: [each for each in form["qualifiers"].get(name, [""]) if bool(each) == (name in present)] for name in names}
            if all(values.values()):
                written = [_CONDITIONAL.sub(functools.partial(_where, present), text) for text in texts]
                key = "_".join(filter(None, (own, *sorted(present))))
                qualifiers = {name: values.get(name, every) for name, every in form["qualifiers"].items()}
                forms.append({**form, "qualifiers": qualifiers, **({"operands": key} if texts else {})})
                lists |= {key: written} if texts else {}
                origins.append(origin)
    used = {form.get("operands", "") for form in entry["forms"]}
    unused = {key: texts for key, texts in entry["operands"].items() if key not in used}
    return {**entry, "operands": lists | unused, "forms": forms}, origins


def _where(present: set[str], match: re.Match[str]) -> str:
    return match[1] if match[2] in present else ""


def folded(texts: Iterable[str]) -> list[str]:
    """The shortest way to write operand lists: the inverse of :func:`every_list`."""
    lists = dict.fromkeys(tuple(items(text)) for text in texts)
    written = []
    while lists:
        short = next(iter(lists))
        groups = {long: _between(short, long) for long in lists}
        long = max(groups, key=lambda long: len(groups[long]) if groups[long] <= lists.keys() else 0)
        written.append(long[0] + "".join(f", {name}" if name in short else f"{{, {name}}}" for name in long[1:]))
        for one in groups[long]:
            del lists[one]
    return written


def _between(short: tuple[str, ...], long: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The lists with every operand of ``short`` and any others of ``long``; none where ``long`` does not extend ``short``."""
    extra = [name for name in long[1:] if name not in short]
    subsets = itertools.product((False, True), repeat=len(extra))
    left_out = ({name for name, take in zip(extra, taken, strict=True) if not take} for taken in subsets)
    lists = {tuple(name for name in long if name not in out) for out in left_out}
    return lists if short in lists else set()
