"""``ptxmma trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.command import Given, NamedNumbers, numbers_of
from ptxmma.cli.options import (
    SectionOption,
    completed,
    find,
    instruction_argument,
    product_options,
    require_product,
    resolved,
    spellings,
    swizzles,
    table_options,
    usage_errors,
)
from ptxmma.cli.render import coloured
from ptxmma.cli.tiles import integer
from ptxmma.cli.tiles import numbers as dimensions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxmma.catalog.instructions import Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.cli.render import Cell
    from ptxmma.matrices.product_operands import Multiplicand
    from ptxmma.matrices.shared.canonical import Geometry
    from ptxmma.matrices.shared.copied_tile import CopiedTile
    from ptxmma.matrices.tracing import MemoryPlace, Move, Moves, Place, TensorPlace

_MAJOR = click.Choice(["k", "mn"], case_sensitive=False)

_IMAGES, _MEMORY = "Matrices in shared memory", "D in tensor memory"
_SCALE_IDS = ("byte-id-a", "thread-id-a", "byte-id-b", "thread-id-b", "scale-id-a", "scale-id-b")


def _scale_id_options(command: click.decorators.FC) -> click.decorators.FC:
    for name in reversed(_SCALE_IDS):
        more: Any = {"cls": SectionOption, "section": "Scale factors"}
        command = click.option(f"--{name}", type=int, help="The first legal value by default.", **more)(command)
    return command


@click.command(
    "trace", cls=NamedNumbers, axes={"row col": "An element of D, or of what is moved.", "matrix computation": "One of several."}
)
@instruction_argument
@product_options
@click.option(
    "--a-from",
    type=click.Choice(["registers", "descriptor", "tensor"]),
    help="Where A is, if the instruction takes several: registers by default, for tcgen05 the descriptor, or tensor memory.",
)
@click.option("--selector", type=int, help="The sparsity selector; 0 by default.")
@click.option("--stride", type=int, help="For wmma: elements from a row, or column, to the next in memory; by default without gaps.")
@click.option(
    "--swizzle",
    cls=SectionOption,
    section=_IMAGES,
    metavar="BYTES",
    shell_complete=completed(swizzles),
    help="For matrices in shared memory, whose addresses it shows: none, 32, 64 or 128 bytes; for tcgen05 also 128B_ATOM_32B.",
)
@click.option(
    "--major-a",
    cls=SectionOption,
    section=_IMAGES,
    type=_MAJOR,
    help="Which dimension of A is contiguous in shared memory: k, by default, or mn.",
)
@click.option("--major-b", cls=SectionOption, section=_IMAGES, type=_MAJOR, help="The same of B.")
@click.option(
    "--tensor-a",
    cls=SectionOption,
    section=_IMAGES,
    type=dimensions,
    metavar="SIZES",
    help="The tensor from which TMA copies A: 4096x4096.",
)
@click.option(
    "--at-a",
    cls=SectionOption,
    section=_IMAGES,
    type=dimensions,
    metavar="COORDINATES",
    help="Where the image of A begins in it; 0 by default.",
)
@click.option("--tensor-b", cls=SectionOption, section=_IMAGES, type=dimensions, metavar="SIZES", help="The same of B.")
@click.option("--at-b", cls=SectionOption, section=_IMAGES, type=dimensions, metavar="COORDINATES", help="The same of B.")
@_scale_id_options
@click.option(
    "--through",
    cls=SectionOption,
    section=_MEMORY,
    metavar="LOAD",
    shell_complete=spellings,
    help="A tcgen05.ld or st of D; shows the register of the element.",
)
@click.option(
    "--base",
    cls=SectionOption,
    section=_MEMORY,
    type=integer,
    help="The address of D; lanes and columns of D are then those of the memory.",
)
@table_options()
def command(
    spelling: str,
    database: str | None,
    numbers: Given,
    a_from: str | None,
    selector: int | None,
    stride: int | None,
    swizzle: str | None,
    major_a: str | None,
    major_b: str | None,
    tensor_a: tuple[int, ...] | None,
    at_a: tuple[int, ...] | None,
    tensor_b: tuple[int, ...] | None,
    at_b: tuple[int, ...] | None,
    through: str | None,
    base: int | None,
    form: str,
    **scale_ids: int | None,
) -> None:
    """Show what feeds one element of D, or where an element is moved from and to.

    Name the element by the axes of the matrix: --row 9 --col 3, or --matrix 1 --row 3 --col 5 for ldmatrix.

    For a product, prints every element of A, B and C with its lane and its bits, the metadata that picks rows of B, and the scale factors:
    a line for each term of the sum.  A sparse A has a term for each stored element, with every row of B that its index may pick.  For a
    load or a store, prints the register of the element, and its bytes relative to the address that a thread gives.  For a transposition,
    prints both registers.

    A product of tcgen05 needs the shape and the types that its opcode does not state.  Its places in tensor memory count from the addresses
    of the operands.  With --through, the register of the thread that loads the element of D.  With --tensor-a and --tensor-b, the elements
    of the tensors from which TMA fills the images, by their coordinates, the innermost first.

    \b
    Examples:
      ptxmma trace mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 --row 9 --col 3
      ptxmma trace wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 --row 9 --col 3 --swizzle 128
      ptxmma trace tcgen05.mma.cta_group::1.kind::f16 --m 128 --n 256 --dtype f16 --row 37 --col 200
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.cli import product_terms
    from ptxmma.matrices.operations import operation
    from ptxmma.matrices.tracing import Moves, trace

    instruction = resolved(find(spelling, database))
    require_product(instruction)
    ids = {name: value for name in _SCALE_IDS if (value := scale_ids[name.replace("-", "_")]) is not None}
    majors = {letter: major for letter, major in (("a", major_a), ("b", major_b)) if major}
    with usage_errors((TypeError, ValueError)):
        described = operation(instruction).described(instruction, a_from)
        images = _images(instruction, described, swizzle, majors)
        loads = None if through is None else find(through, database)
        options: dict[str, object] = {
            "form": a_from,
            "selector": selector,
            "stride": stride,
            "scale_ids": ids or None,
            "images": {**images, **_tiles(described, images, {"a": (tensor_a, at_a), "b": (tensor_b, at_b)}, database)} or None,
        }
        options |= {"through": loads, "base": base}
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        operand = operation(instruction).traced(instruction)
        axes = _axes(operand, numbers, instruction.canonical)
        traced = trace(instruction, **axes, **given)
    if isinstance(traced, Moves):
        _show_moves(instruction, operand, traced, form)
    else:
        product_terms.show(instruction, operand, traced, form, described, images)


def _images(
    instruction: Instruction, described: Mapping[str, Multiplicand], swizzle: str | None, majors: Mapping[str, str]
) -> dict[str, Geometry]:
    """The smallest images that hold the matrices in shared memory, whole panels of the swizzle, by the names of the matrices."""
    from ptxmma.catalog.instructions.user_names import swizzle_named
    from ptxmma.matrices.operations import operation
    from ptxmma.matrices.shared.canonical import Geometry, canonical, packing
    from ptxmma.matrices.shared.readable_types import memory_of

    if swizzle is None and not majors:
        return {}
    if not described:
        raise click.UsageError(f"{instruction.canonical} reads no matrix through a descriptor: leave out --swizzle and --major")
    if wrong := [f"--major-{name}" for name in majors if name not in described]:
        more = operation(instruction).described(instruction, "descriptor").keys() - described.keys()
        hint = "; --a-from descriptor reads A there" if more else ""
        raise click.UsageError(f"{instruction.canonical} does not read that matrix from shared memory: leave out {', '.join(wrong)}{hint}")
    if swizzle is None:
        raise click.UsageError("--major-a and --major-b need --swizzle: none, 32, 64 or 128")
    images, name, database, family = {}, swizzle_named(swizzle), instruction.database, instruction.variant.instruction.family
    for letter, each in described.items():
        major = majors.get(letter, "k").upper()
        try:
            span = canonical(memory_of(database), major, name).mode.bytes
            panel = packing(each.element, family, database, padded=each.padded).fitting(span)
            depth = -(-each.depth // panel) * panel if major == "K" else each.depth
            images[each.name] = Geometry(each.element, major, name, each.lines, depth, padded=each.padded, family=family, database=database)
        except ValueError as error:
            raise click.UsageError(f"{letter.upper()}: {str(error).partition('; store_tiles')[0]}") from None
    return images


def _tiles(
    described: Mapping[str, Multiplicand],
    images: Mapping[str, Geometry],
    tensors: Mapping[str, tuple[tuple[int, ...] | None, tuple[int, ...] | None]],
    database: str | None,
) -> dict[str, CopiedTile]:
    """The images that are copied from tensors, by the names of the matrices."""
    from ptxmma.matrices.shared.box import BoxGeometry
    from ptxmma.matrices.shared.copied_tile import CopiedTile

    tiles = {}
    for letter, (shape, at) in tensors.items():
        if shape is None:
            if at is not None:
                raise click.UsageError(f"--at-{letter} needs --tensor-{letter}: the tensor's size along each dimension")
            continue
        if letter not in described or described[letter].name not in images:
            raise click.UsageError(f"--tensor-{letter} needs {letter.upper()} in shared memory, and --swizzle")
        layout = images[described[letter].name]
        height = layout.x if layout.majorness == "K" else layout.k
        extents = (layout.panel, height, *[1] * (len(shape) - 2))
        try:
            box = BoxGeometry(layout.element, shape, extents, swizzle=layout.swizzle, padded=layout.padded, database=database)
            tiles[described[letter].name] = CopiedTile(box, layout, at or (0,) * len(shape))
        except ValueError as error:
            raise click.UsageError(f"--tensor-{letter}, --at-{letter}: {error}") from None
    return tiles


def _axes(operand: Operand, numbers: Given, instruction: str) -> dict[str, int]:
    """The place of the element: a number for each axis of the operand."""
    legal = {axis: range(size) for axis, size in operand.sizes.items()}
    axes = numbers_of(numbers, legal, f"{operand.name} of {instruction}")
    if missing := [f"--{axis}" for axis in operand.axes if axis not in axes]:
        lacks = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        raise click.UsageError(f"name an element of {operand.name} of {instruction}: {lacks}")
    return axes


def _show_moves(instruction: Instruction, operand: Operand, traced: Moves, form: str) -> None:
    """Print the moves of an element: several where threads hold it in copies."""
    from ptxmma.cli.render import Table, draw, emit
    from ptxmma.matrices.pictures import seen

    if form == "json":
        observed = {"observed": operand.observed} if operand.observed else {}
        moves = [
            {"from": _record(move.source, move.source_operand), "to": _record(move.target, move.target_operand)} for move in traced.moves
        ]
        emit({"instruction": instruction.canonical, "operand": traced.operand, **traced.at, **observed, "moves": moves})
        return
    columns, rows = ["element", "from", "to"], [_row(traced, move) for move in traced.moves]
    if operand.observed and form != "grid":
        columns, rows = [*columns, "observed"], [[*row, operand.observed] for row in rows]
    title = "\n".join([instruction.canonical, *([seen(operand.observed)] if operand.observed else [])])
    draw(Table(columns, rows, title), form)


def _row(traced: Moves, move: Move) -> list[str | Cell]:
    element = traced.operand + "".join(f"[{number}]" for number in traced.at.values())
    return [element, _where(move.source, move.source_operand), _where(move.target, move.target_operand)]


def _where(place: Place | MemoryPlace | TensorPlace, operand: str) -> str | Cell:
    """``"lane 13, r1[31:16]"``, ``"p of lane 11 + 10 bytes, [15:0]"``, or ``"taddr + lane 3, column 5, [31:0]"``."""
    from ptxmma.matrices.tracing import MemoryPlace, TensorPlace

    if isinstance(place, TensorPlace):
        return f"{operand}{' of the second access' if place.access else ''} + lane {place.lane}, column {place.column}, [{place.bits}]"

    if not isinstance(place, MemoryPlace):
        return coloured(f"lane {place.lane}, {operand}{place.register}[{place.bits}]", place.lane)
    owner = "" if place.lane is None else f" of lane {place.lane}"
    text = f"{operand}{owner} + {place.byte} bytes, [{place.bits}]"
    return text if place.lane is None else coloured(text, place.lane)


def _record(place: Place | MemoryPlace | TensorPlace, operand: str) -> dict[str, str | int | None]:
    from ptxmma.matrices.tracing import MemoryPlace, TensorPlace

    if isinstance(place, TensorPlace):
        return {"tensor_address": operand, "access": place.access, "lane": place.lane, "column": place.column, "bits": place.bits}

    if isinstance(place, MemoryPlace):
        return {"address": operand, "lane": place.lane, "byte": place.byte, "bits": place.bits}
    return {"operand": operand, "lane": place.lane, "register": place.register, "element": place.element, "bits": place.bits}
