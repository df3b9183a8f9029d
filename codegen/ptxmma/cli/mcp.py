"""``ptxmma mcp``: the answers of the command for agents, by the Model Context Protocol.

A tool is a verb: its parameters are the options of the verb, and its answer is what the verb prints.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from ptxmma.arguments import shortened
from ptxmma.cli import layout
from ptxmma.cli.command import Command, NamedNumbers
from ptxmma.cli.options import SectionOption
from ptxmma.cli.served import RefusedError, printed, refuse_large, within

if TYPE_CHECKING:
    from mcp.types import JSONRPCError

#: The verbs that answer questions, without the ones that write files or show pages.
_VERBS = ("resolve", "show", "list", "targets", "explain", "layout", "trace", "descriptor", "smem", "tma", "ring", "check")
#: Options that read or write files, or change the form for another reader.
_LEFT_OUT = {"database", "fix", "unsafe_fixes", "files", "format", "isolated", "exit_zero", "json_schema", "nvcc", "compile_commands"}
#: The options of ``layout`` that say what is converted, beside the product's and the ones about the other instruction.
_CONVERTED = {"instruction", "operand", "through", "transpose", "json"}
_CONVERT = """\
Say how the registers of an operand become an operand of another instruction: which of them move between threads, and which instructions
do it.  The accumulator D of one product becomes A of the next, or what stmatrix or tcgen05.st stores.

Example: {"instruction": "m16n8k16 f16", "operand": "d", "as": "m16n8k16 f16", "as_operand": "a"}"""
_ASK = """\
Answer a question in plain words: the thread of an element, the bytes of a tile, the targets of a type, a descriptor, an instruction.

Examples: {"question": "which lane holds A[9][3] of m16n8k16 bf16"}, {"question": "bytes to expect for 128x64 bf16 tile"}"""
#: Characters of a value in a request, except the code that ``check`` reads.
_MOST_ASKED = 10_000
#: Characters of an answer.
_MOST_SAID = 40_000
#: The first text that an agent reads.
_INSTRUCTIONS = """\
Facts about NVIDIA's PTX matrix instructions and the copies that feed them.  Name an instruction in words: m16n8k16 bf16, or
tcgen05.ld 32x32b x64.  show prints its operands and targets, layout the thread that holds an element.  check judges PTX and inline
assembly."""
_JSON_TYPES = {"integer": "integer", "boolean": "boolean", "float": "number"}


class Tool(NamedTuple):
    """A verb as a tool.

    Attributes:
        arguments: the words of the command that lead to the verb: ``["descriptor", "decode"]``.
        command: the verb.
        parameters: the options and arguments that a request may give, by their names.
        needed: the options that a request must give, though the verb does not need them.
        text: the description; empty for the help of the verb.
    """

    arguments: Sequence[str]
    command: click.Command
    parameters: Mapping[str, click.Parameter]
    needed: Sequence[str] = ()
    text: str = ""

    @property
    def description(self) -> str:
        """The description for an agent: the help of the verb, with its examples, unless the tool has one of its own."""
        return self.text or (self.command.help or "").replace("\b\n", "").strip()

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a request."""
        properties = {name: _property(parameter) for name, parameter in self.parameters.items()}
        properties |= {name: {"type": "integer", "description": text} for name, text in self._axes().items()}
        required = [name for name, parameter in self.parameters.items() if parameter.required or name in self.needed]
        if self.arguments == ["check"]:
            properties |= {
                "code": {"type": "string", "description": "PTX, or a source with inline assembly; then language says in which language."},
                "file": {"type": "string", "description": "A file below the folder of the server, in place of code."},
            }
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def _axes(self) -> dict[str, str]:
        """The axes of operands, which some verbs take as options: ``{"row": …}``."""
        given = self.command.axes if isinstance(self.command, NamedNumbers) else {}
        return {name.replace("-", "_"): text for names, text in given.items() for name in names.split()}

    def line(self, given: Mapping[str, Any]) -> list[str]:
        """The arguments of the command for a request.

        Raises:
            RefusedError: a parameter that is needed is missing, or a value is too long, or no text, number or truth value.
        """
        if lacking := [name for name in self.needed if name not in given]:
            raise RefusedError(f"give {' and '.join(lacking)}")
        options, words = list[str](), list[str]()
        for name, value in given.items():
            parameter = self.parameters.get(name)
            values = value if isinstance(value, list) else [value]
            if not all(isinstance(each, str | int | float) for each in values):
                raise RefusedError(f"{name} must be a text, a number or a truth value")
            if (length := sum(len(str(each)) for each in values)) > _MOST_ASKED:
                raise RefusedError(f"{name} has {length:,} characters; at most {_MOST_ASKED:,} are read")
            option = f"--{name.replace('_', '-')}"
            if isinstance(parameter, click.Argument):
                words += [str(each) for each in values]
            elif isinstance(parameter, click.Option) and parameter.is_flag:
                options += [option] if value is True else parameter.secondary_opts[:1]
            else:
                options += [f"{option}={each}" for each in values]
        isolated = ["--isolated"] if self.arguments == ["check"] else []
        return [*self.arguments, *isolated, *options, "--", *words]


def _property(parameter: click.Parameter) -> dict[str, Any]:
    """The JSON Schema of an option or an argument."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        schema: dict[str, Any] = {"type": "boolean"}
    elif isinstance(parameter.type, click.Choice):
        schema = {"type": "string", "enum": [*parameter.type.choices]}
    elif isinstance(parameter.type, click.types.FuncParamType):  # parses a text; a number of JSON may not have the 64 bits of a descriptor
        schema = {"type": "string"}
    else:
        schema = {"type": _JSON_TYPES.get(parameter.type.name, "string")}
    if parameter.multiple or (parameter.nargs == -1 and parameter.callback is None):  # a callback joins the words of a name
        schema = {"type": "array", "items": schema}
    text = getattr(parameter, "help", None)
    return schema | ({"description": text} if text else {})


def tools() -> dict[str, Tool]:
    """Every tool by its name: ``show``, ``descriptor_decode``."""
    from ptxmma.cli import main

    context = click.Context(main)
    verbs = {
        "_".join(arguments).replace("-", "_"): Tool(arguments, command, _parameters(command))
        for verb in _VERBS
        for arguments, command in _leaves([verb], main.get_command(context, verb), context)
    }
    places = verbs["layout"].parameters
    converting = {name for name, each in places.items() if isinstance(each, SectionOption) and each.section == layout.CONVERSION}
    asking = {name: each for name, each in places.items() if name not in converting}
    convert = {name: each for name, each in places.items() if name in converting or name in _CONVERTED or isinstance(each, SectionOption)}
    return {
        "ask": Tool(["ask"], click.Command("ask"), {"question": click.Argument(["question"], required=True)}, ("question",), _ASK),
        **verbs,
        "layout": verbs["layout"]._replace(parameters=asking),
        "convert": Tool(["layout"], verbs["layout"].command, convert, needed=("instruction", "operand", "as"), text=_CONVERT),
    }


def _leaves(arguments: list[str], command: click.Command | None, context: click.Context) -> Iterator[tuple[list[str], click.Command]]:
    """The commands of a verb that is a group, or the verb itself."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _leaves([*arguments, name], command.get_command(context, name), context)
    elif command is not None:
        yield arguments, command


def _parameters(command: click.Command) -> dict[str, click.Parameter]:
    """The options and arguments that a request may give."""
    named = {_name(each): each for each in command.params if not isinstance(each.type, click.Path | click.File)}
    return {name: each for name, each in named.items() if name not in _LEFT_OUT}


def _name(parameter: click.Parameter) -> str:
    """The name of a parameter as the help of the verb shows it, with ``_`` for ``-``."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len).lstrip("-").replace("-", "_")
    shown = (parameter.metavar or "").strip("[].").lower()
    return shown if shown.isidentifier() else parameter.name or ""


def answer(tool: Tool, given: Mapping[str, Any], folder: Path) -> list[str]:
    """The texts that the verb prints: its messages, if any, and its answer, which may be JSON.

    Raises:
        RefusedError: the verb refuses the request, or the request leaves the folder or names too large a document.
    """
    given, source = dict(given), ""
    known = tool.schema()["properties"]
    if unknown := [name for name in given if name not in known]:
        raise RefusedError(f"unknown parameter {unknown[0]!r}; known: {', '.join(known)}")
    if tool.arguments == ["ask"]:
        line = _question(tool.line(given)[-1])
    elif tool.arguments == ["check"]:
        source, files = _document(given.pop("code", None), given.pop("file", None), folder)
        line = [*tool.line(given), *files]
    else:
        line = tool.line(given)
    output = printed(line, source)
    return [_shortened(text) for text in output if text] or ["no output\n"]


def _question(text: str) -> list[str]:
    """The arguments of the command that answers a question in words.

    Raises:
        RefusedError: no verb that this server offers answers it.
    """
    from ptxmma.cli.questions import answered, misspelt

    try:
        line = [] if re.search(r"(^|\s)-", text) else answered(text.split())  # an option may name a file
    except click.ClickException as error:
        raise RefusedError(error.format_message()) from None
    if not line or line[0] not in _VERBS:
        meant = misspelt(text)
        also = f"is {meant!r} meant?" if meant else "name one, or call another tool"
        raise RefusedError(f"{shortened(text)!r} names no instruction, place, target, type or topic; {also}")
    return line


def _shortened(said: str) -> str:
    """A text, or as many lines of its beginning as an answer may have."""
    if len(said) <= _MOST_SAID:
        return said
    cut = said[:_MOST_SAID].rpartition("\n")[0]
    return f"{cut}\n... {len(said) - len(cut)} more characters: narrow the question\n"


def _fault(line: str) -> JSONRPCError | None:
    """Answer a line that breaks JSON-RPC; None for a valid message."""
    from mcp import types

    try:
        types.jsonrpc_message_adapter.validate_json(line)
    except ValueError:
        code, said = types.INVALID_REQUEST, "a request of JSON-RPC has parameters by name, and texts in Unicode"
    else:
        return None
    try:
        request = json.loads(line)
    except ValueError:
        request, code, said = None, types.PARSE_ERROR, "the line is not JSON"
    except RecursionError:
        request, code, said = None, types.PARSE_ERROR, "the line is nested too deeply"
    number = request.get("id") if isinstance(request, dict) else None
    usable = isinstance(number, int) or (isinstance(number, str) and number.isascii())
    return types.JSONRPCError(jsonrpc="2.0", id=number if usable else None, error=types.ErrorData(code=code, message=said))


def _document(code: object, file: object, folder: Path) -> tuple[str, list[str]]:
    """The text, or the name of the file, that ``check`` reads."""
    if isinstance(code, str) == isinstance(file, str):
        raise RefusedError("give code, or file")
    if isinstance(code, str):
        refuse_large(len(code.encode()))
        return code, ["-"]
    path = within(folder, str(file))
    refuse_large(path.stat().st_size)
    return "", [str(path)]


@click.command("mcp", cls=Command)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="The folder below which check reads files; by default the current one.",
)
def command(root: Path) -> None:
    """Serve the answers of the command to an agent, by the Model Context Protocol over standard input and output.

    The tool ask takes plain words.  Other tools are verbs: resolve, show, list, targets, explain, layout, trace, descriptor_decode and its
    like, smem, tma, ring, check; convert is layout --as.  Reads nothing outside of --root, and writes nothing.

    \b
    Example:
      ptxmma mcp --root kernels
    """  # noqa: D301  # click's mark for lines that stay as they are
    import asyncio
    import io
    import sys

    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage

    from ptxmma.release import __version__

    known, folder = tools(), root.resolve()

    async def listed(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name=name, description=tool.description, input_schema=tool.schema()) for name, tool in known.items()]
        )

    async def called(_: object, request: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if request.name not in known:
                raise RefusedError(f"unknown tool {request.name!r}; known: {', '.join(known)}")
            texts, failed = answer(known[request.name], request.arguments or {}, folder), False
        except RefusedError as error:
            texts, failed = [str(error)], True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text) for text in texts], is_error=failed)

    async def serve() -> None:
        server = Server("ptxmma", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=listed, on_call_tool=called)
        given = anyio.wrap_file(io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))

        async def sound() -> AsyncIterator[str]:
            """The messages that can be read; the library would leave the others without an answer."""
            async for line in given:
                if fault := _fault(line):
                    await write.send(SessionMessage(fault))
                else:
                    yield line

        async with stdio_server(cast("anyio.AsyncFile[str]", sound())) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())
