"""Traces one element: the inputs of an element of a product, or the bytes and registers between which an element moves.

>>> import ptxmma
>>> ins = ptxmma.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
>>> product = trace(ins, 9, 3)
>>> product.d.lane, product.d.element, len(product.terms)
(5, 3, 16)
>>> load = ptxmma.instruction("ldmatrix.sync.aligned.m8n8.x4.shared.b16")
>>> trace(load, matrix=1, row=3, col=5).moves[0].source
MemoryPlace(lane=11, byte=10, low=0, width=16)
"""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.instructions import Instruction, Missing
from ptxmma.matrices.arrangements import Place as Place  # these belong to what this module offers
from ptxmma.matrices.operations import operation
from ptxmma.matrices.places import MemoryPlace as MemoryPlace
from ptxmma.matrices.places import Move as Move
from ptxmma.matrices.places import Moves as Moves
from ptxmma.matrices.places import TensorPlace as TensorPlace
from ptxmma.matrices.products.terms import Source as Source
from ptxmma.matrices.products.terms import Term as Term
from ptxmma.matrices.products.terms import Trace as Trace


def trace(instruction: Instruction, *coordinates: int, **options: Any) -> Any:
    """The inputs of one element of a product, or the source and destination of an element that moves.

    The element is named by its place, in the order of the operand's ``axes`` or by their names: ``trace(ins, 9, 3)``,
    ``trace(ins, matrix=1, row=3, col=5)``.

    **Multiply**: an element of D; the result is a :class:`Trace`.  Options:

    - ``computation``: which of several products at once, 0..3 for ``m8n8k4`` with f16; 0 by default.
    - ``form``: ``"registers"`` or ``"descriptor"`` where A may come from either; registers by default.
    - ``selector``: the sparsity selector of a sparse instruction; 0 by default.
    - ``scale_ids``: the scale ids that differ from their first legal value, by operand: ``{"byte-id-a": 2}``.
    - ``images``: the images of matrices that descriptors describe, by name: ``{"b": ptxmma.shared_memory.of(instruction, "b", "32B")}``;
      with a :class:`CopiedTile <ptxmma.matrices.shared_memory.CopiedTile>` in place of an image also the elements of its tensor.

    **Multiply into tensor memory**, with an instruction that was looked up with its shape and types: an element of D; the result is a
    :class:`Trace`, whose places count from the addresses of the operands.  ``selector``, ``scale_ids`` (``{"scale-id-a": 2}``) and
    ``images`` as above, of a pair of CTAs the image of each; besides:

    - ``form``: ``"descriptor"`` or ``"tensor"`` for A in shared or in tensor memory; in shared memory by default.
    - ``base``: the address of D, from which its place counts; 0 by default.
    - ``through``: a load of tensor memory, whose register :attr:`Trace.register` then is.

    **Load** and **store**, also of tensor memory: an element of the fragment; **transpose**: an element of the result.  The result is a
    :class:`Moves`.  Option:

    - ``stride``: of ``wmma``, elements from one row, or column, to the next; without gaps by default.

    Raises:
        Missing: an instruction that only orders others, or one that lacks what an option names.
        TypeError: a coordinate that is missing, unknown or not an integer.
        ValueError: a place outside the matrix, or a value that is not legal.
    """
    does = operation(instruction)
    operand = does.traced(instruction)
    for name in options:
        if name not in (*does.options, *operand.sizes):
            known = ", ".join([*operand.axes, *does.options])
            raise Missing(f"the trace of {instruction.canonical} takes no {name}; it takes {known}")
    return does.trace(instruction, *coordinates, **options)
