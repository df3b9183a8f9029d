"""What tests of pages share: the sessions on a page, in which a shell runs commands and prints their output.

What follows a dollar sign is run, with the lines after it that begin with ``>``; then comes what it prints.  A line of three dots stands
for any number of lines.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from click.testing import CliRunner

from ptxmma.cli import main

_RST = re.compile(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)", re.M)
#: A command that is the same without a shell; the help text has the width of the terminal.
_PLAIN = re.compile(r"ptxmma (?!.*--help)[^|&;<>()$`\\*?\[\]#~{}!\n]+")
_MARKDOWN = re.compile(r"^```console\n(.*?)^```", re.M | re.S)


def sessions(page: str) -> Iterator[tuple[str, str]]:
    """Each command on a page in reStructuredText or Markdown, with its output."""
    blocks = [re.sub(r"^   ", "", block, flags=re.M) for block in _RST.findall(page)] + _MARKDOWN.findall(page)
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = part.rstrip("\n").split("\n")
            command = [lines[0]]
            while len(lines) > len(command) and lines[len(command)].startswith("> "):
                command.append(lines[len(command)][2:])
            yield "\n".join(command), "\n".join(lines[len(command) :]).strip("\n")


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a command: ``ptxmma`` is on its path and imports what the tests import; a folder is its home."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "HOME": str(folder), "LC_ALL": "C.UTF-8"}


def printed(command: str, folder: Path, **environment: str) -> str:
    """The output of a command in a folder, of ``ptxmma`` alone without a process of its own."""
    environment |= surroundings(folder)
    if _PLAIN.fullmatch(command):
        return _stripped(_answered(command, folder, environment))
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return _stripped(done.stdout)


def _answered(command: str, folder: Path, environment: dict[str, str]) -> str:
    before = Path.cwd()
    os.chdir(folder)
    try:
        with mock.patch.dict(os.environ, environment, clear=True):
            return CliRunner().invoke(main, shlex.split(command)[1:], prog_name="ptxmma").output
    finally:
        os.chdir(before)


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def is_shown(text: str, shown: str) -> bool:
    """Whether a page shows that text."""
    pattern = "\n".join(r"(?:.*\n)*.*" if line.strip() == "..." else re.escape(line) for line in shown.split("\n"))
    return re.fullmatch(pattern, text) is not None
