"""``ptxmma list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, database_option, joined, named_option, named_target, table_options, usage_errors
from ptxmma.cli.render import Table, draw, emit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.catalog.summaries.listing import LineFacts


@click.command("list", cls=Command)
@click.argument("pattern", nargs=-1, callback=joined)
@named_option("--family", "family", "Only this family: mma, mma.sp, wgmma …; tcgen05 for all that begin so.")
@named_option("--target", "target", "Only what this target accepts: sm_90a, 90, H100, hopper.")
@named_option("--ptx", "ptx", "Only what a module of this PTX ISA version may use: 8.0.")
@named_option(
    "--type", "element", "Only with operands of this type, stated or chosen by a descriptor: e4m3, or fp8 for all of 8 bits.", "element"
)
@named_option("--shape", "shape", "Only of this shape, stated or chosen by a descriptor: m16n8k32; m64nNk16 for every N.")
@click.option("--sparse/--dense", default=None, help="Only with a sparse A, or only without.")
@click.option("--documented/--undocumented", default=None, help="Only what the manual has, or only what assemblers accept beyond it.")
@click.option("--all", "every", is_flag=True, help="A line for each instruction, also for those that differ in N alone.")
@table_options()
@database_option
def command(
    pattern: str,
    family: str | None,
    target: str | None,
    ptx: str | None,
    element: str | None,
    shape: str | None,
    sparse: bool | None,
    documented: bool | None,
    every: bool,
    form: str,
    database: str | None,
) -> None:
    """List instructions.

    PATTERN is a part of the spelling, in which * is anything, or words: m16n8k16 bf16.  Filters combine: with --target and --ptx, the list
    has what that target accepts in that version.  The column ptx shows the first version that accepts the instruction on --target, or on
    any target.  The column targets shows the oldest targets; a + means that all targets with the same features accept it too.  An
    instruction that is not documented is accepted by assemblers but missing in the manual.

    A grid leaves out what the spelling says, and the column documented if the manual has all of them.  The other formats have all columns.

    \b
    Examples:
      ptxmma list --target sm_90a --ptx 8.0 --type e4m3
      ptxmma list "m16n8k32*e4m3" --undocumented
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.catalog.lookup import instructions
    from ptxmma.catalog.summaries import listing

    spec = catalog_of(database).database.spec
    target = named_target(spec, target)
    filters: dict[str, Any] = {"family": family, "target": target, "ptx": ptx, "type": element, "shape": shape, "sparse": sparse}
    filters |= {"documented": documented, "pattern": pattern or None}
    with usage_errors():
        matching = list(instructions(**filters, database=database))
    lines = [
        listing.LineFacts(
            instruction=line.spelling,
            shape=line.shape or None,
            types=line.types,
            n=line.n,
            ptx=listing.first_version(line.accepted_by, target),
            targets=tuple(listing.least_targets(spec, line.accepted_by)),
            documented=line.documented,
        )
        for line in listing.lines(matching, merged=not every)
    ]
    if not lines:
        click.echo(_without_result(filters, database), err=True)
    if form == "json":
        emit(lines)
        return
    table = Table(listing.LineFacts.__struct_fields__, [_cells(line) for line in lines])
    draw(_without_repetition(table) if form == "grid" else table, form)


def _cells(line: LineFacts) -> Sequence[str | None]:
    """The cells of a line of a table."""
    from ptxmma.catalog.summaries import listing

    types, n, targets = " ".join(line.types) or None, listing.spans(line.n) or None, " ".join(line.targets)
    return line.instruction, line.shape, types, n, line.ptx, targets, "yes" if line.documented else "no"


def _without_repetition(table: Table) -> Table:
    """A table without the columns that the spelling repeats: the shape, the types, an N that it names, and ``documented`` if all are."""
    repeated = {"shape", "types"}
    repeated |= set() if any("nN" in str(row[0]) for row in table.rows) else {"n"}
    repeated |= set() if any(row[-1] != "yes" for row in table.rows) else {"documented"}
    kept = [place for place, name in enumerate(table.columns) if name not in repeated]
    return Table([table.columns[place] for place in kept], [[row[place] for place in kept] for row in table.rows])


def _without_result(filters: dict[str, Any], database: str | None) -> str:
    """The filters that leave nothing: for each, the number of instructions that pass the others without it."""
    from ptxmma.catalog.lookup import instructions
    from ptxmma.catalog.summaries.listing import least_targets

    options = {
        "sparse": "--sparse" if filters["sparse"] else "--dense",
        "documented": "--documented" if filters["documented"] else "--undocumented",
        "pattern": f"{filters['pattern']!r}",
    }
    given = [name for name, value in filters.items() if value is not None]
    counts = {name: sum(1 for _ in instructions(**filters | {name: None}, database=database)) for name in given}
    hints = [f"without {options.get(name, f'--{name}')} there are {count}" for name, count in counts.items() if count]
    if counts.get("target"):
        others = instructions(**filters | {"target": None}, database=database)
        accepted = {target: None for each in others for target in each.accepted_by()}
        hints.append(f"accepted by {' '.join(least_targets(catalog_of(database).database.spec, accepted))}")
    return f"no instruction passes these filters; {', '.join(hints) if hints else 'nor without any one of them'}"
