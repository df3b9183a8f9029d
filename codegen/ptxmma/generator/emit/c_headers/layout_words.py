"""Words for axes, operands and the parts of registers, as comments and names of macros have them."""

from __future__ import annotations

from ptxmma.model import Layout

#: Kinds of layouts in the order in which a header shows them, each with what a thread holds, where, and in one word.
_HOLDINGS = {
    "fragment": ("element i of thread lane", "element"),
    "metadata": ("the field at bit of thread lane", "field"),
    "scale": ("the scale factor in byte of thread lane", "scale factor"),
    "address": ("the address of thread lane", "address"),
}
#: The kinds of layouts in that order.
KINDS = tuple(_HOLDINGS)
_AXES = {"col": "column", "byte_id": "byte id", "thread_id": "thread id"}
_PARTS = {
    "i": "Number of the {} in its thread.",
    "bit": "Lowest bit of the {} in the thread's register.",
    "byte": "Byte of the thread's register with the {}.",
}


def axis(name: str) -> str:
    """The word for an axis: ``"column"`` for ``"col"``."""
    return _AXES.get(name, name)


def plural(name: str) -> str:
    """The plural of an axis or its word: ``"indices"`` for ``"index"``."""
    stem, end = {"x": (name[:-1], "ces"), "y": (name[:-1], "ies"), "s": (name, "es")}.get(name[-1:], (name, "s"))
    return stem + end


def title(operand: str) -> str:
    """The manual's capital for a matrix: ``"A"`` for ``"a"``."""
    return operand.upper() if len(operand) == 1 else operand


def result(layout: Layout, name: str) -> str:
    """A sentence for a function that computes an axis of a layout, the thread, or a part of its registers."""
    subject, thing = _HOLDINGS[layout.kind]
    if name in layout.axes:
        return f"{axis(name).capitalize()} of {subject}."
    if name == "lane":
        if layout.kind == "address":
            return f"Thread that gives the address of the {axis(layout.coordinates[-1])}."
        return f"Thread that holds the {thing}."
    return _PARTS[name].format(thing)
