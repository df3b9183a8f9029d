"""Matrices on the computer: packed for every space, multiplied, moved, compressed, scaled and drawn.

- :mod:`products`: D = A times B plus C; :mod:`transfers`: loads, stores and copies.
- :mod:`operations`: what each instruction does; :mod:`emulator` executes one, :mod:`tracing` follows one element.
- :mod:`sparse`: compression and its inverse; :mod:`scaling`: scale factors of blocks.
- :mod:`shared`: images in shared memory and their descriptors.
- :mod:`pictures`: layouts as SVG; :mod:`arrangements`: layouts as tables.
- :mod:`product_operands`: the operands of a product by what they do; :mod:`places`: the places of elements outside registers.
"""
