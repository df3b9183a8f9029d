"""The time of each question at the command line, from the start of the interpreter to the last line; part of ``make bench``."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ptxmma import paths

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_WGMMA = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"  # 16384 elements of D
_DATABASE = str(paths.DATABASE)
_ROUNDS = 7

#: A question for each verb; OUT is an existing directory.
_QUESTIONS = (
    ("list", "--target", "sm_90a", "--ptx", "8.0", "--type", "e4m3"),
    ("list",),
    ("show", _SPARSE),
    ("show", _F16.replace(".f32", ".f33")),
    ("show", "mma"),
    ("show", "SM80_16x8x16_F32F16F16F32_TN"),
    ("layout", _F16, "--operand", "a"),
    ("layout", _WGMMA, "--operand", "d", "--json"),
    ("trace", _SPARSE, "--row", "1", "--col", "2"),
    ("trace", _WGMMA, "--row", "1", "--col", "2", "--swizzle", "128"),
    ("descriptor", "decode", "0x4000004000010040"),
    ("smem", "--type", "bf16", "--major", "k", "--swizzle", "128", "--rows", "64", "--cols", "64"),
    ("diff", _DATABASE, _DATABASE),
    ("export", "--format", "csv", "--table", "variants"),
    ("export", "--format", "sqlite", "--out", "OUT/ptxmma.sqlite"),
)


def main() -> None:
    """Measure and print rows of the table."""
    command = shutil.which("ptxmma", path=str(Path(sys.executable).parent))
    if command is None:
        print("questions at the command line: skipped, the command is not installed")
        return
    with tempfile.TemporaryDirectory() as scratch:
        # Bytecode is kept as in an installed package, whatever this environment says, and apart from the checkout.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(scratch) / "bytecode")
        environment |= {"COMP_WORDS": "ptxmma\nshow\n'mma.sp::ord", "COMP_CWORD": "2"}
        runs = {" ".join(question)[:49]: ([command, *(word.replace("OUT", scratch) for word in question)], "") for question in _QUESTIONS}
        runs["a tab in bash"] = ([command], "bash_complete")
        runs["of this: the interpreter"] = ([sys.executable, "-c", "pass"], "")
        walls: dict[str, list[float]] = {name: [] for name in runs}
        for counted in [False] + [True] * _ROUNDS:
            for name, (arguments, completing) in runs.items():
                asked = environment | ({"_PTXMMA_COMPLETE": completing} if completing else {})
                start = time.perf_counter()
                done = subprocess.run(arguments, env=asked, capture_output=True, check=False)
                wall = time.perf_counter() - start
                assert done.returncode in (0, 2), done.stderr.decode()
                if counted:
                    walls[name].append(wall)
    for name, times in walls.items():
        limit = "" if name.startswith("of this") else "200 ms"
        print(f"ptxmma {name:<51}{statistics.median(times) * 1e3:>7.0f} ms  {limit}")


if __name__ == "__main__":
    main()
