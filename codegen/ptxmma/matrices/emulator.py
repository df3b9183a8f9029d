"""Emulates matrix instructions, so that kernels can be tested without a GPU."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias

from ptxmma.arguments import AnyArray
from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.lookup import instruction as find
from ptxmma.matrices.operations import operation
from ptxmma.matrices.products import in_registers, in_tensor_memory
from ptxmma.matrices.products.in_registers import Emulated as Emulated  # it belongs to what this module offers
from ptxmma.matrices.products.in_tensor_memory import TensorEmulated as TensorEmulated
from ptxmma.matrices.shared.descriptor import Descriptor
from ptxmma.matrices.transfers import memory, tensor_memory
from ptxmma.matrices.transfers.memory import Moved as Moved

#: An operand: registers, a matrix or an image of memory; a number, several, or a descriptor; None for the default.
Given: TypeAlias = AnyArray | SupportsIndex | float | Sequence[int] | Descriptor | None

if TYPE_CHECKING:

    class Result(Protocol):
        """The attributes of all results with their types: the type of a spelling, or of words, does not say which of them comes out."""

        instruction: Instruction
        d: Any
        matrix: Array
        bound: Any
        d_bound: Array
        observed: dict[str, Array]
        products: Any
        unwritten: Any
        a: Any
        registers: Any
        memory: Array
        reduced: Array
        admits: Callable[..., Array]

else:
    Result: TypeAlias = Emulated | TensorEmulated | Moved

#: The function of each operation; the others move and multiply nothing, or no source says what they do.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "multiply": in_registers.multiply,
    "load": memory.load,
    "store": memory.store,
    "transpose": memory.transpose,
    "decompress": memory.decompress,
    "shift": tensor_memory.shift,
    "tensor-copy": tensor_memory.copy,
    "tensor-load": tensor_memory.load,
    "tensor-reduce": tensor_memory.load_reduced,
    "tensor-store": tensor_memory.store,
    "tensor-multiply": in_tensor_memory.multiply,
}


def emulate(instruction: Instruction | str, *operands: Given, **named: Given) -> Result:
    """Execute one instruction for all its threads.

    Pass operands in order, or by the names below or PTX's own, with ``_`` for ``-``.  Registers are arrays (..., threads, registers) as
    :meth:`Operand.pack` makes them, of any dtype of the registers' width; leading dimensions are a batch.

    **Multiply** ``emulate(instruction, a, b, c=None, ...)``, gives :class:`Emulated`:

    - ``a``, ``b``: registers, or a descriptor (an integer or a :class:`ptxmma.matrices.shared_memory.Descriptor`) where the instruction
      takes one.
    - ``c``: registers of the addend; for wgmma the registers of D before.  None means zeros.
    - ``c_bound``: how far the addend may be from ``c``, (..., m, n), where it is a result that was rounded: the ``d_bound`` of the
      product before.  0 by default.
    - ``metadata``: the metadata registers of a sparse instruction, (..., threads).
    - ``scale_a_data``, ``scale_b_data``: the registers with the scale factors of a block-scaled instruction, (..., threads).
    - ``memory``, ``memory_start``: an image of shared memory that descriptors read, bytes, and the shared address of its first byte.
    - the constants that the instruction has, integers: ``selector`` of sparse metadata, ``byte_id_a``, ``thread_id_a``, ``byte_id_b``,
      ``thread_id_b`` of scale factors, by default 0; of wgmma ``scale_d=False`` leaves the addend out, ``imm_scale_a=-1`` and
      ``imm_scale_b=-1`` negate A and B, ``imm_trans_a=1`` and ``imm_trans_b=1`` read them MN-major.

    **Multiply into tensor memory** ``emulate(instruction, a, b, d=None, ...)`` with an instruction that was looked up with its shape and
    types (:func:`ptxmma.instruction`) gives :class:`TensorEmulated`.  Its operands are matrices:

    - ``a``, ``b``: (..., m, k) and (..., k, n), of a sparse A the kept elements; ``d``: the addend (..., m, n), None means zeros.
    - ``metadata``: of a sparse A, row-major (..., m, chunks / 2); ``scale_a``, ``scale_b``: scale factors (..., m, blocks) and
      (..., blocks, n) of a block-scaled product.
    - ``enable_input_d=False`` leaves the addend out, ``scale_input_d=s`` divides it by 2**s; ``negate_a``, ``negate_b`` and ``saturate``
      are what the instruction descriptor says.
    - ``disable_output_lane``: words of 32 lanes each, 4 or for a pair of CTAs 8, lane 0 lowest; D keeps its values in the lanes whose bits
      are set, counted from the lane of ``d_tmem``, the address of D, 0 by default; ``d`` must be given then.
    - ``zero_column_mask_desc``: the descriptor of the columns of B that count as zero, for ``.ws``.  ``b`` has the columns that are
      multiplied: with a shift of columns those from there on.

    Of a B that is stored as indices of a table, ``b`` has the values.  A product with ``.ashift`` reads A as it is; ``a`` of the result is
    A afterwards.  Hints and majorness do not change a result.

    **Load** ``emulate(instruction, p, memory, memory_start=0, stride=None)``, **store** ``emulate(instruction, p, r, memory,
    memory_start=0, stride=None)`` and **transpose** ``emulate(instruction, a)`` give :class:`Moved`:

    - ``p``, by its name in the instruction: the address that each thread gives, (threads,), of which the ignored ones may be anything;
      for ``wmma``, the address of the matrix.
    - ``memory``, ``memory_start``: an image of memory, bytes, and the address of its first byte.
    - ``stride``: for ``wmma``, elements from one row, or column, to the next; None means no gaps.
    - ``r``, ``a``: registers.

    **Load from tensor memory** ``emulate(instruction, taddr, memory, immHalfSplitoff=0)`` and **store to it** ``emulate(instruction, taddr,
    r, memory, immHalfSplitoff=0)`` give :class:`Moved`:

    Loads with ``.red`` give ``reduced`` besides.

    **Copy to tensor memory** ``emulate(instruction, taddr, rows, memory=None)``, a ``tcgen05.cp`` for one CTA, gives :class:`Moved`:
    ``rows`` are the bytes that its descriptor describes, ``uint8`` (rows, bytes), of elements that are expanded with their padding, and
    ``memory`` is a new image of zeros by default.

    **Shift rows of tensor memory** ``emulate(instruction, taddr, memory)``, a ``tcgen05.shift``, gives :class:`Moved`; in a pair ``memory``
    is the image of either CTA, whose rows move alike.

    **Decompress** ``emulate(instruction, mdata, cdata)``, a ``spdecompress``, gives :class:`Moved`: ``mdata``, ``cdata`` and the result's
    ``registers`` belong to a thread, (..., registers).  ``spcompress`` is not emulated.

    - ``taddr``: the address, with the lane in its upper 16 bits and the column in the lower ones.  A load or store starts at the first
      lane of a warp, and one of 16 lanes also 16 lanes on.
    - ``memory``: the cells, (lanes, columns) of 32 bits.  Where a column has 16 bits, a store clears the upper half of the cell.

    Raises:
        UnknownInstruction: no such instruction.
        TypeError: a constant that is not an integer (``scale_d`` also takes a bool), or a scalar other than an integer in place of B's
            descriptor.
        ValueError: an operand that the instruction does not have, lacks, or cannot take: wrong shape, dtype or width, batches that do
            not fit together, a selector, id or constant out of range, illegal metadata, a descriptor or an address that leaves the
            memory or is not aligned, a stride shorter than a row or column, an array in place of a descriptor; or an instruction that
            only orders others.
    """
    known = instruction if isinstance(instruction, Instruction) else find(instruction)
    does = operation(known)
    if (function := _FUNCTIONS.get(known.operation)) is None:
        raise does.refusal(known)
    parameters = does.arguments(known)
    given = {parameters.get(name, name): value for name, value in named.items()}
    try:
        inspect.signature(function).bind(known, *operands, **given)
    except TypeError as error:
        manual = {parameter: name for name, parameter in parameters.items()}
        message = re.sub(r"'(\w+)'", lambda match: f"'{manual.get(match[1], match[1])}'", str(error))
        every = dict.fromkeys(operand.name for operand in known.operands)
        raise ValueError(f"{known.canonical}: {message}; its operands are {', '.join(every)}") from None
    result: Result = function(known, *operands, **given)
    return result
