"""What the tests of commands share: the command line, asked in this process."""

from __future__ import annotations

from click.testing import CliRunner

from ptxmma.cli import main


def ask(*arguments: str, code: int = 0) -> str:
    """What ``ptxmma`` prints, on either stream, before it ends with this code."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result.output
