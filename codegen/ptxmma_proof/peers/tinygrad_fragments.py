"""tinygrad's fragments of ``mma.sync``: the functions of its emulator, executed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import element_places
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.element_places import Values

NAME = "tinygrad"
#: The emulator below tinygrad's checkout.
_FILE = Path("tinygrad/runtime/ops_python.py")
#: The condition of the emulator on the sizes of a product (N, M, K) and the type of A, with the instructions that tinygrad emits for it.
_EMULATED = {
    "dims == (8, 16, 16)": ("m16n8k16", ("f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32")),
    "dims == (8, 16, 32)": ("m16n8k32", ("f32.e4m3.e4m3.f32", "f32.e5m2.e5m2.f32")),
    "dims == (8, 16, 8) and dtype_in == dtypes.half": ("m16n8k8", ("f32.f16.f16.f32", "f16.f16.f16.f16")),
    "dims == (8, 16, 8) and dtype_in == dtypes.float": ("m16n8k8", ("f32.tf32.tf32.f32",)),
}
_LANES = 32

_Functions = dict[str, Callable[..., Any]]


class Fragment(NamedTuple):
    """A fragment as tinygrad emulates it: of each lane and element the index of its place, column by column as CuTe counts."""

    opcode: str
    operand: str
    places: Values


def read(checkout: Path) -> Iterator[Fragment]:
    """Read the fragments of each product.

    Raises:
        OSError: the emulator cannot be read.
        KeyError: it has no such case, or no such function.
    """
    tree = ast.parse((checkout / _FILE).read_text(encoding="utf-8"))
    cases = {ast.unparse(node.test): node.body for node in ast.walk(tree) if isinstance(node, ast.If)}
    for condition, (shape, types) in _EMULATED.items():
        known = _executed([*cases["device == 'CUDA'"], *cases[condition]])
        m, n, k = 16, 8, int(shape.partition("k")[2])
        fragments = {
            "a": _held(known["a_elem"], m, k, lambda function, held, row, col: function(held, col, row, 0)),
            "b": _held(known["b_elem"], n, k, lambda function, held, row, col: function(held, row, col, 0)),
            "d": _written(known["c_map"], m, n),
        }
        for each in types:
            opcode = f"mma.sync.aligned.{shape}.row.col.{each}"
            yield from (Fragment(opcode, operand, places) for operand, places in fragments.items())


def _executed(nodes: list[ast.stmt]) -> _Functions:
    known: _Functions = {}
    functions: list[ast.stmt] = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    exec(compile(ast.Module(functions, []), _FILE.name, "exec"), known)
    return known


def _held(function: Callable[..., Any], rows: int, cols: int, call: Callable[..., int]) -> Values:
    """The places of a multiplicand, whose function takes an element of the matrix out of the registers."""
    elements = rows * cols // _LANES
    held = [[lane * elements + element for lane in range(_LANES)] for element in range(elements)]
    places = np.full(_LANES * elements, -1)
    for col in range(cols):
        for row in range(rows):
            places[call(function, held, row, col)] = row + rows * col
    return places.reshape(_LANES, elements)


def _written(function: Callable[..., tuple[int, int]], rows: int, cols: int) -> Values:
    """The places of a result, whose function gives the column and the row of each element."""
    pairs = [[function(lane, element) for element in range(rows * cols // _LANES)] for lane in range(_LANES)]
    return np.array([[row + rows * col for col, row in lane] for lane in pairs])


def compare(catalog: Catalog, fragments: list[Fragment]) -> list[Difference]:
    """Compare fragments with a catalog."""
    differences = []
    for each in fragments:
        operand = catalog.find(each.opcode).forms[0].operand(each.operand)
        ours = next(element_places.fragment(operand, np.arange(_LANES), each.places.shape[1]))
        wrong = np.argwhere(ours != each.places)
        if len(wrong):
            lane, element = map(int, wrong[0])
            theirs, own = (f"lane {lane}, element {element}: place {int(each_[lane, element])}" for each_ in (each.places, ours))
            differences.append(Difference(NAME, each.opcode, each.operand, theirs, own, len(wrong), ours.size))
    return differences
