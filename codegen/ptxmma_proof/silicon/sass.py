"""The matrix instructions in the machine code of kernels."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

_FUNCTION = re.compile(r"^\s*Function : .*?kernel_(\d+)", re.MULTILINE)
#: ``/*0120*/  HMMA.16816.F32 R4, …``, perhaps with a predicate: products of tensor cores end in MMA; the others move matrices.
_PRODUCT = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?((?:[A-Z]+MMA|LDSM|STSM|MOVM)(?:\.\w+)*)")


def products(library: Path) -> dict[int, Counter[str]]:
    """Tensor-core instructions of each kernel in a library that nvcc made, by the kernel's number; needs ``cuobjdump``.

    Raises:
        subprocess.CalledProcessError: the library cannot be read.
    """
    text = subprocess.run(["cuobjdump", "-sass", str(library)], check=True, capture_output=True, text=True).stdout
    parts = _FUNCTION.split(text)
    return {int(number): Counter(_PRODUCT.findall(body)) for number, body in zip(parts[1::2], parts[2::2], strict=True)}


def text(machine: Mapping[str, int]) -> str:
    """The tensor-core instructions of a kernel in a line: ``"2 HMMA.16816.F32"``; ``"none"`` without any."""
    return " + ".join(f"{count} {name}" for name, count in sorted(machine.items())) or "none"
