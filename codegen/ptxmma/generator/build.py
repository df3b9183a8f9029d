"""Stage 2, build: plain data -> the frozen structures of :mod:`ptxmma.model`.

Documents of one kind are joined across files, and short forms are written out (:mod:`ptxmma.generator.short_forms`).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ptxmma.generator.documents import KINDS, MANDATORY
from ptxmma.generator.load import Document, Path_, nearest
from ptxmma.generator.problems import Position, Problem, SpecError
from ptxmma.generator.short_forms import written_out
from ptxmma.model import Spec


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
    kinds: set[str] = set()
    for document in documents:
        kind = document.data["kind"]
        kinds.add(kind)
        data = written_out({key: value for key, value in document.data.items() if key != "kind"}, KINDS[kind])
        if kind == "instruction":
            positions.add(("instructions", len(lists["instructions"])), document, ())
            lists["instructions"].append(data)
        elif kind in ("spec", "shared_memory", "protocol"):
            if kind in single:
                problems.append(Problem(document.positions[()], f"a second document of kind {kind}; a spec has one"))
            single[kind] = data
            positions.add(() if kind == "spec" else (kind,), document, ())
        elif kind != "assemblers":
            for key, entries in data.items():
                target = types if kind == "types" else lists
                prefix: Path_ = ("types",) if kind == "types" else ()
                into = target.setdefault(key, [])
                for index, entry in enumerate(entries):
                    positions.add((*prefix, key, len(into)), document, (key, index))
                    into.append(entry)
    top = positions.at() if "spec" in kinds else Position(documents[0].positions[()].file)
    problems += (Problem(top, f"no document of kind {kind}; a spec has one") for kind in MANDATORY if kind not in kinds)
    if problems:
        raise SpecError(problems)
    data = {**single.pop("spec"), **single, **lists, "types": types}
    try:
        return msgspec.convert(data, Spec), positions
    except msgspec.ValidationError as error:
        raise SpecError([_located(error, positions)]) from None


def _located(error: msgspec.ValidationError, positions: Positions) -> Problem:
    message, _, where = str(error).partition(" - at `$")
    place = tuple(int(part) if part.isdigit() else part for part in re.findall(r"[\w-]+", where.rstrip("`")))
    return Problem(positions.at(*place), message)
