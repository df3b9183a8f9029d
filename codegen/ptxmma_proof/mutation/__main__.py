"""``python -m ptxmma_proof.mutation``: try mutants of the spec."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import click
from rich.progress import Progress

from ptxmma.evidence import reports
from ptxmma_proof.mutation.report import lines
from ptxmma_proof.mutation.run import COUNT, run

#: Of the mutants of facts that change something, at most this share may survive.
_MOST_SURVIVORS = 0.01


@click.command()
@click.option("--count", type=click.IntRange(min=0), default=COUNT, show_default=True, help="How many mutants of facts; 0: all.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes; -1: one for each core.")
@click.option(
    "--date", default=lambda: datetime.datetime.now(datetime.timezone.utc).date().isoformat(), help="Of the run; today's if absent."
)
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write what became of them here, as JSON.")
def main(count: int, seed: int, jobs: int, date: str, report: Path | None) -> None:
    """Change one fact of the spec at a time; report what no independent fact contradicts."""
    explained = reports.FOLDER / "mutation_explained.json"
    with Progress(disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task("mutants", total=count or None)
        found = run(
            date, explained=explained, count=count, seed=seed, jobs=jobs,
            progress=lambda done, of: shown.update(task, completed=done, total=of),
        )  # fmt: skip
    if report is not None:
        report.write_text(reports.text(found), encoding="utf-8")
    for line in lines(found):
        click.echo(line)
    sys.exit(int(bool(found.unexplained) or found.rate > _MOST_SURVIVORS))


if __name__ == "__main__":
    main()
