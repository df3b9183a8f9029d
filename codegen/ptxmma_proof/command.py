"""``python -m ptxmma_proof``."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import click

from ptxmma import paths
from ptxmma.cli.options import read, spec_options

_TEXT = click.Path(exists=True, file_okay=False, path_type=Path)
#: What each witness can be asked for in part.
_TAKES = {
    "--assembler": {"--ptxas", "--target", "--family", "--jobs"},
    "--silicon": {"--target", "--family", "--jobs"},
    "--peers": {"--ptxas"},
    "--reference": {"--ptxas", "--jobs"},
}


@click.command("verify")
@spec_options
@click.option("--assembler", is_flag=True, help="Ask ptxas: every instruction on every target in every version, and what lies near.")
@click.option("--silicon", is_flag=True, help="Run every instruction on the GPU of this machine, through the generated wrappers.")
@click.option("--peers", is_flag=True, help="Compare with CuTe's atoms and PyTorch's conversions.")
@click.option("--reference", type=_TEXT, help="Assemble every example in this text of the manual, and all that the errata say.")
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

    \b
    Example:
      python -m ptxmma_proof --assembler --target sm_90a --family wgmma
    """  # noqa: D301  # click's mark for lines that stay as they are
    witnesses = {"--assembler": assembler, "--silicon": silicon, "--peers": peers, "--reference": reference is not None}
    chosen = [name for name, given in witnesses.items() if given]
    if len(chosen) != 1:
        raise click.UsageError(f"say what to hold it against: one of {', '.join(witnesses)}")
    given = {name for name, value in {"--ptxas": ptxas, "--target": targets, "--family": families, "--jobs": jobs}.items() if value}
    _refuse(chosen[0], given - _TAKES[chosen[0]])
    _check_report(report, partial=given & {"--ptxas", "--target", "--family"})
    from ptxmma.evidence.peers import EXPLAINED
    from ptxmma_proof import commands

    day = f"{date or datetime.now():%Y-%m-%d}"
    processes = jobs or -1
    catalog = read(spec, overlay)
    try:
        if silicon:
            own = (spec, overlay) == (paths.SPEC, None)
            found = commands.silicon(catalog, day, targets, families, processes, packaged=own, replaces=report)
        elif peers:
            found = commands.peers(catalog, day, ptxas, spec / "evidence" / EXPLAINED)
        elif reference is not None:
            found = commands.reference(catalog, day, reference, ptxas, processes)
        else:
            found = commands.assembler(catalog, day, ptxas, targets, families, processes)
    except commands.OtherChipError as error:
        raise click.BadParameter(str(error), param_hint="--report") from None
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


def _refuse(witness: str, options: set[str]) -> None:
    if options:
        raise click.UsageError(f"{witness} takes no {', '.join(sorted(options))}; it takes {', '.join(sorted(_TAKES[witness]))}")


def _check_report(report: Path | None, partial: set[str]) -> None:
    """A report can be written; one of a part does not take the place of the evidence of the whole."""
    if report is None:
        return
    if not report.parent.is_dir():
        raise click.BadParameter(f"there is no directory {report.parent}", param_hint="--report")
    from ptxmma.evidence.reports import FOLDER

    if partial and report.resolve().parent == FOLDER.resolve():
        asked = ", ".join(sorted(partial))
        raise click.BadParameter(
            f"{asked} asks for a part; {report.parent} holds the evidence of the whole: write it elsewhere", param_hint="--report"
        )
