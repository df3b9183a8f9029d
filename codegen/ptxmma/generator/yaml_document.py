"""YAML text -> plain data, and the place of each part of it.

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
#: The tag of a text.
_TEXT = "tag:yaml.org,2002:str"
_DEEPEST = 40
#: Megabytes of a file, far more than the largest of ours has.
_LARGEST = 10


class Places:
    """The places of the parts of a document, from the nodes of its text.

    Attributes:
        file: the file, as messages show it.
        added: whether it belongs to an overlay.
        nodes, keys: the node of each part, and of its key.
    """

    def __init__(self, file: str, added: bool) -> None:
        self.file, self.added = file, added
        self.nodes: dict[Path_, yaml.Node] = {}
        self.keys: dict[Path_, yaml.Node] = {}

    def at(self, node: yaml.Node) -> Position:
        """The place at which the text of a node begins: after its quote."""
        quoted = isinstance(node, yaml.ScalarNode) and node.style in ('"', "'")
        return Position(self.file, node.start_mark.line + 1, node.start_mark.column + 1 + quoted, self.added)

    def key(self, path: Path_) -> Position:
        """The place of a key, with its quote."""
        mark = self.keys[path].start_mark
        return Position(self.file, mark.line + 1, mark.column + 1, self.added)

    def nearest(self, path: Path_) -> Position:
        """The place of ``path``, or of the nearest part around it that is there: the text of a scalar, the key of anything larger."""
        while path not in self.nodes:
            path = path[:-1]
        node = self.nodes[path]
        within = not isinstance(node, yaml.ScalarNode) and node.value and path in self.keys
        return self.key(path) if within else self.at(node)


class Document:
    """One YAML document: its data, its kind (``""`` without one), and the places of its parts.

    ``misread`` is true if a part could not be read.
    """

    def __init__(self, data: Any, places: Places) -> None:
        self.data = data
        kind = data.get("kind") if isinstance(data, dict) else None
        self.kind: str = kind if isinstance(kind, str) and kind in KINDS else ""
        self.places = places
        self.misread = False

    @property
    def start(self) -> Position:
        """The place of its first part."""
        return self.places.nearest(())


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
        places, before = Places(shown, added), len(problems)
        document = Document(_Reader(places, problems).read(node, ()), places)
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

    def __init__(self, places: Places, problems: list[Problem]) -> None:
        self._places = places
        self._problems = problems
        self._seen: set[int] = set()

    def read(self, node: yaml.Node, path: Path_) -> Any:
        self._places.nodes[path] = node
        if id(node) in self._seen:
            self._report(node, "aliases are not allowed; write the value out")
            return None
        self._seen.add(id(node))
        if len(path) > _DEEPEST:
            self._report(node, f"nested deeper than {_DEEPEST} levels")
            return None
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.tag == _TEXT else self._scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(key_node, "a key must be plain text")
                continue
            key = key_node.value
            inside: Path_ = (*path, key)
            if key in result:
                self._report(key_node, f"duplicate key {key!r}; line {self._places.key(inside).line} has it too")
                continue
            self._places.keys[inside] = key_node
            result[key] = self.read(value_node, inside)
        return result

    def _report(self, node: yaml.Node, message: str) -> None:
        self._problems.append(Problem(self._places.at(node), message))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        kind = node.tag.rpartition(":")[2]
        if kind == "int" and _INTEGER.fullmatch(node.value):
            return int(node.value)
        if kind == "bool" and node.value in ("true", "false"):
            return node.value == "true"
        if kind == "int":
            self._report(node, f"{node.value}: an integer must be written in decimal, with at most 18 digits")
            return node.value
        what = {"float": "a number with a fraction", "bool": "a truth value", "null": "nothing"}.get(kind, f"a {kind}")
        mend = "give a value, or leave the key out" if kind == "null" else f'write it in quotes: "{node.value}"'
        self._report(node, f"{node.value or 'an empty value'} is {what} to YAML; {mend}")
        return node.value
