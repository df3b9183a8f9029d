"""``ptxmma verify``."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import click

from ptxmma.cli.options import DIRECTORY, read, spec_options


@click.command("verify")
@spec_options
@click.option("--assembler", is_flag=True, help="Ask ptxas: every instruction on every target in every version, and what lies near.")
@click.option("--silicon", is_flag=True, help="Run every instruction on the GPU of this machine, through the generated wrappers.")
@click.option("--peers", is_flag=True, help="Compare with CuTe's atoms and PyTorch's conversions.")
@click.option("--reference", type=DIRECTORY, help="Assemble every example in this text of the manual, and all that the errata say.")
@click.option(
    "--ptxas",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, dir_okay=False),
    help="Ask this ptxas instead of those that `make assemblers` fetches; may be repeated.",
)
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Only this target; may be repeated.")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only this family; may be repeated.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, show_default="one for each processor", help="How much at a time.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write what was found to this file, as evidence.")
@click.option("--date", type=click.DateTime(["%Y-%m-%d"]), default=None, show_default="today", help="The date of the run, for the report.")
def command(
    spec: Path,
    overlay: Path | None,
    assembler: bool,
    silicon: bool,
    peers: bool,
    reference: Path | None,
    ptxas: tuple[str, ...],
    targets: tuple[str, ...],
    families: tuple[str, ...],
    jobs: int | None,
    report: Path | None,
    date: datetime | None,
) -> None:
    """Hold the database against one witness, and exit with 1 where they disagree.

    The assemblers' answers are kept: an interrupted run goes on where it stopped.
    """
    if sum((assembler, silicon, peers, reference is not None)) != 1:
        raise click.UsageError("say what to hold it against: one of --assembler, --silicon, --peers, --reference")
    if report is not None and not report.parent.is_dir():
        raise click.BadParameter(f"there is no directory {report.parent}", param_hint="--report")
    from ptxmma.verify import commands

    day = f"{date or datetime.now():%Y-%m-%d}"
    processes = jobs or -1
    try:
        if silicon:
            found = commands.silicon(day, targets, families, processes)
        elif peers:
            found = commands.peers(read(spec, overlay), day)
        elif reference is not None:
            found = commands.reference(read(spec, overlay), day, reference, ptxas, processes)
        else:
            found = commands.assembler(read(spec, overlay), day, ptxas, targets, families, processes)
    except commands.VerifyError as error:
        raise click.ClickException(str(error)) from None
    if report is not None:
        try:
            report.write_text(found.text, encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"{error.filename}: cannot be written: {error.strerror}") from None
    for line in found.lines:
        click.echo(line)
    sys.exit(0 if found.agrees else 1)
