"""Products of matrices: D = A times B plus C, wherever the matrices lie.

One product takes the same way for a single instruction of any space and for whole matrices:

1. :mod:`ptxmma.matrices.product_operands` says what each operand is to the product: a ``Part``, such as the multiplicand A, the metadata
   of A or the scale factors of B.
2. A reader turns what the caller gives into matrices, by their parts: :mod:`in_registers` reads registers and descriptors,
   :func:`matrices.read` the matrices that callers give for tensor memory and for whole products.
3. :class:`matrices.Matrices` expands a sparse A, applies the scale factors of blocks to elements, and negates: the terms of the sum.
4. :mod:`arithmetic` sums the terms, with the bounds of :mod:`guarantees`; integers wrap or saturate.
5. The result goes back to its space: :class:`in_registers.Emulated`, :class:`in_tensor_memory.TensorEmulated`, and for a chain of
   instructions along K :class:`whole.Product`.

A trace takes the same way with places instead of numbers: :mod:`terms` has the places in each space, and what feeds one element of D.

No module asks for the name of an operand or of a family.  The kind of an operand says what it is to the product.
"""
