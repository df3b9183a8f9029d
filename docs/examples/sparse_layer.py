"""Prunes and compresses weights, multiplies them on the GPU, and holds the product against the emulator's."""

from pathlib import Path

import cupy
import numpy as np

import ptxmma
from ptxmma import paths, sparse

ins = ptxmma.instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
random = np.random.default_rng(0)
weights, x = random.standard_normal((64, 32)).astype(np.float16), random.standard_normal((32, 8)).astype(np.float16)

values, metadata = sparse.compress(sparse.prune(weights, "2:4"), "2:4")
a, b, e = ins.operand("a").pack_tiles(values)[:, 0], ins.operand("b").pack(x), ins.metadata.pack_tiles(metadata, selector=0)[:, 0]

source, options = Path(__file__).with_suffix(".cu").read_text(), ("-std=c++17", f"-I{paths.INCLUDE}")
multiply = cupy.RawModule(code=source, options=options, backend="nvcc").get_function("multiply")
d = cupy.empty((4, 32, 4), np.float32)
multiply((4,), (32,), (d, cupy.asarray(a), cupy.asarray(b), cupy.asarray(e)))

expected = ptxmma.emulate(ins, a, b, metadata=e)
print("largest error", abs(ins.operand("d").unpack(d.get()) - expected.matrix).max(), "of at most", expected.bound.max())
assert expected.admits(d.get()).all()
