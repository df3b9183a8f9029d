"""Short names for what only a script itself reads: its functions and classes, its parameters, variables and private members.

A script is cut into parts: its declarations, and the members of its classes.  A word gets a short name where each part that uses it
declares it, or where it is declared at the top level and in no part.  Other words keep their names: they belong to the browser, or to two
places at once.
"""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

_WORD = re.compile(r"#?[A-Za-z_$][\w$]*")
_OTHERS = r"[0-9][\w.]*|\.\.\.|=>|[=!<>]==?|\?\.(?![0-9])|\?\?=?|\s+|."
#: The next sign that matters in a text in backquotes, and in an expression in it.
_IN_TEXT, _IN_EXPRESSION = re.compile(r"\\.|\$\{"), re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|[{}]')
#: Words that stay: some are names in one place and signs in another.
_SIGNS = {"of", "get", "set", "async", "static", "do", "if", "in", "as", "is"}
#: A brace after one of these begins a block, after anything else an object or a pattern.
_BEFORE_BLOCK = {"", ")", "=>", ";", "{", "}", "else", "try", "finally", "catch", "do"}
#: Brackets after these hold no parameters.
_CONDITIONS = {"if", "for", "while", "switch"}
_DECLARING = {"let", "const", "class", "function"}


class _Token(NamedTuple):
    """A token of a script.

    Attributes:
        text: the text.
        role: ``"name"`` of a function, a parameter or a variable; ``"short"``: a name that a property has, too, as in ``{ row }``;
            ``"private"`` for a private member; empty for anything else.
        part: the number of its part.
        depth: the number of brackets around it.
    """

    text: str
    role: str
    part: int
    depth: int


def shortened(script: str, literal: str) -> str:
    """Return a script with short names.

    Args:
        script: declarations that begin at the start of a line, as members of classes do.
        literal: a pattern of strings, texts in backquotes and regular expressions.
    """
    tokens = list(_parsed([*_words(script, re.compile(f"(?P<literal>{literal})|{_WORD.pattern}|{_OTHERS}"))]))
    top, declared = _declared([token for token in tokens if not token.text.isspace()])
    used = [(token.part, token.text) for token in tokens if token.role in ("name", "short")]
    kept = _SIGNS | (top & {word for _, word in declared})
    kept |= {word for part, word in used if word not in top and (part, word) not in declared}
    words = [word for word, _ in Counter(word for _, word in used).most_common() if word not in kept]
    names = dict(zip((word for word in words if word in top), _names(kept, 2), strict=False))
    names |= _apart([word for word in words if word not in top], used, _names(kept | {*names.values()}, 1))
    private = dict(zip(dict.fromkeys(token.text for token in tokens if token.role == "private"), _names((), 1), strict=False))

    def written(token: _Token) -> str:
        if token.role == "private":
            return f"#{private[token.text]}"
        name = names.get(token.text) if token.role else None
        return token.text if name is None else f"{token.text}:{name}" if token.role == "short" else name

    return "".join(map(written, tokens))


def _apart(words: Iterable[str], used: Iterable[tuple[int, str]], fresh: Iterator[str]) -> dict[str, str]:
    """A name for each word, the first that no other word has in the same part: one word has one name, which compresses well."""
    parts: dict[str, set[int]] = {}
    for part, word in used:
        parts.setdefault(word, set()).add(part)
    names: dict[str, str] = {}
    taken: dict[str, set[int]] = {}
    for word in words:
        free = next((name for name, there in taken.items() if there.isdisjoint(parts[word])), None)
        name = next(fresh) if free is None else free
        taken.setdefault(name, set()).update(parts[word])
        names[word] = name
    return names


def _names(taken: Collection[str], length: int) -> Iterator[str]:
    """Names of letters that are not taken, the shortest first."""
    every = (itertools.product(string.ascii_letters, repeat=count) for count in itertools.count(length))
    return (name for name in map("".join, itertools.chain.from_iterable(every)) if name not in taken)


def _words(script: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The tokens of a script; a text in backquotes is several."""
    for match in pattern.finditer(script):
        text, place = match[0], 0
        for begin, end in _expressions(text) if text[0] == "`" else ():
            yield text[place:begin]
            yield from _words(text[begin:end], pattern)
            place = end
        yield text[place:]


def _expressions(text: str) -> Iterator[tuple[int, int]]:
    """The places of the expressions in a text in backquotes."""
    place = 1
    while found := _IN_TEXT.search(text, place):
        begin = place = found.end()
        depth = int(found[0] == "${")
        while depth:
            sign = _IN_EXPRESSION.search(text, place)
            assert sign is not None
            depth += {"{": 1, "}": -1}.get(sign[0], 0)
            place = sign.end()
        if found[0] == "${":
            yield begin, place - 1


def _parsed(texts: Sequence[str]) -> Iterator[_Token]:
    """Tokens with their roles."""
    open_: list[str] = []
    part, last, is_class = 0, "", False
    following = [*texts]
    for place in range(len(texts) - 2, -1, -1):
        following[place] = texts[place + 1] if not texts[place + 1].isspace() else following[place + 1]
    for text, after in zip(texts, [*following[:-1], ""], strict=True):
        if text.isspace():
            part += "\n" in text and (not open_ or open_ == ["class"])
            yield _Token(text, "", part, len(open_))
            continue
        within = open_[-1] if open_ else ""
        if text in (")", "]", "}"):
            open_.pop()
        role = _role(text, last, after, within)
        yield _Token(text, role, part, len(open_))
        if text in ("(", "["):
            open_.append(text)
        elif text == "{":
            open_.append("class" if is_class else "block" if last in _BEFORE_BLOCK else "object")
        is_class = (text, role) == ("class", "name") or (is_class and text != "{")
        last = text


def _role(text: str, last: str, after: str, within: str) -> str:
    if not _WORD.fullmatch(text) or last in (".", "?."):
        return "private" if text[0] == "#" and len(text) > 1 else ""
    if text[0] == "#":
        return "private"
    if within == "class" and (last in ("{", "}", ";") or last in _SIGNS):
        return ""
    if within == "object" and last in ("{", ",", "get", "async"):
        return "" if after in (":", "(") or _WORD.fullmatch(after) else "short"
    return "name"


def _declared(tokens: Sequence[_Token]) -> tuple[set[str], set[tuple[int, str]]]:
    """The names that are declared at the top level, and the names of parts, each with its part."""
    top: set[str] = set()
    parts: set[tuple[int, str]] = set()
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.text in _DECLARING and token.role == "name":
            found = _bound(tokens, place + 1, token.depth, whole=token.text in ("let", "const"))
            if token.depth:
                parts.update((token.part, name) for name in found)
            else:
                top.update(found)
        elif token.text == "(":
            opened.append(place)
        elif token.text == ")":
            begin = opened.pop()
            after = tokens[place + 1].text if place + 1 < len(tokens) else ""
            if after == "=>" or (after == "{" and tokens[begin - 1].text not in _CONDITIONS):
                parts.update((token.part, name) for name in _bound(tokens, begin + 1, token.depth + 1, whole=True))
    return top, parts


def _bound(tokens: Sequence[_Token], begin: int, depth: int, *, whole: bool) -> Iterator[str]:
    """The names that a list of patterns binds; only its first word where ``whole`` is False."""
    skipped: int | None = None
    for place in range(begin, len(tokens)):
        token = tokens[place]
        if token.depth < depth or (token.depth == depth and token.text in ("of", "in", ";")):
            return
        if skipped is not None and (token.depth < skipped or (token.depth == skipped and token.text == ",")):
            skipped = None
        if skipped is None and token.text == "=":
            skipped = token.depth
        if skipped is None and token.role in ("name", "short"):
            yield token.text
            if not whole:
                return
