"""Fixtures that all tests share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import settings

from ptxmma import paths
from ptxmma.generator import pipeline
from ptxmma.instructions import Catalog

# How long an example takes says more of the machine than of the code.
settings.register_profile("ptxmma", deadline=None)
settings.load_profile("ptxmma")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return paths.CHECKOUT


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The checked-in spec, read through every stage."""
    return pipeline.read(paths.SPEC)


@pytest.fixture(scope="session")
def nvcc() -> str:
    """NVIDIA's compiler; tests that ask for it are skipped where there is none."""
    found = shutil.which("nvcc")
    if found is None:
        pytest.skip("nvcc is not installed")
    return found
