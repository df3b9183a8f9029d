"""Tries a wheel or a source archive in an environment that has nothing else: ``python3.13 tests/try_distribution.py dist/ptxmma-*.whl``.

The environment is made with the Python that runs this file.  pip brings what the distribution asks for, and nothing more, so that a
dependency that is not declared, or does not exist for this Python, is found.  Runs away from the checkout, with warnings as errors.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

_KERNEL = ".version 8.0\n.target sm_90a\n.entry k()\n{\nmma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32 {%f0};\n}\n"
_LIBRARY = """
import sys, numpy, ptxmma
from ptxmma_layouts.mma import mma_m16n8k16_a_b16
assert sys.prefix in ptxmma.__file__, ptxmma.__file__
for name in ptxmma.__all__:
    getattr(ptxmma, name)
ins = ptxmma.instruction("mma m16n8k16 f16")
assert ins.operand("a").coords(5, 3) == mma_m16n8k16_a_b16(5, 3) == (9, 3)
a, b = numpy.eye(16, dtype="float16"), numpy.ones((16, 8), dtype="float16")
assert (ptxmma.matmul(ins, a, b).d == 1).all()
"""
_EVERY_MODULE = """
import importlib, pkgutil, ptxmma
for module in pkgutil.walk_packages(ptxmma.__path__, "ptxmma."):
    importlib.import_module(module.name)
"""
#: Exit codes, parts of what is printed, and the arguments of ``ptxmma``.
_COMMANDS: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (0, "ptxmma, version", ("--version",)),
    (0, "m16n8k16", ("m16n8k16", "f16")),
    (0, "9", ("layout", "mma", "m16n8k16", "f16", "--operand", "a", "--lane", "5", "--element", "3")),
    (0, "cuTensorMapEncodeTiled", ("tma", "--shape", "4096x4096", "--box", "64x128", "--type", "bf16", "--swizzle", "128")),
    (1, "k.ptx:5:18: error:", ("check", "k.ptx")),
    (0, "", ("export", "--format", "sqlite", "--out", "database.sqlite")),
    (2, "install ptxmma with its extra generate", ("generate", "--out", ".")),
    (2, "install ptxmma with its extra mcp", ("mcp",)),
    (2, "install ptxmma with its extra lsp", ("lsp",)),
)
#: The same of what needs the extra ``generate``.
_GENERATING: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (0, "valid", ("validate",)),
    (0, "", ("generate", "--out", ".")),
)


def faults_of(distribution: Path) -> list[str]:
    """The faults of a bare environment with ``distribution``."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        venv.create(folder / "bare", with_pip=True)
        programs = folder / "bare" / ("Scripts" if os.name == "nt" else "bin")
        (folder / "k.ptx").write_text(_KERNEL, encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        strict = {**environment, "PYTHONWARNINGS": "error"}
        faults = []

        def install(extras: str) -> None:
            pip = (str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
            subprocess.run([*pip, f"{distribution}{extras}"], cwd=folder, env=environment, check=True)

        def expect(code: int, part: str, program: str, *arguments: str) -> None:
            command = [str(programs / program), *arguments]
            done = subprocess.run(command, cwd=folder, env=strict, capture_output=True, text=True, check=False)
            if done.returncode != code or part not in done.stdout + done.stderr or "Traceback" in done.stderr:
                faults.append(f"{' '.join(command)}: exit code {done.returncode}, not {code} and {part!r}\n{done.stdout}{done.stderr}")

        install("")
        expect(0, "", "python", "-c", _LIBRARY)
        for code, part, arguments in _COMMANDS:
            expect(code, part, "ptxmma", *arguments)
        install("[generate,mcp,lsp]")
        expect(0, "", "python", "-W", "default", "-c", _EVERY_MODULE)  # what others' modules warn of is not ours
        for code, part, arguments in _GENERATING:
            expect(code, part, "ptxmma", *arguments)
        place = subprocess.run([programs / "ptxmma", "--include-dir"], env=environment, capture_output=True, text=True, check=True).stdout
        carried, generated = Path(place.strip()).parent, folder / "generated"
        for file in generated.rglob("*"):
            twin = carried / file.relative_to(generated)
            if twin.is_file() and twin.read_bytes() != file.read_bytes():
                faults.append(f"generate makes another {twin.name} than the distribution has")
        return faults


if __name__ == "__main__":
    faulty = False
    for each in map(Path, sys.argv[1:]):
        found = faults_of(each.resolve())
        faulty |= bool(found)
        print("\n".join([*found, f"Python {platform.python_version()}, {each.name}: {len(found)} faults"]), flush=True)
    sys.exit(faulty)
