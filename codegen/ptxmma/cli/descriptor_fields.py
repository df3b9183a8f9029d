"""``ptxmma descriptor instruction`` and its like: the bits of a descriptor from its fields, and the fields of its bits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, completed, database_option, known_names, named_option, table_options, usage_errors
from ptxmma.cli.tiles import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ptxmma.catalog.descriptors.codec import Codec
    from ptxmma.cli.answers import Field, Fields, Mask
    from ptxmma.model import DescriptorField, ElementType


def _fields(describes: str) -> Callable[[click.Context], list[str]]:
    """The fields of a descriptor, each with the sign that its value follows."""

    def names(context: click.Context) -> list[str]:
        from ptxmma.catalog.descriptors.lookup import codec

        kind, database = context.params.get("kind") or "", context.params.get("database")
        try:
            return [f"{field.name}=" for field in codec(describes, kind=kind, database=database).parameters]
        except ValueError:  # no such kind
            return []

    return names


@click.command("instruction", cls=Command)
@click.argument("kind", metavar="[KIND]", shell_complete=known_names("kind"))
@click.argument("given", nargs=-1, metavar="BITS | FIELD=VALUE...", shell_complete=completed(_fields("instruction")))
@named_option("--target", "target", "Accept what this target has only.")
@table_options()
@database_option
def instruction(kind: str, given: Sequence[str], target: str | None, form: str, database: str | None) -> None:
    """Make and read the instruction descriptors of tcgen05.mma.

    KIND is the kind of the instruction, and decides what the bits mean. Give the 32 bits to see their fields and faults, or
    the fields to get the bits: m, n, dtype, atype, btype and whatever is not 0. Bits without KIND are read as the first kind
    for which they are legal.

    \b
    Examples:
      ptxmma descriptor instruction f16 m=128 n=256 dtype=f32 atype=bf16 btype=bf16
      ptxmma descriptor instruction f16 0x8400490
      ptxmma descriptor instruction 0x8400490
    """  # noqa: D301  # click's mark for lines that stay as they are
    catalog_of(database)
    from ptxmma.catalog.descriptors.lookup import codec

    with usage_errors((TypeError, ValueError)):
        if not given and kind[:1].isdigit():
            kind, given = _legal_kind(kind, target, database), [kind]
        show(codec("instruction", kind=kind, target=target, database=database), given, form)


def _legal_kind(bits: str, target: str | None, database: str | None) -> str:
    """The first kind for which bits are a legal instruction descriptor; says for which others they are."""
    from ptxmma.catalog.descriptors.lookup import codec

    formats = [each for each in catalog_of(database).database.spec.descriptors if each.describes == "instruction"]
    kinds = list(dict.fromkeys(kind for each in formats for kind in each.short_kinds.values()))
    number = integer(bits)
    legal = [kind for kind in kinds if not codec("instruction", kind=kind, target=target, database=database).mistakes(number)]
    if not legal:
        raise ValueError(f"{bits} is no legal instruction descriptor of any kind; name the kind to see why: {', '.join(kinds)}")
    others = f"; also legal for {', '.join(legal[1:])}" if legal[1:] else ""
    click.echo(f"read as the descriptor of {legal[0]}{others}", err=True)
    return legal[0]


@click.command("sparsity", cls=Command)
@click.argument("given", nargs=-1, metavar="BITS | FIELD=VALUE...", shell_complete=completed(_fields("sparsity")))
@table_options()
@database_option
def sparsity(given: Sequence[str], form: str, database: str | None) -> None:
    """Make and read the sparsity descriptors of spcompress.

    Give the 32 bits to see their fields and what is wrong with them, or the fields to get the bits.

    \b
    Examples:
      ptxmma descriptor sparsity operation=maxabs type=bf16_or_s8
      ptxmma descriptor sparsity 0x5
    """  # noqa: D301  # click's mark for lines that stay as they are
    catalog_of(database)
    from ptxmma.catalog.descriptors.lookup import codec

    with usage_errors((TypeError, ValueError)):
        show(codec("sparsity", database=database), given, form)


@click.command("zero-column-mask", cls=Command)
@click.argument("given", nargs=-1, metavar="BITS | FIELD=VALUE...", shell_complete=completed(_fields("columns")))
@click.option("--m", type=int, help="Rows of A: with --n, the columns that are taken as zeros.")
@click.option("--n", type=int, help="Columns of B.")
@table_options()
@database_option
def zero_column_mask(given: Sequence[str], m: int | None, n: int | None, form: str, database: str | None) -> None:
    """Make and read the zero-column masks of tcgen05.mma.ws.

    Give the 64 bits to see their fields and what is wrong with them, or the fields to get the bits. With --m and --n, print the mask,
    column 0 first: 1 where a column of B is taken as zeros.

    \b
    Examples:
      ptxmma descriptor zero-column-mask non_zero_mask=1 skip_span=3 use_span=4
      ptxmma descriptor zero-column-mask 0x3028000000000 --m 64 --n 32
    """  # noqa: D301  # click's mark for lines that stay as they are
    catalog_of(database)
    from ptxmma.catalog.descriptors.column_masks import zero_columns
    from ptxmma.catalog.descriptors.lookup import codec

    if (m is None) != (n is None):
        raise click.UsageError("the mask needs --m and --n")
    with usage_errors((TypeError, ValueError)):
        masks = codec("columns", database=database)
        if m is None or n is None:
            show(masks, given, form)
            return
        columns = zero_columns(_encoded(masks, given), m=m, n=n, database=database)
    text = "".join(str(int(zero)) for zero in columns)
    if form == "json":
        from ptxmma.cli.render import emit

        answer: Mask = {"m": m, "n": n, "zero": [int(zero) for zero in columns]}
        emit(answer)
    else:
        click.echo(text)


def show(codec: Codec, given: Sequence[str], form: str) -> None:
    """Print the bits of the fields that are given, or the fields of bits, and what is wrong with them; exit with 1 if anything is.

    Raises:
        TypeError, ValueError: fields or bits that are not a descriptor.
    """
    from ptxmma.cli.render import emit

    encoding, bits = _is_fields(given), _encoded(codec, given)
    wrong = codec.mistakes(bits)
    if form == "json":
        answer: Fields = {
            "descriptor": hexadecimal(codec, bits),
            "fields": records(codec, bits),
            "mistakes": [each._asdict() for each in wrong],
        }
        emit(answer)
    elif encoding and form == "grid":
        click.echo(hexadecimal(codec, bits))
        for each in wrong:
            click.echo(f"wrong: {each.text}", err=True)
    else:
        table(codec, bits, form)
        if form == "grid" and wrong:
            click.echo()
            for each in wrong:
                click.echo(f"wrong: {each.text}")
    sys.exit(1 if wrong else 0)


def table(codec: Codec, bits: int, form: str, element: ElementType | None = None) -> None:
    """A row for each field; with a type, bytes are counted in elements, too."""
    from ptxmma.catalog.descriptors.bits import bits_of
    from ptxmma.cli.render import Table, draw

    rows: list[list[str | int | None]] = []
    for field, stored, value in codec.explain(bits):
        counted = [elements(field, value, element)] if element else []
        rows.append([field.name, bits_of(field), stored, f"{value} {field.unit}" if field.unit else value, *counted, field.title])
    columns = ["field", "bits", "holds", "means", *([f"in {element.name}"] if element else []), "title"]
    draw(Table(columns, rows, hexadecimal(codec, bits)), form)


def records(codec: Codec, bits: int, element: ElementType | None = None) -> list[Field]:
    """The same for programs."""
    from ptxmma.catalog.descriptors.bits import bits_of

    rows: list[Field] = []
    for field, stored, value in codec.explain(bits):
        rows.append({"field": field.name, "bits": bits_of(field), "holds": stored, "value": value, "unit": field.unit})
        if element:
            rows[-1]["elements"] = elements(field, value, element)
    return rows


def elements(field: DescriptorField, value: int | str, element: ElementType) -> int | None:
    """Bytes as elements of a type."""
    return int(value) * 8 // element.bits if field.unit == "bytes" else None


def hexadecimal(codec: Codec, bits: int) -> str:
    """Bits with all their digits."""
    return f"{bits:#0{codec.format.bits // 4 + 2}x}"


def _is_fields(given: Sequence[str]) -> bool:
    return not given or "=" in given[0]


def _encoded(codec: Codec, given: Sequence[str]) -> int:
    if not _is_fields(given):
        return _bits(given)
    fields: dict[str, Any] = {}
    for name, value in map(_field, given):
        if name in fields:
            raise ValueError(f"{name} is given twice: {fields[name]} and {value}")
        fields[name] = value
    return codec.encode(**fields)


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not a field; write field=value, or the bits alone")
    try:
        return name, int(value, 0)
    except ValueError:
        return name, value  # the name of a value


def _bits(given: Sequence[str]) -> int:
    if len(given) > 1:
        raise ValueError(f"{given[1]!r} follows the bits; give the bits alone, or field=value for each field")
    return integer(given[0])
