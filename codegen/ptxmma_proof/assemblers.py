"""Assemblers: the pinned ones, which are the ``ptxas`` of each CUDA release from the wheels on PyPI, and any other.

``python -m ptxmma_proof.assemblers`` fetches the pinned ones (``make assemblers``).  Each wheel is downloaded by pip, which checks
its SHA-256; only the binary is kept.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import yaml

from ptxmma import paths
from ptxmma.model import Version

_RELEASE = re.compile(r"release (\d+\.\d+), V(\S+)")
#: A version that no assembler knows, and the message that names the newest one it does know.
_TOO_NEW = ("99.9", re.compile(r"current version is '(\d+\.\d+)'"))
_TARGET = re.compile(r"'(sm_\d+[a-z]?)'")


class NoAssemblerError(RuntimeError):
    """The program is not a ``ptxas``."""


class Assembler(NamedTuple):
    """One ``ptxas``, as it describes itself.

    Attributes:
        path: the program.
        cuda: the CUDA release that it comes with, ``"13.5"``.
        build: its own version, ``"13.5.37"``.
        ptx: the newest PTX ISA version that it speaks.
        targets: the targets that its ``--gpu-name`` takes: ``"sm_90a"``, ….
        sha256: the digest of the program.
    """

    path: str
    cuda: str
    build: str
    ptx: str
    targets: tuple[str, ...]
    sha256: str


def identify(path: Path | str) -> Assembler:
    """Ask a ``ptxas`` what it is.

    Raises:
        NoAssemblerError: it cannot be run, or it is not a ``ptxas``.
    """
    program = Path(path).absolute()
    release = _RELEASE.search(_said(program, "--version"))
    if release is None:
        raise NoAssemblerError(f"{path}: no ptxas: its --version names no CUDA release")
    targets = tuple(dict.fromkeys(_TARGET.findall(_said(program, "--help"))))
    version, pattern = _TOO_NEW
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch, "module.ptx")
        module.write_text(f".version {version}\n", encoding="utf-8")
        newest = pattern.search(_said(program, "--output-file", str(Path(scratch, "out")), str(module)))
    if newest is None or not targets:
        raise NoAssemblerError(f"{path}: it does not say which PTX ISA versions and targets it knows")
    return Assembler(str(program), release[1], release[2], newest[1], targets, _digest(program))


def _said(program: Path, *arguments: str) -> str:
    try:
        done = subprocess.run([str(program), *arguments], check=False, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise NoAssemblerError(f"{program}: cannot be run: {error.strerror}") from None
    return done.stdout + done.stderr


def fetched() -> list[Assembler]:
    """The pinned assemblers that were fetched, oldest first."""
    places = [(pin["cuda"], _place(pin)) for pin in pins()]
    return [identify(place) for _, place in sorted(places, key=lambda pair: Version(pair[0])) if place.is_file()]


def fetch() -> None:
    """Fetch the pinned assemblers that are missing.

    Raises:
        SystemExit: a wheel that cannot be downloaded, or a binary that is not the pinned one.
    """
    for pin in pins():
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
    print(f"{len(pins())} assemblers in {paths.ASSEMBLERS}")


def pins() -> list[dict[str, str]]:
    """The entries of ``spec/assemblers.yaml``, oldest first."""
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
