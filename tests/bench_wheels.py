"""How fast ``ptxmma check`` reads PTX that others ship: part of ``make bench``.

The wheel of xformers on PyPI has the PTX of its FlashAttention kernels for sm_80: 171 modules of 226 MB.  It is downloaded once.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from ptxmma import paths
from ptxmma.check import Checker

_PACKAGE = "xformers==0.0.31"
_SHA256 = "50aedaea82a38d7d28631f77617d1ed1f6f37c60bdc4bf167a69cbc0e39cee76"
_LIBRARIES = ("xformers/_C.so", "xformers/flash_attn_3/_C.so")
#: MB per second on two cores: 682 in 8 seconds.
_GOAL = 85
_FOLDER = paths.CHECKOUT / ".cache" / "wheels" / _PACKAGE.replace("==", "-")


def main() -> None:
    """Print one line for each measurement, or why there is none."""
    if reason := _missing():
        print(f"check of PTX from the wheel of xformers: skipped, {reason}")
        return
    modules = sorted(_FOLDER.rglob("*.ptx"))
    size = sum(module.stat().st_size for module in modules) / 1e6
    checker = Checker(notes=False)
    start = time.process_time()
    for module in modules:
        checker.check_file(module)
    seconds = time.process_time() - start
    print(f"{f'check, {len(modules)} modules of the wheel of xformers':<58}{size / seconds:>5.0f} MB/s  50 MB/s")
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "ptxmma", "check", str(_FOLDER)], check=False, capture_output=True, text=True)
    print(f"{f'the same {size:.0f} MB, the whole command':<58}{time.perf_counter() - start:>5.1f} s     {size / _GOAL:.1f} s on two cores")
    print(done.stderr.splitlines()[-1])


def _missing() -> str:
    """Fetch what is not here; returns what prevents that."""
    if _FOLDER.is_dir():
        return ""
    if shutil.which("cuobjdump") is None:
        return "cuobjdump is not installed"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        requirement = folder / "requirements.txt"
        requirement.write_text(f"{_PACKAGE} --hash=sha256:{_SHA256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
        platform = ["--platform", "manylinux_2_28_x86_64", "--dest", scratch, "--requirement", str(requirement)]
        if subprocess.run([*command, *platform], check=False, capture_output=True).returncode:
            return f"pip could not download {_PACKAGE}"
        made = folder / "made"
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
            for number, library in enumerate(_LIBRARIES):
                (made / str(number)).mkdir(parents=True)
                extracted = archive.extract(library, scratch)
                subprocess.run(["cuobjdump", "-xptx", "all", extracted], check=True, capture_output=True, cwd=made / str(number))
        _FOLDER.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, _FOLDER)
    return ""


if __name__ == "__main__":
    main()
