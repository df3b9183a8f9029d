"""``python -m ptxmma_proof.corpus``: build a corpus of PTX and judge the checker by it."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ptxmma import __version__, paths
from ptxmma.catalog.instructions import Catalog, load
from ptxmma.evidence import facts, reports
from ptxmma.evidence.corpus import Corpus, Tool
from ptxmma_proof import assemblers, matrix, questions, run
from ptxmma_proof.corpus import FOLDER, makers
from ptxmma_proof.corpus.extraction import UnreadableError
from ptxmma_proof.corpus.judge import UnjudgedError, judge

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def main() -> None:
    """PTX that nobody here wrote: make it, and judge the checker by it."""


@main.command()
@click.option("--cutlass", type=_DIRECTORY, help="A checkout of CUTLASS; without it none of its files is compiled.")
@click.option("--googletest", type=_DIRECTORY, help="A checkout of GoogleTest, which CUTLASS's tests include.")
@click.option("--llvm", type=_DIRECTORY, help="A checkout of LLVM, of llvmlite's release; without it none of its tests is lowered.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=FOLDER, help="Where to.")
def build(cutlass: Path | None, googletest: Path | None, llvm: Path | None, folder: Path) -> None:
    """Make the modules that are not there yet.

    Triton and LLVM are asked where they are installed: ``pip install triton llvmlite``.
    """
    for made in makers.build(folder, cutlass, googletest, llvm):
        click.echo(made)


@main.command("judge")
@click.option("--folder", type=_DIRECTORY, default=FOLDER, help="The corpus.")
@click.option("--most", type=click.IntRange(min=1), default=3, show_default=True, help="Mutants of a kind for each different instruction.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Assemblers at a time; -1: one for each core.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write what was found here, as JSON.")
@click.option(
    "--date", default=lambda: datetime.datetime.now(datetime.timezone.utc).date().isoformat(), help="Of the run; today's if absent."
)
def judge_command(folder: Path, most: int, jobs: int, report: Path | None, date: str) -> None:
    """Ask the assemblers and the checker; exit with 1 where they differ."""
    catalog = Catalog(load(paths.DATABASE))
    asked = assemblers.fetched()
    judges = matrix.newest(catalog, asked).values()
    try:
        with run.shown() as bar:
            found = judge(catalog, folder, asked, most, questions.ANSWERS, jobs, run.moving(bar, "corpus"))
    except (UnjudgedError, UnreadableError, questions.AssemblerError) as error:
        raise click.ClickException(str(error)) from None
    told = Corpus(
        date=date,
        spec=__version__,
        facts=facts.accepted(catalog),
        makers=tuple(makers.recorded(folder)),
        judges=tuple(Tool(name="ptxas", version=each.build, sha256=each.sha256) for each in dict.fromkeys(judges)),
        sources=found.sources,
        instructions=sum(each.instructions for each in found.sources),
        counted=found.counted,
        false_alarms=found.false_alarms,
        mutants=found.mutants,
        changes=found.changes,
        disagreements=found.disagreements,
    )
    if report is not None:
        report.write_text(reports.text(told), encoding="utf-8")
    for line in _lines(told):
        click.echo(line)
    sys.exit(int(bool(told.disagreements) or told.counted != told.instructions))


def _lines(told: Corpus) -> Iterator[str]:
    """A run in words."""
    for each in told.disagreements:
        yield f"{each.target}, PTX ISA {each.version}, {each.kind}: {each.answer} by ptxas: {each.line} ({each.said})"
    for source in told.sources:
        yield (
            f"{source.name}, {source.target}: {source.files} modules, {source.instructions} instructions, {source.distinct} different, "
            f"{source.refused} refused by ptxas, {source.mutants} mutants, {source.in_place} in place"
        )
    yield (
        f"{told.instructions} instructions, {told.counted} found, {told.false_alarms} false alarms; {told.mutants} mutants; "
        f"{len(told.disagreements)} disagreements"
    )


if __name__ == "__main__":
    main()
