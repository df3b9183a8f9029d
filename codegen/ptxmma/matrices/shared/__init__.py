"""Matrices in shared memory.

- :mod:`canonical`: the canonical layouts and the place of a matrix in one of them; addresses without NumPy.
- :mod:`image`: a whole matrix as bytes, with its descriptors and the boxes of TMA; :mod:`operand`: the same for A or B of an instruction.
- :mod:`descriptor`: matrix descriptors; :mod:`reading`: the matrix that one describes; :mod:`suspicions` and :mod:`suspicion_rules`:
  probable mistakes in one.
- :mod:`readable_types`: the element types that the instructions of a family read.
- :mod:`box` and :mod:`box_rules`: the boxes of a tensor that TMA copies; :mod:`tensor_map`: the copies; :mod:`copied_tile`: the matrix that
  several of them fill; :mod:`box_readers`: the descriptors that read one.
- :mod:`accesses` and :mod:`conflicts`: the cost of accesses of a warp.

:mod:`ptxmma.matrices.shared_memory` offers what users call.
"""
