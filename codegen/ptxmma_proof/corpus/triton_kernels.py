"""PTX from Triton: matrix products of every type that ``tl.dot`` and ``tl.dot_scaled`` take, in tiles of several sizes.

The kernels are plain; the PTX that Triton's compiler makes of them is the test.  No GPU is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # else it warns that the default will change
triton: Any = import_module("triton")
tl: Any = import_module("triton.language")

#: Rows and columns of D, and the depth of a step.
_TILES = ((64, 32, 32), (64, 64, 64), (128, 128, 64), (128, 256, 64), (256, 128, 64), (128, 256, 128))
#: Types of A and B on a chip of each capability, with the types of the accumulator.
_TYPES: dict[int, dict[str, tuple[str, ...]]] = {
    80: {"fp16": ("fp32", "fp16"), "bf16": ("fp32",), "i8": ("int32",), "fp32": ("fp32",), "fp64": ("fp64",)},
    90: {"fp16": ("fp32", "fp16"), "bf16": ("fp32",), "i8": ("int32",), "fp8e4nv": ("fp32", "fp16"), "fp8e5": ("fp32",), "fp64": ("fp64",)},
    120: {
        "fp16": ("fp32", "fp16"),
        "bf16": ("fp32",),
        "i8": ("int32",),
        "fp8e4nv": ("fp32", "fp16"),
        "fp8e5": ("fp32",),
        "fp32": ("fp32",),
    },
}
#: Element types with a scale factor for each 32 of them, the type of their memory, and elements in a byte of it.
_SCALED = {"e4m3": ("fp8e4nv", 1), "e5m2": ("fp8e5", 1), "e2m1": ("u8", 2)}
_ACCUMULATORS = {"fp16": tl.float16, "fp32": tl.float32, "fp64": tl.float64, "int32": tl.int32}


class Job(NamedTuple):
    """A kernel to be compiled."""

    name: str
    capability: int
    kernel: Callable[..., Any]
    pointers: dict[str, str]
    constants: dict[str, Any]


def product(a, b, c, depth, M, N, K, KIND):  # type: ignore[no-untyped-def] # noqa: N803
    """One tile of A @ B."""
    rows, cols, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), dtype=KIND)
    for k in range(0, depth, K):
        left = tl.load(a + rows[:, None] * depth + (k + steps)[None, :])
        right = tl.load(b + (k + steps)[:, None] * N + cols[None, :])
        total = tl.dot(left, right, total, out_dtype=KIND)
    tl.store(c + rows[:, None] * N + cols[None, :], total)


def chain(a, b, c, depth, M, N, K, KIND):  # type: ignore[no-untyped-def] # noqa: N803
    """One tile of f(A @ B) @ B.T: the second product has its A in registers."""
    rows, cols, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, K), dtype=KIND)
    left = tl.load(a + rows[:, None] * K + steps[None, :])
    for k in range(0, depth, N):
        right = tl.load(b + steps[:, None] + (k + cols)[None, :] * K)
        inner = tl.dot(left, right, out_dtype=KIND)
        total = tl.dot((inner * inner).to(left.dtype), tl.trans(right), total, out_dtype=KIND)
    tl.store(c + rows[:, None] * K + steps[None, :], total)


def scaled(a, b, c, a_scale, b_scale, depth, M, N, K, A, B, A_EACH, B_EACH):  # type: ignore[no-untyped-def] # noqa: N803
    """One tile of a product with a scale factor for every 32 elements."""
    rows, cols, blocks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    a_steps, b_steps = tl.arange(0, K // A_EACH), tl.arange(0, K // B_EACH)
    total = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, depth, K):
        left = tl.load(a + rows[:, None] * depth + (k // A_EACH + a_steps)[None, :])
        right = tl.load(b + (k // B_EACH + b_steps)[:, None] * N + cols[None, :])
        left_scale = tl.load(a_scale + rows[:, None] * depth + (k // 32 + blocks)[None, :])
        right_scale = tl.load(b_scale + cols[:, None] * depth + (k // 32 + blocks)[None, :])
        total = tl.dot_scaled(left, left_scale, A, right, right_scale, B, total)
    tl.store(c + rows[:, None] * N + cols[None, :], total)


def jobs() -> Iterator[Job]:
    """All kernels."""
    for capability, types in _TYPES.items():
        for kind, accumulators in types.items():
            for accumulator in accumulators:
                pointers = {"a": f"*{kind}", "b": f"*{kind}", "c": f"*{accumulator.replace('int', 'i')}"}
                for m, n, k in _TILES:
                    constants = {"M": m, "N": n, "K": k, "KIND": _ACCUMULATORS[accumulator]}
                    yield Job(f"product_{kind}_{accumulator}_{m}x{n}x{k}", capability, product, pointers, constants)
                if kind in ("fp16", "bf16"):
                    constants = {"M": 128, "N": 64, "K": 64, "KIND": _ACCUMULATORS[accumulator]}
                    yield Job(f"chain_{kind}_{accumulator}", capability, chain, pointers, constants)
    for left, (a, a_each) in _SCALED.items():
        for right, (b, b_each) in _SCALED.items():
            pointers = {"a": f"*{a}", "b": f"*{b}", "c": "*fp32", "a_scale": "*u8", "b_scale": "*u8"}
            constants = {"M": 128, "N": 64, "K": 128, "A": left, "B": right, "A_EACH": a_each, "B_EACH": b_each}
            yield Job(f"scaled_{left}_{right}", 120, scaled, pointers, constants)


def build(folder: Path) -> Iterator[Path]:
    """Write a module for each kernel."""
    for job in jobs():
        place = folder / f"sm_{job.capability}" / f"{job.name}.ptx"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(_compiled(job), encoding="utf-8")
        yield place


def version() -> str:
    """The release of Triton."""
    return str(triton.__version__)


def _compiled(job: Job) -> str:
    source = import_module("triton.compiler").ASTSource(
        fn=triton.jit(job.kernel),
        signature={**job.pointers, "depth": "i32", **dict.fromkeys(job.constants, "constexpr")},
        constexprs=job.constants,
    )
    target = import_module("triton.backends.compiler").GPUTarget("cuda", job.capability, 32)
    return str(triton.compile(source, target=target).asm["ptx"])
