"""The functions of tensor memory as data, with the spec's formulas: each language prints them in its own syntax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxmma.generator.emit.index_functions import IndexFunction
from ptxmma.model import Space, TensorLayout, formula

#: The numbers that formulas of layouts read besides coordinates, selections and sizes of the instruction, in words.
NUMBER_WORDS = {
    "m": "M of the product",
    "n": "N of the product",
    "k": "K of the product",
    "bits": "the width of an element, or of its container",
    "ratio": "elements of a sparse A for each that is kept",
    "chunk_size": "elements of a chunk of a sparse A",
    "blocks": "scale factors of a row or column",
    "ctas": "thread blocks that share the product",
}


def module(memory: Space) -> str:
    """The name of the files that have the functions: ``"tensor_memory"``."""
    return f"{memory.name}_memory"


def title(memory: Space) -> str:
    """The first line of those files."""
    return f"{memory.title[0].upper()}{memory.title[1:]}: addresses, and where the operands of instructions lie in it."


def functions(memory: Space) -> Iterator[IndexFunction]:
    """The functions of addresses, and of every layout."""
    yield from _addresses(memory)
    for layout in memory.layouts:
        yield from of_layout(layout)


def _addresses(memory: Space) -> Iterator[IndexFunction]:
    low = dict(sorted(memory.address.items(), key=lambda part: -part[1]))
    text = " + ".join(f"({name} << {bit})" if bit else name for name, bit in low.items())
    note = ("Added to the address of an operand it is that of a cell of the operand.",)
    yield IndexFunction("address", tuple(low), (), f"The address of a cell of {memory.title}.", note, memory.source, {"address": text})
    for name, bit in reversed(low.items()):
        width = memory.address_width(name)
        part = f"address >> {bit}" if bit + width == memory.address_bits else f"address & {(1 << width) - 1}"
        yield IndexFunction(f"{name}_of", ("address",), (), f"The {name} of an address of {memory.title}.", (), memory.source, {name: part})


def of_layout(layout: TensorLayout) -> Iterator[IndexFunction]:
    """The function from an element to its place, and the one back."""
    places = layout.at
    selections = tuple(dict.fromkeys(selection.name for selection in layout.selections))
    axes = (*(axis for axis in layout.axes if axis not in layout.apart), *layout.apart)
    there = read_numbers(places.values(), (*axes, *selections))
    back = read_numbers(layout.back.values(), (*places, *selections))
    title = layout.title[0].upper() + layout.title[1:] + "."
    notes = [f"Counted from the operand's address. -> {', '.join(places)}."]
    optional = (*layout.apart, *selections)
    if optional:
        notes.append(f"``{'``, ``'.join(optional)}`` may be left out: 0.")
    known = tuple(f"``{name}``: {_words(name)}." for name in there)
    parameters = (*axes[: len(axes) - len(layout.apart)], *there, *optional)
    yield IndexFunction(layout.name, parameters, optional, title, (*notes, *known), layout.source, places)
    known = tuple(f"``{name}``: {_words(name)}." for name in back)
    results = {axis: layout.back[axis] for axis in axes}
    lines = (f"-> {', '.join(results)}.", *known)
    about, given = f"The inverse of ``{layout.name}``.", (*places, *back, *selections)
    yield IndexFunction(f"{layout.name}_inverse", given, selections, about, lines, layout.source, results)


def read_numbers(texts: Iterable[str], coordinates: tuple[str, ...]) -> tuple[str, ...]:
    """The numbers that formulas read besides coordinates, in the order of the words for them; sizes of the instruction come last."""
    names = {name for text in texts for name in formula.names(formula.parse(text))} - set(coordinates)
    return tuple(name for name in (*NUMBER_WORDS, *sorted(names - NUMBER_WORDS.keys())) if name in names)


def _words(number: str) -> str:
    return NUMBER_WORDS.get(number, f"{number} of the instruction")
