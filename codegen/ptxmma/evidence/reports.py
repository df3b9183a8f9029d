"""Reading and writing reports: JSON with a record on each line, and its JSON Schema from the structures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from ptxmma import paths

FOLDER = paths.SPEC / "evidence"
_Report = TypeVar("_Report", bound="Report")
_Entry = TypeVar("_Entry", bound="Entry")

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A part of a report."""


class Report(Entry, frozen=True, kw_only=True):
    """What every report begins with.

    Attributes:
        date: of the run, as its runner gives it: ``"2026-11-21"``.
        spec: version of the spec.
    """

    date: str
    spec: str


def load(path: Path, kind: type[_Report]) -> _Report:
    """Read a report.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such report; the message names the path and the place in it.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}; make it again with `python -m ptxmma_proof`") from None


def written(path: Path, kind: type[_Entry], holds: str) -> list[_Entry]:
    """Read a list that a person wrote beside the reports.

    Args:
        path: of the list, as JSON.
        kind: of its entries.
        holds: what an entry looks like, for the message.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such list; the message names the path and the place in it.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[kind])  # type: ignore[valid-type]  # a type of this call
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: {error}; it holds [{holds}, …]") from None


def text(report: Report) -> str:
    """A report as JSON."""
    parts = [f"  {json.dumps(name)}: {_value(value)}" for name, value in msgspec.to_builtins(report).items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def schema(kind: type[Report], title: str) -> dict[str, Any]:
    """The JSON Schema of a kind of report."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title} | msgspec.json.schema(kind)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple) and value:
        return "[\n" + ",\n".join(f"    {json.dumps(entry, ensure_ascii=False)}" for entry in value) + "\n  ]"
    return json.dumps(value, ensure_ascii=False)
