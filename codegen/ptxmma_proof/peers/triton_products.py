"""Kernels of the fifth generation in Gluon: what is in the PTX that Triton's compiler makes of them.

It imports Triton; import it where Triton is known to be installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # else it warns that the default will change
gluon: Any = import_module("triton.experimental.gluon")
gl: Any = import_module("triton.experimental.gluon.language")
bw: Any = import_module("triton.experimental.gluon.language.nvidia.blackwell")

_REGISTER = re.compile(r"%\w+")
_DEFINED = re.compile(r"^\s*([a-z][\w.]*)\s+(%\w+), (.+);", re.MULTILINE)
_PRODUCT = re.compile(r"(tcgen05\.mma[\w.:]*)\s+\[[^]]*\],\s*(%\w+),\s*(%\w+),\s*(%\w+)")
_PART = re.compile(r"\{[^}]*\}|[^,\s]+")


class Made(NamedTuple):
    """A ``tcgen05.mma`` of a kernel: its opcode, the descriptors of A and B in shared memory that starts at 0, and the instruction's."""

    opcode: str
    a: int
    b: int
    instruction: int


def product(M, N, K, T, D, ACC, LA, LB):  # type: ignore[no-untyped-def] # noqa: N803
    """One tile of A @ B."""
    a = gl.allocate_shared_memory(T, [M, K], LA)
    b = gl.allocate_shared_memory(T, [K, N], LB)
    bw.tcgen05_mma(a, b, bw.allocate_tensor_memory(D, [M, N], ACC))


def scaled(M, N, K, A, B, A_MEMORY, B_MEMORY, A_EACH, B_EACH, SCALE, VECTOR, ACC, LA, LB):  # type: ignore[no-untyped-def] # noqa: N803
    """One tile of a block-scaled A @ B."""
    a = gl.allocate_shared_memory(A_MEMORY, [M, K // A_EACH], LA)
    b = gl.allocate_shared_memory(B_MEMORY, [K // B_EACH, N], LB)
    d = bw.allocate_tensor_memory(gl.float32, [M, N], ACC)
    a_scale = bw.allocate_tensor_memory(SCALE, [M, K // VECTOR], bw.TensorMemoryScalesLayout())
    b_scale = bw.allocate_tensor_memory(SCALE, [N, K // VECTOR], bw.TensorMemoryScalesLayout())
    bw.tcgen05_mma_scaled(a, b, d, a_scale, b_scale, A, B)


def reduced(POINTER, M, N, T, MEMORY, REGISTERS):  # type: ignore[no-untyped-def] # noqa: N803
    """Load a matrix from tensor memory with the minimum of each row."""
    value, _least = bw.allocate_tensor_memory(T, [M, N], MEMORY).load_min(REGISTERS)
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, REGISTERS))
    cols = gl.arange(0, N, layout=gl.SliceLayout(0, REGISTERS))
    gl.store(POINTER + rows[:, None] * N + cols[None, :], value)


def shared(shape: Sequence[int], element: str, *, transposed: bool, pair: Sequence[Sequence[int]] = ()) -> Any:
    """Triton's usual layout of a matrix in shared memory; ``transposed`` has its first axis contiguous, ``pair`` says how CTAs share it."""
    return gl.NVMMASharedLayout.get_default_for(list(shape), getattr(gl, element), transposed=transposed, cga_layout=[*map(list, pair)])


def made(kernel: Callable[..., Any], capability: int, ctas: int, constants: dict[str, Any]) -> list[Made]:
    """Compile a kernel, and read its products.

    Raises:
        RuntimeError: Triton refuses the kernel.
    """
    return list(read(compiled(kernel, capability, ctas, constants)))


def compiled(kernel: Callable[..., Any], capability: int, ctas: int, constants: dict[str, Any], pointers: Sequence[str] = ()) -> str:
    """The PTX of a kernel; ``pointers`` are its parameters that are not constants, in f32.

    Raises:
        RuntimeError: Triton refuses the kernel.
    """
    runtime, compiler = import_module("triton.experimental.gluon._runtime"), import_module("triton")
    signature = dict.fromkeys(pointers, "*fp32") | dict.fromkeys(constants, "constexpr")
    source = runtime.GluonASTSource(fn=gluon.jit(kernel), signature=signature, constexprs=constants)
    target = import_module("triton.backends.compiler").GPUTarget("cuda", capability, 32)
    return str(compiler.compile(source, target=target, options={"num_ctas": ctas}).asm["ptx"])


def read(text: str) -> Iterator[Made]:
    """The products in a PTX module, with their descriptors."""
    defined = {name: (operation, arguments) for operation, name, arguments in _DEFINED.findall(text)}
    for opcode, *registers in _PRODUCT.findall(text):
        a, b, instruction = (_value(name, defined) for name in registers)
        yield Made(opcode, a, b, instruction & 0xFFFFFFFF)


def _value(word: str, defined: dict[str, tuple[str, str]]) -> int:
    """A register's value; what is not made of constants is the start of shared memory, and 0."""
    if word.startswith("{"):
        low, high = (_value(part, defined) & 0xFFFFFFFF for part in _REGISTER.findall(word))
        return low | high << 32
    if not word.startswith("%"):
        return int(word) if word.lstrip("-").isdecimal() else 0
    operation, arguments = defined.get(word, ("", ""))
    values = [_value(part, defined) for part in _PART.findall(arguments)] if operation else []
    match operation.partition(".")[0]:
        case "mov":
            return values[0]
        case "add":
            return values[0] + values[1]
        case "or":
            return values[0] | values[1]
        case "bfe":
            return values[0] >> values[1] & (1 << values[2]) - 1
    return 0
