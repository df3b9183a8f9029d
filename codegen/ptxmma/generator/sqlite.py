"""The SQLite file of a generated ``ptxmma.sql``.

The text is checked in, since the bytes of the file depend on the version of SQLite.  This module needs only the standard library, so that
the build of a wheel can run it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from pathlib import Path

#: The script, below the directory that was generated into.
SCRIPT = "generated/database/ptxmma.sql"


def refresh(root: Path) -> None:
    """Build the file beside the script below ``root``, unless the script is missing or the file is newer.

    Raises:
        OSError: a directory that cannot be written to.
    """
    script = root / SCRIPT
    target = script.with_suffix(".sqlite")
    if script.exists() and (not target.exists() or target.stat().st_mtime_ns <= script.stat().st_mtime_ns):
        build(script, target)


def build(script: Path, target: Path) -> None:
    """Run a script into a new file that then replaces ``target``, so that no reader sees a partial database."""
    # The name is one that `write.compare` recognises as left over, should this process be killed.
    handle, name = tempfile.mkstemp(prefix=f".ptxmma-{target.name}.", suffix=".tmp", dir=target.parent)
    os.close(handle)
    try:
        with contextlib.closing(sqlite3.connect(name)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")  # the file is new: there is nothing to roll back to
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(script.read_text(encoding="utf-8"))
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
