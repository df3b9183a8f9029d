"""What ``ptxmma verify`` runs: each part holds the database against one witness, and says what it found."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma import paths
from ptxmma.evidence import reports
from ptxmma.generator import pipeline, write
from ptxmma.instructions import Catalog
from ptxmma.verify import assemblers, errata, examples, run
from ptxmma.verify.assemblers import Assembler
from ptxmma.verify.questions import AssemblerError
from ptxmma.verify.reference import NoExamplesError


class VerifyError(RuntimeError):
    """A run that could not be made; the message says what to do."""


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


def silicon(catalog: Catalog, date: str, targets: Sequence[str], families: Sequence[str], jobs: int, *, packaged: bool) -> Result:
    """Every instruction that the chip of this machine runs, through the generated wrappers.

    ``packaged``: the catalog is the packaged one, whose wrappers are there; for another they are generated first.

    Raises:
        VerifyError: no chip, no toolkit, an unknown name, or a target that the chip does not run.
    """
    from ptxmma.verify.silicon import report as chip  # NumPy and what follows it: other parts need none of it

    try:
        chosen = run.choose("target", targets, [entry.name for entry in catalog.database.spec.targets]) if targets else []
        if len(chosen) > 1:
            raise VerifyError(f"a chip is asked about one target at a time, not about {', '.join(chosen)}")
        run.choose("family", families, dict.fromkeys(entry.family for entry in catalog.database.spec.instructions))
        with _generated(catalog) if not packaged else contextlib.nullcontext((paths.DATABASE, paths.INCLUDE)) as (database, include):
            found = chip.run(database, include, chosen[0] if chosen else None, families=families, jobs=jobs, date=date)
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


@contextlib.contextmanager
def _generated(catalog: Catalog) -> Iterator[tuple[Path, Path]]:
    """The database and the headers of a catalog, in a folder that goes away."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        write.write(pipeline.changes(catalog, out), out)
        yield out / "generated" / "database" / "ptxmma.json", out / "generated" / "include"


def peers(catalog: Catalog, date: str, ptxas: Sequence[str]) -> Result:
    """CuTe's atoms and PyTorch's conversions.

    Raises:
        VerifyError: CUTLASS's headers or the compiler are not there, or the compiler refuses them.
    """
    from ptxmma.verify import peers as others  # NumPy again
    from ptxmma.verify.peers.probe import CompilerError

    chosen = _assemblers(ptxas) if ptxas else assemblers.fetched()
    asked = {each.cuda: Path(each.path) for each in chosen}
    try:
        found = others.run(catalog, date, assemblers=asked)
    except (others.MissingPeerError, CompilerError) as error:
        raise VerifyError(str(error)) from None
    lacked = [entry for entry in found.unknown if entry.ours]

    def lines() -> Iterator[str]:
        for entry in found.differences:
            yield f"{entry.peer}, {entry.subject}, {entry.operand}: {entry.theirs}; {entry.ours} ({entry.places} of {entry.of} places)"
        for lack in lacked:
            yield f"{lack.atom}: the database has no {lack.instruction}"
        yield f"{len(found.atoms)} atoms, {found.places} places, {found.passes} comparisons agree, {found.failures} differ"

    return Result(lines(), reports.text(found), not lacked)


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
