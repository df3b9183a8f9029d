"""Every variant against the assemblers that are here: the one on PATH, and those that ``make assemblers`` fetched."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ptxmma.instructions import Catalog
from ptxmma.requirements import version_key
from ptxmma.verify import sweep
from ptxmma.verify.assemblers import Assembler, pinned

pytestmark = pytest.mark.ptxas


def _installed(catalog: Catalog) -> Assembler | None:
    """The assembler on PATH; it speaks the newest PTX ISA version of its CUDA release."""
    path = shutil.which("ptxas")
    if path is None:
        return None
    said = subprocess.run([path, "--version"], check=True, capture_output=True, text=True).stdout
    match = re.search(r"release (\d+\.\d+)", said)
    assert match, said
    known = [e.version for e in catalog.database.spec.isa_versions if version_key(e.cuda) <= version_key(match[1])]
    return Assembler(match[1], max(known, key=version_key), Path(path))


def _agrees(catalog: Catalog, assembler: Assembler) -> None:
    questions = list(sweep.jobs(catalog, [assembler]))
    assert sum(len(job.lines) for job in questions if job.accepted) > 100
    found = [each for job in questions for each in sweep.run(catalog, job)]
    assert not found


def test_the_installed_assembler_agrees(catalog: Catalog) -> None:
    assembler = _installed(catalog)
    if assembler is None:
        pytest.skip("no ptxas on PATH")
    _agrees(catalog, assembler)


@pytest.mark.parametrize("assembler", [pinned()[0], pinned()[-1]], ids=lambda assembler: assembler.cuda)
def test_the_oldest_and_the_newest_pinned_assembler_agree(catalog: Catalog, assembler: Assembler) -> None:
    """``make sweep`` asks all of them."""
    if not assembler.fetched:
        pytest.skip(f"ptxas of CUDA {assembler.cuda} is not fetched: run `make assemblers`")
    _agrees(catalog, assembler)
