"""Descriptors as CuTe's Python DSL reads them: its own classes, executed on integers in place of the compiler's.

They know the fields of sm_107, which CuTe's headers of the same checkout lack.
"""

from __future__ import annotations

from pathlib import Path

NAME = "CuTe DSL"
#: The file below CUTLASS's checkout.
_FILE = Path("python/CuTeDSL/cutlass/experimental/primitives/descriptors.py")
_SPARSE = {"sparse_flag": "sparse", "a_negate": "negate_a", "b_negate": "negate_b"}
_TYPES = {"a_format": "atype", "b_format": "btype", "a_major": "a_majorness", "b_major": "b_majorness", "n_dim": "n", "m_dim": "m"}
_SCALED = {"scale_format": "scale_type", "a_sf_id": "scale_a_id", "b_sf_id": "scale_b_id", "a_sf_layout": "scale_a_layout"}
#: The class for each of our formats, and our field for each of its properties.
_CLASSES = {
    "tcgen05_instruction": (
        "Tcgen05InstrDesc",
        _SPARSE
        | _TYPES
        | {"sparse_id2": "sparsity_selector", "saturate": "saturate", "c_format": "dtype", "k_dim": "k", "max_shift": "max_shift"},
    ),
    "tcgen05_instruction_mxf8f6f4": ("Tcgen05MxInstrDesc", _SPARSE | _TYPES | _SCALED | {"k_dim": "k"}),
}
