"""The command line, asked in this process by the tests of commands."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from ptxmma.cli import main


def invoke(*arguments: str | Path, input: str | None = None) -> Result:
    """Run ``ptxmma``."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=input)


def ask(*arguments: str, code: int = 0) -> str:
    """Return what ``ptxmma`` prints, on either stream, before it ends with this code."""
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    return result.output
