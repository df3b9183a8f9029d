"""Every function that maps a place to another, in whatever space: its arguments and results by the model, to be asked in each language."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ptxmma.catalog.descriptors.shared_formats import swizzle_encoding
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands.tensor_places import TensorPlaces
from ptxmma.generator import tensor_proof
from ptxmma.generator.emit import index_functions, tensor_functions
from ptxmma.model import Layout, SharedMemory, Spec
from ptxmma.model.formula import evaluate, parse

Columns = dict[str, Any]


class Question(NamedTuple):
    """One function with arguments, and the results by the model.

    Attributes:
        name: the function in Python.
        arguments: flat arrays by the names of parameters; a language takes those that its function has.
        results: flat arrays, in the order of Python's results.
        in_c: the function of each result in C.
        in_javascript: the function in JavaScript; ``""`` where it has none.
    """

    name: str
    arguments: Columns
    results: Columns
    in_c: Mapping[str, str]
    in_javascript: str

    def spread(self, most: int) -> Question:
        """The same function with at most so many points: the first, the last, and some between that agree in no low bit."""
        count = len(next(iter(self.arguments.values())))
        chosen = np.unique(np.linspace(0, count - 1, most).astype(int))
        return self._replace(
            arguments={name: values[chosen] for name, values in self.arguments.items()},
            results={name: values[chosen] for name, values in self.results.items()},
        )


def questions(catalog: Catalog) -> Iterator[Question]:
    """Every function of every layout of registers, of on-chip memories and of shared memory, over its domain."""
    sparse = _sparse_operands(catalog)
    for layout, functions in index_functions.functions(catalog):
        yield from _of_registers(layout, [function.name for function in functions], sparse.get(layout.name))
    yield from _of_addresses(catalog.database.spec)
    for placed in tensor_proof.uses(catalog.database.spec):
        yield from _of_tensor_memory(placed)
    if memory := catalog.database.spec.shared_memory:
        encoded = swizzle_encoding(catalog.database.spec, "wgmma")
        ordered = sorted((mode.name for mode in memory.swizzles), key=lambda name: encoded.get(name, len(encoded)))
        yield from _of_shared_memory(memory, {name: number for number, name in enumerate(ordered)})


def _asked(name: str, arguments: Columns, results: Columns, in_c: Mapping[str, str], in_javascript: str | None = None) -> Question:
    shape = np.broadcast_shapes(*(np.shape(values) for values in arguments.values()))
    given, expected = (
        {key: np.broadcast_to(values, shape).reshape(-1) for key, values in columns.items()} for columns in (arguments, results)
    )
    return Question(name, given, expected, in_c, name if in_javascript is None else in_javascript)


def _grid(sizes: Mapping[str, int]) -> Columns:
    """Every point of a domain, as flat arrays."""
    return {name: values.reshape(-1) for name, values in zip(sizes, np.indices(tuple(sizes.values())), strict=True)}


# --- registers --------------------------------------------------------------------------------------------------------------


def _sparse_operands(catalog: Catalog) -> dict[str, Operand]:
    """For each layout of a sparse matrix, an operand that has it."""
    operands = (operand for each in catalog.all() if each.sparse for operand in each.operands)
    return {operand.layout.name: operand for operand in operands if operand.layout is not None and operand.sparsity is not None}


def _of_registers(layout: Layout, names: list[str], sparse: Operand | None) -> Iterator[Question]:
    """The function, its inverse, and the columns of the full matrix of a sparse one."""
    counted = _grid({name: 1 << width for name, width in layout.map.inputs.items()})
    # The map counts the legal ids of scale factors; functions take the ids.
    columns = {**counted, **layout.map.apply(counted)}
    columns = {name: numbers * layout.steps.get(name, 1) for name, numbers in columns.items()}
    there, back = ({name: columns[name] for name in side} for side in (layout.map.inputs, layout.map.outputs))
    if "i" in there:  # the thread comes first
        there = {"lane": there["lane"], **there}
    forward, backward = ({name: f"ptxmma_{layout.name}_{'element' if name == 'i' else name}" for name in side} for side in (back, there))
    yield _asked(names[0], there, back, forward)
    yield _asked(names[1], back, there, backward)
    if sparse is not None:
        chunk, window = names[2:]
        lane, i = there["lane"], there["i"]
        yield _asked(chunk, there, {"first": sparse.chunk(lane, i)}, {"first": f"ptxmma_{chunk}"})
        results = dict(zip(("first", "last"), sparse.window(lane, i), strict=True))
        yield _asked(window, there, results, {name: f"ptxmma_{window}_{name}" for name in results})


# --- tensor memory ----------------------------------------------------------------------------------------------------------


def _of_addresses(spec: Spec) -> Iterator[Question]:
    for memory in spec.tensor_memories:
        parts = _grid({name: 1 << min(memory.address_width(name), 10) for name in memory.address})
        address = {"address": sum(parts[name] << bit for name, bit in memory.address.items())}
        yield _asked("address", parts, address, {"address": f"ptxmma_{memory.name}_address"})
        for name in parts:
            yield _asked(f"{name}_of", address, {name: parts[name]}, {name: f"ptxmma_{memory.name}_{name}_of"})


def _of_tensor_memory(placed: TensorPlaces) -> Iterator[Question]:
    """Every place of an operand, and the way back, with every choice of selections."""
    there, back = tensor_functions.of_layout(placed.layout)
    axes = _grid(placed.sizes)
    for values in itertools.product(*placed.selections.values()):
        chosen: Columns = dict(zip(placed.selections, values, strict=True))
        known = placed.numbers | chosen | axes | placed.locate(**axes, **chosen)._asdict()
        for function in (there, back):
            in_c = {name: f"ptxmma_{placed.memory.name}_{placed.layout.name}_{name}" for name in function.results}
            arguments = {name: known[name] for name in function.parameters}
            yield _asked(function.name, arguments, {name: known[name] for name in function.results}, in_c)


# --- shared memory ----------------------------------------------------------------------------------------------------------


def _of_shared_memory(memory: SharedMemory, numbers: Mapping[str, int]) -> Iterator[Question]:
    """Swizzles, base offsets, offsets and addresses by the spec's formulas; C takes the number of a mode."""
    for mode in memory.swizzles:
        about = {"mode": numbers[mode.name], "span": mode.bytes, "pattern": mode.pattern}
        grid = _grid({"unit": 4 * mode.pattern // 16, "base_offset": 8})
        address = {**about, "address": 16 * grid["unit"] + 5, "base_offset": grid["base_offset"]}
        swizzle = parse(mode.formula or memory.swizzle_formula)
        name = f"swizzle_{mode.name.lower()}" if mode.formula else "swizzle"
        yield _asked(name, address, {"address": evaluate(swizzle, address)}, {"address": "ptxmma_swizzle_address"})
        start = {**about, "start": np.arange(0, 4096, 16)}
        offset = evaluate(parse(memory.base_offset), start)
        yield _asked("base_offset", start, {"offset": offset}, {"offset": "ptxmma_base_offset"}, "base_offset_of")
        for layout in (layout for layout in memory.layouts if mode.name in layout.swizzles):
            stem = f"{layout.majorness}_major_{mode.name}".lower()
            grid = _grid({"x": 80, "k": 300, "width": 3})
            place = {"x": grid["x"], "k": grid["k"], "bits": np.array([4, 8, 32])[grid["width"]], "lbo": 4096, "sbo": 512}
            plain = evaluate(parse(layout.element_offset), {**place, **about})
            yield _asked(f"offset_{stem}", place, {"offset": plain}, {"offset": f"ptxmma_offset_{stem}".replace("_major", "")})
            begun = {**place, "start": 2048, "base_offset": 0}
            moved = evaluate(swizzle, {**about, "address": 2048 + np.asarray(plain), "base_offset": 0})
            yield _asked(f"address_{stem}", begun, {"address": moved}, {}, in_javascript="")
