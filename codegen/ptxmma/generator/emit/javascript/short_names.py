"""Short names for what only a script itself reads: its functions and classes, its parameters, variables and private members.

A variable belongs to the innermost function that declares its word, whatever the block.  A word that no function declares belongs to the
browser and keeps its name.  Functions that do not see each other's variables name them alike, in the order in which they declare them:
most functions of one parameter then look the same, which compresses well.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_WORD = re.compile(r"#?[A-Za-z_$][\w$]*")
_OTHERS = r"[0-9][\w.]*|\.\.\.|=>|[=!<>]==?|\?\.(?![0-9])|\?\?=?|\s+|."
#: The next sign that matters in a text in backquotes, and in an expression in it.
_IN_TEXT, _IN_EXPRESSION = re.compile(r"\\.|\$\{"), re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|[{}]')
#: Letters of names, the commonest of scripts first.
_LETTERS = "etnrisoaldcupmfhgbvyxwkjqzETNRISOALDCUPMFHGBVYXWKJQZ"
#: Words that stay: some are names in one place and signs in another.
_SIGNS = {"of", "get", "set", "async", "static", "do", "if", "in", "as", "is"}
#: A brace after one of these begins a block, after anything else an object or a pattern.
_BEFORE_BLOCK = {"", ")", "=>", ";", "{", "}", "else", "try", "finally", "catch", "do"}
#: Brackets after these hold no parameters.
_CONDITIONS = {"if", "for", "while", "switch"}
_DECLARING = {"let", "const", "class", "function"}


class _Token(NamedTuple):
    """A token of a script; the parts of a text in backquotes around its expressions are tokens that open and close brackets, too.

    Attributes:
        blank: the blanks before it.
        text: the text.
        role: ``"name"`` of a function, a parameter or a variable; ``"short"``: a name that a property has, too, as in ``{ row }``;
            ``"private"`` for a private member; empty for anything else.
        depth: the number of brackets around it.
    """

    blank: str
    text: str
    role: str
    depth: int


class _Function:
    """A function, or the script around all functions.

    Attributes:
        outer: the function around it, None for the script.
        declared: the words that it declares, each with its short name once it has one.
        seen: the words of others that it or a function inside uses, each with the function that declares it, None for the browser.
    """

    def __init__(self, outer: _Function | None = None) -> None:
        self.outer = outer
        self.declared: dict[str, str] = {}
        self.seen: set[tuple[_Function | None, str]] = set()

    def owner(self, word: str) -> _Function | None:
        """The function that declares a word which this one uses."""
        if word in self.declared:
            return self
        found = self.outer.owner(word) if self.outer else None
        self.seen.add((found, word))
        return found

    def name(self, words: Iterable[str], fresh: Iterator[str]) -> None:
        """Give each of the words the next name that means nothing else here; the functions around have given theirs."""
        taken = _SIGNS | {owner.declared[word] if owner else word for owner, word in self.seen}
        free = (name for name in fresh if name not in taken)
        self.declared |= {word: word if word in _SIGNS else next(free) for word in words}


def shortened(script: str, literal: str) -> str:
    """Return a script with short names.

    Args:
        script: a script that ends statements with semicolons and has its parameters in brackets.
        literal: a pattern of strings, texts in backquotes and regular expressions.
    """
    tokens = list(_parsed(_words(script, re.compile(f"(?P<literal>{literal})|{_WORD.pattern}|{_OTHERS}"))))
    functions = _functions(tokens)
    named = [token.role in ("name", "short") for token in tokens]
    owners = [function.owner(token.text) if is_named else None for token, function, is_named in zip(tokens, functions, named, strict=True)]
    whole, *inner = dict.fromkeys(functions)
    counts = Counter(token.text for token, owner in zip(tokens, owners, strict=True) if owner is whole)
    whole.name([word for word, _ in counts.most_common()], _names(2))
    for function in inner:
        function.name([*function.declared], _names(1))
    private = dict(zip(dict.fromkeys(token.text for token in tokens if token.role == "private"), _names(1), strict=False))

    def written(token: _Token, owner: _Function | None) -> str:
        if token.role == "private":
            return f"{token.blank}#{private[token.text]}"
        name = owner.declared[token.text] if owner else token.text
        return token.blank + (f"{token.text}:{name}" if token.role == "short" and name != token.text else name)

    return "".join(map(written, tokens, owners))


def _names(length: int) -> Iterator[str]:
    """Names of letters, the shortest first."""
    every = (itertools.product(_LETTERS, repeat=count) for count in itertools.count(length))
    return map("".join, itertools.chain.from_iterable(every))


def _words(script: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The tokens of a script; a text in backquotes is several."""
    for match in pattern.finditer(script):
        text, place = match[0], 0
        for begin, end in expressions(text) if text[0] == "`" else ():
            yield text[place:begin]
            yield from _words(text[begin:end], pattern)
            place = end
        yield text[place:]


def expressions(text: str) -> Iterator[tuple[int, int]]:
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


def _parsed(texts: Iterable[str]) -> Iterator[_Token]:
    """Tokens with their roles."""
    last, is_class = "", False
    open_: list[str] = []
    for (blank, text), (_, after) in itertools.pairwise([*_without_blanks(texts), ("", "")]):
        within = open_[-1] if open_ else ""
        if text[0] in ")]}":
            open_.pop()
        role = _role(text, last, after, within)
        yield _Token(blank, text, role, len(open_))
        if text in ("(", "[") or text.endswith("${"):
            open_.append(text)
        elif text == "{":
            open_.append("class" if is_class else "block" if last in _BEFORE_BLOCK else "object")
        is_class = (text, role) == ("class", "name") or (is_class and text != "{")
        last = text


def _without_blanks(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The tokens that are not blank, each with the blanks before it."""
    blank = ""
    for text in texts:
        if text.isspace():
            blank = text
        else:
            yield blank, text
            blank = ""


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


def _functions(tokens: Sequence[_Token]) -> list[_Function]:
    """The innermost function of each token; each function knows the words that it declares."""
    open_ = [(_Function(), len(tokens))]
    functions = []
    for place, token in enumerate(tokens):
        while place >= open_[-1][1]:
            open_.pop()
        function = open_[-1][0]
        words: Iterable[str] = ()
        if token.text == "(" and (body := _body(tokens, place)):
            function = _Function(function)
            open_.append((function, _end(tokens, body)))
            words = _bound(tokens, place + 1, token.depth + 1, whole=True)
        elif token.text in _DECLARING and token.role == "name":
            words = _bound(tokens, place + 1, token.depth, whole=token.text in ("let", "const"))
        function.declared |= dict.fromkeys(words, "")
        functions.append(function)
    return functions


def _body(tokens: Sequence[_Token], place: int) -> int | None:
    """The place of the body of the function whose parameters open at a place; None where a bracket holds no parameters."""
    after = _closing(tokens, place) + 1
    if tokens[after].text == "=>":
        return after + 1
    return after if tokens[after].text == "{" and tokens[place - 1].text not in _CONDITIONS else None


def _end(tokens: Sequence[_Token], body: int) -> int:
    """The place after a body, which is a block or an expression."""
    if tokens[body].text == "{":
        return _closing(tokens, body)
    depth = tokens[body].depth
    rest = range(body + 1, len(tokens))
    return next(
        place for place in rest if tokens[place].depth < depth or (tokens[place].depth == depth and tokens[place].text in (",", ";"))
    )


def _closing(tokens: Sequence[_Token], place: int) -> int:
    """The place of the bracket that closes the one at a place."""
    return next(after for after in range(place + 1, len(tokens)) if tokens[after].depth == tokens[place].depth)


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
