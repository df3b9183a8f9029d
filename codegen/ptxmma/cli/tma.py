"""``ptxmma tma``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, completed, database_option, json_option, known_names
from ptxmma.cli.tiles import in_options, integer, numbers, padded_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ptxmma.matrices.shared.box import BoxGeometry
    from ptxmma.matrices.shared.box_readers import Reader


def _modes(table: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """The completion of an option that takes a name of a table of tensor maps."""

    def names(context: click.Context) -> Iterable[str]:
        maps = catalog_of(context.params.get("database")).database.spec.tensor_maps
        known = [entry.name for entry in getattr(maps, table)] if maps else []
        return [name.removesuffix("B") if name[:-1].isdigit() else name for name in known]

    return completed(names)


@click.command("tma", cls=Command)
@click.option("--shape", type=numbers, metavar="SIZES", help="The tensor's elements along each dimension: 4096x4096; by default a box.")
@click.option("--box", type=numbers, metavar="SIZES", help="The box's elements along each dimension.")
@click.option(
    "--type", "element", required=True, metavar="NAME", shell_complete=known_names("element"), help="bf16, or UINT16 as the driver has it."
)
@click.option(
    "--swizzle",
    default="none",
    show_default=True,
    metavar="BYTES",
    shell_complete=_modes("swizzles"),
    help="none, 32, 64, 128; 128B_ATOM_32B and others of sm_100.",
)
@click.option(
    "--interleave", default="none", show_default=True, metavar="BYTES", shell_complete=_modes("interleaves"), help="none, 16 or 32."
)
@click.option(
    "--fill",
    default="zero",
    show_default=True,
    metavar="NAME",
    shell_complete=_modes("fills"),
    help="zero or nan: elements outside of the tensor.",
)
@click.option(
    "--strides",
    type=numbers,
    metavar="BYTES",
    help="From neighbour to neighbour along each dimension but the innermost; by default dense.",
)
@click.option("--address", type=integer, default=0, show_default=True, metavar="ADDRESS", help="Address of the tensor in global memory.")
@click.option("--element-strides", type=numbers, metavar="STEPS", help="Steps of the box through the tensor; by default 1.")
@padded_option
@click.option("--lower", type=numbers, metavar="SIZES", help="im2col: lower corner of the bounding box along W, H, D; im2col::w: along W.")
@click.option("--upper", type=numbers, metavar="SIZES", help="im2col: upper corner, counted from the end of each dimension.")
@click.option("--channels", type=integer, help="im2col: channels of a pixel.")
@click.option("--pixels", type=integer, help="im2col: pixels of a column; im2col::w::128 has 128.")
@click.option("--halo", type=integer, metavar="PIXELS", help="im2col::w: wHalo, which the instruction gives; 0 by default.")
@click.option(
    "--mode",
    metavar="NAME",
    shell_complete=_modes("modes"),
    help="tiled, im2col (both by default as they are described), im2col::w, im2col::w::128, gather4: four rows; names of PTX, too.",
)
@click.option("--destination", type=integer, default=0, show_default=True, metavar="ADDRESS", help="Shared address of the box.")
@click.option("--at", type=numbers, metavar="COORDINATES", help="Coordinates that the instruction gives.")
@click.option("--offsets", type=numbers, metavar="OFFSETS", help="im2col: offsets that it gives along W, H, D; im2col::w: wOffset.")
@click.option("--store", is_flag=True, help="A copy from shared to global memory, which takes less.")
@click.option(
    "--element", "point", type=numbers, metavar="PLACE", help="One element of the box, by its number on each axis: its shared address."
)
@json_option
@database_option
def command(
    element: str,
    destination: int,
    at: tuple[int, ...] | None,
    offsets: tuple[int, ...] | None,
    store: bool,
    point: tuple[int, ...] | None,
    as_json: bool,
    database: str | None,
    **given: Any,
) -> None:
    """Show what a tensor map copies with TMA, and which matrix descriptors read it; or why the driver refuses it.

    Dimensions are innermost first, as the driver takes them.  A tensor map of im2col has --channels, --pixels, --lower and --upper
    in place of --box.

    \b
    Example:
      ptxmma tma --shape 4096x4096 --box 64x128 --type bf16 --swizzle 128
      ptxmma tma --shape 4096x4096 --box 64x128 --type bf16 --swizzle 128 --element 3,9 --at 64,-1
      ptxmma tma --shape 64x56x56x8 --lower=-1,-1 --upper=-1,-1 --channels 64 --pixels 128 --type f16 --swizzle 128
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.cli.render import emit
    from ptxmma.matrices.shared.box import BoxGeometry
    from ptxmma.matrices.shared.box_readers import readers

    described = {name: value for name, value in given.items() if value is not None}
    if not described.keys() & {"box", "channels", "pixels"}:
        raise click.UsageError("give --box, or for im2col --channels, --pixels, --lower and --upper")
    if described.setdefault("shape", described.get("box")) is None:
        raise click.UsageError("give --shape: the elements of the tensor along each dimension")
    try:
        box = BoxGeometry(element, **described, database=database)
        place = _place(box, destination, point)
        if at is not None:
            place |= _copied(box, at, offsets or (), point, store=store)
        elif offsets or store:
            raise click.UsageError("--offsets and --store need --at: the coordinates of the copy")
        reading = readers(box, destination, database=database)
    except ValueError as error:
        raise click.UsageError(_in_options(str(error))) from None
    answer = _answer(box, reading, database) | ({"element": place} if place else {})
    if as_json:
        emit(answer)
    else:
        _print(answer)


def _in_options(message: str) -> str:
    """An error of the library with the names of options in place of the names of parameters."""
    names = {parameter.name: parameter.opts[0] for parameter in click.get_current_context().command.params}

    def option(found: re.Match[str]) -> str:
        return f"{names[found[1]]}{found[2]}" if found[1] in names else found[0]

    return re.sub(r"(?<!\ba )(?<!\bthe )\b([a-z_]+)((?:\[\d\])? (?:=|has) )", option, message).replace("padded=True", "--padded")


def _place(box: BoxGeometry, destination: int, point: tuple[int, ...] | None) -> dict[str, Any]:
    """The place of one element in shared memory; empty without ``--element``.

    Raises:
        ValueError: a copy that traps, or a place outside of the box.
    """
    box.locate(destination)
    if point is None:
        return {}
    if len(point) != len(box.axes):
        raise click.UsageError(f"--element takes a number for each of {', '.join(box.axes)}; {len(point)} given")
    numbers = dict(zip(box.axes, point, strict=True))
    address, bit = box.locate(destination, **numbers)
    return {**numbers, "address": address} | ({"bit": bit} if bit else {})


def _copied(
    box: BoxGeometry, at: tuple[int, ...], offsets: tuple[int, ...], point: tuple[int, ...] | None, *, store: bool
) -> dict[str, Any]:
    """The place of one element in the tensor; empty without ``--element``.

    Raises:
        ValueError: a copy that traps.
    """
    next(box.lines(at, offsets, store=store))
    if point is None:
        return {}
    numbers = dict(zip(box.axes, point, strict=True))
    place = box.source(at, offsets, point=numbers)
    bits = box.offset(place, numbers.get("slice", 0))
    return {"coordinates": place, "global": "outside of the tensor" if bits is None else box.address + bits // 8}


def _answer(box: BoxGeometry, reading: list[Reader], database: str | None) -> dict[str, Any]:
    """All that is said about a tensor map, as plain data."""
    element = box.element.name if box.element else box.data_type
    names = ("mode", "data_type", "padded", "shape", "strides", "element_strides", "swizzle", "interleave", "fill")
    extents = ("lower", "upper", "channels", "pixels", "halo") if box.of_pixels else ("box",)
    return {
        "type": element,
        **{name: getattr(box, name) for name in (*names, *extents)},
        "transaction_bytes": box.transaction_bytes,
        "size": box.size,
        "rows": box.rows._asdict(),
        "alignments": box.alignments,
        "targets": box.targets,
        "notes": [f"{note.text} ({note.source})" for note in box.notes],
        "call": box.call(),
        "readers": [
            {
                "family": each.family,
                "major": each.majorness,
                "rows": each.x,
                "cols": each.k,
                "descriptor": f"{each.descriptor.encode(database=database):#018x}" if each.descriptor else None,
                "fault": in_options(each.fault).replace("--", ""),
            }
            for each in reading
        ],
    }


def _print(answer: dict[str, Any]) -> None:
    from ptxmma.cli.render import aligned, blocks, heading

    rows, aligned_to = answer["rows"], answer["alignments"]
    extents = f"box {_product(answer['box'])}" if "box" in answer else f"{answer['channels']} channels of {answer['pixels']} pixels"
    click.echo(heading(f"{answer['type']}, {answer['mode']}: {extents} of {_product(answer['shape'])}, swizzle {answer['swizzle']}"))
    reading = [
        (each["family"], f"{each['major']}-major", f"{each['rows']} x {each['cols']}", each["descriptor"] or f"none: {each['fault']}")
        for each in answer["readers"]
    ]
    unread = "of no family: none reads this type" if answer["type"] != answer["data_type"] else "give an element type as --type"
    place = answer.get("element", {})
    blocks(
        {
            "bytes": [
                f"{answer['transaction_bytes']} count on the mbarrier",
                f"{answer['size']} of shared memory: {rows['number']} rows of {rows['length']} elements, a row each {rows['pitch']} bytes",
            ],
            "multiples": [
                f"{aligned_to['destination']} bytes: the address in shared memory",
                f"{aligned_to['address']} bytes: the address of the tensor",
                f"{aligned_to['strides']} bytes: its strides",
                *([f"{aligned_to['at']} elements: the first coordinate"] if aligned_to["at"] > 1 else []),
            ],
            "element": [f"{name} {_product(value) if isinstance(value, tuple) else value}" for name, value in place.items()],
            "targets": [
                f"{name}: {', '.join(targets)}, and targets that include one of them" for name, targets in answer["targets"].items()
            ],
            "notes": answer["notes"],
            "descriptors that read it": aligned(reading) if reading else [unread],
            "call": answer["call"].split("\n"),
        }
    )


def _product(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))
