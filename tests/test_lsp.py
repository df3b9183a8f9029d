"""The server for editors, asked by a client that speaks the protocol itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ptxmma
from ptxmma.catalog.instructions import catalog
from ptxmma.catalog.instructions.continuations import continuations

pytest.importorskip("pygls")

#: Seconds after which a server that says nothing is killed, and the test fails.
_PATIENCE = 60
_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_OPERANDS = "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3}"
_HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n"


class Client:
    """A client of one server: it sends messages, and reads until the answer that it waits for has come."""

    def __init__(self, folder: Path, *options: str, encodings: list[str] | None = None) -> None:
        command = [sys.executable, "-m", "ptxmma", "lsp", *options]
        self.log = folder.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._watch = threading.Timer(_PATIENCE, self.process.kill)
        self._watch.start()
        self._number = 0
        self.notified: list[dict[str, Any]] = []
        self.folder = folder
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        begin = {"processId": None, "rootUri": folder.as_uri(), "capabilities": general}
        self.before_initialize = self.ask("shutdown", None)
        self.capabilities = self.ask("initialize", begin)["result"]["capabilities"]
        self.tell("initialized", {})

    def send(self, body: bytes) -> None:
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _message(self, **fields: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", **fields}).encode())

    def tell(self, method: str, params: Any) -> None:
        self._message(method=method, params=params)

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        self._number += 1
        self._message(id=self._number, method=method, params=params)
        while True:
            message = self._read()
            if message.get("id") == self._number:
                return message
            self.notified.append(message)

    def _read(self) -> dict[str, Any]:
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while (line := stream.readline()) != b"\r\n":
            assert line, "the server ended"
            if line.startswith(b"Content-Length:"):
                length = int(line.split(b":")[1])
        message: dict[str, Any] = json.loads(stream.read(length))
        return message

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str, language: str = "") -> None:
        self.tell("textDocument/didOpen", {"textDocument": {"uri": self.uri(name), "languageId": language, "version": 1, "text": text}})

    def change(self, name: str, text: str, version: int) -> None:
        document = {"uri": self.uri(name), "version": version}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def at(self, method: str, name: str, line: int, character: int) -> Any:
        place = {"textDocument": {"uri": self.uri(name)}, "position": {"line": line, "character": character}}
        answer = self.ask(f"textDocument/{method}", place)
        return answer["result"] if "result" in answer else answer["error"]

    def findings(self, uri: str, version: int | None = 1) -> list[dict[str, Any]]:
        """The findings that the server sends about a version of a document."""
        while True:
            said = self.notification("textDocument/publishDiagnostics", uri)
            if said.get("version") == version:
                return said["diagnostics"]  # type: ignore[no-any-return]

    def shown(self, part: str) -> str:
        """The next message that the server shows with a part."""
        while True:
            if part in (text := self.notification("window/showMessage")["message"]):
                return str(text)

    def notification(self, method: str, uri: str = "") -> dict[str, Any]:
        """The next notification of a method, about a document."""
        while True:
            message = self.notified.pop(0) if self.notified else self._read()
            if message.get("method") == method and (not uri or message["params"]["uri"] == uri):
                return message["params"]  # type: ignore[no-any-return]

    def actions(self, name: str, line: int) -> list[dict[str, Any]]:
        whole = {"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}}
        params = {"textDocument": {"uri": self.uri(name)}, "range": whole, "context": {"diagnostics": []}}
        return self.ask("textDocument/codeAction", params)["result"]  # type: ignore[no-any-return]

    def end(self) -> int:
        self.ask("shutdown", None)
        self.tell("exit", None)
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._watch.cancel()
        return self.process.wait(_PATIENCE)

    def kill(self) -> None:
        self._watch.cancel()
        self.process.kill()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    client = Client(tmp_path, "--target", "sm_80", "--site", "https://docs.example/ptxmma/")
    with client.process:
        yield client
        client.kill()


def test_findings_come_while_typing_and_the_newest_version_wins(client: Client) -> None:
    client.open("k.ptx", f"{_HEAD}mma.\n}}\n")
    for version in range(2, 9):
        client.change("k.ptx", f"{_HEAD}{_MMA[: version * 4]}\n}}\n", version)
    client.change("k.ptx", f"{_HEAD}{_MMA.replace('k16', 'k32')} {_OPERANDS};\n}}\n", 9)
    [finding] = client.findings(client.uri("k.ptx"), 9)
    assert finding["code"] == "unknown-instruction"
    assert finding["codeDescription"] == {"href": "https://docs.example/ptxmma/reference/rules/unknown-instruction.html"}
    assert finding["range"]["start"]["line"] == 7
    client.change("k.ptx", f"{_HEAD}{_MMA} {_OPERANDS};\n}}\n", 10)
    assert client.findings(client.uri("k.ptx"), 10) == []
    client.tell("textDocument/didClose", {"textDocument": {"uri": client.uri("k.ptx")}})
    assert client.findings(client.uri("k.ptx"), None) == []
    assert client.end() == 0


def test_hover_has_no_link_without_the_address_of_the_site(tmp_path: Path) -> None:
    client = Client(tmp_path)
    with client.process:
        client.open("k.ptx", f"{_HEAD}{_MMA} {_OPERANDS};\n}}\n")
        assert client.at("hover", "k.ptx", 7, 12)["contents"]["value"].endswith(f"ptxmma show {_MMA} --all\n```")
        assert client.end() == 0


def test_hover_shows_the_short_answer_and_the_page(client: Client) -> None:
    client.open("k.ptx", f"{_HEAD}{_MMA} {_OPERANDS};\n}}\n")
    shown = client.at("hover", "k.ptx", 7, 12)
    assert shown["range"] == {"start": {"line": 7, "character": 0}, "end": {"line": 7, "character": len(_MMA)}}
    text = shown["contents"]["value"]
    assert "d[row][col] = c[row][col] + sum over k of a[row][k] * b[k][col]" in text
    assert text.endswith("[reference/mma/m16n8k16-f16.html](https://docs.example/ptxmma/reference/mma/m16n8k16-f16.html)")
    assert client.at("hover", "k.ptx", 7, len(_MMA) + 5) is None
    assert client.at("hover", "k.ptx", 1, 3) is None


def test_completion_leads_to_instructions_of_the_target(client: Client) -> None:
    lines = f"{_HEAD}mma.sync.aligned.m16n8k16.row.col.f\n}}\n.version 8.7\n.target sm_120a\n.entry l()\n{{\nmma.sync.aligned."
    client.open("k.ptx", lines)
    offered = client.at("completion", "k.ptx", 7, 35)["items"]
    assert [item["label"] for item in offered] == ["f32", "f16"]  # as the spec prefers
    assert offered[0]["textEdit"]["range"]["start"] == {"line": 7, "character": 34}
    assert "kind::mxf8f6f4" not in {item["label"] for item in client.at("completion", "k.ptx", 7, 17)["items"]}
    assert "m16n8k32" in {item["label"] for item in client.at("completion", "k.ptx", 13, 17)["items"]}
    assert {"mma", "movmatrix"} <= {item["label"] for item in client.at("completion", "k.ptx", 7, 1)["items"]}
    client.change("k.ptx", f"{_HEAD.replace('sm_80', 'sm_70')}mma.sync.aligned.", 2)
    assert [item["label"] for item in client.at("completion", "k.ptx", 7, 17)["items"]] == ["m8n8k4"]


def test_operands_are_shown_while_they_are_written(client: Client) -> None:
    written = f"{_MMA} {{%f0, %f1, %f2, %f3}}, {{%r0, "
    client.open("k.ptx", f"{_HEAD}{written}\n}}\n")
    shown = client.at("signatureHelp", "k.ptx", 7, len(written))
    assert shown["activeParameter"] == 1
    assert shown["signatures"][0]["label"] == f"{_MMA} d, a, b, c"
    assert shown["signatures"][0]["parameters"][1] == {"label": "a", "documentation": "a, fragment: a list of 4 .b32 or .f16x2 registers"}
    assert client.at("signatureHelp", "k.ptx", 7, 3) is None


def _asm(language: str, opcode: str) -> str:
    """A source in a language with an instruction in its third line."""
    smile, registers = "\N{GRINNING FACE}", ", ".join("{%0, %1, %2, %3}" for _ in range(4))
    return {
        "c++": f'void f(float *d) {{\n  asm("// {smile}\\n"\n  "/* {smile} */ {opcode} {registers};" : "+f"(d[0]), "+f"(d[1]));\n}}\n',
        "python": f'x = """\n\n  /* {smile} */ {opcode} {registers};\n"""\n',
        "llvm": f'define void @f() {{\n; {smile}\n  call void asm "/* {smile} */ {opcode} {registers};", "r,r,r,r,r"(i32 1)\n}}\n',
    }[language]


@pytest.mark.parametrize(("name", "language"), [("k.cu", ""), ("k.py", ""), ("k.ll", ""), ("untitled", "cuda-cpp")])
def test_inline_assembly_is_read(client: Client, name: str, language: str) -> None:
    of = {"k.py": "python", "k.ll": "llvm"}.get(name, "c++")
    text = _asm(of, _MMA)
    line = text.split("\n")[2]
    client.open(name, text, language)
    start = len(line[: line.index("mma")].encode("utf-16-le")) // 2
    shown = client.at("hover", name, 2, start + 8)
    assert shown["range"]["start"] == {"line": 2, "character": start}
    assert "sum over k" in shown["contents"]["value"]
    wrong = _asm(of, _MMA.replace("k16", "k17"))
    client.change(name, wrong, 2)
    found = [finding for finding in client.findings(client.uri(name), 2) if finding["code"] == "unknown-instruction"]
    assert [finding["range"]["start"] for finding in found] == [{"line": 2, "character": start + len("mma.sync.aligned.")}]
    client.change(name, text.replace(_MMA, "mma.sync.aligned."), 3)
    assert "m16n8k16" in {item["label"] for item in client.at("completion", name, 2, start + 17)["items"]}


@pytest.mark.parametrize(("encoding", "size"), [("utf-8", 1), ("utf-16", 2), ("utf-32", 4)])
def test_columns_count_as_the_editor_counts(tmp_path: Path, encoding: str, size: int) -> None:
    client = Client(tmp_path, encodings=[encoding])
    with client.process:
        assert client.capabilities["positionEncoding"] == encoding
        before = "/* \N{GRINNING FACE} \N{LATIN SMALL LETTER E WITH ACUTE}\N{COMBINING ACUTE ACCENT} \f \N{LINE SEPARATOR} */ "
        client.open("k.ptx", f"{_HEAD}{before}{_MMA.replace('k16', 'k32')} {_OPERANDS};\r\n}}\r\n")
        [finding] = client.findings(client.uri("k.ptx"))
        start = len(f"{before}mma.sync.aligned.".encode(f"{encoding}-le" if size > 1 else encoding)) // size
        assert finding["range"]["start"] == {"line": 7, "character": start}
        assert client.end() == 0


def test_fixes_are_actions(client: Client, tmp_path: Path) -> None:
    text = f"{_HEAD}{_MMA} {_OPERANDS.replace('{%r4, %r5}', '{%r4, %r5}')};\n".replace("row.col.f32", "col.row.f32")
    swapped = text.replace("col.row.f32", "row.col.f32").replace("sync.aligned", "aligned.sync")
    client.open("k.ptx", f"{swapped}}}\n")
    found = client.findings(client.uri("k.ptx"))
    actions = client.actions("k.ptx", 7)
    assert found
    assert actions
    assert actions[0]["isPreferred"]
    [edit] = actions[0]["edit"]["changes"][client.uri("k.ptx")]
    line = swapped.split("\n")[7]
    begin, end = (edit["range"][which]["character"] for which in ("start", "end"))
    client.change("k.ptx", f"{swapped.replace(line, line[:begin] + edit['newText'] + line[end:])}}}\n", 2)
    assert len(client.findings(client.uri("k.ptx"), 2)) < len(found)
    assert client.actions("k.ptx", 0) == []
    assert [*tmp_path.iterdir()] == []  # nothing is written


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", ""),  # sm_80 has no fp8: the nearest that it has
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b8", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
        ("stmatrix.sync.aligned.m8n8.x4.shared.b16", None),  # sm_80 has none
    ],
)
def test_the_nearest_instruction_of_the_target_is_an_action(client: Client, wrong: str, right: str | None) -> None:
    client.open("k.ptx", f"{_HEAD}  {wrong} {_OPERANDS};\n}}\n")
    client.findings(client.uri("k.ptx"))
    actions = client.actions("k.ptx", 7)
    if right is None:
        assert actions == []
        return
    [edit] = actions[0]["edit"]["changes"][client.uri("k.ptx")]
    assert actions[0]["title"] == f"Write {edit['newText']}, if that is meant"
    assert (actions[0]["isPreferred"], edit["range"]["start"]["character"], edit["range"]["end"]["character"]) == (False, 2, 2 + len(wrong))
    assert edit["newText"] == right or (right == "" and "sm_80" in ptxmma.instruction(edit["newText"]).accepted_by())


def test_configuration_is_read_below_the_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "ptxmma.toml").write_text('[check]\nignore = ["unknown-instruction"]\n', encoding="utf-8")
    folder = tmp_path / "opened"
    (folder / "inner").mkdir(parents=True)
    (folder / "linked").mkdir()
    (folder / "linked" / "ptxmma.toml").symlink_to(tmp_path / "ptxmma.toml")
    (folder / "inner" / "ptxmma.toml").write_text('[check]\nignore = ["unknown-instruction"]\n', encoding="utf-8")
    client = Client(folder)
    text = f"{_HEAD}{_MMA.replace('k16', 'k32')} {_OPERANDS};\n}}\n"
    with client.process:
        for name, count in (("k.ptx", 1), ("linked/k.ptx", 1), ("inner/k.ptx", 0), ("inner/../k.ptx", 1)):
            client.tell(
                "textDocument/didOpen",
                {"textDocument": {"uri": f"{folder.as_uri()}/{name}", "languageId": "ptx", "version": 1, "text": text}},
            )
            found = client.findings(f"{folder.as_uri()}/{name}")
            assert len(found) == count, name
        (folder / "inner" / "ptxmma.toml").write_text("broken [", encoding="utf-8")
        client.change("inner/k.ptx", text, 2)
        assert client.shown("ptxmma.toml")
        assert client.end() == 0


def test_a_project_names_the_target_of_code_that_declares_none(client: Client, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "ptxmma.toml").write_text('[lsp]\ntarget = "V100"\n', encoding="utf-8")
    text = _asm("c++", "mma.sync.aligned.")
    line = text.split("\n")[2]
    column = len(line[: line.index(" {%0")].encode("utf-16-le")) // 2
    for name, shapes in (("inner/k.cu", ["m8n8k4"]), ("k.cu", ["m16n8k16", "m16n8k8"])):
        client.open(name, text)
        offered = [item["label"] for item in client.at("completion", name, 2, column)["items"]]
        assert (offered == shapes) if name.startswith("inner") else ({*shapes} <= {*offered})
    client.open("inner/l.cu", _asm("c++", _MMA))
    assert "target" in {finding["code"] for finding in client.findings(client.uri("inner/l.cu"))}
    (tmp_path / "inner" / "ptxmma.toml").write_text('[lsp]\ntarget = "sm_1"\n', encoding="utf-8")
    assert "unknown target 'sm_1'" in client.at("completion", "inner/k.cu", 2, column)["message"]


def test_an_opcode_goes_on_in_the_next_literal(client: Client) -> None:
    lines = [
        'asm volatile("{\\n\\t"',
        '             "mma.sync.aligned."',
        '             "m16n8k16.row.col.f32.bf16."',
        '             "b");',
    ]
    client.open("k.cu", "void f() {\n" + "\n".join(lines) + "\n}\n")
    offered = client.at("completion", "k.cu", 4, len('             "b'))["items"]
    assert [item["label"] for item in offered] == ["bf16"]
    assert offered[0]["textEdit"]["range"]["start"] == {"line": 4, "character": len('             "')}
    assert "m16n8k16" in {item["label"] for item in client.at("completion", "k.cu", 3, len('             "'))["items"]}


def test_hostile_requests_get_an_error_and_the_server_goes_on(client: Client, tmp_path: Path) -> None:
    assert client.before_initialize["error"] == {"code": -32002, "message": "initialize comes first"}
    (tmp_path / "secret.ptx").write_text(f"{_HEAD}{_MMA} {_OPERANDS};\n}}\n", encoding="utf-8")
    client.open("k.ptx", f"{_HEAD}{_MMA} {_OPERANDS};\n}}\n")
    assert client.findings(client.uri("k.ptx")) == []
    for uri in ("file:///etc/passwd", client.uri("secret.ptx"), "file:///%00", "nonsense", "", "http://example.com/k.ptx"):
        refused = client.ask("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}})
        assert "is not open" in refused["error"]["message"], uri
    assert client.ask("no/such/method", {})["error"]["code"] == -32601
    client.send(b'{"jsonrpc": "2.0", "id": 98, "method": "no/such/method"}')
    assert "error" in client.ask("workspace/executeCommand", {"command": "rm", "arguments": ["-rf"]})
    for line, character in ((7, 10**6), (10**6, 0), (10**6, 10**6), (7, 2**31 - 1)):
        assert client.at("hover", "k.ptx", line, character) is None
        assert client.at("completion", "k.ptx", line, character)["items"] == []
    for body in (b"{broken", b"[]", b"\x00\x01", b"null", b"\xff\xfe", b'"text"', b'{"jsonrpc": "1.0"}', b'{"id": 1}'):
        client.send(body)
    for header in (b"Content-Length: abc", b"Content-Length: -1", b"Content-Length:", b"Content-Type: text"):
        client.write(header + b'\r\n\r\n{"jsonrpc": "2.0", "id": 99, "method": "shutdown"}')
    wrong = {"textDocument": {"uri": client.uri("k.ptx")}, "position": {"line": -1, "character": "x"}}
    assert client.ask("textDocument/hover", wrong)["error"]["code"] == -32602
    assert [said["error"]["code"] for said in client.notified if said.get("id") == 98] == [-32601]  # without parameters
    log = client.log.read_text(encoding="utf-8")
    assert "file:///etc/passwd is not open" in log
    assert "a message is not JSON: Expecting property name" in log
    assert "a message is a JSON object with jsonrpc" in log
    assert "Traceback" not in log
    client.tell("textDocument/didChange", {"textDocument": {"uri": "file:///x", "version": 2}, "contentChanges": [{"text": ""}]})
    client.tell("textDocument/didClose", {"textDocument": {"uri": "file:///x"}})
    client.open("k.rs", "fn main() {}")
    assert client.shown("Rust")
    client.open("binary", "\0\1\2\0")
    assert client.shown("not text")
    client.open("lone.ptx", f"{_HEAD}// \ud800\n}}\n")
    assert client.findings(client.uri("lone.ptx")) == []
    client.open("large.ptx", " " * 20_000_001)
    assert client.shown("at most 20,000,000")
    assert client.at("hover", "k.ptx", 7, 3) is not None
    assert client.end() == 0


def test_the_configurations_of_editors_start_the_server(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "editors.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"code-block:: (json|lua|toml|elisp)\n.*?\n\n(.*?)\n(?=\S|\Z)", page, re.S)
    started = [re.findall(r'"([^"]+)"', line) for _, block in blocks for line in block.splitlines() if '"lsp"' in line]
    assert len(started) == 4
    for options in dict.fromkeys(tuple(words[words.index("lsp") + 1 :]) for words in started):
        client = Client(tmp_path, *options)
        with client.process:
            client.open("k.ptx", f"{_HEAD}{_MMA} {_OPERANDS};\n}}\n", "ptx")
            assert "sum over k" in client.at("hover", "k.ptx", 7, 12)["contents"]["value"]
            assert client.end() == 0
    assert sum('target = "sm_90a"' in block for _, block in blocks) == 1


def test_every_continuation_leads_to_an_instruction() -> None:
    known = catalog()
    paths = [
        ("wgmma",),
        ("mma", "sync", "aligned"),
        ("tcgen05", "mma", "cta_group::1"),
        ("cp", "async"),
        ("ldmatrix",),
        ("mma", "sync", "aligned", "f16"),
    ]
    for begun in paths:
        tokens = [*begun]
        found = continuations(known, tokens, lambda _: True)
        assert found, begun
        for token, instruction in found.items():
            assert not {*tokens, token} - {
                *instruction.canonical.split("."),
                *(value for _, values in instruction.possible_hints() for value in values),
            }
            rest = [*tokens, token]
            while known.meaning(".".join(rest)) is None:
                follow = continuations(known, rest, lambda _: True)
                assert follow, rest
                rest.append(next(iter(follow)))
    mma = [each.canonical for each in known.all(lambda entry: entry.name == "mma")]
    for spelling in mma[::25]:
        tokens = spelling.split(".")
        for count in range(1, len(tokens)):
            assert tokens[count] in continuations(known, tokens[:count], lambda _: True), (spelling, count)
