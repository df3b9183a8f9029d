"""ES modules as one classic script, which pages from ``file://`` may run.

The modules keep to a few rules, which :func:`bundled` checks: they import names from relative paths, without renaming, in statements at the
start of a line; they export declarations; names at their top level are unique; comments have lines of their own; no text in backquotes has
several lines, or text in backquotes two levels down.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

from ptxmma.generator.emit.javascript.short_names import expressions, shortened

_IMPORT = re.compile(r'^import \{ ((?:\w+, )*\w+) \} from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)
_NAME = re.compile(r"^(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
#: The type of an expression in brackets, which a plain name or the literal of an object does not need.
_CAST = re.compile(r"/\*\* @type .*?\*/ ?(?:\((?P<plain>[\w.]+|\[[\w.\", ]*\])\))?")
_STRING = r'"(?:[^"\\\n]|\\.)*"'
#: Text in backquotes; expressions in it may have strings, braces and text in backquotes, but these no more of it.
_TEMPLATE = rf"`(?:[^`$\\]|\\.|\$(?!\{{)|\$\{{(?:[^`{{}}\"]|{_STRING}|`[^`]*`|\{{[^{{}}]*\}})*\}})*`"
#: A slash after an operator begins a regular expression, after anything else it divides.
_REGEX = r"(?:(?<=[(,=:!&|?\[] )|(?<=[(!\[]))/(?![/*])(?:[^/\\\n\[]|\\.|\[[^\]\n]*\])+/[a-z]*"
_LITERAL = re.compile(f"{_STRING}|{_TEMPLATE}|{_REGEX}")
#: Blanks around operators and brackets, a comma before a closing bracket, a semicolon before a closing brace, as no loop has an empty body,
#: brackets around a single parameter, and ``const``.  ``a - -b`` keeps its blanks.
_BLANKS = re.compile(
    rf"(?P<literal>{_LITERAL.pattern})|(?<=[\s(])\((?P<parameter>\w+)\)(?= =>)|,\s*(?P<last>[)}}\]]) *"
    r"|(?:;(?=\s*}))?\s*(?P<closing>[)}\]]) *"
    r"|\s*(?P<operator>[{(\[,;:?<>=!|&*%])\s*"
    r"|(?<![-+])\s*(?P<sum>[-+/])\s(?![-+])|\b(?P<const>const)\b"
)
#: Lines of one block that each declare something and follow each other.
_DECLARATIONS = re.compile(r"^( *)(?:const|let) .*;\n(?:\1(?:const|let) .*;\n)+", re.MULTILINE)
_DECLARATION = re.compile(r"^ *(?:const|let) (.*);$", re.MULTILINE)
_STYLE_BLANKS = re.compile(r"\s*([{};])\s*|(?<=:) |(?<=,) ")


def bundled(main: str, read: Callable[[str], str]) -> str:
    """The module ``main`` and all that it imports, in short names, without comments and blanks; ``read`` gives the text of a path.

    Raises:
        ValueError: a module breaks one of the rules.
    """
    owners: dict[str, str] = {}
    parts = []
    for path, text in _ordered(main, read, []):
        script = _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", text)))
        for number, line in enumerate(script.splitlines(), 1):
            plain = _LITERAL.sub("", line)
            if line.startswith(("import ", "export ")) or "`" in plain or "//" in plain:
                raise ValueError(f"{path}: line {number} without comments cannot be bundled: {line}")
        for name in _NAME.findall(script):
            if owners.setdefault(name, path) != path:
                raise ValueError(f"{path} and {owners[name]} both have {name} at their top level; rename one")
        parts.append(_CAST.sub(lambda cast: cast["plain"] or "", script).strip("\n"))
    named = shortened("\n".join(parts), _LITERAL.pattern)
    joined = _DECLARATIONS.sub(lambda found: f"let {','.join(_DECLARATION.findall(found[0]))};\n", named)
    # Every statement but a block ends with a semicolon, so that no line needs to end.
    body = re.sub(r"\n\s*", "\n", _BLANKS.sub(_shorter, joined)).replace("}\n", "}")
    return f'(() => {{\n"use strict";\n{body}}})();\n'


def _shorter(found: re.Match[str]) -> str:
    """A sign without its blanks; for ``const`` the shorter ``let``: a constant is a variable that nobody assigns."""
    if found["const"]:
        return "let"
    text: str = next(filter(None, found.groups()))
    for begin, end in reversed([*expressions(text)] if text[0] == "`" else []):
        text = text[:begin] + _BLANKS.sub(_shorter, text[begin:end]) + text[end:]
    return text


def styled(text: str) -> str:
    """Return a style sheet without needless blanks and semicolons; it has no comments, and strings without punctuation."""
    return _STYLE_BLANKS.sub(r"\1", text).replace(";}", "}")


def _ordered(path: str, read: Callable[[str], str], seen: list[str]) -> Iterator[tuple[str, str]]:
    """A module after the modules that it imports, each once."""
    seen.append(path)
    text = read(path)
    for _, near in _IMPORT.findall(text):
        imported = posixpath.normpath(posixpath.join(posixpath.dirname(path), near))
        if imported not in seen:
            yield from _ordered(imported, read, seen)
    yield path, text
