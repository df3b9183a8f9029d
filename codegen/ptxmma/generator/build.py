"""Stage 2, build: plain data -> the frozen structures of :mod:`ptxmma.model`.

Documents of one kind are joined across files.  The short forms that make YAML pleasant to read are written out here, in
:data:`_LONG_FORMS`, and nowhere else:

* a condition may be one mapping instead of a list, and its values may be single;
* guarded cases may be a single formula;
* a shape may be a PTX token (``"m16n8k16"``), and its ``n`` a number or one range;
* a form holds its qualifiers beside its other keys; a single value stands for a list of one, and ``optional`` for
  "absent, or the qualifier's own name";
* a sighting may have a list of targets, for one on each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from ptxmma.generator.load import Document, Path_, nearest
from ptxmma.generator.problems import Position, Problem, SpecError
from ptxmma.model import Form, Spec

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_FORM_KEYS = set(Form.__struct_fields__) - {"qualifiers"}


class Positions:
    """Where each part of a built spec stands in its YAML files."""

    def __init__(self) -> None:
        self._parts: dict[Path_, tuple[Path_, Document]] = {}

    def add(self, place: Path_, document: Document, origin: Path_) -> None:
        """The model's ``place`` comes from ``origin`` of ``document``."""
        self._parts.setdefault(place, (origin, document))

    def at(self, *place: str | int) -> Position:
        """The position of a part of the model, or of the nearest part around it that has one."""
        for length in range(len(place), -1, -1):
            if place[:length] in self._parts:
                origin, document = self._parts[place[:length]]
                return nearest(document, origin + place[length:])
        return Position("spec")


def build(documents: list[Document]) -> tuple[Spec, Positions]:
    """The spec that the documents say, and where each part of it stands.

    Raises:
        SpecError: a document that is missing or stands twice, or a key that the model does not have.
    """
    lists: dict[str, list[Any]] = {"instructions": [], "errata": []}
    single: dict[str, Any] = {}
    types: dict[str, list[Any]] = {}
    positions = Positions()
    problems: list[Problem] = []
    for document in documents:
        data = dict(document.data)
        kind = data.pop("kind")
        if kind == "instruction":
            positions.add(("instructions", len(lists["instructions"])), document, ())
            lists["instructions"].append(_written_out(data))
        elif kind in ("spec", "shared_memory", "protocol"):
            if kind in single:
                problems.append(Problem(document.positions[()], f"a second document of kind {kind}; a spec has one"))
            single[kind] = _written_out(data)
            positions.add(() if kind == "spec" else (kind,), document, ())
        elif kind != "assemblers":
            for key, entries in data.items():
                target = types if kind == "types" else lists
                prefix: Path_ = ("types",) if kind == "types" else ()
                into = target.setdefault(key, [])
                for index, entry in enumerate(entries):
                    positions.add((*prefix, key, len(into)), document, (key, index))
                    into.append(_written_out(entry))
    if "spec" not in single:
        problems.append(Problem(documents[0].positions[()]._replace(line=1, column=1), "no document of kind spec: it names the version"))
    if problems:
        raise SpecError(problems)
    data = {**single.pop("spec"), **single, **lists, "types": types}
    data.setdefault("targets", [])
    data.setdefault("isa_versions", [])
    try:
        return msgspec.convert(data, Spec), positions
    except msgspec.ValidationError as error:
        raise SpecError([_located(error, positions)]) from None


def _located(error: msgspec.ValidationError, positions: Positions) -> Problem:
    message, _, where = str(error).partition(" - at `$")
    place = tuple(int(part) if part.isdigit() else part for part in re.findall(r"[\w-]+", where.rstrip("`")))
    return Problem(positions.at(*place), message)


# --- short forms ------------------------------------------------------------------------------------------------------------


def _conditions(value: Any) -> Any:
    entries = value if isinstance(value, list) else [value]
    return [{key: allowed if isinstance(allowed, list) else [allowed] for key, allowed in entry.items()} for entry in entries]


def _cases(value: Any) -> Any:
    return [{"is": value}] if isinstance(value, str) else value


def _shape(value: Any) -> Any:
    if isinstance(value, str):
        match = _SHAPE.fullmatch(value)
        assert match  # the schema has the same pattern
        m, n, k = map(int, match.groups())
        return {"m": m, "n": [_range(n)], "k": k}
    n = value["n"]
    return value | {"n": [_range(part) for part in (n if isinstance(n, list) else [n])]}


def _range(value: Any) -> Any:
    return {"first": value, "last": value, "step": 1} if isinstance(value, int) else value


def _forms(value: Any) -> Any:
    return [_form(entry) for entry in value]


def _form(entry: Any) -> Any:
    form = {key: value for key, value in entry.items() if key in _FORM_KEYS}
    shapes = entry.get("shape", [])
    form["shapes"] = [_shape(shape) for shape in (shapes if isinstance(shapes, list) else [shapes])]
    form["qualifiers"] = {
        key: ["", key] if value == "optional" else value if isinstance(value, list) else [value]
        for key, value in entry.items()
        if key not in _FORM_KEYS and key != "shape"
    }
    return form


def _operands(value: Any) -> Any:
    """Operand lists by name; an instruction with one list only has it under ``""``."""
    if isinstance(value, list) and all(isinstance(name, str) and "," not in name for name in value):
        return value
    lists = value if isinstance(value, dict) else {"": value}
    return {name: texts if isinstance(texts, list) else [texts] for name, texts in lists.items()}


def _sightings(value: Any) -> Any:
    return [entry | {"target": target} for entry in value for target in _listed(entry["target"])]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_LONG_FORMS: dict[str, Callable[[Any], Any]] = {
    "when": lambda value: value if isinstance(value, str) else _conditions(value),
    "ordered_when": _conditions,
    "of": lambda value: value if isinstance(value, str) else _conditions(value),
    "row": _cases,
    "col": _cases,
    "computation": _cases,
    "lane": _cases,
    "bit": _cases,
    "byte": _cases,
    "first": lambda value: value if isinstance(value, int) else _cases(value),
    "last": lambda value: value if isinstance(value, int) else _cases(value),
    "forms": _forms,
    "seen": _sightings,
}


def _written_out(value: Any) -> Any:
    """The data with every short form written out."""
    if isinstance(value, list):
        return [_written_out(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, entry in value.items():
        entry = _LONG_FORMS.get(key, lambda same: same)(entry)
        result[key] = _written_out(entry)
    if "operand_kinds" in value and "operands" in value:
        result["operands"] = _operands(value["operands"])
    return result
