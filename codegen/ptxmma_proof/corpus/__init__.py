"""Compares the checker with assemblers on PTX that other projects wrote.

``python -m ptxmma_proof corpus build`` makes the corpus: CUTLASS's tests and examples through ``nvcc -ptx``, the output of Triton's
compiler, and every matrix intrinsic of LLVM's NVPTX backend.  ``… corpus judge`` asks the assemblers and the checker about each matrix
instruction in it, unchanged and with one change.  The repository does not contain the corpus itself.
"""

from __future__ import annotations

from ptxmma import paths

#: The folder of the corpus: it has a folder for each source, with one for each target.
FOLDER = paths.CHECKOUT / ".cache" / "corpus"
