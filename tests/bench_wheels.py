"""How fast ``ptxmma check`` reads PTX that others ship: part of ``make bench``.

The wheel of xformers on PyPI has the PTX of its FlashAttention-2 kernels for sm_80: 171 modules of 226 MB.  It is downloaded once.

No wheel that we know of has PTX with wgmma: xformers' library of FlashAttention-3 has PTX for sm_80 alone, and vLLM's has none.  In
``make bench``, the modules of ``bench_check.py`` represent it.  Compile FlashAttention-3 yourself and name the files::

    python tests/bench_wheels.py flash_fwd_hdim128_fp16_sm90.ptx
"""

from __future__ import annotations

import gc
import os
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Sequence
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
    size = _size(modules)
    print(f"{f'check, {len(modules)} modules of the wheel of xformers':<58}{size / _seconds(modules):>5.0f} MB/s  50 MB/s")
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([sys.executable, "-m", "ptxmma", "check", str(_FOLDER)], check=False, capture_output=True, text=True)
    wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"{f'the same {size:.0f} MB, the whole command, elapsed':<58}{wall:>5.1f} s     {size / _GOAL:.1f} s on two cores")
    print(f"{'its processor time':<58}{used:>5.1f} s     {2 * size / _GOAL:.1f} s")
    print(done.stderr.splitlines()[-1])


def of_files(modules: Sequence[Path]) -> None:
    """Print one line for each file."""
    for module in modules:
        seconds = statistics.median(_seconds([module]) for _ in range(5))
        print(f"{f'check of {module.name}, {_size([module]):.1f} MB':<58}{_size([module]) / seconds:>5.1f} MB/s")


def _seconds(modules: Sequence[Path]) -> float:
    """The processor time that a checker takes for some modules, when it has seen the last of them before; set up as the command does it."""
    checker = Checker(notes=False)
    checker.check_file(modules[-1])
    gc.freeze()
    gc.set_threshold(100_000)
    start = time.process_time()
    for module in modules:
        checker.check_file(module)
    return time.process_time() - start


def _size(modules: Sequence[Path]) -> float:
    return sum(module.stat().st_size for module in modules) / 1e6


def _missing() -> str:
    """Fetch what is not here; returns what prevents that."""
    if _FOLDER.is_dir():
        return ""
    packaged = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
    cuobjdump = shutil.which("cuobjdump", path=os.pathsep.join([os.environ["PATH"], str(packaged)]))
    if cuobjdump is None:
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
                subprocess.run([cuobjdump, "-xptx", "all", extracted], check=True, capture_output=True, cwd=made / str(number))
        _FOLDER.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, _FOLDER)
    return ""


if __name__ == "__main__":
    of_files([Path(name) for name in sys.argv[1:]]) if sys.argv[1:] else main()
