"""``ptxmma smem``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.command import Command, within
from ptxmma.cli.options import database_option, named_option, table_options, usage_errors
from ptxmma.cli.render import coloured, draw_matrix
from ptxmma.cli.tiles import family_of, family_option, in_options, integer, padded_option, tile_option

if TYPE_CHECKING:
    from ptxmma.cli.render import Table
    from ptxmma.matrices.shared.canonical import Geometry

#: The addresses of each 16 bytes of each line.
Units = list[list[int]]
#: The strength of the colours of banks.
_STRONG = 2


@click.command("smem", cls=Command)
@family_option
@tile_option("type", required=True)
@tile_option("major", default="k")
@tile_option("swizzle", default="none")
@tile_option("rows", required=True)
@tile_option("cols", required=True)
@tile_option("address", default=0)
@tile_option("lbo")
@tile_option("sbo")
@tile_option("base-offset", default=0)
@padded_option
@click.option("--row", type=int, help="One element: its row (of B its column), with --col.")
@click.option("--col", type=int, help="Its place along k.")
@click.option("--at", type=integer, metavar="ADDRESS", help="What lies at this address: the inverse of --row and --col.")
@click.option("--transpose", is_flag=True, help="Lines as columns.")
@named_option("--target", "target", "A target whose thread blocks must have room for it.")
@click.option("--conflicts", is_flag=True, help="Only the bank conflicts.")
@table_options("svg")
@database_option
def command(
    family: str | None, element: str, major: str, swizzle: str, padded: bool, form: str, database: str | None, **given: Any
) -> None:
    """Show where a matrix lies in shared memory, and what accesses to it cost.

    The map has the address of every 16 bytes, which a swizzle moves together; a line is a row, or a column of an
    MN-major matrix.  Below it are the wavefronts that the usual accesses of a warp need, the worst of each kind, and the minimum for as
    many bytes.

    \b
    Example:
      ptxmma smem --type bf16 --major k --swizzle 128 --rows 64 --cols 64
      ptxmma smem --type bf16 --major k --swizzle 128 --rows 64 --cols 64 --at 0x1234
      ptxmma smem --family tcgen05 --type tf32 --major mn --swizzle 128B_ATOM_32B --rows 64 --cols 32
      ptxmma smem --family tcgen05 --type e2m3 --padded --major k --swizzle 128 --rows 8 --cols 128
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.matrices.shared.canonical import Geometry

    strides = {name: given[name] for name in ("lbo", "sbo", "base_offset")}
    try:
        layout = Geometry(
            element,
            major.upper(),
            swizzle,
            given["rows"],
            given["cols"],
            start=given["address"],
            padded=padded,
            family=family_of(family, database),
            database=database,
            **strides,
        )
        units = layout.units()
    except ValueError as error:
        raise click.UsageError(in_options(str(error))) from None
    if given["target"]:
        _check_room(layout, given["target"], database)
    row, col = given["row"], given["col"]
    if (row is None) != (col is None) or (row is not None and (form == "svg" or given["conflicts"] or given["transpose"])):
        raise click.UsageError("one element is --row and --col, without --transpose, --conflicts and --format svg")
    if given["at"] is not None and (row is not None or form == "svg" or given["conflicts"] or given["transpose"]):
        raise click.UsageError("--at is without --row, --col, --transpose, --conflicts and --format svg")
    if row is not None:
        within("row", row, layout.x)
        within("col", col, layout.k)
        _elements(layout, [(row, col)], form, database, one=True)
    elif given["at"] is not None:
        _elements(layout, _lying(layout, given["at"]), form, database)
    elif form == "svg":
        click.echo(_picture(layout, units), nl=False)
    elif form == "json":
        _json(layout, None if given["conflicts"] else units, database)
    else:
        if not given["conflicts"]:
            draw_matrix(_map(layout, units, given["transpose"]), form)
        if given["conflicts"] or form == "grid":
            _costs(layout, form, database, apart=not given["conflicts"])


def _check_room(layout: Geometry, target: str, database: str | None) -> None:
    """Refuse a matrix that reaches beyond the shared memory of a thread block."""
    from ptxmma.matrices.shared.readable_types import capacity

    with usage_errors():
        most = capacity(target, database=database).block
    if layout.start + layout.size > most:
        reach = f"the matrix lies from {layout.start} to {layout.start + layout.size - 1}"
        raise click.UsageError(f"{reach}; a thread block of {target} has at most {most} bytes of shared memory")


def _lying(layout: Geometry, address: int) -> list[tuple[int, int]]:
    """The elements that have bits of the byte at an address: several of those narrower than it."""
    try:
        found = dict.fromkeys(layout.coords(address, bit) for bit in range(8))
    except ValueError as error:
        raise click.UsageError(in_options(str(error))) from None
    if elements := [each for each in found if each is not None]:
        return elements
    reach = f"the matrix lies from {layout.start} to {layout.start + layout.size - 1}"
    raise click.UsageError(f"nothing lies at --at {address}; {reach}")


def _elements(layout: Geometry, places: list[tuple[int, int]], form: str, database: str | None, *, one: bool = False) -> None:
    """Show where elements lie, given by their rows and columns; in JSON a list, or ``one`` of them."""
    from ptxmma.cli.render import Table, draw, emit
    from ptxmma.matrices.shared.readable_types import memory_of

    banks, answers = memory_of(database).banks, []
    for row, col in places:
        address = layout.address(row, col)
        bank = address // banks.bytes % banks.count
        answers.append({"row": row, "col": col, "address": address, "offset": address - layout.start, "bank": bank})
        if layout.element.bits < 8:
            answers[-1]["bit"] = layout.bit(row, col)
    if form == "json":
        emit(answers[0] if one else answers)
    else:
        draw(Table(list(answers[0]), [list(answer.values()) for answer in answers]), form)


def _corner(layout: Geometry) -> str:
    return "row \\ col" if layout.majorness == "K" else "col \\ row"


def _title(layout: Geometry) -> str:
    name = f"{layout.element.name}{' padded' if layout.padded else ''}"
    return (
        f"{name}, {layout.majorness}-major, swizzle {layout.swizzle}: {layout.x} x {layout.k} in {layout.size} bytes "
        f"at {layout.start}, LBO {layout.lbo}, SBO {layout.sbo}"
    )


def _map(layout: Geometry, units: Units, transpose: bool) -> Table:
    """Addresses in the colour of their banks."""
    from ptxmma.cli.render import Table

    step = layout.per_unit
    size = step * layout.width // 8
    lines = [str(line) for line in range(len(units))]
    edge = [f"{step * unit}-{step * unit + step - 1}" for unit in range(len(units[0]))]
    cells = [[coloured(address, 4 * (address // size) + _STRONG) for address in line] for line in units]
    corner = _corner(layout)
    if transpose:
        lines, edge, cells = edge, lines, list(map(list, zip(*cells, strict=True)))
        corner = " \\ ".join(reversed(corner.split(" \\ ")))
    return Table([corner, *edge], [[name, *row] for name, row in zip(lines, cells, strict=True)], _title(layout))


def _costs(layout: Geometry, form: str, database: str | None, *, apart: bool) -> None:
    from ptxmma.cli.render import Table, draw
    from ptxmma.matrices.shared.accesses import access_patterns

    rows = [
        (each.name, each.lanes, each.width, each.accesses, each.wavefronts, each.least)
        for each in access_patterns(layout, database=database)
    ]
    if apart:
        click.echo()
    draw(Table(("access", "lanes", "bytes each", "accesses", "wavefronts", "minimum"), rows), form)


def _picture(layout: Geometry, units: Units) -> str:
    from ptxmma.matrices.pictures import image

    notes = [
        f"On the left the address of each 16 bytes, which are {layout.per_unit} elements. On the right what is at each address: its line "
        "and its first element. A line on the right is once through all banks.",
    ]
    return image(layout.memory, _title(layout), notes, _corner(layout), layout.per_unit, units)


def _json(layout: Geometry, units: Units | None, database: str | None) -> None:
    from ptxmma.cli.render import emit
    from ptxmma.matrices.shared.accesses import access_patterns
    from ptxmma.matrices.shared.descriptor import Descriptor

    about = {
        "family": layout.family,
        "type": layout.element.name,
        "major": layout.majorness,
        "padded": layout.padded,
        "swizzle": layout.swizzle,
        "rows": layout.x,
        "cols": layout.k,
    }
    about |= {"address": layout.start, "size": layout.size, "lbo": layout.lbo, "sbo": layout.sbo, "base_offset": layout.base_offset}
    answer: dict[str, Any] = {**about, "descriptor": f"{Descriptor.of(layout).encode(database=database):#018x}"}
    if units is not None:
        line_name, along = ("row", "col") if layout.majorness == "K" else ("col", "row")
        answer["units"] = [
            {line_name: line, along: unit * layout.per_unit, "address": address}
            for line, row in enumerate(units)
            for unit, address in enumerate(row)
        ]
    emit({**answer, "accesses": [each._asdict() for each in access_patterns(layout, database=database)]})
