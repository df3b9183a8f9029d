"""Stage 1, load: YAML text -> plain data, each with a map of positions, checked against JSON Schema.

Only the part of YAML that a spec needs is admitted: mappings, lists, strings, integers, true and false.  No aliases (they can
explode), no duplicate keys, and no plain scalar that YAML would turn into something else: an unquoted 8.10 is the number 8.1.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import yaml
from jsonschema.exceptions import ValidationError

from ptxmma.generator import json_schema
from ptxmma.generator.documents import KINDS
from ptxmma.generator.problems import Position, Problem, SpecError

#: A place inside a document: keys and list indices from its top.
Path_ = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Longer integers mean nothing in a spec, and Python refuses to convert the longest.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DEEPEST = 40


class Document:
    """One YAML document: its data, its kind (``""`` where it has none), and where each part of it stands.

    ``positions`` holds the place of each scalar's text (after the quote) and of each mapping and list; ``keys`` that of each key;
    ``containers`` has the mappings and lists that hold something, ``misread`` says whether a part of it could not be read.
    """

    def __init__(self, data: Any, positions: dict[Path_, Position], keys: dict[Path_, Position], containers: set[Path_]) -> None:
        self.data = data
        kind = data.get("kind") if isinstance(data, dict) else None
        self.kind: str = kind if isinstance(kind, str) and kind in KINDS else ""
        self.positions = positions
        self.keys = keys
        self.containers = containers
        self.misread = False


class Loaded(NamedTuple):
    """What a spec directory holds.

    Attributes:
        documents: those that suit their schemas, in the order of file names.
        problems: what is wrong with the others.
        incomplete: the kinds of which a document is wrong; every kind where a file cannot be read at all.
    """

    documents: list[Document]
    problems: list[Problem]
    incomplete: frozenset[str]


def load(directory: Path, overlay: Path | None = None) -> list[Document]:
    """Every document of a spec directory, in the order of file names.

    A file of ``overlay`` replaces the spec's file of the same relative name, or joins the others.

    Raises:
        SpecError: with every problem of every file.
    """
    loaded = examine(directory, overlay)
    if loaded.problems:
        raise SpecError(loaded.problems)
    return loaded.documents


def examine(directory: Path, overlay: Path | None = None) -> Loaded:
    """The documents of a spec directory, as :func:`load` reads them, and what is wrong with those that it would refuse.

    Raises:
        SpecError: one of the two is not a directory.
    """
    files = _files(directory)
    added = _files(overlay) if overlay is not None else {}
    files |= added
    problems: list[Problem] = []
    documents: list[Document] = []
    for name in sorted(files):
        documents += _read(files[name], name in added, problems)
    if not documents and not problems:
        problems.append(Problem(Position(str(directory)), "no YAML document here; a spec directory holds *.yaml files"))
    unread = {problem.position.file for problem in problems} - {document.positions[()].file for document in documents}
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


def _read(path: Path, added: bool, problems: list[Problem]) -> list[Document]:
    """The documents of one file, which an overlay may have added; what is wrong with it joins ``problems``."""
    shown = _shown(path)
    if path.suffix == ".yml":
        problems.append(Problem(Position(shown), f"only *.yaml files are read; name it {path.with_suffix('.yaml').name}"))
        return []
    if not path.is_file():
        problems.append(Problem(Position(shown), "not a regular file"))
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        problems.append(Problem(Position(shown, line), f"not UTF-8: {error.reason}; save the file as UTF-8"))
        return []
    except OSError as error:
        problems.append(Problem(Position(shown), f"cannot be read: {error.strerror}"))
        return []
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=_LOADER) if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Position(shown, mark.line + 1, mark.column + 1) if mark else Position(shown)
        problems.append(Problem(place, f"not YAML: {error.problem or error.context}"))
        return []
    except (yaml.YAMLError, RecursionError) as error:
        problems.append(Problem(Position(shown), f"not YAML: {str(error).splitlines()[0]}"))
        return []
    documents = []
    for node in nodes:
        reader, before = _Reader(shown, added, problems), len(problems)
        document = Document(reader.read(node, ()), reader.positions, reader.keys, reader.containers)
        document.misread = len(problems) > before
        documents.append(document)
    return documents


def _shown(path: Path) -> str:
    """The path as a reader would type it: relative to the working directory where it lies below it."""
    try:
        return (Path(os.path.realpath(path.parent)) / path.name).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


class _Reader:
    """Turns YAML nodes into plain data and notes where everything stands."""

    def __init__(self, file: str, added: bool, problems: list[Problem]) -> None:
        self.positions: dict[Path_, Position] = {}
        self.keys: dict[Path_, Position] = {}
        self.containers: set[Path_] = set()
        self._file, self._added = file, added
        self._problems = problems
        self._seen: set[int] = set()

    def read(self, node: yaml.Node, path: Path_) -> Any:
        quoted = isinstance(node, yaml.ScalarNode) and node.style in ('"', "'")
        position = self._at(node, quoted)
        self.positions[path] = position
        if id(node) in self._seen:
            self._problems.append(Problem(position, "aliases are not allowed; write the value out"))
            return None
        self._seen.add(id(node))
        if len(path) > _DEEPEST:
            self._problems.append(Problem(position, f"nested deeper than {_DEEPEST} levels"))
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, position)
        if node.value:
            self.containers.add(path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            place = self._at(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.append(Problem(place, "a key must be plain text"))
                continue
            key = key_node.value
            inside: Path_ = (*path, key)
            if key in result:
                first = self.keys[inside]
                self._problems.append(Problem(place, f"duplicate key {key!r}; it stands in line {first.line} too"))
                continue
            self.keys[inside] = place
            result[key] = self.read(value_node, inside)
        return result

    def _at(self, node: yaml.Node, quoted: bool = False) -> Position:
        """Where the text of a node begins: after its quote."""
        return Position(self._file, node.start_mark.line + 1, node.start_mark.column + 1 + quoted, self._added)

    def _scalar(self, node: yaml.ScalarNode, position: Position) -> Any:
        kind = node.tag.rpartition(":")[2]
        if kind == "str":
            return node.value
        if kind == "int" and _INTEGER.fullmatch(node.value):
            return int(node.value)
        if kind == "bool" and node.value in ("true", "false"):
            return node.value == "true"
        if kind == "int":
            self._problems.append(Problem(position, f"{node.value}: an integer must be written in decimal, with at most 18 digits"))
            return node.value
        what = {"float": "a number with a fraction", "bool": "a truth value", "null": "nothing"}.get(kind, f"a {kind}")
        message = f'{node.value or "an empty value"} is {what} to YAML; write it in quotes: "{node.value}"'
        self._problems.append(Problem(position, message))
        return node.value


# --- JSON Schema ------------------------------------------------------------------------------------------------------------


@functools.cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    """The validator of a ``kind`` of document.

    It is made of the structs, not of ``spec/schema/``: with a new field in the model and in the YAML those files are stale.
    """
    schema = json_schema.schema(kind)
    return jsonschema.Draft202012Validator(json_schema.inlined(schema, schema.get("$defs", {})))


def schema_problems(document: Document) -> Iterator[Problem]:
    """The ways in which a document breaks its schema."""
    top = document.positions[()]
    if not document.kind:
        place = document.positions.get(("kind",), top)
        yield Problem(place, f"a document starts with kind: one of {', '.join(KINDS)}")
        return
    for error in _validator(document.kind).iter_errors(document.data):
        for deepest in _deepest(error):
            yield _problem(document, deepest)


def _deepest(error: ValidationError) -> Iterable[ValidationError]:
    """Of alternatives that all fail, the errors of the one that got furthest: that is the one that was meant."""
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
        return Problem(document.keys[inside], f"unknown key {', '.join(map(repr, unknown))}; allowed here: {', '.join(shown)}")
    place = nearest(document, path)
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
    if error.validator in ("oneOf", "anyOf"):
        return Problem(place, f"{key}{_brief(instance)} is not allowed{hint}")
    return Problem(place, f"{key}{error.message}{hint}")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def nearest(document: Document, path: Path_) -> Position:
    """Where ``path`` stands, or the nearest part around it that is there: the text of a scalar, the key of anything larger."""
    while path not in document.positions:
        path = path[:-1]
    position = document.positions[path]
    return document.keys.get(path, position) if path in document.containers else position
