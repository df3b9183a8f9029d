"""Fixtures that all tests share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import settings

import json_answers
from cuda_calls import Nvcc
from header_programs import write_headers
from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.cli import render
from ptxmma.generator import pipeline, write

# The time of an example depends on the machine more than on the code.
settings.register_profile("ptxmma", deadline=None)
settings.load_profile("ptxmma")

#: The files that take longest.  They begin first, so that no process waits for another one at the end.
_LONGEST = ("test_site.py", "test_cuda_wrappers.py", "test_packaging.py", "test_javascript.py", "test_cuda.py", "test_tcgen05_calls.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the longest files first."""
    rank = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(scope="session", autouse=True)
def _answers_suit_their_schemas() -> Iterator[None]:
    """Hold every JSON that a command prints in the process of a test against the schema of its verb."""
    pretty = render._pretty

    def checked(value: Any, indent: int) -> str:
        text = pretty(value, indent)
        if context := click.get_current_context(silent=True):
            json_answers.check(json_answers.verb_of(context), text)
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "_pretty", checked)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return paths.CHECKOUT


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The checked-in spec, read through every stage."""
    return pipeline.read(paths.SPEC)


@pytest.fixture(scope="session")
def odd(root: Path) -> Catalog:
    """Made-up families with operands and axes of other names, for tests that hold for any valid spec."""
    return pipeline.read(root / "tests" / "odd")


@pytest.fixture(scope="session")
def toy_database(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``ptxmma.json`` of the made-up family, with the files beside it."""
    out = tmp_path_factory.mktemp("toy_database")
    write.write(pipeline.changes(pipeline.read(root / "tests" / "toy"), out, ["database"]), out)
    return out / "generated" / "database" / "ptxmma.json"


@pytest.fixture(scope="session")
def include(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory to include the C and CUDA headers from."""
    return write_headers(catalog, tmp_path_factory.mktemp("headers"))


@pytest.fixture(scope="session")
def cc() -> str:
    """A C compiler; tests that ask for it are skipped where there is none."""
    return shutil.which("gcc") or shutil.which("clang") or pytest.skip("no C compiler (gcc or clang) is installed")


@pytest.fixture(scope="session")
def cxx() -> str:
    """A C++ compiler; tests that ask for it are skipped where there is none."""
    return shutil.which("g++") or shutil.which("clang++") or pytest.skip("no C++ compiler (g++ or clang++) is installed")


@pytest.fixture(scope="session")
def nvcc() -> str:
    """NVIDIA's compiler; tests that ask for it are skipped where there is none."""
    return shutil.which("nvcc") or pytest.skip("nvcc is not installed")


@pytest.fixture(scope="session")
def compiler(nvcc: str, catalog: Catalog) -> Nvcc:
    """NVIDIA's compiler with the headers of the checkout; it answers a question that it was asked before from its cache."""
    return Nvcc(nvcc, catalog, paths.INCLUDE)


@pytest.fixture(scope="session")
def gpu() -> str:
    """The GPU's name; tests that ask for it are skipped where there is none."""
    smi = shutil.which("nvidia-smi")
    done = subprocess.run([smi, "--query-gpu=name,compute_cap", "--format=csv,noheader"], capture_output=True, text=True) if smi else None
    if done is None or done.returncode != 0:
        pytest.skip("no GPU")
    name, _, capability = done.stdout.splitlines()[0].partition(", ")
    if capability != "9.0":
        pytest.skip(f"the {name} has compute capability {capability}; these tests are for 9.0")
    return name


@pytest.fixture
def disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's disassembler, from the CUDA toolkit or from its Python packages."""
    packaged = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], str(packaged)]))
    for tool in ("cuobjdump", "nvdisasm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
