"""The examples of the documentation that need a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.gpu
def test_the_product_is_the_one_that_the_emulator_predicted(gpu: str, root: Path) -> None:
    pytest.importorskip("cupy")
    done = subprocess.run([sys.executable, root / "docs/examples/sparse_layer.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"on the {gpu}: {done.stderr}"
    assert done.stdout == "(64, 8) as the emulator predicted: True\n"
