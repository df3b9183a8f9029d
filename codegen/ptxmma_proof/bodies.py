"""Assembles the body of a kernel, and lists every error with its line."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.ptx import lines as ptx
from ptxmma_proof.assemblers import Assembler
from ptxmma_proof.questions import AssemblerError

_FILE = "module.ptx"
_ERROR = re.compile(rf"^ptxas (?:{re.escape(_FILE)}, line (\d+); )?(?:error|fatal)\s*: +(.*)$", re.MULTILINE)


class Said(NamedTuple):
    """An error: its text, and its line in the body; 0 if it is above the body or has no line."""

    line: int
    text: str


class Attempt(NamedTuple):
    """The answer of an assembler to a body."""

    accepted: bool
    said: tuple[Said, ...] = ()


def assemble(
    assembler: Assembler, target: str, declarations: Sequence[str], lines: Sequence[str], version: str = "", compiled_for: str = ""
) -> Attempt:
    """Assemble lines as the body of an otherwise empty kernel.

    Args:
        assembler: the assembler.
        target: the module's.
        declarations: lines above the body, which are not counted.
        lines: the body.
        version: the module's; by default the newest that the assembler speaks.
        compiled_for: the target that code is made for; by default the module's.

    Raises:
        AssemblerError: the assembler failed without a message.
    """
    text, first = ptx.module(version or assembler.ptx, target, [*declarations, *lines], ())
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, _FILE).write_text(text, encoding="utf-8")
        command = [assembler.path, "--gpu-name", compiled_for or target, "--output-file", "out", _FILE]
        done = subprocess.run(command, cwd=scratch, check=False, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return Attempt(accepted=True)
    above = first + len(declarations) - 1
    errors = _ERROR.findall(done.stdout + done.stderr)
    # The last error only says that there were errors.
    placed = [pair for pair in errors if pair[0]] or errors
    said = dict.fromkeys(Said(line=max(0, int(number or 0) - above), text=text) for number, text in placed)
    if not said or done.returncode < 0:
        raise AssemblerError(
            f"{assembler.path}, {target}: it ended with {done.returncode} and said: {done.stderr[:400].strip() or 'nothing'}"
        )
    return Attempt(accepted=False, said=tuple(said))
