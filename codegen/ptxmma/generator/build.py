"""Stage 2, build: plain data -> the frozen structures of :mod:`ptxmma.model`.

Documents of one kind are joined across files, and short forms are written out (:mod:`ptxmma.generator.short_forms`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from ptxmma.generator.documents import KINDS, MANDATORY, Spaces, TensorLayouts
from ptxmma.generator.problems import Position, Problem, SpecError, clash
from ptxmma.generator.short_forms import divided, written_out
from ptxmma.generator.yaml_document import Document, Path_
from ptxmma.model import REGISTERS, Space, Spec, TensorProducts, Types

#: The kinds that a spec has exactly one document of.
_SINGLE = ("spec", "shared_memory", "tensor_maps")


class Positions:
    """The place of each part of a built spec in its YAML files; ``overlaid`` if some of the files belong to an overlay."""

    def __init__(self, *, overlaid: bool) -> None:
        self.overlaid = overlaid
        self._parts: dict[Path_, tuple[Path_, Document]] = {}

    def add(self, place: Path_, document: Document, origin: Path_) -> None:
        """Record that the model's ``place`` comes from ``origin`` of ``document``."""
        self._parts.setdefault(place, (origin, document))

    def at(self, *place: str | int) -> Position:
        """The position of a part of the model, or of the nearest part around it that has one."""
        for length in range(len(place), -1, -1):
            if place[:length] in self._parts:
                origin, document = self._parts[place[:length]]
                return document.places.nearest(origin + place[length:])
        return Position("spec")


def build(documents: list[Document], incomplete: Collection[str] = ()) -> tuple[Spec, Positions]:
    """The spec that the documents make up, and the position of each part.

    Args:
        documents: the documents that suit their schemas.
        incomplete: the kinds with documents that were rejected; a missing document of these kinds is not reported.

    Raises:
        SpecError: a missing or duplicate document, or an entry that contradicts itself; without any problem if only a document of an
            incomplete kind is missing.
    """
    parts: dict[str, Any] = {"instructions": [], "errata": []}
    lists: dict[str, dict[str, list[Any]]] = {"types": {}, "tensor_products": {}}
    single: dict[str, Document] = {}
    spaces: list[Space] = []
    placed: list[tuple[TensorLayouts, Document]] = []
    positions = Positions(overlaid=any(document.places.added for document in documents))
    problems: list[Problem] = []
    for document in documents:
        kind = document.kind
        data = written_out({key: value for key, value in document.data.items() if key != "kind"}, KINDS[kind])
        if kind == "instruction":
            data, origins = divided(data)
            for index, origin in enumerate(origins):
                positions.add(("instructions", len(parts["instructions"]), "forms", index), document, ("forms", origin))
        try:
            entry = msgspec.convert(data, KINDS[kind])
        except msgspec.ValidationError as error:
            problems.append(_located(error, document))
            continue
        if kind == "instruction":
            positions.add(("instructions", len(parts["instructions"])), document, ())
            parts["instructions"].append(entry)
        elif kind in _SINGLE:
            if kind in single:
                message = f"a second document of kind {kind}; a spec has one"
                problems.append(clash(message, document.start, single[kind].start))
            single[kind] = document
            positions.add(() if kind == "spec" else (kind,), document, ())
            parts |= msgspec.structs.asdict(entry) if kind == "spec" else {kind: entry}
        elif isinstance(entry, TensorLayouts):
            placed.append((entry, document))
        elif isinstance(entry, Spaces):
            scopes = parts.setdefault("scopes", {})
            for name, threads in entry.scopes.items():
                here = document.places.nearest(("scopes", name))
                if name in scopes:
                    problems.append(clash(f"a second scope {name!r}", here, positions.at("scopes", name)))
                positions.add(("scopes", name), document, ("scopes", name))
                scopes[name] = threads
            for index, space in enumerate(entry.spaces):
                positions.add(("spaces", len(spaces)), document, ("spaces", index))
                spaces.append(space)
        elif kind != "assemblers":
            for key in data:
                into = lists.get(kind, parts).setdefault(key, [])
                prefix: Path_ = (kind,) if kind in lists else ()
                for index, part in enumerate(getattr(entry, key)):
                    positions.add((*prefix, key, len(into)), document, (key, index))
                    into.append(part)
    kinds = {document.kind for document in documents}
    top = positions.at() if "spec" in kinds else Position(documents[0].places.file) if documents else Position("spec")
    missing = [kind for kind in MANDATORY if kind not in kinds]
    problems += (Problem(top, f"no document of kind {kind}; a spec has one") for kind in missing if kind not in incomplete)
    if "spaces" in kinds and "spaces" not in incomplete:
        problems += _spaces(spaces, placed, positions)
    registers = [space.coordinates for space in spaces if space.name == REGISTERS]
    counted = any(all(len(coordinates.get(name, ())) == 1 for name in ("lane", "bit")) for coordinates in registers)
    if "spaces" in kinds and not (counted and "scopes" in parts):
        if "spaces" not in incomplete:
            text = f"no scopes, or no space {REGISTERS!r} with one size of the coordinates lane and bit, which layouts in registers count"
            problems.append(Problem(positions.at("spaces", 0), text))
        raise SpecError(problems)
    parts["spaces"] = spaces
    if problems or missing:
        raise SpecError(problems)
    fields: dict[str, Any] = {key: tuple(part) if isinstance(part, list) else part for key, part in parts.items()}
    types, products = ({key: tuple(entries) for key, entries in part.items()} for part in lists.values())
    return Spec(**fields, types=Types(**types), tensor_products=TensorProducts(**products) if products else None), positions


def _spaces(spaces: list[Space], placed: list[tuple[TensorLayouts, Document]], positions: Positions) -> Iterator[Problem]:
    """Put the layouts of on-chip memories into their spaces; yield what is wrong."""
    numbers = {space.name: index for index, space in enumerate(spaces)}
    for entry, document in placed:
        if entry.space not in numbers:
            yield Problem(document.places.nearest(("space",)), f"no space {entry.space!r}; there are {', '.join(numbers)}")
            continue
        index = numbers[entry.space]
        for section in ("layouts", "unknown"):
            known, added = getattr(spaces[index], section), getattr(entry, section)
            for own, _ in enumerate(added):
                positions.add(("spaces", index, section, len(known) + own), document, (section, own))
            spaces[index] = msgspec.structs.replace(spaces[index], **{section: (*known, *added)})


def _located(error: msgspec.ValidationError, document: Document) -> Problem:
    message, _, where = str(error).partition(" - at `$")
    place = tuple(int(part) if part.isdigit() else part for part in re.findall(r"[\w-]+", where.rstrip("`")))
    return Problem(document.places.nearest(place), message)
