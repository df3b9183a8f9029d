"""Declarations of a header: functions and macros, with names made of the names of layouts."""

from __future__ import annotations

import re
from typing import NamedTuple

from ptxmma.generator.emit import c_text
from ptxmma.model import Layout

_WORD = re.compile(r"\w+")


class Function(NamedTuple):
    """One C function whose parameters and result are all ``uint32_t``."""

    brief: str
    name: str
    parameters: tuple[str, ...]
    expression: str

    @property
    def signature(self) -> str:
        """Name and parameters, on two lines where one is too short."""
        start, inner = f"PTXMMA_CONSTEXPR_FN uint32_t {self.name}(", ", ".join(f"uint32_t {name}" for name in self.parameters)
        return f"{start}{inner})" if len(start) + len(inner) + 3 <= c_text.WIDTH else f"{start}\n    {inner})"

    @property
    def unused(self) -> list[str]:
        """The parameters that the expression does not read."""
        read = set(_WORD.findall(self.expression))
        return [name for name in self.parameters if name not in read]


class Macro(NamedTuple):
    """One macro, ``NAME`` or ``NAME(n)``."""

    name: str
    value: str


def stem(layout: Layout) -> str:
    """The start of the names of a layout's functions; in capitals the start of its macros' names."""
    return f"ptxmma_{c_text.identifier(layout.name)}"
