"""The command line, asked in this process by the tests of commands."""

from __future__ import annotations

from click.testing import CliRunner

from ptxmma.cli import main


def ask(*arguments: str, code: int = 0) -> str:
    """Return what ``ptxmma`` prints, on either stream, before it ends with this code."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.output
