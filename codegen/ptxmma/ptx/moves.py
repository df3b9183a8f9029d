"""The constants that ``mov`` gives to registers."""

from __future__ import annotations

import re

from ptxmma.ptx import literals

_MOVE = re.compile(rb"\s*mov\.[bus]32\s+([\w$%]+)\s*,\s*([^,]+?)\s*\Z")
_WRITTEN = re.compile(rb"\s*(?:@[^\s]+\s+)?[\w.:]+\s+(?:\{[^{}]*\}|[\w$%|]+)")
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%")
_LABEL = re.compile(rb"[\w$%]\s*:(?!:)")
_BRANCH = re.compile(rb"\b(?:bra|brx|ret|exit|call|trap)\b")
#: Bytes before a place in which a register's constant is looked for.
_BEFORE = 1 << 14


def constant_before(text: bytes, offset: int, name: bytes) -> int | None:
    """The constant that ``mov`` gave a register before a place, in the same basic block; None where that cannot be seen."""
    first = max(0, offset - _BEFORE)
    at = offset
    while (at := text.rfind(name, first, at)) >= 0:
        end = at + len(name)
        if text[end] in _NAME_BYTES or (at and text[at - 1] in _NAME_BYTES):
            continue
        start = max(text.rfind(mark, first, at) for mark in (b";", b":", b"\n")) + 1
        stop = text.find(b";", at, offset)
        written = _WRITTEN.match(text, start)
        if stop < 0 or written is None or at >= written.end():
            continue  # it is read here
        move = _MOVE.match(text, start, stop)
        between = text[stop:offset]
        if move is None or move[1] != name or _LABEL.search(between) or _BRANCH.search(between):
            return None
        return literals.integer(move[2])
    return None
