"""The functions of tensor memory in C: one for each result."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.generator.emit import tensor_functions
from ptxmma.generator.emit.c_headers.declarations import Function
from ptxmma.generator.emit.formula_text import to_c
from ptxmma.generator.emit.tensor_functions import TensorFunction
from ptxmma.model import Space


class Group(NamedTuple):
    """The C functions of one mapping, with what is said of them."""

    title: str
    notes: tuple[str, ...]
    source: str
    functions: list[Function]


def groups(memory: Space) -> list[Group]:
    """The functions of the header."""
    return [_group(memory, function) for function in tensor_functions.functions(memory)]


def _group(memory: Space, function: TensorFunction) -> Group:
    """``ptxmma_tensor_layout_b_lane`` and so on: a function with several results is several, and the way back has their names."""
    stem = f"ptxmma_{memory.name}_{function.name.removesuffix('_inverse')}"
    several = len(function.results) > 1
    made = [
        Function(function.title, f"{stem}_{name}" if several else stem, function.parameters, to_c(text))
        for name, text in function.results.items()
    ]
    return Group(function.title.replace("``", "`"), tuple(note.replace("``", "`") for note in function.notes), function.source, made)
