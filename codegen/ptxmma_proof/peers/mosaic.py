"""Mosaic GPU, JAX's kernel language: its own functions write MLIR, and this module reads the instructions with their constants.

No GPU is needed: ``jax`` and ``jaxlib`` for the CPU have all of it.
"""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ptxmma_proof.peers import sources
from ptxmma_proof.peers.sources import Source

PACKAGE = "jax"
_FOLDER = "jax/experimental/mosaic/gpu"
_OPCODE = re.compile(r"tcgen05\.mma[\w.:]*")
_WORD = re.compile(r"\w+")
_BYTE = 8
#: The bits of the start address in a matrix descriptor, which counts 16 bytes.
_START = 0x3FFF
#: Operations on constants.
_EVALUATED: dict[str, Callable[..., int]] = {
    "arith.addi": operator.add, "llvm.add": operator.add, "arith.muli": operator.mul, "llvm.mul": operator.mul,
    "llvm.and": operator.and_, "llvm.or": operator.or_, "llvm.lshr": operator.rshift,
    "llvm.inttoptr": operator.pos, "llvm.ptrtoint": operator.pos, "llvm.extractvalue": operator.pos,
}  # fmt: skip
#: The places of the instruction's operands in the statement; after them come the scale factors and the metadata.
_DESCRIPTOR, _REST = 3, 5


class Issued(NamedTuple):
    """A ``tcgen05.mma``.

    Attributes:
        opcode: the opcode of the instruction.
        descriptor: its instruction descriptor.
        columns: the columns from the start of the scale factors of A and of B, or of the metadata, to what it reads of them.
    """

    opcode: str
    descriptor: int
    columns: tuple[int, ...]


class Copied(NamedTuple):
    """A ``tcgen05.cp``: shape and multicast in MLIR's words, the first column, and the bytes from the start of shared memory."""

    shape: str
    multicast: str
    column: int
    start: int


def find() -> Source:
    """Return the installed package, with the folder of Mosaic's sources.

    Raises:
        MissingPeerError: it is not installed.
    """
    return sources.installed("JAX", PACKAGE, _FOLDER, "*.py")


def issued(
    element: str, d: str, m: int, n: int, steps: int, *, ctas: int = 1, a_mn: bool = False, b_mn: bool = False, sparse: bool = False,
    scale: str = "", padded: tuple[int, int, str] = (128, 128, "scales_layout"),
) -> list[Issued]:  # fmt: skip
    """The instructions of a product, one for each step along K.

    Args:
        element: type of A and B as MLIR writes it: ``"f16"``, ``"f8E4M3FN"``.
        d: type of D.
        m: rows of each CTA.
        n: columns of B of each CTA.
        steps: along K.
        ctas: 2 for a pair of CTAs, 1 for one alone.
        a_mn: whether A is MN-major.
        b_mn: whether B is MN-major.
        sparse: whether A is sparse.
        scale: type of the scale factors; empty without.
        padded: rows of A and columns of B whose factors there is room for, and the layout of B's factors.
    """
    with _module() as (ir, body):
        types = {name: ir.Type.parse(name) for name in (element, d, scale or d)}
        width = import_module(f"{_FOLDER.replace('/', '.')}.utils").bitwidth(types[element])
        scaled = _constants(ir, 4 if scale else 0)
        strides = ((), (0,))
        _tcgen05()._do_mma(
            *_constants(ir, 1), (*_constants(ir, 1), 0), (*_constants(ir, 1), 0), a_mn, b_mn, strides, strides,
            *(scaled[:2] or (None, None)), *(_strides(*padded) if scale else (None, None)), *(_constants(ir, 1) if sparse else (None,)),
            m, n, steps * (1 + sparse) * 256 // width, types[element], types[scale] if scale else None, types[d],
            *_constants(ir, 1, "i1"), ctas == 2,
        )  # fmt: skip
        return list(_read_products(body))


def _strides(rows: int, columns: int, layout: str) -> tuple[int, int]:
    """The columns of tensor memory from four scale factors of a row to the next four: of B, and of A."""
    of_b, of_a = (getattr(_tcgen05(), name)() for name in (layout, "scales_layout"))
    return of_b.cols_in_shape((columns, 4), bitwidth=_BYTE), of_a.cols_in_shape((rows, 4), bitwidth=_BYTE)


def scale_documentation() -> str:
    """JAX's text about the order of scale factors in shared memory, with expressions that make it."""
    return str(_tcgen05().async_copy_scales_smem_to_tmem.__doc__)


def _read_products(body: Any) -> Iterator[Issued]:
    for operation in body.operations:
        if operation.operation.name == "llvm.inline_asm":
            opcode = _OPCODE.search(str(operation.operation.attributes["asm_string"]))
            operands = [_number(operand) for operand in operation.operation.operands]
            assert opcode is not None
            yield Issued(opcode[0], operands[_DESCRIPTOR] & 0xFFFFFFFF, tuple(operands[_REST:]))


def scale_copies(layout: str, columns: int, factors: int) -> list[Copied]:
    """The copies that bring scale factors from shared memory into tensor memory.

    Args:
        layout: function that makes the layout: ``"b_scales_m64_collective_layout"``.
        columns: the columns of B, as the layout pads them.
        factors: the factors in a row.
    """
    shape = (1, factors // 4, 64, 16) if layout.startswith("b_") else (columns // 128, factors // 4, 32, 16)
    return _copies("async_copy_scales_smem_to_tmem", shape, "f8E8M0FNU", (columns, factors), layout)


def metadata_copies(rows: int, indices: int) -> list[Copied]:
    """The copies that bring indices of 2 bits, so many for each row, from shared memory into tensor memory."""
    shape = (rows // 128, indices // 64, 128, 64)
    return _copies("async_copy_sparse_metadata_smem_to_tmem", shape, "i2", (rows, indices), "sparse_meta_layout")


def _copies(function: str, shape: Sequence[int], element: str, size: tuple[int, int], layout: str) -> list[Copied]:
    tcgen05 = _tcgen05()
    with _module() as (ir, body):
        kind = ir.MemRefType.get(shape, ir.Type.parse(element), memory_space=ir.Attribute.parse("#gpu.address_space<workgroup>"))
        (start,) = _constants(ir, 1, "i64")
        memory = import_module("jaxlib.mlir.dialects.builtin").UnrealizedConversionCastOp([kind], [start]).result
        target = tcgen05.TMEMRef(*_constants(ir, 1), size, ir.Type.parse(element), getattr(tcgen05, layout)())
        getattr(tcgen05, function)(memory, target)
        return list(_read_copies(body))


def _read_copies(body: Any) -> Iterator[Copied]:
    for operation in body.operations:
        own = operation.operation
        if own.name == "nvvm.tcgen05.cp":
            attributes = {name: _WORD.findall(str(own.attributes[name]))[-1] for name in own.attributes}
            column, descriptor = (_number(operand) for operand in own.operands)
            yield Copied(attributes["shape"], attributes.get("multicast", ""), column, (descriptor & _START) << 4)


def metadata_order() -> Callable[..., Any]:
    """JAX's function that puts metadata into the order of the copies."""
    function: Callable[..., Any] = import_module("jax._src.pallas.mosaic_gpu.helpers").format_tcgen05_sparse_metadata
    return function


def _tcgen05() -> Any:
    return import_module(f"{_FOLDER.replace('/', '.')}.tcgen05")


@contextlib.contextmanager
def _module() -> Iterator[tuple[Any, Any]]:
    """An MLIR module to write into: the bindings, and its body."""
    ir = import_module("jaxlib.mlir.ir")
    with import_module("jax._src.interpreters.mlir").make_ir_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            yield ir, module.body


def _constants(ir: Any, count: int, kind: str = "i32") -> list[Any]:
    arith = import_module("jaxlib.mlir.dialects.arith")
    return [arith.constant(ir.Type.parse(kind), 0) for _ in range(count)]


def _number(value: Any) -> int:
    """A value that is made of constants; memory starts at 0.

    Raises:
        ValueError: it is not.
    """
    owner = value.owner
    if owner.name == "builtin.unrealized_conversion_cast":
        return 0
    parts = [_number(operand) for operand in owner.operands]
    if owner.name == "arith.constant":
        return int(import_module("jaxlib.mlir.ir").IntegerAttr(owner.attributes["value"]).value)
    if owner.name == "llvm.getelementptr":
        width = int(str(owner.attributes["elem_type"]).removeprefix("i"))
        return parts[0] + int(owner.attributes["rawConstantIndices"][0]) * width // _BYTE
    if owner.name not in _EVALUATED:
        raise ValueError(f"a value of {owner.name} is not made of constants")
    return _EVALUATED[owner.name](*parts)
