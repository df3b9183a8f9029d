"""The checker compared with assemblers on PTX that other projects wrote.

``python -m ptxmma_proof corpus build`` makes the corpus: CUTLASS's tests and examples through ``nvcc -ptx``, what Triton's compiler
writes, and every matrix intrinsic of LLVM's NVPTX backend.  ``… corpus judge`` asks the assemblers and the checker about each matrix
instruction in it, as it stands and with one thing changed.  The corpus itself is kept nowhere but in a cache.
"""

from __future__ import annotations

from ptxmma import paths

#: Where the corpus is made: a folder for each source, and in it one for each target.
FOLDER = paths.CHECKOUT / ".cache" / "corpus"
