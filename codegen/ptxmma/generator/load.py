"""Stage 1, load: the YAML files of a spec -> documents that satisfy their JSON Schemas."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxmma.generator import json_schema
from ptxmma.generator.documents import KINDS
from ptxmma.generator.problems import Position, Problem, SpecError
from ptxmma.generator.short_forms import Schema
from ptxmma.generator.validity import Predicate, predicate
from ptxmma.generator.yaml_document import Document, Path_, read

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


class Loaded(NamedTuple):
    """The contents of a spec directory.

    Attributes:
        documents: the valid documents, in the order of file names.
        problems: the faults of the others.
        incomplete: the kinds of the invalid documents; every kind if a file cannot be read.
    """

    documents: list[Document]
    problems: list[Problem]
    incomplete: frozenset[str]


def load(directory: Path, overlay: Path | None = None) -> list[Document]:
    """Every document of a spec directory, in the order of file names.

    A file of ``overlay`` replaces the spec's file of the same relative name, or follows all of the spec.

    Raises:
        SpecError: with every problem of every file.
    """
    loaded = examine(directory, overlay)
    if loaded.problems:
        raise SpecError(loaded.problems)
    return loaded.documents


def examine(directory: Path, overlay: Path | None = None) -> Loaded:
    """The documents of a spec directory and the problems of the invalid ones, where :func:`load` raises.

    Raises:
        SpecError: one of the two is not a directory.
    """
    spec = _files(directory)
    added = _files(overlay) if overlay is not None else {}
    files = spec | added
    problems: list[Problem] = []
    documents: list[Document] = []
    for name in sorted(files, key=lambda name: (name not in spec, name)):
        documents += read(files[name], name in added, problems)
    if not documents and not problems:
        problems.append(Problem(Position(str(directory)), "no YAML document here; a spec directory holds *.yaml files"))
    unread = {problem.position.file for problem in problems} - {document.places.file for document in documents}
    incomplete = set(KINDS) if unread else set()
    reported = {problem.position for problem in problems}
    sound = []
    for document in documents:
        wrong = list(schema_problems(document))
        problems += (problem for problem in wrong if problem.position not in reported)
        if wrong or document.misread:
            incomplete |= {document.kind} if document.kind else set(KINDS)
        else:
            sound.append(document)
    return Loaded(sound, problems, frozenset(incomplete))


def _files(directory: Path) -> dict[str, Path]:
    if not directory.is_dir():
        raise SpecError([Problem(Position(str(directory)), "not a directory; give one that holds *.yaml files")])
    return {path.relative_to(directory).as_posix(): path for pattern in ("*.yaml", "*.yml") for path in directory.rglob(pattern)}


@functools.cache
def _schema(kind: str) -> tuple[Schema, Predicate]:
    """The schema of a ``kind`` of document without references, and the function that tests data.

    It is generated from the structs, since the files in ``spec/schema/`` are stale while a field is being added.
    """
    schema = json_schema.schema(kind)
    whole = json_schema.inlined(schema, schema.get("$defs", {}))
    return whole, predicate(whole)


def schema_problems(document: Document) -> Iterator[Problem]:
    """The violations of its schema in a document."""
    if not document.kind:
        yield Problem(document.places.nearest(("kind",)), f"a document starts with kind: one of {', '.join(KINDS)}")
        return
    schema, suits = _schema(document.kind)
    if not suits(document.data):
        import jsonschema  # to explain what is wrong

        for error in jsonschema.Draft202012Validator(schema).iter_errors(document.data):
            for deepest in _deepest(error):
                yield _problem(document, deepest)


def _deepest(error: ValidationError) -> Iterable[ValidationError]:
    """Of alternatives that all fail, the errors of the one that matched furthest, which is most likely the intended one."""
    if error.validator not in ("oneOf", "anyOf") or not error.context:
        return [error]
    branches: dict[Any, list[ValidationError]] = {}
    for part in error.context:
        branches.setdefault(part.schema_path[0], []).append(part)
    wrong_type = [branch for branch in branches.values() if any(len(e.path) == 0 and e.validator == "type" for e in branch)]
    meant = [branch for branch in branches.values() if branch not in wrong_type]
    if not meant:
        return [error]
    best = max(meant, key=lambda branch: max(len(e.absolute_path) for e in branch))
    return [part for e in best for part in _deepest(e)]


def _problem(document: Document, error: ValidationError) -> Problem:
    path: Path_ = tuple(error.absolute_path)
    schema: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    wanted: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "additionalProperties" and isinstance(instance, dict):
        allowed = list(schema.get("properties", {}))
        patterns = [re.compile(pattern) for pattern in schema.get("patternProperties", {})]
        unknown = [key for key in instance if key not in allowed and not any(p.search(key) for p in patterns)]
        inside: Path_ = (*path, unknown[0])
        shown = allowed or [f"names like {pattern.pattern}" for pattern in patterns]
        return Problem(
            document.places.key(inside),
            f"unknown key {', '.join(_with_nearest(key, allowed) for key in unknown)}; allowed here: {', '.join(shown)}",
        )
    place = document.places.nearest(path)
    key = f"{path[-1]}: " if path and isinstance(path[-1], str) else ""
    expected = schema.get("patternErrorMessage") or schema.get("description")
    hint = f": {expected}" if expected else ""
    if error.validator == "required":
        missing = [name for name in wanted if name not in instance]
        return Problem(place, f"{key}missing key {', '.join(map(repr, missing))}")
    if error.validator == "enum":
        return Problem(place, f"{key}{_brief(instance)} is not allowed; one of {', '.join(map(str, wanted))}")
    if error.validator == "type":
        return Problem(place, f"{key}{_brief(instance)} is not of type {wanted if isinstance(wanted, str) else ' or '.join(wanted)}{hint}")
    if error.validator == "pattern":
        return Problem(place, f"{key}{_brief(instance)} does not match {wanted}{hint}")
    if error.validator == "uniqueItems":
        number = next(number for number, entry in enumerate(instance) if entry in instance[:number])
        return Problem(document.places.nearest((*path, number)), f"{key}{_brief(instance[number])} is there twice; leave one out")
    if error.validator in ("oneOf", "anyOf"):
        return Problem(place, f"{key}{_brief(instance)} is not allowed{hint}")
    return Problem(place, f"{key}{error.message}{hint}")


def _with_nearest(key: str, allowed: Sequence[str]) -> str:
    """An unknown key, and the allowed one that it may be a slip for."""
    nearest_key = difflib.get_close_matches(key, allowed, n=1, cutoff=0.7)
    return f"{key!r} (nearest: {nearest_key[0]!r})" if nearest_key else repr(key)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
