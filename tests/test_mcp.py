"""The server for agents, asked by a real client; and the skill, whose steps are commands."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import invoke
from ptxmma.cli import VERBS
from ptxmma.cli import mcp as served
from test_questions import QUESTIONS

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")
stdio = pytest.importorskip("mcp.client.stdio")

_COMMAND = (sys.executable, "-m", "ptxmma", "mcp")
_WRONG = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2}, {%r4, %r5}, {%f0, %f1, %f2, %f3};\n"


def _asked(folder: Path, *requests: tuple[str, dict[str, Any]]) -> tuple[dict[str, Any], list[tuple[bool, str]]]:
    """The schemas of the tools, and the answers of one server: whether it refuses, and its text."""

    async def ask() -> tuple[dict[str, Any], list[tuple[bool, str]]]:
        parameters = stdio.StdioServerParameters(command=_COMMAND[0], args=[*_COMMAND[1:]], cwd=str(folder))
        async with stdio.stdio_client(parameters) as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            schemas = {tool.name: tool.input_schema for tool in (await session.list_tools()).tools}
            answers = [await session.call_tool(name, arguments) for name, arguments in requests]
            return schemas, [(bool(each.is_error), "".join(block.text for block in each.content)) for each in answers]

    answered: tuple[dict[str, Any], list[tuple[bool, str]]] = anyio.run(ask)
    return answered


def test_tools_answer_as_the_command_does(tmp_path: Path) -> None:
    (tmp_path / "kernel.ptx").write_text(_WRONG, encoding="utf-8")
    requests: list[tuple[str, dict[str, Any]]] = [
        ("show", {"instruction": "m16n8k8 tf32"}),
        ("layout", {"instruction": "m16n8k16 f16", "operand": "a", "row": 9, "col": 3, "json": True}),
        ("convert", {"instruction": "m16n8k16 f16", "operand": "d", "as": "m16n8k16 f16", "as_operand": "a"}),
        ("resolve", {"instruction": "nvfp4 rtx5090"}),
        ("explain", {"code": "C7510"}),
        ("targets", {"target": "rtx5090"}),
        ("list", {"pattern": "m16n8k8", "documented": False, "target": "sm_80"}),
        ("descriptor_decode", {"descriptor": "0x4000004000010040"}),
        ("descriptor_instruction", {"kind": "f16", "given": ["m=128", "n=256", "dtype=f32", "atype=f16", "btype=f16"]}),
        ("smem", {"type": "bf16", "major": "k", "swizzle": "128", "rows": 64, "cols": 64}),
        ("check", {"code": _WRONG, "target": "sm_80"}),
        ("check", {"file": "kernel.ptx", "select": ["register-count"]}),
    ]
    schemas, answers = _asked(tmp_path, *requests)
    assert {name for name, _ in requests} <= schemas.keys()
    assert all(set(given) <= schemas[name]["properties"].keys() for name, given in requests)
    assert schemas["descriptor_decode"]["properties"]["descriptor"] == {"type": "string"}
    assert schemas["descriptor_instruction"]["properties"]["given"] == {"type": "array", "items": {"type": "string"}}
    assert schemas["show"]["properties"]["instruction"] == {"type": "string"}
    assert not any(refused for refused, _ in answers)
    texts = [text for _, text in answers]
    shown = invoke("show", "m16n8k8 tf32")
    assert texts[0] == shown.stderr + shown.stdout
    assert '"lane": 5' in texts[1]
    converted = ["layout", "m16n8k16 f16", "--operand", "d", "--as", "m16n8k16 f16", "--as-operand", "a"]
    assert texts[2] == invoke(*converted).output
    assert texts[3].endswith(f"\n{QUESTIONS['instructions']['nvfp4 rtx5090']}\n")
    assert all("register-count" in text for text in texts[-2:])
    assert f"{tmp_path / 'kernel.ptx'}:1:74: error: a must be" in texts[-1]


def test_json_is_a_text_of_its_own(tmp_path: Path) -> None:
    said, answered = served.answer(served.tools()["show"], {"instruction": "m16n8k8 tf32", "json": True}, tmp_path)
    assert said.startswith("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 is taken (dense before sparse)")
    assert json.loads(answered)["instruction"] == "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"


def test_questions_have_their_answers(tmp_path: Path) -> None:
    asked = [*QUESTIONS["instructions"].items()][::9]
    _, answers = _asked(tmp_path, *(("show", {"instruction": words}) for words, _ in asked))
    for (words, answer), (refused, text) in zip(asked, answers, strict=True):
        assert (refused, answer in text.splitlines()) == (False, True), words


def test_plain_words_are_answered(tmp_path: Path) -> None:
    ask = served.tools()["ask"]
    asked = [(words, row) for words, row in QUESTIONS["commands"].items() if words.split()[0] not in VERBS and " -" not in words]
    for words, row in asked[::3]:
        assert row in " ".join(served.answer(ask, {"question": words}, tmp_path)[-1].split()), words


def test_hostile_requests_are_refused_and_the_server_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "opened"
    folder.mkdir()
    (tmp_path / "secret.ptx").write_text("secret", encoding="utf-8")
    (tmp_path / "ptxmma.toml").write_text("broken [", encoding="utf-8")
    (folder / "link.ptx").symlink_to(tmp_path / "secret.ptx")
    with (folder / "large.ptx").open("wb") as large:
        large.truncate(20_000_001)
    refusals: list[tuple[str, dict[str, Any], str]] = [
        ("check", {"file": "../secret.ptx"}, "outside of the folder"),
        ("check", {"file": str(tmp_path / "secret.ptx")}, "outside of the folder"),
        ("check", {"file": "link.ptx"}, "outside of the folder"),
        ("check", {"file": "missing.ptx"}, "not a file below the folder"),
        ("check", {"file": "."}, "not a file below the folder"),
        ("check", {"file": "large.ptx"}, "20,000,001 bytes; at most 20,000,000"),
        ("check", {}, "give code, or file"),
        ("check", {"code": "", "file": "link.ptx"}, "give code, or file"),
        ("check", {"code": "x", "fix": True}, "unknown parameter 'fix'"),
        ("check", {"text": "x"}, "unknown parameter 'text'; known: target, ptx"),
        ("targets", {"target": "9" * 9000}, "unknown target '999"),
        ("ask", {"question": "generate"}, "'generate' names no instruction"),
        ("ask", {"question": "m16n8k16 --database=/etc/passwd"}, "names no instruction"),
        ("ask", {}, "give question"),
        ("ask", {"question": "hoper"}, "is 'hopper' meant?"),
        ("ask", {"question": "which " * 500 + "is that"}, "at most 3,000 are read"),
        ("ask", {"question": "the " * 700 + "x"}, "'x' is not covered"),  # soon: each beginning of idle words is not tried
        ("check", {"file": "\0"}, "is not a path"),
        ("check", {"file": "x" * 5000}, "is not a path"),
        ("descriptor_instruction", {"kind": "f16", "given": ["m=1"] * 4000}, "given has 12,000 characters; at most 10,000"),
        ("ask", {"question": "m16n8k16 f16 " * 1000}, "question has 13,000 characters; at most 10,000"),
        ("resolve", {"instruction": "m16n8k16 " * 1000}, "is not covered"),  # at once: trying each word takes a minute
        ("show", {"instruction": "m16n8k8 tf32", "database": "/etc/passwd"}, "unknown parameter 'database'"),
        ("show", {"instruction": {"a": 1}}, "must be a text"),
        ("show", {"instruction": "--help"}, "--help"),
        ("show", {}, "Missing argument 'INSTRUCTION'"),
        ("convert", {"instruction": "m16n8k16 f16", "operand": "d"}, "give as"),
        ("layout", {"instruction": "m16n8k16 f16", "as": "m16n8k16 f16"}, "unknown parameter 'as'"),
        ("layout", {"instruction": "m16n8k8 tf32", "operand": "a", "row": 99, "col": 0}, "row"),
        ("generate", {"out": "/"}, "unknown tool 'generate'"),
    ]
    _, answers = _asked(folder, *((name, given) for name, given, _ in refusals), ("check", {"code": _WRONG}))
    for (name, given, reason), (refused, text) in zip(refusals, answers, strict=False):
        assert refused, (name, given)
        assert reason in text, (name, given)
        assert "secret" not in text.replace("secret.ptx", "")
    assert answers[-1][0] is False
    assert sorted(path.name for path in folder.iterdir()) == ["large.ptx", "link.ptx"]


def test_broken_messages_leave_the_server_running(tmp_path: Path) -> None:
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "{broken",
        "[]",
        "[" * 100_000,
        "\x00\x01",
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "no/such/method"}),
        json.dumps({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": [1, 2]}),
        json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "show", "arguments": {"instruction": "\ud800"}}}),
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "explain", "arguments": {"code": "C7519"}}}),
    ]
    server = subprocess.Popen(_COMMAND, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("\n".join(lines) + "\n")
        server.stdin.flush()
        answers: dict[object, dict[str, Any]] = {}
        while 3 not in answers:
            message = json.loads(server.stdout.readline())
            answers[message.get("id")] = message
        server.stdin.close()
        assert server.wait(20) == 0
    codes = {number: message["error"]["code"] for number, message in answers.items() if "error" in message}
    assert codes == {2: -32601, 4: -32600, 5: -32600, None: -32700}  # no such method; no request; no JSON
    assert "A wgmma.fence is missing" in answers[3]["result"]["content"][0]["text"]


def test_every_step_of_the_skill_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = invoke("skill").output
    assert len(printed.splitlines()) <= 150
    (tmp_path / "kernel.ptx").write_text("", encoding="utf-8")
    commands = [line.strip() for block in re.findall(r"```console\n(.*?)```", printed, re.S) for line in block.strip().splitlines()]
    assert len(commands) > 10
    for command in commands:
        program, *arguments = shlex.split(command)
        assert (program, invoke(*arguments).exit_code) == ("ptxmma", 0), command
    assert invoke("skill", "--install", "skills").output.split() == [str(Path("skills/ptxmma/SKILL.md"))]
    assert (tmp_path / "skills/ptxmma/SKILL.md").read_text(encoding="utf-8") == printed
