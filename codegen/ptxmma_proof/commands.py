"""What ``python -m ptxmma_proof`` runs: each part holds the database against one witness, and says what it found."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.evidence import reports
from ptxmma.evidence.peers import explanations
from ptxmma.evidence.silicon import Silicon
from ptxmma.generator import pipeline, write
from ptxmma_proof import assemblers, errata, examples, run
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.questions import AssemblerError
from ptxmma_proof.reference import NoExamplesError


class VerifyError(RuntimeError):
    """A run that could not be made; the message says what to do."""


class OtherChipError(VerifyError):
    """A report that would replace that of another chip."""


class Result(NamedTuple):
    """What a run found: in words, as a report, and whether nothing disagrees."""

    lines: Iterator[str]
    text: str
    agrees: bool


def assembler(catalog: Catalog, date: str, ptxas: Sequence[str], targets: Sequence[str], families: Sequence[str], jobs: int) -> Result:
    """Every instruction on every target in every version, and what lies near, asked of assemblers.

    Raises:
        VerifyError: no assembler, one that fails, or an unknown name.
    """
    try:
        outcome = run.run(catalog, _assemblers(ptxas), targets, families, jobs)
    except (assemblers.NoAssemblerError, AssemblerError, run.UnknownNameError) as error:
        raise VerifyError(str(error)) from None
    return Result(outcome.lines(), reports.text(outcome.report(date)), outcome.agrees)


def silicon(
    catalog: Catalog, date: str, targets: Sequence[str], families: Sequence[str], jobs: int, *, packaged: bool, replaces: Path | None = None
) -> Result:
    """Every instruction that the chip of this machine runs, through the generated wrappers.

    Args:
        catalog: with the instructions.
        date: of the run.
        targets: at most one; the chip's own where there is none.
        families: only these; all where there is none.
        jobs: processes, as joblib counts them.
        packaged: the catalog is the packaged one, whose wrappers are there; for another they are generated first.
        replaces: a file that the report is to replace.

    Raises:
        OtherChipError: the file to be replaced is the report of another chip.
        VerifyError: no chip, no toolkit, an unknown name, or a target that the chip does not run.
    """
    from ptxmma_proof.silicon import report as chip  # NumPy and what follows it: other parts need none of it

    try:
        chosen = run.choose("target", targets, [entry.name for entry in catalog.database.spec.targets]) if targets else []
        if len(chosen) > 1:
            raise VerifyError(f"a chip is asked about one target at a time, not about {', '.join(chosen)}")
        run.choose("family", families, dict.fromkeys(entry.family for entry in catalog.database.spec.instructions))
        _check_chip(replaces, chip.this_chip().name)
        with _generated(catalog) if not packaged else contextlib.nullcontext((paths.DATABASE, paths.INCLUDE)) as (database, include):
            found = chip.run(database, include, chosen[0] if chosen else None, families=families, jobs=jobs, date=date)
    except VerifyError:
        raise
    except (RuntimeError, OSError, run.UnknownNameError) as error:
        raise VerifyError(str(error)) from None

    def lines() -> Iterator[str]:
        for failure in found.failures:
            yield f"{failure.instruction} {failure.form} {failure.constants}: {failure.wrong} of {failure.launches} launches are wrong"
        for answer in found.observations:
            yield f"{answer.question}, {answer.instruction}: {answer.tried}: {answer.seen}"
        launches = sum(row.launches for row in found.instructions)
        yield (
            f"{found.chip.name}: {len(found.instructions)} instructions, {len(found.layouts)} layouts, "
            f"{launches} launches, {len(found.failures)} kernels with a wrong element"
        )

    return Result(lines(), reports.text(found), not found.failures)


def _check_chip(path: Path | None, name: str) -> None:
    """A report is replaced by one of the same chip; what is no report may be replaced."""
    try:
        before = reports.load(path, Silicon).chip.name if path else name
    except (OSError, ValueError):
        return
    if before != name:
        raise OtherChipError(f"{path} is the report of another chip, {before}, and this is {name}: write it elsewhere")


@contextlib.contextmanager
def _generated(catalog: Catalog) -> Iterator[tuple[Path, Path]]:
    """The database and the headers of a catalog, in a folder that goes away."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        write.write(pipeline.changes(catalog, out), out)
        yield out / "generated" / "database" / "ptxmma.json", out / "generated" / "include"


def peers(catalog: Catalog, date: str, ptxas: Sequence[str], explained: Path) -> Result:
    """CuTe's atoms and PyTorch's conversions.

    ``explained``: why some of them differ, as :func:`ptxmma.evidence.peers.explanations` reads it; no such file explains nothing.

    Raises:
        VerifyError: CUTLASS's headers or the compiler are not there, the compiler refuses them, or ``explained`` cannot be read.
    """
    from ptxmma_proof import peers as others  # NumPy again
    from ptxmma_proof.peers.probe import CompilerError

    chosen = _assemblers(ptxas) if ptxas else assemblers.fetched()
    asked = {each.cuda: Path(each.path) for each in chosen}
    try:
        written = explanations(explained)
        found = others.run(catalog, date, assemblers=asked)
    except (others.MissingPeerError, CompilerError, OSError, ValueError) as error:
        raise VerifyError(str(error)) from None
    lacked = [entry for entry in found.unknown if entry.ours]
    why = [next((one.why for one in written if one.speaks_of(entry)), "") for entry in found.differences]

    def lines() -> Iterator[str]:
        for entry, reason in zip(found.differences, why, strict=True):
            yield f"{entry.peer}, {entry.subject}, {entry.operand}: {entry.theirs}; {entry.ours} ({entry.places} of {entry.of} places)"
            yield f"    explained: {reason}" if reason else "    NOT EXPLAINED"
        for lack in lacked:
            yield f"{lack.atom}: the database has no {lack.instruction}"
        yield (
            f"{len(found.atoms)} atoms, {found.places} places, {found.passes} comparisons agree, {found.shapes} shapes agree, "
            f"{found.failures} differ, {why.count('')} of them unexplained"
        )

    return Result(lines(), reports.text(found), not lacked and all(why))


def reference(catalog: Catalog, date: str, directory: Path, ptxas: Sequence[str], jobs: int) -> Result:
    """Every example in the text of the manual, and everything that the errata say of assemblers.

    Raises:
        VerifyError: no example, no assembler, or one that fails.
    """
    chosen = _assemblers(ptxas)
    try:
        with run.shown() as bar:
            found = examples.run(catalog, directory, chosen, date, run.moving(bar, "examples"))
            asked, differing = errata.differences(catalog, chosen, jobs, run.moving(bar, "errata"))
    except (NoExamplesError, AssemblerError, OSError) as error:
        raise VerifyError(str(error)) from None

    def lines() -> Iterator[str]:
        yield from map(str, found.unexplained)
        yield from map(str, differing)
        counts = found.counts
        yield (
            f"{counts.examples} examples: {counts.literal} accepted as printed, {counts.declared} with declarations supplied, "
            f"{counts.redeclared} with others than their own, {counts.refused} refused; {len(found.unexplained)} without an erratum"
        )
        yield f"errata: {asked} answers, {len(differing)} differ"

    return Result(lines(), examples.text(found), not found.unexplained and not differing)


def _assemblers(ptxas: Sequence[str]) -> list[Assembler]:
    try:
        chosen = [assemblers.identify(path) for path in ptxas] or assemblers.fetched()
    except assemblers.NoAssemblerError as error:
        raise VerifyError(str(error)) from None
    if not chosen:
        raise VerifyError("no assemblers are here: fetch the pinned ones with `make assemblers`, or name one with --ptxas PATH")
    return chosen
