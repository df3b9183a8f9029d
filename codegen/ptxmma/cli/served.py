"""The rules of the servers: the folder that they read, the size of a document, and the text that a verb prints."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.arguments import shortened

#: Bytes of the longest document.
MOST_READ = 20_000_000


class RefusedError(Exception):
    """A request that is not answered; the message says why, and what is allowed."""


def within(folder: Path, file: str) -> Path:
    """The path of a file below a folder.

    Raises:
        RefusedError: it is elsewhere, or no file.
    """
    try:
        path = (folder / file).resolve()
        found = path.is_file()
    except (OSError, ValueError):  # too long, or with a character that no path has
        raise RefusedError(f"{shortened(file)!r} is not a path") from None
    if not path.is_relative_to(folder):
        raise RefusedError(f"{file} is outside of the folder that the server reads")
    if not found:
        raise RefusedError(f"{file} is not a file below the folder that the server reads")
    return path


def refuse_large(size: int) -> None:
    """Refuse a document of so many bytes if they are too many.

    Raises:
        RefusedError: they are.
    """
    if size > MOST_READ:
        raise RefusedError(f"the document has {size:,} bytes; at most {MOST_READ:,} are read: check it with the command")


class Printed(NamedTuple):
    """The output of a verb: its texts on standard error and on standard output."""

    messages: str
    answer: str


def printed(line: Sequence[str], source: str = "") -> Printed:
    """Run a verb in this process.

    Args:
        line: the arguments of the command, the verb first.
        source: the standard input.

    Raises:
        RefusedError: the verb refuses the arguments, or fails.
    """
    from click.testing import CliRunner

    from ptxmma.cli import main

    result = CliRunner().invoke(main, line, input=source)
    gc.unfreeze()  # ``check`` freezes what it made: a server goes on
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise RefusedError(f"{type(result.exception).__name__}: {result.exception}")
    if result.exit_code > 1:  # 1 means a finding
        said = result.stderr + result.stdout
        raise RefusedError(said.partition("Error: ")[2].strip() or said.strip())
    return Printed(result.stderr, result.stdout)
