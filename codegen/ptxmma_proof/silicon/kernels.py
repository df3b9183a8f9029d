"""Single instructions as kernels, each a call of a generated wrapper: registers in, registers out."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ptxmma.arrays.elements import Array
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import register_type

#: Kernels in one source file: few enough that processes share the work.
PER_FILE = 48
#: The N of wgmma with every combination of constants: the smallest, the largest, and one that is not a power of two.
N_IN_FULL = (8, 24, 256)
_SUPPORT = r"""
#include <ptxmma/ptxmma.cuh>
namespace {
struct Operands {
  const void* registers[8];
  void* d;
  unsigned char* image;
  unsigned image_bytes, stride;
  unsigned long long a_desc, b_desc;
  int scale_d;
};
template <class T, int n> __device__ void load(T (&registers)[n], const void* from) {
  for (int i = 0; i < n; ++i) registers[i] = static_cast<const T*>(from)[(blockIdx.x * blockDim.x + threadIdx.x) * n + i];
}
template <class T, int n> __device__ void store(const T (&registers)[n], void* to) {
  for (int i = 0; i < n; ++i) static_cast<T*>(to)[(blockIdx.x * blockDim.x + threadIdx.x) * n + i] = registers[i];
}
// The image at the start of shared memory.
__device__ unsigned char* shared_image(const Operands& o) {
  extern __shared__ __align__(1024) unsigned char memory[];
  for (unsigned i = threadIdx.x; i < o.image_bytes; i += blockDim.x) memory[i] = o.image[i];
  __syncthreads();
  return memory;
}
__device__ void keep(const unsigned char* memory, const Operands& o) {
  __syncthreads();
  for (unsigned i = threadIdx.x; i < o.image_bytes; i += blockDim.x) static_cast<unsigned char*>(o.d)[i] = memory[i];
}
// The same for instructions that read it through descriptors; returns where it is, in units of a descriptor.
// One fence would do; all that there are get executed.
__device__ unsigned long long stage(const Operands& o) {
  const unsigned char* memory = shared_image(o);
  ptxmma::fence_proxy_async();
  ptxmma::fence_proxy_async_shared_cta();
  ptxmma::fence_proxy_async_shared_cluster();
  ptxmma::fence_proxy_async_global();
  ptxmma::fence_proxy_async_generic_acquire_sync_restrict_shared_cluster_cluster();
  ptxmma::fence_proxy_async_generic_release_sync_restrict_shared_cta_cluster();
  __syncthreads();
  return __cvta_generic_to_shared(memory) >> 4;
}
}  // namespace
"""
_RUN = r"""
#define TRY(call) do { const cudaError_t status = (call); if (status != cudaSuccess) return static_cast<int>(status); } while (0)
extern "C" const char* error_text(int status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); }
extern "C" int run(int kernel, int blocks, int threads, const void* const* hosts, const size_t* bytes, int count, void* d, size_t d_bytes,
                   const void* image, unsigned image_bytes, unsigned stride, unsigned long long a_desc, unsigned long long b_desc,
                   int scale_d) {
  Operands o = {};
  void* buffers[10] = {};
  for (int i = 0; i < count; ++i) {
    TRY(cudaMalloc(&buffers[i], bytes[i]));
    TRY(cudaMemcpy(buffers[i], hosts[i], bytes[i], cudaMemcpyHostToDevice));
    o.registers[i] = buffers[i];
  }
  TRY(cudaMalloc(&buffers[8], d_bytes));
  o.d = buffers[8];
  if (image_bytes) {
    TRY(cudaMalloc(&buffers[9], image_bytes));
    TRY(cudaMemcpy(buffers[9], image, image_bytes, cudaMemcpyHostToDevice));
    o.image = static_cast<unsigned char*>(buffers[9]);
    o.image_bytes = image_bytes;
    TRY(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernels[kernel]), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(image_bytes)));
  }
  o.stride = stride, o.a_desc = a_desc, o.b_desc = b_desc, o.scale_d = scale_d;
  kernels[kernel]<<<blocks, threads, image_bytes>>>(o);
  TRY(cudaGetLastError());
  TRY(cudaMemcpy(d, o.d, d_bytes, cudaMemcpyDeviceToHost));
  for (void* buffer : buffers) TRY(cudaFree(buffer));
  return 0;
}
"""


class Kernel(NamedTuple):
    """One instruction with one operand form and its constants, as a kernel; ``immediates`` by the operands' names."""

    instruction: Instruction
    form: OperandForm
    immediates: Mapping[str, int] = {}

    @property
    def inputs(self) -> list[Operand]:
        """The operands that are read from registers, in order; an address counts from the start of memory."""
        return [operand for operand in self.form.operands if operand.kind in (*_LOADED, "address") and operand.access != "write"]

    @property
    def form_name(self) -> str:
        """The name of the operand form, or its syntax if an earlier form has the same name."""
        first = next((form for form in self.instruction.forms if form.name == self.form.name), self.form)
        return self.form.name if first.syntax == self.form.syntax else self.form.syntax

    @property
    def result(self) -> Operand | None:
        """The operand that is written to registers; None for a store."""
        return next((operand for operand in self.form.operands if operand.access != "read"), None)

    @property
    def threads(self) -> int:
        """The number of threads that execute it together."""
        return self.instruction.database.spec.scopes[self.instruction.variant.instruction.scope]

    @property
    def descriptors(self) -> list[str]:
        """The names of the operands that are descriptors."""
        return [operand.name for operand in self.form.operands if operand.kind == "descriptor"]

    def constant(self, operand: Operand) -> int:
        """The value of a constant operand: the kernel's, else its default, else the first legal one."""
        assert operand.immediates is not None
        return self.immediates.get(operand.name, operand.immediates[0] if operand.default is None else operand.default)

    def beside(self, catalog: Catalog) -> list[Instruction]:
        """The instructions that order its accesses, whose wrappers it calls too."""
        text = self.source("") + (_SUPPORT if self.descriptors else "")
        called = set(re.findall(r"\bptxmma::(\w+)[<(]", text))
        return [instruction for instruction in catalog.all() if instruction.operation == "synchronise" and instruction.identifier in called]

    def source(self, name: str) -> str:
        """The kernel as CUDA."""
        spec = self.instruction.database.spec
        lines = ["unsigned long long start = stage(o);"] if self.descriptors else []
        if any(operand.kind == "address" for operand in self.form.operands):
            memory = "o.image" if self.instruction.qualifiers.get("space") == "global" else "shared_image(o)"
            lines.append(f"unsigned char* memory = {memory};")
        arguments, constants = [], []
        inputs = [operand.name for operand in self.inputs]
        for operand in self.form.operands:
            variable = "the_" + operand.name.replace("-", "_")
            if operand.kind in _LOADED:
                c_type = register_type(spec, operand.register_types[0]).c_type
                lines.append(f"{c_type} {variable}[{operand.registers}];")
                if operand.name in inputs:
                    lines.append(f"load({variable}, o.registers[{inputs.index(operand.name)}]);")
                arguments.append(variable if operand.listed else f"{variable}[0]")
            elif operand.kind == "address":
                lines.append(f"unsigned {variable}[1];\n  load({variable}, o.registers[{inputs.index(operand.name)}]);")
                arguments.append(f"memory + {variable}[0]")
            elif operand.kind == "stride":
                arguments.append("o.stride")
            elif operand.kind == "descriptor":
                arguments.append(f"o.{operand.name.replace('-', '_')} + start")
            elif operand.kind == "predicate":
                arguments.append("o.scale_d != 0")
            else:
                constants.append(str(self.constant(operand)))
        template = f"<{', '.join(constants)}>" if constants else ""
        call = f"ptxmma::{self.instruction.identifier}{template}({', '.join(arguments)});"
        if self.instruction.variant.instruction.asynchronous:
            call = f"ptxmma::fence_accumulator(the_d); ptxmma::wgmma_fence(); {call} ptxmma::wgmma_commit_group(); " + (
                "ptxmma::wgmma_wait_group<0>(); ptxmma::fence_accumulator(the_d);"
            )
        result = self.result
        lines += [call, "keep(memory, o);" if result is None else f"store(the_{result.name}, o.d);"]
        return f"__global__ void {name}(Operands o) {{\n  " + "\n  ".join(lines) + "\n}\n"


_LOADED = ("fragment", "accumulator", "metadata", "scale-data")
#: Kinds of constants that are combined in full for some N.
_CONSTANTS = ("immediate", "majorness", "negation")


def kernels(catalog: Catalog, target: str, families: Iterable[str] = (), newest: str = "") -> Iterator[Kernel]:
    """The kernels of every instruction of a target, see :func:`of_instruction`; ``newest``: the newest version that the compiler knows."""
    chosen = set(families)
    for instruction in catalog.all():
        first = instruction.accepted_by().get(target)
        if first is not None and (not newest or first <= newest) and (not chosen or instruction.family in chosen):
            yield from of_instruction(instruction)


def of_instruction(instruction: Instruction) -> Iterator[Kernel]:
    """Every operand form with every selector, and with every other constant for some N; none for an instruction that only orders others.

    The other constants negate and transpose; the wrapper is the same template for all of them.
    """
    for form in instruction.forms if instruction.operation != "synchronise" else ():
        choices: dict[str, Sequence[int]] = {}
        for operand in form.operands:
            in_full = operand.kind in _CONSTANTS and instruction.extents.get("n") in N_IN_FULL
            if operand.kind == "selector" or in_full:
                choices[operand.name] = operand.immediates or ()
        for values in itertools.product(*choices.values()):
            yield Kernel(instruction, form, dict(zip(choices, values, strict=True)))


def build(nvcc: str, target: str, include: Path, kernels: Sequence[Kernel], library: Path) -> Path:
    """Compile kernels for a target into a shared library, as ``kernel_0``, ``kernel_1``, …."""
    bodies = [kernel.source(f"kernel_{index}") for index, kernel in enumerate(kernels)]
    table = ", ".join(f"kernel_{index}" for index in range(len(bodies)))
    source = library.with_suffix(".cu")
    source.write_text(_SUPPORT + "".join(bodies) + f"static void (*const kernels[])(Operands) = {{{table}}};\n" + _RUN)
    virtual = target.replace("sm_", "compute_")
    options = ["-std=c++17", "-gencode", f"arch={virtual},code={target}", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run([nvcc, *options, "-I", str(include), str(source), "-o", str(library)], check=True, capture_output=True, text=True)
    return library


class Chip:
    """Compiled kernels, ready to run."""

    def __init__(self, nvcc: str, target: str, include: Path, folder: Path, kernels: Iterable[Kernel]) -> None:
        """Compile kernels for a target into shared libraries in ``folder``, :data:`PER_FILE` in each."""
        self._kernels = list(kernels)
        parts = [self._kernels[first : first + PER_FILE] for first in range(0, len(self._kernels), PER_FILE)]
        self.libraries = [folder / f"kernels_{number}.so" for number in range(len(parts))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = pool.map(functools.partial(build, nvcc, target, include), parts, self.libraries)
            self._loaded = [ctypes.CDLL(str(library)) for library in made]

    def run(
        self,
        number: int,
        registers: Mapping[str, Array],
        *,
        image: Array | None = None,
        descriptors: Mapping[str, int] | None = None,
        stride: int = 0,
        scale_d: bool = True,
    ) -> Array:
        """The result of kernel ``number``, (batch, threads, registers), or the image after a store.

        Args:
            number: the number of the kernel.
            registers: the registers, by the operands' names, (batch, threads, registers).
            image: memory, bytes.
            descriptors: the descriptors, by the operands' names, for memory that starts at 0.
            stride: the distance from a row to the next.
            scale_d: whether the addend counts.
        """
        kernel = self._kernels[number]
        given: Sequence[Array] = [np.ascontiguousarray(registers[operand.name]) for operand in kernel.inputs]
        batch = given[0].shape[0]
        bytes_ = np.zeros(0, np.uint8) if image is None else np.ascontiguousarray(image)
        result = np.empty_like(bytes_)
        if (written := kernel.result) is not None:
            width = register_type(kernel.instruction.database.spec, written.register_types[0]).bits
            result = np.empty((batch, kernel.threads, written.registers), f"u{width // 8}")
        pointers = (ctypes.c_void_p * len(given))(*[array.ctypes.data for array in given])
        sizes = (ctypes.c_size_t * len(given))(*[array.nbytes for array in given])
        starts: Mapping[str, Any] = descriptors or {}
        library = self._loaded[number // PER_FILE]
        library.error_text.restype = ctypes.c_char_p
        status = library.run(
            number % PER_FILE, batch, kernel.threads, pointers, sizes, len(given),
            ctypes.c_void_p(result.ctypes.data), ctypes.c_size_t(result.nbytes),
            ctypes.c_void_p(bytes_.ctypes.data), ctypes.c_uint(bytes_.nbytes), ctypes.c_uint(stride),
            ctypes.c_ulonglong(starts.get("a-desc", 0)), ctypes.c_ulonglong(starts.get("b-desc", 0)), int(scale_d),
        )  # fmt: skip
        if status:
            raise RuntimeError(f"{kernel.instruction.canonical}: {library.error_text(status).decode()}")
        return result
