"""``python -m ptxmma_proof``: one subcommand for each witness."""

from __future__ import annotations

import contextlib
import functools
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from pathlib import Path

import click

from ptxmma import paths
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma.cli.options import read, spec_options
from ptxmma_proof.command_options import (
    FOLDER_PATH,
    Result,
    assemblers_of,
    concluded,
    date_option,
    families_option,
    finish,
    jobs_option,
    ptxas_option,
    recording,
)


@click.group()
def main() -> None:
    """Compare the database with a witness, and exit with 1 where they disagree.

    --record FILE writes the result to a file; spec/evidence/ has one for each witness.
    """


@main.command()
def fetch() -> None:
    """Fetch the assemblers that spec/assemblers.yaml pins."""
    from ptxmma_proof import assemblers

    assemblers.fetch()


@main.command()
@spec_options
@ptxas_option
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Only this target; may be repeated.")
@families_option
@jobs_option
@recording
def assembler(
    spec: Path,
    overlay: Path | None,
    ptxas: tuple[str, ...],
    targets: tuple[str, ...],
    families: tuple[str, ...],
    jobs: int | None,
    record: Path | None,
    date: datetime | None,
) -> None:
    """Ask ptxas: every instruction on every target in every version, and what lies one change away.

    Answers are kept, so an interrupted run continues where it stopped. With --family, --record replaces the lines of these families in a
    file and keeps the others.
    """
    from ptxmma_proof import records, sweep

    def run(day: str) -> Result:
        catalog = read(spec, overlay)
        outcome = sweep.run(catalog, assemblers_of(ptxas), targets, families, jobs or -1)
        lines = outcome.record(day)
        if record is not None and families:
            lines = records.updated(record, lines, catalog)
        return Result(outcome.words(), lines, outcome.agrees)

    finish(run, record, date, (ptxas, targets))


@main.command()
@spec_options
@click.option("--target", metavar="NAME", help="What to compile for; the chip's own target unless given.")
@families_option
@jobs_option
@recording
@click.option("--launches", type=click.Path(dir_okay=False, path_type=Path), help="Write the launches that can be repeated to this file.")
def silicon(
    spec: Path,
    overlay: Path | None,
    target: str | None,
    families: tuple[str, ...],
    jobs: int | None,
    record: Path | None,
    date: datetime | None,
    launches: Path | None,
) -> None:
    """Run every instruction on the GPU of this machine, through the generated wrappers."""
    from ptxmma_proof import sweep
    from ptxmma_proof.silicon import chip_run, replay

    def run(day: str) -> Result:
        catalog = read(spec, overlay)
        sweep.choose("family", families, dict.fromkeys(entry.family for entry in catalog.database.spec.instructions))
        sweep.choose("target", [target] if target else [], [entry.name for entry in catalog.database.spec.targets])
        _check_chip(record, chip_run.this_chip().name)
        own = (spec, overlay) == (paths.SPEC, None)
        with contextlib.nullcontext((paths.DATABASE, paths.INCLUDE)) if own else _generated(catalog) as (database, include):
            outcome = chip_run.run(database, include, target, families=families, jobs=jobs or -1, date=day)
        if launches is not None:
            replay.write(launches, outcome.launches)
        return Result(outcome.words(), outcome.record, outcome.agrees)

    finish(run, record, date, (target, families))


@main.command("tensor-maps")
@spec_options
@click.option("--target", metavar="NAME", help="What to compile for; the chip's own target unless given.")
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="Write the chip's answers to this file.")
def tensor_maps_(spec: Path, overlay: Path | None, target: str | None, record: Path | None) -> None:
    """Give tensor maps and copies to the GPU of this machine."""
    from ptxmma_proof.silicon import chip_run, tensor_map_chip, tensor_maps

    def run(_: str) -> Result:
        catalog, chip = read(spec, overlay), chip_run.this_chip()
        compiler = chip_run.tool("nvcc", "a CUDA toolkit")
        rows = tensor_map_chip.measure(compiler, target or chip_run.target_of(catalog, chip), paths.INCLUDE, catalog.database)
        if record is not None:
            tensor_maps.write(record, rows)
        words = list(tensor_map_chip.words(rows, catalog.database))
        return Result([*words, f"{chip.name}: {len(rows)} tensor maps, {len(words)} answers differ"], [], not words)

    finish(run, None, None)


def _check_chip(path: Path | None, name: str) -> None:
    """Refuse to replace the record of another chip."""
    run = witnesses.Witness(path).run if path is not None else None
    before = next((tool.name for tool in run.tools if tool.kind == "chip"), name) if run else name
    if before != name:
        raise ValueError(f"{path} is the record of another chip, {before}, and this is {name}: write it elsewhere")


@contextlib.contextmanager
def _generated(catalog: Catalog) -> Iterator[tuple[Path, Path]]:
    """The database and the headers of a catalog in a temporary folder."""
    from ptxmma.generator import pipeline, write

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        write.write(pipeline.changes(catalog, out), out)
        yield out / "generated" / "database" / "ptxmma.json", out / "generated" / "include"


#: The comparisons with other projects: name -> module of ``ptxmma_proof.peers`` and file in ``spec/evidence/``.
_COMPARISONS = {
    "registers": ("register_record", witnesses.PEERS),
    "tensor-memory": ("tensor_record", witnesses.TENSOR_MEMORY),
    "products": ("product_record", witnesses.PRODUCTS),
    "descriptors": ("descriptor_record", witnesses.DESCRIPTORS),
    "boxes": ("tirx_boxes", witnesses.BOXES),
    "forms": ("form_record", witnesses.FORMS),
    "spellings": ("spelling_record", witnesses.SPELLINGS),
    "wrappers": ("wrapper_record", witnesses.WRAPPERS),
    "names": ("atom_names", witnesses.ATOMS),
    "intrinsics": ("intrinsic_names", witnesses.INTRINSICS),
}


@main.command()
@click.argument("comparisons", nargs=-1, type=click.Choice(list(_COMPARISONS)))
@spec_options
@click.option("--checkout", "checkouts", multiple=True, metavar="NAME=DIR[@COMMIT]", help="A checkout of CUTLASS, TVM, cccl …")
@click.option("--record", "folder", type=FOLDER_PATH, help="Write what each comparison finds to a file in this folder.")
@date_option
@click.option("--layouts", type=FOLDER_PATH, help="Write the layouts of peers to this folder, for mutants to be compared with.")
def peers(
    comparisons: tuple[str, ...],
    spec: Path,
    overlay: Path | None,
    checkouts: tuple[str, ...],
    folder: Path | None,
    date: datetime | None,
    layouts: Path | None,
) -> None:
    """Compare with other projects, in every respect or in the given COMPARISONS.

    registers: layouts of registers and shared memory; tensor-memory: layouts, loads and sizes; products: sizes and types; descriptors:
    their bits; boxes: tensor maps and their images; forms: instructions and their targets; spellings: opcodes and the number of their
    operands; wrappers: the PTX in functions; names: what CuTe calls it.
    The names and properties in LLVM are intrinsics.
    A project is read from its checkout, or from its installed package.
    """
    from ptxmma_proof.peers import sources, verdicts

    def run(name: str, day: str) -> Result:
        module, _ = _COMPARISONS[name]
        findings = import_module(f"ptxmma_proof.peers.{module}").run(read(spec, overlay), sources.checkouts(checkouts), day)
        if layouts is not None and findings.agreed is not None:
            findings.agreed.write(layouts)
        judged = verdicts.judge(findings)
        return Result(judged.words(), judged.record(day, read(spec, overlay).database.spec.version), judged.agrees)

    agree = True
    for name in comparisons or _COMPARISONS:
        path = folder / f"{_COMPARISONS[name][1]}.jsonl" if folder is not None else None
        agree &= concluded(functools.partial(run, name), path, date)
    sys.exit(0 if agree else 1)


@main.command()
@click.argument("text", type=FOLDER_PATH)
@spec_options
@ptxas_option
@jobs_option
@recording
def reference(
    text: Path,
    spec: Path,
    overlay: Path | None,
    ptxas: tuple[str, ...],
    jobs: int | None,
    record: Path | None,
    date: datetime | None,
) -> None:
    """Assemble every example in the manual, whose sections are in the folder TEXT, and verify the errata again."""
    from ptxmma_proof import errata, examples, sweep

    def run(day: str) -> Result:
        catalog, chosen = read(spec, overlay), assemblers_of(ptxas)
        with sweep.shown() as bar:
            outcome = examples.run(catalog, text, chosen, sweep.moving(bar, "examples"))
            asked, differing = errata.differences(catalog, chosen, jobs or -1, sweep.moving(bar, "errata"))
        words = [*map(str, outcome.unexplained), *map(str, differing), str(outcome), f"errata: {asked} answers, {len(differing)} differ"]
        return Result(words, outcome.record(catalog, chosen, day), not outcome.unexplained and not differing)

    finish(run, record, date, (ptxas,))


@main.command()
@spec_options
@click.option("--count", type=click.IntRange(min=0), default=1000, show_default=True, help="How many mutants; 0: all.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--independent", is_flag=True, help="Ask independent witnesses alone, and not the spec's own rules.")
@jobs_option
@recording
def mutate(
    spec: Path, overlay: Path | None, count: int, seed: int, independent: bool, jobs: int | None, record: Path | None, date: datetime | None
) -> None:
    """Change one fact of the spec at a time, and report whether an independent witness contradicts it, or only the spec itself."""
    from ptxmma_proof import sweep
    from ptxmma_proof.mutation import trial

    def run(day: str) -> Result:
        with sweep.shown() as bar:
            moving = sweep.moving(bar, "mutants")
            outcome = trial.run(spec, overlay, count=count, seed=seed, rules=not independent, jobs=jobs or -1, progress=moving)
        return Result(outcome.words(), outcome.record(day), True)

    finish(run, record, date)


@main.command("faulty-kernels")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def faulty_kernels(folder: Path) -> None:
    """Write small kernels with a fault, and without it, into FOLDER; ``silicon/launched.py`` there launches them on a chip."""
    from ptxmma_proof.silicon import faulty_kernels as kernels

    kernels.write(folder)


@main.command()
@click.argument("modules", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def faults(modules: tuple[Path, ...]) -> None:
    """Put faults of order into MODULES, files of PTX, and count how many of each kind the checker finds."""
    from ptxmma.catalog.instructions import load
    from ptxmma_proof import faults as kinds

    for line in kinds.lines(kinds.run(Catalog(load(paths.DATABASE)), modules)):
        click.echo(line)


@main.group()
def corpus() -> None:
    """PTX that other projects wrote: make it, and compare the checker with the assemblers on it."""


@corpus.command()
@click.option("--cutlass", type=FOLDER_PATH, help="A checkout of CUTLASS; without it none of its files is compiled.")
@click.option("--googletest", type=FOLDER_PATH, help="A checkout of GoogleTest, which CUTLASS's tests include.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where to; .cache/corpus unless given.")
def build(cutlass: Path | None, googletest: Path | None, folder: Path | None) -> None:
    """Make the missing modules.

    Triton and LLVM take part if they are installed: pip install triton llvmlite.
    """
    from ptxmma_proof.corpus import FOLDER, makers

    for made in makers.build(folder or FOLDER, cutlass, googletest):
        click.echo(made)


@corpus.command()
@click.option("--folder", type=FOLDER_PATH, help="The corpus; .cache/corpus unless given.")
@click.option("--most", type=click.IntRange(min=1), default=3, show_default=True, help="Neighbours of a kind for each instruction.")
@ptxas_option
@jobs_option
@recording
def judge(folder: Path | None, most: int, ptxas: tuple[str, ...], jobs: int | None, record: Path | None, date: datetime | None) -> None:
    """Ask the assemblers and the checker about each instruction of the corpus."""
    from ptxmma.catalog.instructions import load
    from ptxmma_proof import corpus as modules
    from ptxmma_proof import questions, sweep
    from ptxmma_proof.corpus.judge import judge as judged

    def run(day: str) -> Result:
        catalog, place = Catalog(load(paths.DATABASE)), folder or modules.FOLDER
        with sweep.shown() as bar:
            outcome = judged(catalog, place, assemblers_of(ptxas), most, questions.ANSWERS, jobs or -1, sweep.moving(bar, "corpus"))
        return Result(outcome.words(), outcome.record(catalog, place, day), outcome.agrees)

    finish(run, record, date, (ptxas,))
