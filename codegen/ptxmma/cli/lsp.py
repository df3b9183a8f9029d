"""``ptxmma lsp``: the answers of the library and of ``check`` in an editor, by the Language Server Protocol."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast
from urllib.parse import unquote

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, named_option, named_target, usage_errors
from ptxmma.cli.served import RefusedError, refuse_large

if TYPE_CHECKING:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

    from ptxmma.check import Finding
    from ptxmma.cli.lsp_answers import Answers, Document

_Answer = TypeVar("_Answer")
#: Seconds without a change after which a document is checked.
_PAUSE = 0.2
#: The characters after which an editor asks for modifiers, and for operands.
_MODIFIERS, _OPERANDS = (".", ":"), (" ", ",", "{", "[")
#: For each encoding of columns, Python's name of it and the bytes of a unit.
_ENCODINGS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_SEVERITIES = ("error", "warning", "note")
#: The beginning of a header.
_LENGTH = b"Content-Length:"


class Columns:
    """Columns of lines as an editor counts them, from 0 in units of an encoding."""

    def __init__(self, encoding: str) -> None:
        self._name, self._size = _ENCODINGS[encoding]

    def character(self, line: str, units: int) -> int:
        """The character at a column, from 0; the end of the line for a column after it."""
        return len(line.encode(self._name, "surrogatepass")[: units * self._size].decode(self._name, "ignore"))

    def units(self, line: str, character: int) -> int:
        """The column of a character, from 0."""
        return len(line[:character].encode(self._name, "surrogatepass")) // self._size


class _InStep:
    """Standard input from header to header.

    A message whose header has no length cannot be read, and its body ends where the next header begins, not with its line.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.read = stream.read

    def readline(self) -> bytes:
        """The next line, without the body of such a message before a header."""
        line = self._stream.readline()
        return line[max(line.rfind(_LENGTH), 0) :]


class Session:
    """The documents that an editor has opened, and the answers about them.

    One thread answers, since the library remembers what it has seen.  The newest version of a document wins.

    Args:
        server: the connection to the editor.
        answers: the answers.
        site: the address of the documentation, for links; ``""`` without one.
    """

    def __init__(self, server: LanguageServer, answers: Answers, site: str) -> None:
        self._server, self._answers, self._site = server, answers, site.rstrip("/")
        self._thread = ThreadPoolExecutor(1)
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._documents: dict[str, Document] = {}

    def changed(self, uri: str) -> None:
        """Check a document soon, in place of a check of an earlier version."""
        self._forget(uri)
        self._checks[uri] = asyncio.create_task(self._checked(uri))

    def closed(self, uri: str) -> None:
        """Forget a document and its findings."""
        self._forget(uri)
        self._publish(uri, [])

    async def hover(self, request: types.HoverParams) -> types.Hover | None:
        """The short answer about the instruction at a place, and where the site has an address its page."""
        from lsprotocol import types

        document, line, column = self._place(request)
        found = await self._in_thread(lambda: self._answers.hover(document, line, column))
        if found is None:
            return None
        link = f"\n\n[{found.page}]({self._site}/{found.page})" if self._site else ""
        content = types.MarkupContent(types.MarkupKind.Markdown, f"```text\n{found.answer}```{link}")
        return types.Hover(content, self._range(document, found.line, found.column, found.length))

    async def completion(self, request: types.CompletionParams) -> types.CompletionList:
        """The modifiers that may come next."""
        from lsprotocol import types

        document, line, column = self._place(request)
        root = self._root(document)
        begun, found = await self._in_thread(lambda: self._answers.continuations(document, line, column, root))
        place = self._range(document, line, column - len(begun), len(begun))
        items = [
            types.CompletionItem(
                token,
                kind=types.CompletionItemKind.Keyword,
                detail=instruction.canonical,
                sort_text=f"{number:04}",
                text_edit=types.TextEdit(place, token),
            )
            for number, (token, instruction) in enumerate(found.items())
        ]
        return types.CompletionList(is_incomplete=False, items=items)

    async def signature(self, request: types.SignatureHelpParams) -> types.SignatureHelp | None:
        """The operands of the instruction at a place."""
        from lsprotocol import types

        document, line, column = self._place(request)
        found = await self._in_thread(lambda: self._answers.signature(document, line, column))
        if found is None:
            return None
        signatures = [
            types.SignatureInformation(
                f"{found.instruction} {', '.join(name for name, _ in operands)}",
                parameters=[types.ParameterInformation(name, text) for name, text in operands],
            )
            for operands in found.lists
        ]
        active = next((number for number, operands in enumerate(found.lists) if found.operand < len(operands)), 0)
        return types.SignatureHelp(signatures, active_signature=active, active_parameter=found.operand)

    async def actions(self, request: types.CodeActionParams) -> list[types.CodeAction]:
        """The fixes of the findings in a range."""
        from lsprotocol import types

        uri, wanted = request.text_document.uri, request.range
        document = self._document(uri)
        actions, mend = [], functools.partial(self._answers.fix, document, self._root(document))
        for finding in await self._findings(uri, document):
            place = self._range(document, finding.line, finding.column, finding.length)
            if place.end < wanted.start or wanted.end < place.start:
                continue
            column, fix = await self._in_thread(functools.partial(mend, finding))
            if fix is not None and document.lines[finding.line - 1][column - 1 :].startswith(fix.old):
                edit = types.TextEdit(self._range(document, finding.line, column, len(fix.old)), fix.new)
                actions.append(
                    types.CodeAction(
                        f"Write {fix.new}" if fix.safe else f"Write {fix.new}, if that is meant",
                        kind=types.CodeActionKind.QuickFix,
                        diagnostics=[self._diagnostic(document, finding)],
                        is_preferred=fix.safe,
                        edit=types.WorkspaceEdit({uri: [edit]}),
                    )
                )
        return actions

    async def _checked(self, uri: str) -> None:
        """Check a document after a pause, and tell the editor what was found."""
        from lsprotocol import types

        from ptxmma.ptx.python_strings import NotPythonError

        await asyncio.sleep(_PAUSE)
        try:
            document = self._document(uri)
            found = [self._diagnostic(document, finding) for finding in await self._findings(uri, document)]
        except NotPythonError:  # it is being typed: the last findings stay
            return
        except (RefusedError, ValueError) as error:
            self._server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"{unquote(uri)}: {error}"))
            found = []
        self._publish(uri, found)

    def _root(self, document: Document) -> Path | None:
        """The folder that the editor opened and that has a document; None for a document elsewhere."""
        from pygls.uris import to_fs_path

        folders = [to_fs_path(folder) for folder in (*self._server.workspace.folders, self._server.workspace.root_uri) if folder]
        roots = [Path(folder).resolve() for folder in folders if folder]
        return next((each for each in roots if Path(document.path).is_relative_to(each)), None)

    async def _findings(self, uri: str, document: Document) -> Sequence[Finding]:
        root = self._root(document)
        return await self._in_thread(lambda: self._answers.findings(document, root, lambda: self._documents.get(uri) is not document))

    def _document(self, uri: str) -> Document:
        """A document in its newest version.

        Raises:
            RefusedError: the editor has not opened it, or it is too large.
            ptxmma.ptx.languages.UnreadLanguageError: its language is not read.
        """
        from pygls.uris import to_fs_path

        from ptxmma.cli.lsp_answers import Document

        if uri not in self._documents:
            opened = self._server.workspace.text_documents.get(unquote(uri))
            if opened is None:
                raise RefusedError(f"{uri} is not open: the server reads what the editor shows")
            refuse_large(len(opened.source.encode("utf-8", "replace")))
            path = to_fs_path(uri)
            self._documents[uri] = Document(opened.source, str(Path(path).resolve()) if path else uri, opened.language_id or "")
        return self._documents[uri]

    def _place(self, request: types.HoverParams | types.CompletionParams | types.SignatureHelpParams) -> tuple[Document, int, int]:
        """The document, the line and the column of a request, both from 1."""
        document, position = self._document(request.text_document.uri), request.position
        line = document.lines[position.line] if position.line < len(document.lines) else ""
        return document, position.line + 1, self._columns.character(line, position.character) + 1

    def _range(self, document: Document, line: int, column: int, length: int) -> types.Range:
        """The range of some characters of a line, cut at its end."""
        from lsprotocol import types

        text = document.lines[line - 1] if line <= len(document.lines) else ""
        ends = (self._columns.units(text, place) for place in (column - 1, column - 1 + length))
        return types.Range(*(types.Position(line - 1, units) for units in ends))

    def _diagnostic(self, document: Document, finding: Finding) -> types.Diagnostic:
        from lsprotocol import types

        page = types.CodeDescription(f"{self._site}/reference/rules/{finding.rule}.html") if self._site else None
        return types.Diagnostic(
            self._range(document, finding.line, finding.column, finding.length),
            finding.message,
            severity=types.DiagnosticSeverity(_SEVERITIES.index(finding.severity) + 1),
            code=finding.rule,
            code_description=page,
            source="ptxmma",
        )

    def _publish(self, uri: str, found: list[types.Diagnostic]) -> None:
        from lsprotocol import types

        opened = self._server.workspace.text_documents.get(unquote(uri))
        version = opened.version if opened else None
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def _forget(self, uri: str) -> None:
        self._documents.pop(uri, None)
        if uri in self._checks:
            self._checks.pop(uri).cancel()

    @property
    def _columns(self) -> Columns:
        return Columns(self._server.workspace.position_encoding or "utf-16")

    async def _in_thread(self, answer: Callable[[], _Answer]) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)


@click.command("lsp", cls=Command)
@named_option("--target", "target", "The target of code that declares none, such as inline assembly: sm_90a, 90, H100.")
@named_option("--ptx", "ptx", "The PTX ISA version of code that declares none.")
@click.option("--site", metavar="ADDRESS", default="", help="The address of this documentation, to which hovers and findings link.")
def command(target: str | None, ptx: str | None, site: str) -> None:
    """Serve an editor, by the Language Server Protocol over standard input and output.

    In PTX, and in the inline assembly of C++, CUDA, Python and LLVM IR: findings of check while typing, their fixes, the short answer about
    an instruction, modifiers that lead to a legal instruction, and operands.

    Reads documents that the editor shows, and the configuration of check below the folder that it opened.  Writes nothing.

    \b
    Example:
      ptxmma lsp --target sm_90a
    """  # noqa: D301  # click's mark for lines that stay as they are
    from lsprotocol import types
    from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcServerNotInitialized
    from pygls.lsp.server import LanguageServer
    from pygls.protocol import LanguageServerProtocol

    from ptxmma.cli.lsp_answers import Answers
    from ptxmma.release import __version__

    class OneLine(logging.Formatter):
        """Messages of one line, also about a wrong request, which the client learns of; a fault of the server has its traceback."""

        def format(self, record: logging.LogRecord) -> str:
            error = record.exc_info[1] if record.exc_info else None
            if error is not None and record.module != "io_" and not isinstance(error, JsonRpcException | ValueError):
                return super().format(record)  # module io_ has the errors of messages that cannot be read
            what = "a message is not JSON" if isinstance(error, json.JSONDecodeError) else record.getMessage()
            lines = [what, *([str(error)] if error else [])]
            return ": ".join(text.partition("\n")[0] for text in lines)

    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(OneLine())
    logging.getLogger("pygls").addHandler(handler)

    class Protocol(LanguageServerProtocol):
        """The protocol, in which a request with wrong parameters, or before ``initialize``, gets an answer, too."""

        def handle_message(self, message: Any) -> None:
            if not hasattr(message, "jsonrpc"):
                raise JsonRpcInvalidRequest("a message is a JSON object with jsonrpc and a method or a result")
            if self._workspace is not None or getattr(message, "method", "") in (types.INITIALIZE, types.EXIT):
                super().handle_message(message)
            elif hasattr(message, "id"):  # a notification before initialize is dropped
                self._send_response(message.id, error=JsonRpcServerNotInitialized("initialize comes first").to_response_error())

        def structure_message(self, data: dict[str, Any]) -> Any:
            if "jsonrpc" in data and "method" in data and self.get_message_type(data["method"]) is None:
                data.setdefault("params", None)  # JSON-RPC lets a request leave them out
            try:
                return super().structure_message(data)
            except JsonRpcException as error:
                if "id" in data and "method" in data:
                    self._send_response(data["id"], error=error.to_response_error())
                raise

    # Whole texts: splitting lines for changes, pygls also divides them at form feeds.
    server = LanguageServer("ptxmma", __version__, types.TextDocumentSyncKind.Full, protocol_cls=Protocol)
    with usage_errors():
        answers = Answers(named_target(catalog_of(None).database.spec, target) or "", ptx or "")
    session = Session(server, answers, site)

    async def changed(request: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
        session.changed(request.text_document.uri)

    async def closed(request: types.DidCloseTextDocumentParams) -> None:
        session.closed(request.text_document.uri)

    def answering(method: str, answer: Callable[[Any], Any], options: Any = None) -> None:
        async def handler(request: Any) -> Any:
            try:
                return await answer(request)
            except (RefusedError, ValueError) as error:
                raise JsonRpcInvalidParams(str(error)) from None

        server.feature(method, options)(handler)

    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(changed)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(closed)
    answering(types.TEXT_DOCUMENT_HOVER, session.hover)
    answering(types.TEXT_DOCUMENT_COMPLETION, session.completion, types.CompletionOptions(trigger_characters=_MODIFIERS))
    answering(types.TEXT_DOCUMENT_SIGNATURE_HELP, session.signature, types.SignatureHelpOptions(trigger_characters=_OPERANDS))
    answering(types.TEXT_DOCUMENT_CODE_ACTION, session.actions, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]))
    server.start_io(cast("BinaryIO", _InStep(sys.stdin.buffer)))  # it needs no more than the two ways to read
