"""Prunes and compresses weights, multiplies them on the GPU, and holds the product against the emulator's."""

from pathlib import Path

import cupy
import numpy as np

import ptxmma
from ptxmma import paths
from ptxmma.matrices import sparse

ins = ptxmma.instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
normal = np.random.default_rng(0).standard_normal
weights, x = normal((64, 32)).astype(np.float16), normal((32, 8)).astype(np.float16)
values, metadata = sparse.compress(sparse.prune(weights, "2:4"), "2:4")
a, b, e = ins.operand("a").pack_tiles(values)[:, 0], ins.operand("b").pack(x), ins.metadata.pack_tiles(metadata, selector=0)[:, 0]
kernel = cupy.RawModule(code=Path(__file__).with_suffix(".cu").read_text(), options=(f"-I{paths.INCLUDE}",), backend="nvcc")
d = cupy.empty((4, 32, 4), np.float32)
kernel.get_function("multiply")((4,), (32,), (d, *map(cupy.asarray, (a, b, e))))
expected, product = ptxmma.emulate(ins, a, b, metadata=e), ins.operand("d").unpack_tiles(d.get()[:, None])
print(product.shape, "as the emulator predicted:", expected.admits(d.get()).all())
