"""The command line: ``ptxmma``.

Each verb is a module of its name with a ``command`` in it.  It is imported when the verb is called, so that other verbs cost no time.
"""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import io
import os
import sys
from typing import Any

import click

from ptxmma import paths
from ptxmma.release import __version__

#: Packages that a plain installation lacks, with the extra that brings them.
_EXTRAS = {
    "yaml": "generate",
    "jsonschema": "generate",
    "jinja2": "generate",
    "anyio": "mcp",
    "pygls": "lsp",
    "lsprotocol": "lsp",
    "mcp": "mcp",
}

#: New objects between two garbage collections: nearly all live as long as the process.
_OBJECTS = 100_000
#: A word after a verb that makes a question of it: ``layout of``.
_QUESTIONING = ("of", "for", "the", "all", "every")
#: In the order in which ``--help`` shows them.
VERBS = (
    "list", "show", "resolve", "targets", "explain", "explore", "check", "layout", "trace", "descriptor", "smem", "tma", "ring", "export",
    "diff", "generate", "validate", "lsp", "mcp", "skill",
)  # fmt: skip


class Failure(click.ClickException):
    """A command failed: exit code 2, since 1 means a finding."""

    exit_code = 2


class _Verbs(click.Group):
    """A group whose commands are modules; the arguments of its methods are click's."""

    def main(self, *args: Any, **extra: Any) -> Any:
        gc.set_threshold(_OBJECTS)
        atexit.unregister(gc.freeze)  # main may run several times in a process
        atexit.register(gc.freeze)  # the last search for garbage would only delay the exit
        if sys.stdout is None:  # closed by the caller, who wants only the exit code
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for as long as the process lives
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":  # a console need not have every character
                stream.reconfigure(errors="replace")
        return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Handle the failures of any verb: an extra that is not installed, an output that cannot be written."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in _EXTRAS:
                raise
            raise Failure(f"this needs {package}, which is not installed: install ptxmma with its extra {_EXTRAS[package]}") from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # a reader that stops early is not a failure
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                ctx.exit(0)
            if error.filename is not None:
                raise
            raise Failure(f"the answer cannot be written: {error.strerror}") from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*VERBS]  # list is a verb of this package, once it was called

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"ptxmma.cli.{cmd_name}").command
        return command

    def _takes(self, args: list[str], ctx: click.Context) -> bool:
        """Return whether the first argument is a verb that takes the second: ``tma 2d`` and ``layout of A in m16n8k16`` are questions."""
        verb = self.get_command(ctx, args[0])
        if verb is None or isinstance(verb, click.Group) or args[1:2] == [] or args[1].startswith("-"):
            return verb is not None
        return args[1] not in _QUESTIONING and any(isinstance(parameter, click.Argument) for parameter in verb.params)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and not self._takes(args, ctx):
            from ptxmma.cli.questions import answered, misspelt

            asked = answered(args)
            if not asked and args[0] in VERBS:
                asked = answered(args[1:]) or args
            if not asked:
                import difflib  # only when there is something to explain

                if meant := misspelt(" ".join(args)):
                    ctx.fail(f"unknown command {' '.join(args)!r}; is {meant!r} meant?")
                close = difflib.get_close_matches(args[0], VERBS, 3, 0.5)
                named = "nor is it an instruction (`ptxmma list`), a target (`ptxmma targets`) or a topic (`ptxmma explain`)"
                ctx.fail(f"unknown command {args[0]!r}" + (f"; closest: {', '.join(close)}" if close else f", {named}"))
            args = asked
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, prog_name="ptxmma")
@click.option("--include-dir", is_flag=True, help="Print the directory of the C and CUDA headers.")
@click.option("--cmake-dir", is_flag=True, help="Print the directory for CMake's ptxmma_DIR.")
@click.option("--pkgconfig-dir", is_flag=True, help="Print the directory for PKG_CONFIG_PATH.")
@click.pass_context
def main(context: click.Context, include_dir: bool, cmake_dir: bool, pkgconfig_dir: bool) -> None:
    """A machine-readable specification of NVIDIA's PTX matrix instructions.

    Without a verb, an instruction, an element, a target, the bits of a descriptor, a swizzle or the code of a message is shown.

    \b
    Examples:
      ptxmma m16n8k16 f16
      ptxmma m16n8k16 f16 "A[9][3]"
      ptxmma sm_120a
      ptxmma 0x4000004000010040
      ptxmma C7510
    """  # noqa: D301  # click's mark for lines that stay as they are
    if include_dir:
        click.echo(paths.INCLUDE)
    if cmake_dir:
        click.echo(paths.CMAKE)
    if pkgconfig_dir:
        click.echo(paths.PKGCONFIG)
    if context.invoked_subcommand is None and not (include_dir or cmake_dir or pkgconfig_dir):
        click.echo(context.get_help())
