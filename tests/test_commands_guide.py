"""The pages show what their commands print; `make transcripts` records it again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import transcripts
from ptxmma import paths
from shown_sessions import is_shown, printed, sessions

_SHOWN = {path.name: text for path in transcripts.PAGES if any(sessions(text := path.read_text(encoding="utf-8") + "\n"))}


@pytest.mark.parametrize("name", _SHOWN)
def test_a_page_shows_what_its_commands_print(tmp_path: Path, name: str) -> None:
    transcripts.write_files(_SHOWN[name], tmp_path)
    for command, shown in sessions(_SHOWN[name]):
        if command.startswith("sqlite3") and shutil.which("sqlite3") is None:
            pytest.skip("sqlite3 is not installed")
        text = printed(command, tmp_path, SPEC=str(paths.SPEC))
        assert is_shown(text, shown), f"`make transcripts` records this again:\n$ {command}\n{text}"


def test_a_transcript_is_recorded_again(tmp_path: Path) -> None:
    """Output that still matches stays, and lines that were left out are left out again."""
    page = ".. code-block:: console\n\n   $ echo 1\n   1\n\n   $ seq 6\n   1\n   ...\n   5\n   7\n\n   $ printf 'a\\nb'\n   ...\n   b\n"
    new = page.replace("   7\n", "   6\n")
    assert transcripts.recorded(page, "   ", tmp_path) == new
    assert transcripts.recorded(new, "   ", tmp_path) == new
    assert transcripts.elided("a\nc\nd", "a\n...\nb") == "a\nc\nd"


def test_joins_are_shown(root: Path) -> None:
    page = (root / "docs" / "database.rst").read_text(encoding="utf-8")
    assert sum(command.startswith("sqlite3") and " JOIN " in command and bool(shown) for command, shown in sessions(page)) >= 4
