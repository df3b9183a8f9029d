"""``ptxmma descriptor``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.descriptor_fields import instruction
from ptxmma.cli.options import catalog_of, database_option, json_option, known_names, table_options
from ptxmma.cli.tiles import in_options, integer, swizzle_name, tile_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.matrices.matrix_descriptor import Descriptor
    from ptxmma.matrices.suspicions import Suspicion
    from ptxmma.model import DescriptorField, ElementType


@click.group("descriptor")
def command() -> None:
    """Make and read descriptors: the matrix descriptors of wgmma, the instruction descriptors of tcgen05.

    Exits with 1 if something in the descriptor is suspicious.

    \b
    Examples:
      ptxmma descriptor encode --swizzle 128 --type bf16 --major k --rows 64 --cols 64
      ptxmma descriptor decode 0x4000004000010040
      ptxmma descriptor instruction f16 m=128 n=256 dtype=f32 atype=bf16 btype=bf16
    """  # noqa: D301  # click's mark for lines that stay as they are


command.add_command(instruction)


@command.command("encode")
@tile_option("address", default=0)
@tile_option("swizzle", required=True)
@tile_option("lbo")
@tile_option("sbo")
@tile_option("base-offset", default=0)
@tile_option("type")
@tile_option("major")
@tile_option("rows")
@tile_option("cols")
@json_option
@database_option
def encode(swizzle: str, as_json: bool, database: str | None, **given: Any) -> None:
    """Print the 64 bits of a descriptor.

    Give --lbo and --sbo, or the matrix with --type, --major, --rows and --cols: the strides are then those of a dense image that TMA
    writes.  Prints what looks wrong on standard error.

    \b
    Examples:
      ptxmma descriptor encode --address 0x400 --swizzle 128 --lbo 16 --sbo 1024
      ptxmma descriptor encode --address 0x400 --swizzle 128 --type bf16 --major k --rows 64 --cols 64
    """  # noqa: D301  # click's mark for lines that stay as they are
    catalog_of(database)
    try:
        described = _described(swizzle_name(swizzle), given, database)
        bits = described.encode(database=database)
    except ValueError as error:
        raise click.UsageError(in_options(str(error))) from None
    from ptxmma.matrices.suspicions import suspicions

    wrong = suspicions(bits, given["major"] and given["major"].upper(), database=database)
    if as_json:
        _json(bits, None, given["major"], wrong, database)
    else:
        click.echo(f"{bits:#018x}")
        for line in _warnings(wrong):
            click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


def _described(swizzle: str, given: dict[str, Any], database: str | None) -> Descriptor:
    """The descriptor that the options describe.

    Raises:
        ValueError: a value that is not legal.
    """
    from ptxmma.matrices.canonical import Geometry
    from ptxmma.matrices.matrix_descriptor import Descriptor

    tile = {"element": "--type", "major": "--major", "rows": "--rows", "cols": "--cols"}
    missing = [option for name, option in tile.items() if given[name] is None]
    if not missing:
        strides = {name: given[name] for name in ("lbo", "sbo", "base_offset")}
        major, x, k = given["major"].upper(), given["rows"], given["cols"]
        return Descriptor.of(Geometry(given["element"], major, swizzle, x, k, start=given["address"], database=database, **strides))
    if len(missing) < len(tile) - (given["major"] is not None):
        raise click.UsageError(f"a matrix needs {', '.join(tile.values())}; {' and '.join(missing)} missing")
    if given["lbo"] is None or given["sbo"] is None:
        raise click.UsageError(f"give --lbo and --sbo, or the matrix in memory: {', '.join(tile.values())}")
    return Descriptor(
        start_address=given["address"],
        leading_byte_offset=given["lbo"],
        stride_byte_offset=given["sbo"],
        base_offset=given["base_offset"],
        swizzle=swizzle,
    )


@command.command("decode")
@click.argument("descriptor", type=integer)
@click.option(
    "--type", "element", metavar="NAME", shell_complete=known_names("element"), help="Count bytes as elements of this type too: bf16."
)
@tile_option("major")
@table_options()
@database_option
def decode(descriptor: int, element: str | None, major: str | None, form: str, database: str | None) -> None:
    """Decode the 64 bits of a descriptor, and report what is suspicious.

    \b
    Example:
      ptxmma descriptor decode 0x4000004000010040 --type bf16 --major k
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.matrices.suspicions import suspicions

    spec = catalog_of(database).database.spec
    kind = next((entry for entry in spec.types.elements if entry.name == element), None)
    if element is not None and kind is None:
        raise click.UsageError(f"unknown --type {element}; known: {', '.join(entry.name for entry in spec.types.elements)}")
    try:
        wrong = suspicions(descriptor, major and major.upper(), database=database)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if form == "json":
        _json(descriptor, kind, major, wrong, database)
    else:
        _table(descriptor, kind, form, database)
        if form == "grid":
            _explanation(descriptor, major, wrong, database)
    sys.exit(1 if wrong else 0)


def _table(bits: int, element: ElementType | None, form: str, database: str | None) -> None:
    from ptxmma.cli.render import Table, draw
    from ptxmma.matrices.matrix_descriptor import fields

    columns = ["field", "bits", "holds", "means", *([f"in {element.name}"] if element else []), "title"]
    rows = []
    for each in fields(bits, element, database=database):
        field, unit = each.field, each.field.unit
        means = f"{each.value} {unit}" if unit else each.value
        rows.append([field.name, _bits(field), each.stored, means, *([each.elements] if element else []), field.title])
    draw(Table(columns, rows, f"{bits:#018x}"), form)


def _bits(field: DescriptorField) -> str:
    return f"{field.low + field.width - 1}:{field.low}"


def _explanation(bits: int, major: str | None, wrong: Sequence[Suspicion], database: str | None) -> None:
    """The canonical layouts that fit it, and what is suspicious."""
    from ptxmma.cli.render import wrapped

    for each in _layouts(bits, major, database):
        click.echo(f"\n{each['majorness']}-major, {each['swizzle']}: {each['cute']}")
        for stride in ("lbo", "sbo"):
            click.echo(wrapped(f"  {stride.upper()}: {each[stride]}{_use(stride, each)}"))
    for line in ["", *_warnings(wrong)] if wrong else []:
        click.echo(wrapped(line))


def _use(stride: str, layout: dict[str, Any]) -> str:
    """Which operands use a stride, where not all of them do."""
    if stride in layout["used"]:
        return ""
    users = layout["users"].get(stride, [])
    return f"; only {' and '.join(users)} can use it" if users else "; operands do not use it"


def _layouts(bits: int, major: str | None, database: str | None) -> list[dict[str, Any]]:
    """The canonical layouts with the swizzle of a descriptor, of one majorness or of all."""
    from ptxmma.matrices.canonical import canonical, memory_of
    from ptxmma.matrices.matrix_descriptor import Descriptor
    from ptxmma.matrices.suspicions import stride_users, used_strides

    swizzle, memory = Descriptor.decode(bits, database=database).swizzle, memory_of(database)
    layouts = []
    for layout in memory.layouts:
        if swizzle in layout.swizzles and major in (None, layout.majorness.lower()):
            fitting = canonical(memory, layout.majorness, swizzle)
            facts = {
                "majorness": layout.majorness,
                "swizzle": fitting.mode.title,
                "cute": layout.cute,
                "lbo": layout.lbo,
                "sbo": layout.sbo,
            }
            layouts.append({**facts, "used": sorted(used_strides(fitting, database)), "users": stride_users(fitting, database)})
    return layouts


def _warnings(wrong: Sequence[Suspicion]) -> list[str]:
    return [f"suspicious: {each.field + ': ' if each.field else ''}{each.text}" for each in wrong]


def _json(bits: int, element: ElementType | None, major: str | None, wrong: Sequence[Suspicion], database: str | None) -> None:
    from ptxmma.cli.render import emit
    from ptxmma.matrices.matrix_descriptor import fields

    rows = []
    for each in fields(bits, element, database=database):
        row = {"field": each.field.name, "bits": _bits(each.field), "holds": each.stored, "value": each.value, "unit": each.field.unit}
        rows.append(row | ({"elements": each.elements} if element else {}))
    suspicions = [each._asdict() for each in wrong]
    emit({"descriptor": f"{bits:#018x}", "fields": rows, "layouts": _layouts(bits, major, database), "suspicions": suspicions})
