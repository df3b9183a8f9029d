"""The functions of shared memory as data: swizzles, base offsets and offsets in canonical layouts.

``write`` gives a formula of the spec in a language, with numbers in place of some names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ptxmma.generator.emit.index_functions import IndexFunction
from ptxmma.model import CanonicalLayout, SharedMemory, Swizzle

Write = Callable[[str, Mapping[str, str]], str]


def swizzles(memory: SharedMemory, write: Write) -> Iterator[IndexFunction]:
    """The swizzle, swizzle modes with a formula of their own, and the base offset."""
    title = "Where the swizzle moves a byte of shared memory; done twice, it moves it back."
    notes = ("``address`` is absolute; ``span`` is the swizzle's bytes; ``base_offset`` is the descriptor's field.",)
    last, text = ("base_offset",), write(memory.swizzle_formula, {})
    yield IndexFunction("swizzle", ("address", "span", *last), last, title, notes, memory.source, {"result": text})
    for mode in memory.swizzles:
        if mode.formula:
            title, text = f"The same with the {mode.title}.", write(mode.formula, {"span": str(mode.bytes)})
            yield IndexFunction(f"swizzle_{mode.name}".lower(), ("address", *last), last, title, (), mode.source, {"result": text})
    title = "The descriptor's base offset for a swizzle pattern that starts at the absolute address ``start``."
    notes = ("``pattern`` is the number of bytes after which the swizzle repeats.",)
    text = write(memory.base_offset, {})
    yield IndexFunction("base_offset", ("start", "pattern"), (), title, notes, memory.source, {"result": text})


def offsets(memory: SharedMemory, write: Write) -> Iterator[tuple[CanonicalLayout, Swizzle, IndexFunction]]:
    """The offset of an element in each canonical layout with each of its swizzle modes."""
    modes = {mode.name: mode for mode in memory.swizzles}
    for layout in memory.layouts:
        for name in layout.swizzles:
            title = f"Offset in bytes of element (``x``, ``k``), before the swizzle: {layout.majorness}-major, swizzle {name}."
            notes = (
                f"``x`` counts along m or n; ``bits`` is the width of an element. Canonical layout: {layout.cute}.",
                f"``lbo``: {layout.lbo}.",
                f"``sbo``: {layout.sbo}.",
            )
            text = write(layout.element_offset, {"span": str(modes[name].bytes)})
            stem = f"offset_{layout.majorness}_major_{name}".lower()
            yield (
                layout,
                modes[name],
                IndexFunction(stem, ("x", "k", "bits", "lbo", "sbo"), (), title, notes, layout.source, {"result": text}),
            )
