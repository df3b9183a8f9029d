"""YAML text -> plain data with a map of positions.

Only the part of YAML that a spec needs is admitted: mappings, lists, strings, integers, true and false.  No anchors and aliases (they can
explode), no duplicate keys, and no plain scalar that YAML would turn into something else: an unquoted 8.10 is the number 8.1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ptxmma.generator.documents import KINDS
from ptxmma.generator.problems import Position, Problem

#: A place inside a document: keys and list indices from its top.
Path_ = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Longer integers mean nothing in a spec, and Python refuses to convert the longest.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DEEPEST = 40
#: Megabytes of a file, far more than the largest of ours has.
_LARGEST = 10


class Document:
    """One YAML document: its data, its kind (``""`` without one), and the position of each part.

    ``positions`` holds the place of each scalar's text (after the quote) and of each mapping and list; ``keys`` the place of each key;
    ``containers`` has the mappings and lists that are not empty; ``misread`` is true if a part could not be read.
    """

    def __init__(self, data: Any, positions: dict[Path_, Position], keys: dict[Path_, Position], containers: set[Path_]) -> None:
        self.data = data
        kind = data.get("kind") if isinstance(data, dict) else None
        self.kind: str = kind if isinstance(kind, str) and kind in KINDS else ""
        self.positions = positions
        self.keys = keys
        self.containers = containers
        self.misread = False


def nearest(document: Document, path: Path_) -> Position:
    """The place of ``path``, or of the nearest part around it that is there: the text of a scalar, the key of anything larger."""
    while path not in document.positions:
        path = path[:-1]
    position = document.positions[path]
    return document.keys.get(path, position) if path in document.containers else position


def read(path: Path, added: bool, problems: list[Problem]) -> list[Document]:
    """The documents of one file, which an overlay may have added; errors are appended to ``problems``."""
    shown = _shown(path)
    if path.suffix == ".yml":
        problems.append(Problem(Position(shown), f"only *.yaml files are read; name it {path.with_suffix('.yaml').name}"))
        return []
    if not path.is_file():
        problems.append(Problem(Position(shown), "not a regular file"))
        return []
    if (size := path.stat().st_size) > _LARGEST << 20:
        message = f"{size / (1 << 20):.1f} MB; a file of a spec has at most {_LARGEST} MB: split it by family"
        problems.append(Problem(Position(shown), message))
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
        problems += _anchors(text, shown)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Position(shown, mark.line + 1, mark.column + 1) if mark else Position(shown)
        problems.append(Problem(place, f"not YAML: {error.problem or error.context}"))
        return []
    except (yaml.YAMLError, RecursionError) as error:
        problems.append(Problem(Position(shown), f"not YAML: {str(error).splitlines()[0]}"))
        return []
    if not nodes:
        problems.append(Problem(Position(shown), "no document here; write one, or delete the file"))
    documents = []
    for node in nodes:
        reader, before = _Reader(shown, added, problems), len(problems)
        document = Document(reader.read(node, ()), reader.positions, reader.keys, reader.containers)
        document.misread = len(problems) > before
        documents.append(document)
    return documents


def _anchors(text: str, shown: str) -> Iterator[Problem]:
    """The anchors in a file; composing leaves no trace of one without an alias."""
    for event in yaml.parse(text, Loader=_LOADER) if "&" in text else ():
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None and not isinstance(event, yaml.AliasEvent):
            mark = event.start_mark
            assert mark is not None
            yield Problem(Position(shown, mark.line + 1, mark.column + 1), f"anchors are not allowed; leave &{event.anchor} out")


def _shown(path: Path) -> str:
    """The path as messages show it: relative to the working directory if it is below it."""
    try:
        return (Path(os.path.realpath(path.parent)) / path.name).relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


class _Reader:
    """Turns YAML nodes into plain data and notes where everything is."""

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
                self._problems.append(Problem(place, f"duplicate key {key!r}; line {first.line} has it too"))
                continue
            self.keys[inside] = place
            result[key] = self.read(value_node, inside)
        return result

    def _at(self, node: yaml.Node, quoted: bool = False) -> Position:
        """The place at which the text of a node begins: after its quote."""
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
        mend = "give a value, or leave the key out" if kind == "null" else f'write it in quotes: "{node.value}"'
        self._problems.append(Problem(position, f"{node.value or 'an empty value'} is {what} to YAML; {mend}"))
        return node.value
