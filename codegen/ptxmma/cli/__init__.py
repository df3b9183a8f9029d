"""The command line: ``ptxmma``.

Each verb is a module of its name with a ``command`` in it, imported when the verb is called: an answer waits for nothing that it
does not need.
"""

from __future__ import annotations

import importlib

import click

from ptxmma import __version__, paths

#: In the order in which ``--help`` shows them.
VERBS = ("show", "generate", "validate", "verify")


class _Verbs(click.Group):
    """A group whose commands are modules; the arguments of its methods are click's."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"ptxmma.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not args[0].startswith("-"):
            import difflib  # only when there is something to explain

            close = difflib.get_close_matches(args[0], VERBS, 3, 0.5)
            ctx.fail(f"there is no command {args[0]!r}; {'closest' if close else 'there are'}: {', '.join(close or VERBS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, prog_name="ptxmma")
@click.option("--include-dir", is_flag=True, help="Print the directory of the C and CUDA headers.")
@click.option("--cmake-dir", is_flag=True, help="Print the directory for CMake's ptxmma_DIR.")
@click.pass_context
def main(context: click.Context, include_dir: bool, cmake_dir: bool) -> None:
    """A machine-readable specification of NVIDIA's PTX matrix instructions."""
    if include_dir:
        click.echo(paths.INCLUDE)
    if cmake_dir:
        click.echo(paths.CMAKE)
    if context.invoked_subcommand is None and not (include_dir or cmake_dir):
        click.echo(context.get_help())
