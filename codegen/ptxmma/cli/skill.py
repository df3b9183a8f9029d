"""``ptxmma skill``."""

from __future__ import annotations

from pathlib import Path

import click

from ptxmma.cli.command import Command

_SKILL = Path(__file__).with_name("SKILL.md")


@click.command("skill", cls=Command)
@click.option(
    "--install",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write it to DIR/ptxmma/SKILL.md, where agents look for skills.",
)
def command(install: Path | None) -> None:
    """Print how an agent works with this command, or install it as a skill.

    \b
    Example:
      ptxmma skill --install .claude/skills
    """  # noqa: D301  # click's mark for lines that stay as they are
    text = _SKILL.read_text(encoding="utf-8")
    if install is None:
        click.echo(text, nl=False)
        return
    place = install / "ptxmma" / "SKILL.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    click.echo(place)
