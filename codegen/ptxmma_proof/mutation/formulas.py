"""Formulas with one change: of an operator, a number or a variable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TOKEN = re.compile(r"\d+|[A-Za-z_][A-Za-z0-9_.]*|//|<<|>>|<=|>=|==|!=|[-+*%&|^<>]")
#: The operator that replaces each.
_MISTAKEN = {
    "+": "-", "-": "+", "*": "+", "//": "%", "%": "//", "&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<",
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "and": "or", "or": "and",
}  # fmt: skip


def variables(text: str) -> list[str]:
    """The variables that a formula reads."""
    return [token for token in _TOKEN.findall(text) if _is_variable(token)]


def changed(text: str, known: Sequence[str]) -> Iterator[str]:
    """Every formula that differs from ``text`` in one operator, number or variable.

    Args:
        text: the formula.
        known: the variables that it may read, sorted; the next one replaces each.
    """
    for match in _TOKEN.finditer(text):
        for other in _others(match[0], known):
            yield text[: match.start()] + other + text[match.end() :]


def numbers(value: int) -> list[int]:
    """The numbers that a number becomes: one more, one less, twice as much."""
    return list(dict.fromkeys(other for other in (value + 1, value - 1, value * 2) if other != value))


def _others(token: str, known: Sequence[str]) -> Iterator[str]:
    if token.isdigit():
        yield from (str(other) for other in numbers(int(token)) if other >= 0)
    elif token in _MISTAKEN:
        yield _MISTAKEN[token]
    elif _is_variable(token):
        others = [name for name in known if name != token]
        if others:
            yield next((name for name in others if name > token), others[0])


def _is_variable(token: str) -> bool:
    return (token[0].isalpha() or token[0] == "_") and token not in ("and", "or", "not")
