"""Operand lists as the manual writes them, with ``{, scale-input-d}`` for an operand that may be left out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from ptxmma.ptx.lines import items

_OPTIONAL = re.compile(r"\{(, [^{},]+)\}")


def written_out(texts: Iterable[str]) -> list[str]:
    """Every list that the texts stand for: ``["a{, b}"]`` is ``["a", "a, b"]``.

    First come the lists without optional operands, then those with the first one of each text, and so on.
    """
    parts = [_OPTIONAL.split(text) for text in texts]
    most = max(len(part) // 2 for part in parts)
    written = []
    for chosen in itertools.product((False, True), repeat=most):
        taken = chosen[::-1]  # the first optional operand varies fastest
        for part in parts:
            if not any(taken[len(part) // 2 :]):
                options = (option if take else "" for option, take in zip(part[1::2], taken, strict=False))
                written.append("".join(itertools.chain(*itertools.zip_longest(part[::2], options, fillvalue=""))))
    return written


def folded(texts: Iterable[str]) -> list[str]:
    """The shortest way to write operand lists: the inverse of :func:`written_out`."""
    lists = dict.fromkeys(tuple(items(text)) for text in texts)
    written = []
    while lists:
        short = next(iter(lists))
        groups = {long: _between(short, long) for long in lists}
        long = max(groups, key=lambda long: len(groups[long]) if groups[long] <= lists.keys() else 0)
        written.append(long[0] + "".join(f", {name}" if name in short else f"{{, {name}}}" for name in long[1:]))
        for one in groups[long]:
            del lists[one]
    return written


def _between(short: tuple[str, ...], long: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The lists with every operand of ``short`` and any others of ``long``; none where ``long`` does not extend ``short``."""
    extra = [name for name in long[1:] if name not in short]
    subsets = itertools.product((False, True), repeat=len(extra))
    left_out = ({name for name, take in zip(extra, taken, strict=True) if not take} for taken in subsets)
    lists = {tuple(name for name in long if name not in out) for out in left_out}
    return lists if short in lists else set()
