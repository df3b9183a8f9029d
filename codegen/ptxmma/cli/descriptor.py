"""``ptxmma descriptor``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from ptxmma.cli.command import Group
from ptxmma.cli.descriptor_fields import instruction, records, sparsity, table, zero_column_mask
from ptxmma.cli.options import catalog_of, database_option, json_option, named_option, table_options, usage_errors
from ptxmma.cli.questions import answered
from ptxmma.cli.tiles import family_of, family_option, in_options, integer, padded_option, tile_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.cli.answers import CanonicalLayout, Matrix
    from ptxmma.matrices.shared.descriptor import Descriptor
    from ptxmma.matrices.shared.suspicions import Suspicion
    from ptxmma.model import ElementType


class _Descriptors(Group):
    """The commands for descriptors; bits without a command are read."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        asked = answered(args)[1:] if args[0].startswith("0x") else args
        return super().resolve_command(ctx, asked or args)


@click.group("descriptor", cls=_Descriptors)
def command() -> None:
    """Make and read descriptors: the matrix descriptors of wgmma, the instruction descriptors of tcgen05.

    Exits with 1 if something in the descriptor is suspicious.

    \b
    Examples:
      ptxmma descriptor encode --swizzle 128 --type bf16 --major k --rows 64 --cols 64
      ptxmma descriptor decode --family tcgen05 0x4000404000010040
      ptxmma descriptor instruction f16 m=128 n=256 dtype=f32 atype=bf16 btype=bf16
    """  # noqa: D301  # click's mark for lines that stay as they are


command.add_command(instruction)
command.add_command(zero_column_mask)
command.add_command(sparsity)


@command.command("encode")
@family_option
@tile_option("address", default=0)
@tile_option("swizzle", required=True)
@tile_option("lbo")
@tile_option("sbo")
@tile_option("base-offset", default=0)
@tile_option("type")
@tile_option("major")
@tile_option("rows")
@tile_option("cols")
@tile_option("depth")
@padded_option
@json_option
@database_option
def encode(family: str | None, swizzle: str, depth: int | None, as_json: bool, database: str | None, **given: Any) -> None:
    """Print the 64 bits of a descriptor.

    Give --lbo and --sbo, or the matrix with --type, --major, --rows and --cols: the strides then belong to a dense image that TMA
    writes.  With --depth, prints the descriptor of each product that the matrix takes along k.  Prints what looks wrong on standard error.

    \b
    Examples:
      ptxmma descriptor encode --address 0x400 --swizzle 128 --lbo 16 --sbo 1024
      ptxmma descriptor encode --address 0x400 --swizzle 128 --type bf16 --major k --rows 64 --cols 64 --depth 16
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.catalog.instructions.user_names import swizzle_named

    family = family_of(family, database)
    try:
        described = _described(family, swizzle_named(swizzle), given, depth, database)
        codes = [each.encode(database=database) for each in described]
    except ValueError as error:
        raise click.UsageError(in_options(str(error))) from None
    from ptxmma.matrices.shared.suspicions import suspicions

    major = given["major"] and given["major"].upper()
    wrong = suspicions(codes[0], major, element=given["element"], family=family, database=database)
    if as_json:
        _json(codes, None, given["major"], family, wrong, database)
    else:
        for bits in codes:
            click.echo(f"{bits:#018x}")
        for line in _warnings(wrong):
            click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


def _described(family: str, swizzle: str, given: dict[str, Any], depth: int | None, database: str | None) -> list[Descriptor]:
    """The descriptor that the options describe, or one for each step along k of so many elements.

    Raises:
        ValueError: a value that is not legal.
    """
    from ptxmma.matrices.shared.canonical import Geometry
    from ptxmma.matrices.shared.descriptor import Descriptor

    tile = {"element": "--type", "major": "--major", "rows": "--rows", "cols": "--cols"}
    missing = [option for name, option in tile.items() if given[name] is None]
    if not missing:
        place = {name: given[name] for name in ("lbo", "sbo", "base_offset", "padded")} | {"start": given["address"]}
        tile_of = given["element"], given["major"].upper(), swizzle, given["rows"], given["cols"]
        if depth is None:
            return [Descriptor.of(Geometry(*tile_of, family=family, database=database, **place))]
        from ptxmma.matrices.shared.image import SharedLayout

        return SharedLayout(*tile_of, family=family, database=database, **place).steps(depth)
    if depth is not None:
        raise click.UsageError(f"--depth needs the matrix: {', '.join(tile.values())}")
    if len(missing) < len(tile) - (given["major"] is not None):
        raise click.UsageError(f"a matrix needs {', '.join(tile.values())}; {' and '.join(missing)} missing")
    if given["lbo"] is None or given["sbo"] is None:
        raise click.UsageError(f"give --lbo and --sbo, or the matrix in memory: {', '.join(tile.values())}")
    return [
        Descriptor(
            start_address=given["address"],
            leading_byte_offset=given["lbo"],
            stride_byte_offset=given["sbo"],
            base_offset=given["base_offset"],
            swizzle=swizzle,
            family=family,
        )
    ]


@command.command("decode")
@click.argument("descriptor", type=integer)
@family_option
@named_option("--type", "element", "The element type: bytes are counted as elements, too, and the swizzle is judged by it.", "element")
@tile_option("major")
@table_options()
@database_option
def decode(descriptor: int, family: str | None, element: str | None, major: str | None, form: str, database: str | None) -> None:
    """Decode the 64 bits of a descriptor, and report what is suspicious.

    \b
    Example:
      ptxmma descriptor decode 0x4000004000010040 --type bf16 --major k
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.catalog.descriptors.shared_formats import marked, reads
    from ptxmma.catalog.instructions.user_names import type_named
    from ptxmma.matrices.shared.canonical import matrix_codec
    from ptxmma.matrices.shared.suspicions import suspicions

    spec, family = catalog_of(database).database.spec, family_of(family, database)
    element = element and type_named(spec, element)
    kind = next((entry for entry in spec.types.elements if entry.name == element), None)
    if element is not None and kind is None:
        raise click.UsageError(f"unknown --type {element}; known: {', '.join(entry.name for entry in spec.types.elements)}")
    with usage_errors():
        wrong = suspicions(descriptor, major and major.upper(), element=element, family=family, database=database)
    if form == "json":
        _json([descriptor], kind, major, family, wrong, database)
    else:
        table(matrix_codec(family, database), descriptor, form, kind)
        if form == "grid":
            _explanation(descriptor, major, family, wrong, database)
            others = [each for each in marked(spec, "matrix", descriptor) if not reads(family, each)]
            for each in others if wrong else []:
                click.echo(f"the bits may be a descriptor of {each}: give --family {each}")
    sys.exit(1 if wrong else 0)


def _explanation(bits: int, major: str | None, family: str, wrong: Sequence[Suspicion], database: str | None) -> None:
    """The canonical layouts that fit it, and what is suspicious."""
    from ptxmma.cli.render import wrapped

    for each in _layouts(bits, major, family, database):
        click.echo(f"\n{each['majorness']}-major, {each['swizzle']}: {each['cute']}")
        stride: Literal["lbo", "sbo"]
        for stride in ("lbo", "sbo"):
            click.echo(wrapped(f"  {stride.upper()}: {each[stride]}{_use(stride, each)}"))
    for line in ["", *_warnings(wrong)] if wrong else []:
        click.echo(wrapped(line))


def _use(stride: Literal["lbo", "sbo"], layout: CanonicalLayout) -> str:
    """The operands that use a stride, where not all of them do."""
    if stride in layout["used"]:
        return ""
    users = layout["users"].get(stride, [])
    return f"; only {' and '.join(users)} can use it" if users else "; operands do not use it"


def _layouts(bits: int, major: str | None, family: str, database: str | None) -> list[CanonicalLayout]:
    """The canonical layouts with the swizzle of a descriptor, of one majorness or of all."""
    from ptxmma.matrices.shared.canonical import canonical
    from ptxmma.matrices.shared.descriptor import Descriptor
    from ptxmma.matrices.shared.readable_types import majornesses, memory_of
    from ptxmma.matrices.shared.suspicions import stride_users, used_strides

    swizzle, memory = Descriptor.decode(bits, family=family, database=database).swizzle, memory_of(database)
    layouts: list[CanonicalLayout] = []
    for each in dict.fromkeys(entry.majorness for entry in majornesses(family, database) if swizzle in entry.swizzles):
        if major in (None, each.lower()):
            fitting = canonical(memory, each, swizzle)
            layout = fitting.layout
            layouts.append(
                {
                    "majorness": each,
                    "swizzle": fitting.mode.title,
                    "cute": layout.cute,
                    "lbo": layout.lbo,
                    "sbo": layout.sbo,
                    "used": sorted(used_strides(fitting, database, family)),
                    "users": stride_users(fitting, database, family),
                }
            )
    return layouts


def _warnings(wrong: Sequence[Suspicion]) -> list[str]:
    return [f"suspicious: {each.field + ': ' if each.field else ''}{each.text}" for each in wrong]


def _json(
    codes: Sequence[int], element: ElementType | None, major: str | None, family: str, wrong: Sequence[Suspicion], database: str | None
) -> None:
    """Print a descriptor as JSON; of several the first one with its fields, and all of them as steps."""
    from ptxmma.cli.render import emit
    from ptxmma.matrices.shared.canonical import matrix_codec

    bits = codes[0]
    answer: Matrix = {
        "descriptor": f"{bits:#018x}",
        "fields": records(matrix_codec(family, database), bits, element),
        "layouts": _layouts(bits, major, family, database),
        "suspicions": [each._asdict() for each in wrong],
    }
    if len(codes) > 1:
        answer["steps"] = [f"{each:#018x}" for each in codes]
    emit(answer)
