"""Reads every layout of every atom out of CUTLASS's headers, as text and element by element.

A generated program includes the headers, calls the layout functions in the ``MMA_Traits`` of each atom for every thread and value, and
prints the results.  It prints CuTe's shared-memory atoms and matrix descriptors, too.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from ptxmma.catalog.evidence.witnesses import Tool
from ptxmma_proof.peers.headers import Atom
from ptxmma_proof.peers.recorded import SharedRecord
from ptxmma_proof.peers.sources import MissingPeerError, Source

Values = npt.NDArray[np.int64]

#: The most places of a layout of registers; a larger one only says that the whole matrix lies in shared memory.
_MOST_PLACES = 1 << 14
#: Types of elements in shared memory, one of each size.
TYPES = ("cute::uint8_t", "cute::half_t", "cute::tfloat32_t")


class Read(msgspec.Struct, frozen=True):
    """The traits of one atom: ``roles`` are the numbers of its layouts by CuTe's letter, ``"A"`` for ``ALayout``.

    ``"T"`` is the layout of thread numbers, ``ThrID``.
    """

    shape: tuple[int, ...]
    roles: dict[str, int]
    vector: int  # elements of A that share a scale factor; 0 without
    compression: int  # elements of A that a byte of metadata describes; 0 without


class Probe(msgspec.Struct, frozen=True):
    """The program's output: layouts by number, as CuTe prints them and, for registers, value by value."""

    texts: list[str]
    values: dict[int, Values]
    atoms: dict[str, Read]
    fields: dict[str, int]  # the bits of each field of a descriptor
    #: Operands in shared memory, each with the bytes from the start at which CuTe lays its elements (x, k), row by row.
    shared: list[tuple[SharedRecord, list[int]]]

    @property
    def threads(self) -> set[int]:
        """The layouts of thread numbers, which are functions of one coordinate."""
        return {read.roles["T"] for read in self.atoms.values()}


#: The start of a source that uses CuTe.
INCLUDES = r"""
#define CUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED
#include <cute/atom/mma_atom.hpp>
#include <cute/tensor.hpp>
#include <cstdio>
#include <type_traits>
using namespace cute;
"""

_READER = (
    INCLUDES
    + r"""
static int layouts = 0;

template <class S, class D> struct Fits : std::bool_constant<!is_tuple<S>::value && !is_tuple<D>::value> {};
template <bool, class S, class D> struct AllFit : std::false_type {};
template <class... S, class... D> struct AllFit<true, tuple<S...>, tuple<D...>> : std::bool_constant<(Fits<S, D>::value && ...)> {};
template <class... S, class... D>
struct Fits<tuple<S...>, tuple<D...>> : AllFit<sizeof...(S) == sizeof...(D), tuple<S...>, tuple<D...>> {};

template <class L, bool threads = false> int number() {
  static int const own = [] {
    std::printf("layout ");
    print(L{});
    std::printf("\nvalues");
    if constexpr (Fits<std::decay_t<decltype(shape(L{}))>, std::decay_t<decltype(stride(L{}))>>::value) {
      if constexpr (threads)
        for (int thread = 0; thread < size(L{}); ++thread) std::printf(" %d", int(L{}(thread)));
      else if (size(L{}) <= MOST_PLACES)
        for (int thread = 0; thread < size<0>(L{}); ++thread)
          for (int value = 0; value < size<1>(L{}); ++value) std::printf(" %d", int(L{}(thread, value)));
    }
    std::printf("\n");
    return layouts++;
  }();
  return own;
}

#define DETECT(Name)                                                                                  \
  template <class T, class = void> struct Has##Name : std::false_type {};                             \
  template <class T> struct Has##Name<T, std::void_t<typename T::Name>> : std::true_type {};
DETECT(ELayout) DETECT(SFALayout) DETECT(SFBLayout) DETECT(ValTypeE)
template <class T, class = void> struct HasVector : std::false_type {};
template <class T> struct HasVector<T, std::void_t<decltype(T::SFVecSize)>> : std::true_type {};

template <class Op> void atom(char const* name) {
  using T = MMA_Traits<Op>;
  using S = typename T::Shape_MNK;
  int const t = number<typename T::ThrID, true>(), a = number<typename T::ALayout>(), b = number<typename T::BLayout>();
  int const c = number<typename T::CLayout>();
  int e = -1, sfa = -1, sfb = -1, vector = 0, compression = 0;
  if constexpr (HasELayout<T>::value) { e = number<typename T::ELayout>(); compression = T::ValTypeE::sparsity; }
  if constexpr (HasSFALayout<T>::value) sfa = number<typename T::SFALayout>();
  if constexpr (HasSFBLayout<T>::value) sfb = number<typename T::SFBLayout>();
  if constexpr (HasVector<T>::value) vector = T::SFVecSize;
  std::printf("atom %s\t%d %d %d\t%d %d %d %d %d %d %d\t%d %d\n", name, int(size<0>(S{})), int(size<1>(S{})), int(size<2>(S{})),
              t, a, b, c, e, sfa, sfb, vector, compression);
}

#define FIELD(member)                                                                                 \
  { GmmaDescriptor d(0); d.bitfield.member = ~0; std::printf("field " #member " %llu\n", (unsigned long long)d.desc_); }

template <class Type, SM90::GMMA::Major major, int depth, class Atom, class Layout> void operand(char const* name, Layout const& layout) {
  using namespace SM90::GMMA;
  constexpr int x = size<0>(Layout{}), k = depth / sizeof_bits_v<Type>;
  auto const whole = make_tensor(make_smem_ptr(static_cast<Type*>(nullptr)), layout);
  auto const tile = local_tile(whole, Shape<Int<x>, Int<k>>{}, make_coord(0, 0));
  std::printf("\ndescriptor %llu\n", (unsigned long long)make_gmma_desc<major>(tile).desc_);
  std::printf("shared %s %s %d %d %d ", name, major == Major::K ? "K" : "MN", int(sizeof_bits_v<Type>), x, k);
  print(Atom{});
  std::printf("\nimage ");
  print(local_tile(make_tensor(static_cast<Type*>(nullptr), layout.layout_b()), Shape<Int<x>, Int<k>>{}, make_coord(0, 0)).layout());
  std::printf("\noffsets");
  auto const plain = as_position_independent_swizzle_layout(layout);
  for (int row = 0; row < x; ++row)
    for (int column = 0; column < k; ++column) std::printf(" %d", int(plain(row, column)) * int(sizeof_bits_v<Type>) / 8);
  std::printf("\n");
}

template <class Type, SM90::GMMA::Major major, class Atom> void shared(char const* name) {
  auto const layout = tile_to_shape(Atom{}, Shape<_128, Int<1024 / sizeof_bits_v<Type>>>{});
  operand<Type, major, 256, Atom>(name, layout);  // as deep as a dense operand, in bits
  operand<Type, major, 512, Atom>(name, layout);  // as deep as the B of a sparse instruction
}

template <class Type> void all_shared() {
  using namespace SM90::GMMA;
#define BOTH(Name)                                                                                    \
  shared<Type, Major::K, Layout_K_##Name##_Atom<Type>>(#Name);                                        \
  shared<Type, Major::MN, Layout_MN_##Name##_Atom<Type>>(#Name);
  BOTH(INTER) BOTH(SW32) BOTH(SW64) BOTH(SW128)
}
"""
)

_MAIN = r"""
int main() {
  FIELD(start_address_) FIELD(leading_byte_offset_) FIELD(stride_byte_offset_) FIELD(base_offset_) FIELD(layout_type_)
  shared_memory();
  atoms();
}
"""


class CompilerError(RuntimeError):
    """The compiler refuses CUTLASS's headers; the message has its first errors."""


def read(cutlass: Source, atoms: Iterable[Atom], types: Iterable[str] = TYPES, nvcc: str = "nvcc") -> Probe:
    """Compile and run the program.

    Args:
        cutlass: the headers.
        atoms: those to ask; they must have layouts.
        types: the types of elements in shared memory.
        nvcc: NVIDIA's compiler, for its own headers and the host compiler that it finds.

    Raises:
        MissingPeerError: the compiler is not installed.
        CompilerError: it refuses the headers.
    """
    calls = "".join(f'  atom<{atom.type}>("{atom.type}");\n' for atom in atoms)
    images = "".join(f"  all_shared<{name}>();\n" for name in types)
    bodies = f"static void atoms() {{\n{calls}}}\nstatic void shared_memory() {{\n{images}}}\n"
    source = _READER.replace("MOST_PLACES", str(_MOST_PLACES)) + bodies + _MAIN
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "probe"
        compile_source(cutlass, source, Path(scratch), nvcc, program)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return _parsed(printed)


def compile_source(cutlass: Source, source: str, scratch: Path, nvcc: str, program: Path | None = None) -> None:
    """Compile C++ against the headers: to a program, or only to see whether it compiles.

    Raises:
        MissingPeerError: the compiler is not installed.
        CompilerError: it refuses; the message has its errors.
    """
    if shutil.which(nvcc) is None:
        raise MissingPeerError(f"{nvcc}: no such compiler; CUTLASS's headers need NVIDIA's")
    file = scratch / "peers.cpp"
    file.write_text(source, encoding="utf-8")
    target = ["-o", str(program)] if program else ["-c", "-o", str(scratch / "peers.o")]
    # A host compiler's constexpr evaluation has limits that thousands of elements exceed.
    options = ["-std=c++17", "-O0", "-w", "-Xcompiler", "-fconstexpr-ops-limit=4000000000", "-I", str(cutlass.folder)]
    done = subprocess.run([nvcc, *options, *target, str(file)], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line]
        raise CompilerError("\n".join(errors[:200]))


def tool(nvcc: str, date: str) -> Tool:
    """The compiler for the record, with its name and version: ``"nvcc 13.0, V13.0.88"``."""
    said = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    version = "nvcc " + next(line for line in said.splitlines() if "release" in line).split("release ")[1]
    return Tool(kind="compiler", name="compiler for CuTe", version=version, date=date)


_ROLES = ("T", "A", "B", "C", "E", "SFA", "SFB")


def _parsed(printed: str) -> Probe:
    probe = Probe([], {}, {}, {}, [])
    lines = iter(line for line in printed.splitlines() if not line.startswith("ERROR"))
    descriptor = 0
    for line in lines:
        what, _, rest = line.partition(" ")
        if what == "layout":
            number = len(probe.texts)
            probe.texts.append(rest)
            values = np.array(next(lines).split()[1:], np.int64)
            if values.size:
                probe.values[number] = values
        elif what == "atom":
            name, *columns = rest.split("\t")
            shape, numbers, extra = (tuple(map(int, column.split())) for column in columns)
            roles = {role: number for role, number in zip(_ROLES, numbers, strict=True) if number >= 0}
            probe.atoms[name] = Read(shape, roles, *extra)
        elif what == "field":
            name, bits = rest.split()
            probe.fields[name.rstrip("_")] = int(bits)
        elif what == "descriptor":
            descriptor = int(rest)
        elif what == "shared":
            probe.shared.append(_shared(rest, descriptor, next(lines), next(lines)))
    return probe


def _shared(rest: str, descriptor: int, image: str, offsets: str) -> tuple[SharedRecord, list[int]]:
    atom, majorness, bits, rows, depth, layout = rest.split(" ", 5)
    image = image.partition(" ")[2]
    record = SharedRecord(
        atom=atom, majorness=majorness, bits=int(bits), rows=int(rows), depth=int(depth), layout=layout, image=image, descriptor=descriptor
    )
    return record, list(map(int, offsets.split()[1:]))
