"""The findings that are reported, and the files that say so: ``ptxmma.toml``, or ``[tool.ptxmma.check]`` in ``pyproject.toml``."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ptxmma.check.findings import Finding, Findings, Severity
from ptxmma.check.rules import RULES

_LEVELS: tuple[Severity, ...] = ("note", "warning", "error")


class Selection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The selection of findings that are reported.

    Attributes:
        select: the rules whose findings are reported; all where it is empty.
        ignore: the rules whose findings are not reported.
        severity: the lowest severity that is reported; None for ``"warning"``, and for ``"note"`` where ``select`` names rules.
        per_file_ignores: more rules that are ignored in some files, by a pattern of their names, ``"third_party/*"``.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Severity | None = None
    per_file_ignores: Mapping[str, tuple[str, ...]] = {}

    def __post_init__(self) -> None:
        for rule in (*self.select, *self.ignore, *(rule for rules in self.per_file_ignores.values() for rule in rules)):
            if rule not in RULES:
                raise ValueError(_unknown(rule))

    def applied(self, findings: Findings, root: Path) -> Findings:
        """The findings that are reported; the patterns of files are relative to ``root``."""
        return msgspec.structs.replace(findings, findings=tuple(_hinted(each) for each in findings if self._keeps(each, root)))

    @property
    def least(self) -> Severity:
        """The least severity that is reported."""
        return self.severity or ("note" if self.select else "warning")

    def with_notes(self) -> Selection:
        """The same rules, with notes unless a severity is named: what is mended without a change of meaning needs no warning."""
        return msgspec.structs.replace(self, severity=self.severity or "note")

    def _keeps(self, finding: Finding, root: Path) -> bool:
        return (
            _LEVELS.index(finding.severity) >= _LEVELS.index(self.least)
            and (finding.rule in self.select or not self.select)
            and finding.rule not in self.ignore
            and not any(finding.rule in rules and _matches(finding.file, pattern, root) for pattern, rules in self.per_file_ignores.items())
            and not {finding.rule, ""}.intersection(finding.ignored)
        )


def _hinted(finding: Finding) -> Finding:
    """A finding that says which rules of the comments on its line do not exist."""
    unknown = [f"the comment on this line ignores the {_unknown(rule)}" for rule in finding.ignored if rule not in RULES]
    return msgspec.structs.replace(finding, message="; ".join([finding.message, *unknown])) if unknown else finding


def _unknown(rule: str) -> str:
    """The message about a rule that does not exist."""
    close = difflib.get_close_matches(rule, RULES, 3, 0.5) or list(RULES)
    return f"unknown rule {rule!r}; {'all' if len(close) > 3 else 'closest'}: {', '.join(close)}"


def once(findings: Findings, causes: set[str]) -> Findings:
    """The findings, each cause only once; ``causes`` holds the causes found in the file so far, and is added to."""
    kept = []
    for finding in findings:
        if finding.cause not in causes:
            kept.append(finding)
            causes.update(filter(None, [finding.cause]))
    left_out = len(findings) - len(kept)
    return msgspec.structs.replace(findings, findings=tuple(kept), repeated=left_out) if left_out else findings


def counts(findings: Iterable[Finding]) -> list[tuple[int, Severity, str]]:
    """The number of findings of each rule at each severity: the most severe first, then the most frequent."""
    numbers: dict[tuple[Severity, str], int] = {}
    for finding in findings:
        key = (finding.severity, finding.rule)
        numbers[key] = numbers.get(key, 0) + 1
    rows = [(number, severity, rule) for (severity, rule), number in numbers.items()]
    return sorted(rows, key=lambda row: (-_LEVELS.index(row[1]), -row[0], row[2]))


def _matches(file: str, pattern: str, root: Path) -> bool:
    """Return whether the name of a file, or its path from ``root`` on, fits a pattern."""
    path = Path(file).absolute()
    relative = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    return fnmatch.fnmatch(relative, pattern) or fnmatch.fnmatch(path.name, pattern)


class Undeclared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``lsp``: what the language server takes for code that declares none.

    Attributes:
        target: a target by any of its names, ``"sm_90a"`` or ``"H100"``; empty for the server's own.
        ptx: a version of PTX ISA, ``"8.0"``; empty for the server's own.
    """

    target: str = ""
    ptx: str = ""


class ConfigurationError(ValueError):
    """The configuration cannot be used; the message names the file."""


class Configuration(NamedTuple):
    """The content of a configuration file.

    Attributes:
        selection: the findings that are reported.
        root: the folder of the file, to which its patterns are relative.
        code: the target and the version of code that declares none.
    """

    selection: Selection
    root: Path
    code: Undeclared = Undeclared()


class _Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a file that is for this project."""

    check: Selection = msgspec.field(default_factory=Selection)
    lsp: Undeclared = Undeclared()


class _Tools(msgspec.Struct, frozen=True):
    ptxmma: _Tool | None = None


class _Project(msgspec.Struct, frozen=True):
    tool: _Tools = msgspec.field(default_factory=_Tools)


def configuration(folder: Path, within: Path | None = None) -> Configuration:
    """The configuration for a folder: the nearest file's, in it or in a folder around it.

    ``ptxmma.toml`` goes before ``pyproject.toml``, which counts if it has a table ``[tool.ptxmma]``.

    Args:
        folder: the folder.
        within: the folder below which files are read, links followed; None for all.

    Raises:
        ConfigurationError: a file cannot be read, is not TOML, or has something unknown.
    """
    for place in (folder, *folder.parents):
        for name in ("ptxmma.toml", "pyproject.toml"):
            file = place / name
            if within is not None and not file.resolve().is_relative_to(within):
                continue
            if file.is_file() and (tool := _read(file)) is not None:
                return Configuration(tool.check, place, tool.lsp)
    return Configuration(Selection(), folder)


def _read(file: Path) -> _Tool | None:
    try:
        data = file.read_bytes()
        if file.name == "ptxmma.toml":
            return msgspec.toml.decode(data, type=_Tool)
        return msgspec.toml.decode(data, type=_Project).tool.ptxmma if b"ptxmma" in data else None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file}: {error}") from None
