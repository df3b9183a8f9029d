"""Calls of functions that may do anything."""

from __future__ import annotations

import re

from ptxmma.ptx.flow_events import words_of

#: Functions of the system (PTX Writer's Guide to Interoperability, 5): they have nothing to do with asynchronous instructions.
_SYSTEM = {b"vprintf", b"__assertfail", b"malloc", b"free"}
_CALL = re.compile(rb"call(?<![\w$%.]call)(?:\.uni)?\b([^;]*)")


def calls_others(text: bytes) -> bool:
    """Return whether a function calls any but the system's functions."""
    return any(may_do_anything(operands) for operands in _CALL.findall(text))


def may_do_anything(operands: bytes) -> bool:
    """Return whether a call with these operands is of a function that is not one of the system."""
    return _SYSTEM.isdisjoint(words_of(operands))
