"""``ptxmma explain``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ptxmma.arguments import one_of
from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, completed, database_option, joined, json_option, usage_errors
from ptxmma.cli.render import aligned, blocks, emit, heading, wrapped

if TYPE_CHECKING:
    from ptxmma.cli.answers import ExplainedSwizzle
    from ptxmma.model import Message, Spec, Swizzle


#: The name of a rule, and other words.
_RULE = re.compile(r"[a-z]+(-[a-z]+)*")
#: A part of a message has more words than this.
_PART = 2


def _codes(context: click.Context) -> list[str]:
    from ptxmma.check.rules import RULES

    return [*(message.code for message in catalog_of(context.params.get("database")).database.spec.messages), *RULES]


@click.command("explain", cls=Command)
@click.argument("code", metavar="CODE", nargs=-1, required=True, callback=joined, shell_complete=completed(_codes))
@json_option
@database_option
def command(code: str, as_json: bool, database: str | None) -> None:
    """Explain a message of ptxas or a rule of ptxmma check, the cause and the remedy; or a name that is no instruction.

    CODE is also the line that ptxas prints.  Names are swizzles, element types, descriptors and their fields, versions and topics.

    \b
    Examples:
      ptxmma explain C7510
      ptxmma explain missing-fence
      ptxmma explain CU_TENSOR_MAP_SWIZZLE_128B
      ptxmma explain leading byte offset
    """  # noqa: D301  # click's mark for lines that stay as they are
    spec = catalog_of(database).database.spec
    if mode := swizzle_of(spec, code):
        _show_swizzle(spec, mode, as_json=as_json)
        return
    message, rule, rules = message_of(spec, code), None, []
    if message.rules if message else _RULE.fullmatch(code.strip().lower()):
        from ptxmma.check.rules import RULES  # the checker is large

        rule = RULES.get(code.strip().lower())
        rules = [f"{name}: {RULES[name].what}" for name in (message.rules if message else ())]
    if message:
        _show(
            {"code": message.code, "text": message.text, "error": message.error, "cause": message.cause, "remedy": message.remedy},
            {
                "cause": [message.cause],
                "remedy": [message.remedy],
                "ptxmma check finds the cause by": rules,
                "commands": _about(spec, code),
            },
            as_json=as_json,
        )
    elif rule:
        _show(
            {"code": code.lower(), "text": rule.what, "cause": rule.why, "remedy": rule.fix, "bad": rule.bad, "good": rule.good},
            {"why": [rule.why], "what to do": [rule.fix], "wrong": rule.bad.splitlines(), "right": rule.good.splitlines()},
            as_json=as_json,
        )
    else:
        from ptxmma.catalog.summaries.glossary import explanation

        with usage_errors():
            found = explanation(catalog_of(database), code)
            if found is None:
                one_of("code", code, _codes(click.get_current_context()))
                return
        facts = {"code": found.name, "text": found.text, "facts": found.facts, "commands": [*found.commands]}
        _show(facts, found.facts | {"commands": found.commands}, as_json=as_json)


def _show(facts: Mapping[str, object], titled: Mapping[str, Sequence[str]], *, as_json: bool) -> None:
    """The facts as JSON, or the code with its text and the titled lines."""
    if as_json:
        emit({name: value for name, value in facts.items() if value != ""})
        return
    click.echo(heading(str(facts["code"])))
    click.echo(wrapped(str(facts["text"])))
    blocks(titled)


def _about(spec: Spec, line: str) -> list[str]:
    """The commands that answer for the target and the instruction in quotes in a line of ptxas."""
    from ptxmma.catalog.instructions.meanings import words_of
    from ptxmma.catalog.instructions.user_names import is_target
    from ptxmma.catalog.instructions.words import vocabulary

    quoted = re.findall(r"'\.?([\w.:]+)'", line)
    known, names = vocabulary(spec), [entry.name for entry in spec.instructions]
    verbs = {part: "targets" if is_target(spec, part) else "show" if part in names else "list" for part in quoted}
    return [f"ptxmma {verb} {part}" for part, verb in verbs.items() if verb != "list" or {*words_of(part)} <= known]


def message_of(spec: Spec, text: str) -> Message | None:
    """The message of ptxas of a code, of a line that has the code or the text up to its last name, or of a part of it; None for none."""
    codes, line = {*re.findall(r"\bC\d{4}\b", text.upper()), text.strip().lower()}, " ".join(text.replace("'", "").split())
    parts = [(message, message.text.replace("'", "").split("...")) for message in spec.messages]
    has = (message for message, said in parts if message.code in codes or all(part in line for part in said[:-1] or said))
    part = re.compile(rf"\b{re.escape(line.lower())}\b")
    within = [message for message, said in parts if part.search("...".join(said).lower())] if line.count(" ") >= _PART else []
    return next(has, within[0] if len(within) == 1 else None)


def swizzle_of(spec: Spec, text: str) -> Swizzle | None:
    """The swizzle of shared memory that a text names: ``swizzle 128``, ``SW128``, ``Swizzle<3,4,3>``; None for none."""
    from ptxmma.catalog.instructions.user_names import swizzle_named

    words = text.split()
    named = [word for word in words if word.lower() not in ("swizzle", "swizzled", "k-major", "mn-major")]
    if len(named) != 1 or (named == words and named[0].lower() in ("none", "inter")) or "INTERLEAVE_" in named[0].upper():
        return None
    names, modes = {swizzle_named(named[0]), named[0]}, spec.shared_memory.swizzles if spec.shared_memory else ()
    return next((mode for mode in modes if not names.isdisjoint((mode.name, mode.cute))), None)


def _show_swizzle(spec: Spec, mode: Swizzle, *, as_json: bool) -> None:
    """The bytes that a swizzle exchanges, its names elsewhere and its number in descriptors."""
    from ptxmma.catalog.descriptors.shared_formats import matrix_formats, swizzle_encoding

    memory = spec.shared_memory
    formula = mode.formula or (memory.swizzle_formula if memory else "")
    encoded = {each.family: swizzle_encoding(spec, each.family) for each in matrix_formats(spec)}
    fields = {family: numbers[mode.name] for family, numbers in encoded.items() if mode.name in numbers}
    readers = memory.majorness if memory else ()
    read = {f"{each.family}, {each.majorness}-major": [*each.elements] for each in readers if mode.name in each.swizzles}
    answer: ExplainedSwizzle = {
        "code": mode.name,
        "text": mode.title,
        "span": mode.bytes,
        "pattern": mode.pattern,
        "formula": formula,
        "cute": mode.cute,
        "tensor_map": mode.tma,
        "descriptors": fields,
        "readers": read,
    }
    _show(
        answer,
        {
            "bytes": [
                f"{mode.bytes} contiguous bytes are permuted together; the pattern repeats every {mode.pattern} bytes",
                f"swizzled address = {formula}, where span = {mode.bytes}",
            ],
            "elsewhere": aligned([("CuTe", mode.cute), ("tensor map", mode.tma)]),
            "field of the descriptor": aligned([(family, str(number)) for family, number in fields.items()]),
            "read by": aligned([(reader, " ".join(elements)) for reader, elements in read.items()]),
            "a tile": [f"ptxmma smem --type bf16 --major k --swizzle {mode.name.removesuffix('B')} --rows 64 --cols 64"],
        },
        as_json=as_json,
    )
