"""PTX text for instructions: what an assembler is asked.

A *line* is one instruction with its operands: ``mma.sync… {%f32_0, …}, …;``.  Registers are named by their type, so that a line says
all that matters of it; :func:`compact` is the same without the registers' names, ``mma.sync… 4f32 2b32 1b32 4f32``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import ROLES, register, vector

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*|\b_\b")
_ITEM = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}|[^\s,{}]+")
#: A list of so many registers of a type; 0f... is a constant.
VECTOR = re.compile(r"([1-9]\d*)([a-z]\w*)")
_REGISTER = re.compile(r"%([a-z]\w*)_\d")
#: More registers of one type than any instruction has.
_BANK = 512


def lines(instruction: Instruction) -> list[str]:
    """An instruction in each of its operand forms, with registers, or the first legal immediate where only an immediate is legal."""
    return [line(instruction.canonical, [item(form, name) for name in items(form.syntax)]) for form in operand_lists(instruction)]


def asked(instruction: Instruction) -> Iterator[tuple[OperandForm, str]]:
    """The operand forms with their :func:`lines`, and each again with each constant or register type that needs more than the form does."""
    yield from zip(operand_lists(instruction), lines(instruction), strict=True)
    for form in instruction.forms:
        for name, rule in form.of_values:
            for value in rule.values:
                text = str(value) if isinstance(value, int) else register(value)
                texts = [item(form, part, {name: text}) for part in items(form.syntax)]
                yield form.given({name: value}), line(instruction.canonical, texts)


def operand_lists(instruction: Instruction) -> tuple[OperandForm, ...]:
    """Its operand forms; one without operands where it has none."""
    return instruction.forms or (OperandForm("", "", ()),)


def line(spelling: str, operands: Iterable[str]) -> str:
    """An instruction from its spelling and its operands' texts."""
    return f"{spelling} {', '.join(operands)}".rstrip() + ";"


def split(text: str) -> tuple[str, list[str]]:
    """The spelling and the operands' texts of a line."""
    spelling, _, operands = text.rstrip(";").partition(" ")
    return spelling, items(operands)


def items(text: str) -> list[str]:
    """The parts of an operand list; brackets and braces hold one together."""
    return _ITEM.findall(text)


def named(text: str) -> list[str]:
    """The operands that a part of an operand list names: itself, those inside of braces or brackets, or both of a pair ``p|q``."""
    return _NAME.findall(text)


def operands_by_count(instruction: Instruction, wanted: Callable[[Operand], bool]) -> dict[int, list[tuple[int, Operand]]]:
    """Some operands of an instruction with their places in a written list, by its length; of several in brackets, the first is asked."""
    lists = [[form.operand(named(part)[0]) for part in items(form.syntax)] for form in instruction.forms]
    found = {len(each): [(place, operand) for place, operand in enumerate(each) if wanted(operand)] for each in lists}
    return {count: operands for count, operands in found.items() if operands}


def item(form: OperandForm, names: str, others: Mapping[str, str] = MappingProxyType({})) -> str:
    """The text of an operand, or of operands in braces or brackets: ``"d"``, ``"{byte-id-a, thread-id-a}"``, ``"[p]"``.

    Args:
        form: the form that has the operands.
        names: a part of its operand list.
        others: texts that replace the usual ones, by operand.
    """
    return _NAME.sub(lambda match: others.get(match[0]) or operand(form.operand(match[0])), names)


def operand(described: Operand) -> str:
    """An operand's usual text: its registers, or its first legal immediate where it takes no register."""
    return ROLES[described.kind].text(described)


def bank_of(name: str) -> str:
    """The type of a register, from its name; ``""`` where the text names none."""
    return name[1:].rpartition("_")[0] if name.startswith("%") else ""


def compact(text: str) -> str:
    """A line without the names of its registers: ``4f32`` for a list of four, ``b32`` for one, braces round whatever else is a list."""
    spelling, operands = split(text)
    return " ".join([spelling, *map(_compacted, operands)])


def expanded(text: str) -> str:
    """The line that :func:`compact` made ``text`` of."""
    spelling, *operands = text.split(" ")
    return line(spelling, map(_expanded, operands))


def _compacted(text: str) -> str:
    if text.startswith("["):
        return f"[{','.join(map(_compacted, items(text[1:-1])))}]"
    if "|" in text:
        return "|".join(map(_compacted, text.split("|")))
    if not text.startswith("{"):
        return bank_of(text) or text
    parts = items(text[1:-1])
    banks = {bank_of(part) for part in parts}
    if parts and len(banks) == 1 and all(part == register(bank_of(part), number) for number, part in enumerate(parts)):
        return f"{len(parts)}{banks.pop()}"
    return "{" + ",".join(bank_of(part) or part for part in parts) + "}"


def _expanded(text: str) -> str:
    if text.startswith("{"):
        return "{" + ", ".join(_expanded(part) for part in text[1:-1].split(",") if part) + "}"
    if text.startswith("["):
        return f"[{', '.join(map(_expanded, items(text[1:-1])))}]"
    if "|" in text:
        return "|".join(map(_expanded, text.split("|")))
    if match := VECTOR.fullmatch(text):
        return vector(match[2], int(match[1]))
    return register(text) if text[0].isalpha() else text


def module(version: str, target: str, body: Iterable[str], banks: Collection[str]) -> tuple[str, int]:
    """A module with one instruction a line, and the number of the first one's line.

    The instructions are in a function that nothing calls: the assembler checks them and generates no code.  Registers of other types than
    ``banks`` are declared on the lines that name them, since some assemblers refuse even to declare them.
    """
    head = [f".version {version}", f".target {target}", ".address_size 64", ".func checked() {"]
    head += [f".reg .{bank} %{bank}_<{_BANK}>;" for bank in banks]
    lines = (_declaring(each, banks) for each in body)
    return "\n".join([*head, *lines, "ret;", "}", ".visible .entry kernel() { ret; }", ""]), len(head) + 1


def _declaring(text: str, banks: Collection[str]) -> str:
    """A line in a block that declares its registers of other types, unless the line declares them."""
    own = dict.fromkeys(bank for bank in _REGISTER.findall(text) if bank not in banks and f"%{bank}_<" not in text)
    return f"{{ {' '.join(f'.reg .{bank} %{bank}_<{_BANK}>;' for bank in own)} {text} }}" if own else text
