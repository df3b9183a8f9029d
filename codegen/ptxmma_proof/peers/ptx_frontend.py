"""Tables of ptx_frontend: for each instruction its modifiers in order, with the values of each, and its operands.

The tables state neither targets nor versions, and no number of registers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ptxmma_proof.peers.forms import Ours
from ptxmma_proof.peers.sources import MissingPeerError

#: Its name in the records, and its folder of tables below a checkout.
NAME, TABLES = "ptx_frontend", Path("instructions")


class Row(NamedTuple):
    """A variant of an instruction in a table.

    Attributes:
        opcode: the words that all its spellings begin with.
        syntax: the row as the manual writes syntax: ``ldmatrix.sync.aligned{.trans}.{num}.b16``.
        modifiers: the texts of each modifier in order; ``""`` where it may be left out.
        operands: the minimum and the maximum number of operands; a list in braces counts as one.
    """

    opcode: str
    syntax: str
    modifiers: tuple[tuple[str, ...], ...]
    operands: tuple[int, int]

    def spellings(self, ours: Ours) -> Iterator[str]:
        """Yield every spelling that the row has; an opcode of one word may be of other chapters, too, with other words after it."""
        own = "." in self.opcode and any(f"{each}.".startswith(f"{self.opcode}.") for each in ours.words)
        every = (self.opcode + "".join(words) for words in itertools.product(*self.modifiers))
        return every if own else filter(ours.has, every)


class _Loader(yaml.SafeLoader):
    """A loader that follows the tables' ``!include``; a file that is not there is one value with its name."""

    folder = Path()


def _included(loader: _Loader, node: yaml.ScalarNode) -> list[Any]:
    path = loader.folder / node.value
    if not path.is_file():
        return [{"token": f".<{node.value} is missing>"}]
    (values,) = yaml.safe_load(path.read_text(encoding="utf-8")).values()
    return list(values)


_Loader.add_constructor("!include", _included)
_Loader.add_constructor("!ref", lambda _, node: f".<{node.value}>")  # only in other chapters' tables


def rows(checkout: Path, ours: Ours) -> Iterator[Row]:
    """Yield the rows of which a spelling begins as an opcode of ours.

    Raises:
        OSError: a table cannot be read, or there is none.
    """
    folder = checkout / TABLES
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        raise MissingPeerError(f"{folder}: no tables; give a checkout of {NAME} that has them")
    loader = type("_Loader", (_Loader,), {"folder": folder})
    for path in paths:
        for entry in yaml.load(path.read_text(encoding="utf-8"), loader):  # a SafeLoader
            if ours.may_have(entry["opcode"]):
                for variant in entry["variants"]:
                    row = _row(entry["opcode"], variant["modifiers"], variant["args"])
                    if any(row.spellings(ours)):
                        yield row


def _row(opcode: str, modifiers: Mapping[str, Any], operands: Sequence[Mapping[str, str]]) -> Row:
    texts = [_texts(each) for each in modifiers.values()]
    syntax = opcode + "".join(map(_part, modifiers, texts))
    needed = sum(not each["kind"].startswith("optional_") for each in operands)
    return Row(opcode, syntax, tuple(texts), (needed, len(operands)))


def _texts(modifier: Mapping[str, Any]) -> tuple[str, ...]:
    if modifier["kind"] == "fixed":
        return (modifier["fixed_value"],)
    tokens = tuple(value["token"] for value in modifier["values"])
    return ("", *tokens) if modifier["kind"] == "optional" else tokens


def _part(name: str, texts: tuple[str, ...]) -> str:
    """A modifier in the row's syntax."""
    match texts:
        case (text,):
            return text
        case ("", text):
            return f"{{{text}}}"
        case ("", *_):
            return f"{{.{name}}}"
    return f".{{{name}}}"
