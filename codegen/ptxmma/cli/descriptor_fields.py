"""``ptxmma descriptor instruction`` and its like: the bits of a descriptor from its fields, and the fields of its bits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.options import catalog_of, database_option, known_names, table_options
from ptxmma.cli.tiles import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.catalog.descriptor_codec import Codec
    from ptxmma.model import DescriptorField


@click.command("instruction")
@click.argument("kind")
@click.argument("given", nargs=-1, metavar="BITS | FIELD=VALUE...")
@click.option("--target", metavar="NAME", shell_complete=known_names("target"), help="Accept what this target has only.")
@table_options()
@database_option
def instruction(kind: str, given: Sequence[str], target: str | None, form: str, database: str | None) -> None:
    """Make and read the instruction descriptors of tcgen05.mma.

    KIND is that of the instruction, and decides what the bits mean. Give the 32 bits to see their fields and what is wrong with them, or
    the fields to get the bits: m, n, dtype, atype, btype and whatever is not 0.

    \b
    Examples:
      ptxmma descriptor instruction f16 m=128 n=256 dtype=f32 atype=bf16 btype=bf16
      ptxmma descriptor instruction f16 0x8400490
    """  # noqa: D301  # click's mark for lines that stay as they are
    catalog_of(database)
    from ptxmma.catalog.descriptor_codec import codec

    try:
        show(codec("instruction", kind=kind, target=target, database=database), given, form)
    except (TypeError, ValueError) as error:
        raise click.UsageError(str(error)) from None


def show(codec: Codec, given: Sequence[str], form: str) -> None:
    """Print the bits of the fields that are given, or the fields of bits; exit with 1 if these are not legal.

    Raises:
        TypeError, ValueError: fields or bits that are not a descriptor.
    """
    from ptxmma.cli.render import emit

    encoding = not given or "=" in given[0]
    bits = codec.encode(**dict(map(_field, given))) if encoding else _bits(given)
    wrong = codec.mistakes(bits)
    if form == "json":
        rows = [
            {"field": each.field.name, "bits": bit_range(each.field), "holds": each.stored, "value": each.value, "unit": each.field.unit}
            for each in codec.explain(bits)
        ]
        emit({"descriptor": hexadecimal(codec, bits), "fields": rows, "mistakes": [each._asdict() for each in wrong]})
    elif encoding and form == "grid":
        click.echo(hexadecimal(codec, bits))
    else:
        table(codec, bits, form)
        if form == "grid" and wrong:
            click.echo()
            for each in wrong:
                click.echo(f"wrong: {each.text}")
    sys.exit(1 if wrong else 0)


def table(codec: Codec, bits: int, form: str) -> None:
    """A row for each field."""
    from ptxmma.cli.render import Table, draw

    rows: list[list[str | int]] = []
    for field, stored, value in codec.explain(bits):
        rows.append([field.name, bit_range(field), stored, f"{value} {field.unit}" if field.unit else value, field.title])
    draw(Table(["field", "bits", "holds", "means", "title"], rows, hexadecimal(codec, bits)), form)


def hexadecimal(codec: Codec, bits: int) -> str:
    """Bits with all their digits."""
    return f"{bits:#0{codec.format.bits // 4 + 2}x}"


def bit_range(field: DescriptorField) -> str:
    """The bits of a field as tables show them: ``"28:24"``, ``"2"``, ``"3,31"``."""
    own = f"{field.low + field.width - 1}:{field.low}" if field.width > 1 else str(field.low)
    return own if field.upper is None else f"{field.upper},{own}"


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not a field; write field=value, or the bits alone")
    number = value.lower().removeprefix("0x")
    return name, int(value, 0) if number.isdigit() or value.lower().startswith("0x") else value


def _bits(given: Sequence[str]) -> int:
    if len(given) > 1:
        raise ValueError(f"{given[1]!r} follows the bits; give the bits alone, or field=value for each field")
    return integer(given[0])
