"""Random operands of one kernel: as matrices, and in registers and shared memory as the library places them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from ptxmma.arrays import elements
from ptxmma.arrays.elements import Array
from ptxmma.catalog import layouts
from ptxmma.catalog.descriptors.shared_formats import read_by
from ptxmma.catalog.operands import Operand
from ptxmma.matrices import sparse
from ptxmma.matrices.shared_memory import SharedLayout
from ptxmma.model import ElementType
from ptxmma_proof.silicon.kernels import Kernel

#: Blocks of each launch, each with registers of its own.
BATCH = 4
#: The period of the widest swizzle in bytes; shared memory is aligned to it.
_ALIGNMENT = 1024

#: A function that draws a matrix, given its shape, its type, and whether it is the addend.
Draw = Callable[[tuple[int, ...], ElementType, bool], Array]


class Operands(msgspec.Struct, eq=False):
    """The operands of one launch.

    Attributes:
        registers: the registers, by the operands' names, (batch, threads, registers).
        keywords: the same as arguments of :func:`ptxmma.emulate`.
        matrices: ``a``, ``b`` and ``c`` as numbers, (batch or 1, rows, columns); a sparse A with its zeros.
        image: shared memory, for descriptors.
        descriptors: the descriptors, by the operands' names.
        images: the layouts in that memory, by the operands' names.
    """

    registers: dict[str, Array] = {}
    keywords: dict[str, Any] = {}
    matrices: dict[str, Array] = {}
    image: Array | None = None
    descriptors: dict[str, int] = {}
    images: dict[str, SharedLayout] = {}

    @property
    def scale_d(self) -> bool:
        """True if the instruction adds the addend."""
        return bool(self.keywords.get("scale_d", True))


class Builder:
    """Makes the operands of one kernel."""

    def __init__(self, kernel: Kernel, random: np.random.Generator, draw: Draw, *, swizzle: str | None = None) -> None:
        """``swizzle``: the swizzle of all operands in shared memory; a random one for each by default."""
        self._kernel, self._random, self._draw, self._swizzle = kernel, random, draw, swizzle
        self._instruction = kernel.instruction

    def build(self) -> Operands:
        """The operands, anew each time."""
        made = Operands(keywords={keyword(name): value for name, value in self._kernel.immediates.items()})
        if any(operand.kind == "predicate" for operand in self._kernel.form.operands):
            made.keywords["scale_d"] = bool(self._random.integers(4))
        for operand in self._kernel.inputs:
            if operand.kind in ("fragment", "accumulator") and not (operand.name == "a" and self._instruction.sparse):
                self._fragment(made, operand)
        if self._instruction.sparse:
            self._sparse(made)
        for name in self._kernel.descriptors:
            matrix = name.partition("-")[0]
            if matrix not in made.matrices:
                made.matrices[matrix] = self._draw(self._extents(matrix), self.type(matrix), False)
        self._share(made)
        for name, typed in made.matrices.items():
            element = self.type(name)
            made.matrices[name] = elements.numbers(elements.codes(typed, element), element)
        return made

    def _fragment(self, made: Operands, operand: Operand) -> None:
        assert operand.element is not None
        computations = (operand.computations,) if operand.computations > 1 else ()
        shape = (BATCH, *computations, operand.rows, operand.cols)
        matrix = self._draw(shape, operand.element, operand.kind == "accumulator")
        name = "c" if operand.name == "d" else operand.name  # wgmma has its addend in D
        made.matrices[name] = matrix
        made.registers[operand.name] = made.keywords[name] = operand.pack(matrix)

    # --- sparsity ---------------------------------------------------------------------------------------------------------

    def _sparse(self, made: Operands) -> None:
        """A with its metadata: compressed from a matrix, or values with any legal fields."""
        layout = self._instruction.metadata
        pattern = layout.granularity.name
        in_registers = next((operand for operand in self._kernel.inputs if operand.name == "a"), None)
        m, packed = self._extents("a")
        batch = (BATCH,) if in_registers else ()
        element = self.type("a")
        if self._random.integers(2):
            full = self._draw((*batch, m, packed * layout.granularity.chunk // layout.granularity.kept), element, False)
            values, metadata = sparse.compress(self._pruned(full, pattern, element), pattern, element=element)
        else:
            values = self._draw((*batch, m, packed), element, False)
            legal = [int(value, 2) for value in layout.legal]
            metadata = sparse.from_fields(self._random.choice(legal, (BATCH, m, layout.chunks)).astype(np.uint8))
        wide = np.broadcast_to(values, (*metadata.shape[:-2], m, packed))
        made.matrices["a"] = sparse.decompress(np.ascontiguousarray(wide), metadata, pattern)
        metadata = np.broadcast_to(metadata, (BATCH, *metadata.shape[-2:]))
        if in_registers:
            made.registers["a"] = made.keywords["a"] = in_registers.pack(values)
        else:
            made.matrices["values"] = values
        self._metadata(made, np.ascontiguousarray(metadata))

    def _pruned(self, matrix: Array, pattern: str, element: ElementType) -> Array:
        """Prune by a random mask, so that every set of kept places occurs."""
        ranks = self._random.random(matrix.shape)
        return np.asarray(sparse.prune(matrix, pattern, mask=sparse.prune(ranks, pattern) != 0, element=element))

    def _metadata(self, made: Operands, metadata: Array) -> None:
        """Metadata registers, with random bits in the threads that the selector leaves out."""
        layout = self._instruction.metadata
        operand = next(operand for operand in self._kernel.inputs if operand.kind == "metadata")
        selector = made.keywords.get("selector", 0)
        registers = layout.pack(metadata, selector)
        read = layout.pack(np.full_like(metadata, 0xFF), selector, check=False)
        poison = self._random.integers(0, 1 << 32, registers.shape, np.uint32)
        registers = registers | (poison & ~read)
        made.registers[operand.name] = registers[..., np.newaxis]
        made.keywords["metadata"] = registers

    # --- shared memory ----------------------------------------------------------------------------------------------------

    def _share(self, made: Operands) -> None:
        """The image with every operand that is read through a descriptor."""
        parts: list[Array] = []
        end = 0
        for name in self._kernel.descriptors:
            matrix = name.partition("-")[0]
            stored = made.matrices.pop("values") if matrix == "a" and "values" in made.matrices else made.matrices[matrix]
            x, k = stored.shape if matrix == "a" else stored.shape[::-1]
            layout = self._layout(matrix, x, k, start=end)
            row, column = self._corner(layout, x, k)
            whole = self._draw((layout.x, layout.k), self.type(matrix), False)
            whole[row : row + x, column : column + k] = stored if matrix == "a" else stored.T
            parts += [np.zeros(layout.start - end, np.uint8), layout.store_xk(whole)]
            end = layout.start + layout.size
            padding = -end % _ALIGNMENT
            parts.append(np.zeros(padding, np.uint8))
            end += padding
            made.descriptors[name] = made.keywords[matrix] = layout.descriptor(row, column, x_extent=x, k_extent=k).encode()
            made.images[name] = layout
        if parts:
            made.image = made.keywords["memory"] = np.concatenate(parts)

    def _layout(self, matrix: str, x: int, k: int, start: int) -> SharedLayout:
        """An image with room for more than the operand, with gaps between its groups and panels, at any offset of its pattern."""
        random, element = self._random, self.type(matrix)
        majorness = "K"
        for operand in self._kernel.form.operands:
            if operand.kind == "majorness" and operand.of == matrix:
                majorness = {value: meaning for meaning, value in operand.meanings.items()}[self._kernel.constant(operand)]
        spec = self._instruction.database.spec
        assert spec.shared_memory is not None
        swizzles = read_by(spec, spec.shared_memory, self._instruction.family).swizzles
        swizzle = self._swizzle or str(random.choice([mode.name for mode in swizzles]))
        mode = next(mode for mode in swizzles if mode.name == swizzle)
        panel = mode.bytes * 8 // element.bits
        contiguous, other = (k, x) if majorness == "K" else (x, k)
        contiguous = -(-contiguous // panel) * panel + panel * int(random.integers(2))
        other = -(-other // 8) * 8 + 8 * int(random.integers(2))
        extents = (other, contiguous) if majorness == "K" else (contiguous, other)
        dense = SharedLayout(element, majorness, swizzle, *extents, start=start)
        group = 8 * mode.bytes
        inner, outer = sorted((dense.lbo, dense.sbo))
        wider = inner + group * int(random.integers(2))
        widest = wider * (outer // inner) + group * int(random.integers(2))
        strides = (wider, widest) if dense.lbo <= dense.sbo else (widest, wider)
        shift = int(random.integers(8)) if mode.bytes > 16 else 0  # of the pattern, in the 128 bytes that base_offset counts
        return SharedLayout(
            element, majorness, swizzle, *extents, lbo=strides[0], sbo=strides[1], start=start + 128 * shift, base_offset=shift
        )

    def _corner(self, layout: SharedLayout, x: int, k: int) -> tuple[int, int]:
        """The corner of the operand in the image, anywhere that a descriptor reaches."""
        corners = [(row, column) for row in range(0, layout.x - x + 1, 8) for column in range(0, layout.k - k + 1, max(k, 1))]
        row, column = corners[int(self._random.integers(len(corners)))]
        try:
            layout.descriptor(row, column, x_extent=x, k_extent=k)
        except ValueError:
            return 0, 0
        return row, column

    # --- types and extents ------------------------------------------------------------------------------------------------

    def type(self, name: str) -> ElementType:
        """The element type of ``a``, ``b`` or ``c``."""
        operand = next((operand for operand in self._kernel.form.operands if operand.name == name), None)
        if operand is not None and operand.element is not None:
            return operand.element
        qualifiers = self._instruction.qualifiers
        return layouts.element_type(self._instruction.database.spec, qualifiers.get(f"{name}type", qualifiers["dtype"]))

    def _extents(self, matrix: str) -> tuple[int, int]:
        """Rows and columns of A as it is stored, or of B."""
        assert self._instruction.shape is not None
        m, n, k = self._instruction.shape
        if matrix == "b":
            return k, n
        pattern = self._instruction.metadata.granularity if self._instruction.sparse else None
        return m, k * pattern.kept // pattern.chunk if pattern else k


def keyword(name: str) -> str:
    """The argument of :func:`ptxmma.emulate` for an operand."""
    return "selector" if name in ("f", "sp-sel") else name.replace("-", "_")
