"""ES modules as one classic script, which pages from ``file://`` may run.

The modules keep to a few rules, which :func:`bundled` checks: they import names from relative paths, without renaming, in statements at the
start of a line; they export declarations; names at their top level are unique; no text in backquotes has several lines.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

_IMPORT = re.compile(r'^import \{ ((?:\w+, )*\w+) \} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)
_NAME = re.compile(r"^(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_CAST = re.compile(r"/\*\* @type .*?\*/ ?")
_ARROW = re.compile(r'("(?:[^"\\\n]|\\.)*")| => ')
_BLANKS = re.compile(r"\s*([{};])\s*|(?<=:) |(?<=,) ")
_INDENT = re.compile(r"^ +", re.MULTILINE)


def bundled(main: str, read: Callable[[str], str]) -> str:
    """The module ``main`` and all that it imports, without comments; ``read`` gives the text of a path.

    Raises:
        ValueError: a module breaks one of the rules.
    """
    owners: dict[str, str] = {}
    parts = []
    for path, text in _ordered(main, read, []):
        script = _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", text)))
        for number, line in enumerate(script.splitlines(), 1):
            if line.startswith(("import ", "export ")) or line.count("`") % 2:
                raise ValueError(f"{path}: line {number} without comments cannot be bundled: {line}")
        for name in _NAME.findall(script):
            if owners.setdefault(name, path) != path:
                raise ValueError(f"{path} and {owners[name]} both have {name} at their top level; rename one")
        short = _ARROW.sub(lambda found: found[1] or "=>", _INDENT.sub("", _CAST.sub("", script)))  # strings stay as they are
        parts.append(re.sub(r"\n{2,}", "\n", short).strip("\n"))
    body = "\n".join(parts)
    return f'(() => {{\n"use strict";\n{body}}})();\n'


def styled(text: str) -> str:
    """Return a style sheet without needless blanks and semicolons; it has no comments, and strings without punctuation."""
    return _BLANKS.sub(r"\1", text).replace(";}", "}")


def _ordered(path: str, read: Callable[[str], str], seen: list[str]) -> Iterator[tuple[str, str]]:
    """A module after the modules that it imports, each once."""
    seen.append(path)
    text = read(path)
    for _, near in _IMPORT.findall(text):
        imported = posixpath.normpath(posixpath.join(posixpath.dirname(path), near))
        if imported not in seen:
            yield from _ordered(imported, read, seen)
    yield path, text
