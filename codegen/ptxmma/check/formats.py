"""Findings as text for people and as JSON, SARIF and workflow commands for programs."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from ptxmma.check.findings import Finding, Findings, Severity
    from ptxmma.check.rule import Rule

FORMATS = ("text", "json", "sarif", "github")

#: Columns for a source line where no terminal says how many it has.
_WIDTH = 120
_MARK = "..."
_INDENT = "    "
#: In the place of the indent where GitHub would take the source line for a workflow command, and how such a line begins.
_GUTTER = "  | "
_COMMAND_MARKS = ("::", "##[")
#: Results and bytes that GitHub takes in one log.
_MOST_RESULTS = 25_000
_MOST_BYTES = 10_000_000
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_COLOURS: Mapping[Severity, str] = {"error": "red", "warning": "yellow", "note": "cyan"}
_COMMANDS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}


def text(findings: Findings, *, colour: bool = False, width: int = _WIDTH) -> str:
    """``file:line:column: severity: message [rule]``, the source line, and a caret under the token.

    Args:
        findings: the findings of a check.
        colour: whether to write the escape codes of a terminal.
        width: columns of a terminal; a longer source line is cut around its caret.
    """
    return "".join(f"{line}\n" for finding in findings for line in _lines(finding, _styles(colour), width))


def as_json(findings: Findings) -> str:
    """One object: ``"instructions"``, ``"uncovered"``, ``"repeated"``, and ``"findings"`` with an object for each."""
    rows = [{name: getattr(finding, name) for name in _JSON_KEYS} for finding in findings]
    counts = {name: getattr(findings, name) for name in ("instructions", "uncovered", "repeated")}
    answer = {**counts, "findings": rows}
    import json  # the text needs none

    return json.dumps(answer, indent=2) + "\n"


def sarif(findings: Findings, rules: Mapping[str, Rule]) -> str:
    """A SARIF 2.1.0 log, which code hosts and editors read: the most severe findings, as many as GitHub takes: 25,000 in 10 MB.

    Args:
        findings: the findings of a check.
        rules: the rules by their codes.

    Raises:
        KeyError: a finding has a rule that is not among ``rules``.
    """
    from ptxmma.release import __version__

    places = {rule: place for place, rule in enumerate(rules)}
    described = [{"id": code, "shortDescription": {"text": rule.what}, "help": {"text": rule.help}} for code, rule in rules.items()]
    driver = {"name": "ptxmma", "version": __version__, "rules": described}
    kept = sorted(findings, key=lambda finding: _SEVERITIES.index(finding.severity))[:_MOST_RESULTS]
    results = [_result(finding, places) for finding in kept]
    while len(log := _log(driver, results)) > _MOST_BYTES:
        del results[int(len(results) * _MOST_BYTES / len(log)) :]
    return log


def _log(driver: dict[str, Any], results: list[dict[str, Any]]) -> str:
    """A SARIF log, without blanks; its text is ASCII."""
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    import json

    return json.dumps(log, separators=(",", ":")) + "\n"


def github(findings: Findings) -> str:
    """Workflow commands, of which GitHub makes annotations in the changed files of a pull request."""
    return "".join(map(_command, findings))


# --- text ----------------------------------------------------------------------------------------------------------------------

_JSON_KEYS = ("file", "line", "column", "severity", "rule", "instruction", "message")

_Style = Callable[[str, str], str]


def _styles(colour: bool) -> _Style:
    if not colour:
        return lambda part, _: part
    from click import style

    return lambda part, name: style(part, bold=True) if name == "bold" else style(part, fg=name, bold=True)


def _lines(finding: Finding, style: _Style, width: int) -> Iterator[str]:
    place = style(f"{_named(finding.file)}:{finding.line}:{finding.column}:", "bold")
    colour = _COLOURS[finding.severity]
    yield f"{place} {style(f'{finding.severity}:', colour)} {printable(finding.message)} [{finding.rule}]"
    if finding.source:
        shown, caret, length = _window(finding, width - len(_INDENT))
        yield (_GUTTER if shown.lstrip().startswith(_COMMAND_MARKS) else _INDENT) + shown
        yield _INDENT + "".join(map(_blank, shown[:caret])) + style("^" + "~" * (length - 1), colour)


def _window(finding: Finding, width: int) -> tuple[str, int, int]:
    """The part of the source line that fits in ``width``, the place of its token there, and the visible length of the token."""
    line = printable(finding.source.rstrip())
    first, last = 0, len(line)
    if last > width:
        first = max(0, min(finding.caret - width // 3, last - width))
        last = first + width
    shown = line[first:last]
    if first:
        shown = _MARK + shown[len(_MARK) :]
    if last < len(line):
        shown = shown[: -len(_MARK)] + _MARK
    caret = finding.caret - first
    return shown, caret, max(1, min(finding.length, len(shown) - caret))


def printable(text: str) -> str:
    """A text without control characters: no escape codes, no halves of characters."""
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
    )


def _named(file: str) -> str:
    """A file's name that is not a workflow command where it begins a line."""
    name = printable(file)
    return f"./{name}" if name.lstrip().startswith("::") else name


def _blank(char: str) -> str:
    """Blanks as wide as a character."""
    if char == "\t":
        return char
    if unicodedata.combining(char):
        return ""
    return "  " if unicodedata.east_asian_width(char) in "WF" else " "


# --- SARIF and workflow commands ----------------------------------------------------------------------------------------------


def _end(finding: Finding) -> int:
    """The column after the token, or after its line where it goes on."""
    seen = len(finding.source) - finding.caret if finding.source else finding.length
    return finding.column + max(1, min(finding.length, seen))


def _result(finding: Finding, places: Mapping[str, int]) -> dict[str, Any]:
    region = {"startLine": finding.line, "startColumn": finding.column, "endColumn": _end(finding)}
    location = {"physicalLocation": {"artifactLocation": {"uri": _uri(finding.file)}, "region": region}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": places[finding.rule],
        "level": finding.severity,
        "message": {"text": printable(finding.message)},
        "locations": [location],
        "properties": {"instruction": finding.instruction},
    }


def _uri(file: str) -> str:
    """A relative URI where the file lies below the working directory, as code hosts want it."""
    from pathlib import Path

    path = Path(file)
    if path.is_absolute():
        if not path.is_relative_to(Path.cwd()):
            return path.as_uri()
        path = path.relative_to(Path.cwd())
    return quote(path.as_posix().encode("utf-8", "surrogateescape"))


def _command(finding: Finding) -> str:
    properties = {
        "file": finding.file,
        "line": finding.line,
        "col": finding.column,
        "endColumn": _end(finding),
        "title": f"ptxmma: {finding.rule}",
    }
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {written}::{_data(finding.message)}\n"


def _data(value: str) -> str:
    return value.encode("utf-8", "replace").decode().replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
