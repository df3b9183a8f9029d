"""The pinned assemblers: one ``ptxas`` for each CUDA release, out of the wheels on PyPI.

``python -m ptxmma.verify.assemblers`` fetches them (``make assemblers``).  Each wheel is downloaded by pip, which checks its
SHA-256; only the binary is kept.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import yaml

from ptxmma import paths


class Assembler(NamedTuple):
    """One ``ptxas``: the CUDA release it comes with, the newest PTX ISA version it speaks, and where it lies once fetched."""

    cuda: str
    ptx: str
    path: Path

    @property
    def fetched(self) -> bool:
        """Whether the binary is there."""
        return self.path.is_file()


def pinned() -> list[Assembler]:
    """Every pinned assembler, oldest first."""
    return [Assembler(pin["cuda"], pin["ptx"], _place(pin)) for pin in _pins()]


def fetch() -> None:
    """Fetch the pinned assemblers that are not there yet.

    Raises:
        SystemExit: a wheel that cannot be downloaded, or a binary that is not the pinned one.
    """
    for pin in _pins():
        place = _place(pin)
        if place.is_file() and _digest(place) == pin["binary_sha256"]:
            continue
        print(f"fetching ptxas of CUDA {pin['cuda']}", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            _download(pin, Path(scratch))
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_suffix(".part")
            wheel = next(Path(scratch).glob("*.whl"))
            with zipfile.ZipFile(wheel) as archive, archive.open(pin["member"]) as source, open(part, "wb") as target:
                shutil.copyfileobj(source, target)
        if _digest(part) != pin["binary_sha256"]:
            part.unlink()
            sys.exit(f"CUDA {pin['cuda']}: the binary in {pin['wheel']} is not the pinned one")
        part.chmod(0o755)
        part.replace(place)
    print(f"{len(_pins())} assemblers in {paths.ASSEMBLERS}")


def _pins() -> list[dict[str, str]]:
    pins: list[dict[str, str]] = yaml.safe_load((paths.SPEC / "assemblers.yaml").read_text(encoding="utf-8"))["assemblers"]
    return pins


def _place(pin: dict[str, str]) -> Path:
    return paths.ASSEMBLERS / pin["cuda"] / "ptxas"


def _download(pin: dict[str, str], scratch: Path) -> None:
    requirement = scratch / "requirements.txt"
    requirement.write_text(f"{pin['package']}=={pin['version']} --hash=sha256:{pin['sha256']}\n", encoding="utf-8")
    platform = pin["wheel"].removesuffix(".whl").split("-")[-1]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    command += [part for tag in platform.split(".") for part in ("--platform", tag)]
    command += ["--dest", str(scratch), "--requirement", str(requirement)]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"CUDA {pin['cuda']}: pip could not download {pin['package']}=={pin['version']}; is there a network?")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    fetch()
