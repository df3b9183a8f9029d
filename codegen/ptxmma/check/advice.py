"""What is legal and doubtful all the same: spellings, forms that the manual does not have, metadata that cannot be right."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.layouts import granularity
from ptxmma.check import constants
from ptxmma.check.findings import Severity

if TYPE_CHECKING:
    from ptxmma.check.reader import Function, Statement
    from ptxmma.check.values import Value

#: Severity, rule and message.
Remark = tuple[Severity, str, str]

_MOVE = re.compile(rb"\s*mov\.[bus]32\s+([\w$%]+)\s*,\s*([^,]+?)\s*\Z")
_WRITTEN = re.compile(rb"\s*(?:@[^\s]+\s+)?[\w.:]+\s+(?:\{[^{}]*\}|[\w$%|]+)")
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%")
_LABEL = re.compile(rb"[\w$%]\s*:(?!:)")
_BRANCH = re.compile(rb"\b(?:bra|brx|ret|exit|call|trap)\b")
#: Bytes before an instruction in which its metadata's constant is looked for.
_BEFORE = 1 << 14


class Advice:
    """What a database advises."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.of_spelling = functools.lru_cache(maxsize=1 << 12)(self._of_spelling)
        self._faults = functools.lru_cache(maxsize=1 << 12)(self._metadata_faults)

    def _of_spelling(self, instruction: Instruction, spelling: str) -> tuple[Remark, ...]:
        """What is to be said of an instruction as it is spelt."""
        found: list[Remark] = []
        if not instruction.documented:
            found.append(("warning", "undocumented", "assemblers take it, the manual does not have it"))
        if spelling != instruction.canonical:
            found.append(("note", "spelling", f"the canonical spelling is {instruction.canonical}"))
        if ordered := self._ordered(instruction):
            first = min(ordered.accepted_by().values(), key=lambda version: tuple(map(int, version.split("."))))
            text = f"{ordered.canonical} may be much faster, from PTX ISA {first} on; its metadata must have ascending indices"
            found.append(("note", "unordered-metadata", text))
        return tuple(found)

    def _ordered(self, instruction: Instruction) -> Instruction | None:
        """The instruction that does the same with ordered metadata, of one that takes any order."""
        pattern = granularity(self._catalog.database.spec, instruction.variant) if instruction.sparse else None
        if pattern is None:
            return None
        facts = instruction.variant.facts
        wanted = {
            key: allowed[0]
            for condition in _conditions(self._catalog)
            for key, allowed in condition.items()
            if key in instruction.qualifiers
        }
        if not wanted or all(facts.get(key) == value for key, value in wanted.items()):
            return None
        other = dict(facts) | wanted
        return next((found for found in self._catalog.of(instruction.variant.instruction.name) if dict(found.variant.facts) == other), None)

    def of_metadata(
        self, function: Function, statement: Statement, instruction: Instruction, values: tuple[Value, ...]
    ) -> Iterator[tuple[int, str]]:
        """The operand of metadata and what is wrong with it, where its value is a constant that can be seen."""
        form = next((form for form in instruction.forms if len(form.syntax.split(",")) >= len(values)), None)
        if form is None:
            return
        kinds = [operand.kind for operand in form.operands]
        if "metadata" not in kinds:
            return
        place = kinds.index("metadata")
        selector = values[kinds.index("selector")] if "selector" in kinds else 0
        name = statement.operands[place].strip(b"{} \t\r\n")
        value = constant_before(function.text, statement.start, name)
        if value is not None and isinstance(selector, int) and 0 <= selector < instruction.metadata.selectors:
            for fault in self._faults(instruction, value & 0xFFFFFFFF, selector):
                yield place, fault

    def _metadata_faults(self, instruction: Instruction, value: int, selector: int) -> tuple[str, ...]:
        """What is wrong with metadata that has one value in all threads."""
        metadata = instruction.metadata
        faults = metadata.granularity.faults(metadata.legal)
        width = metadata.width
        lanes = range(metadata.layout.threads)
        fields = next(filter(None, (metadata.fields(lane, selector) for lane in lanes)), [])
        wrong = {value >> bit & (1 << width) - 1 for _, _, bit in fields} & set(faults)
        told = ", ".join(f"{field:#0{width + 2}b} ({faults[field]})" for field in sorted(wrong))
        if not wrong:
            return ()
        return (f"the metadata is {value:#x}, with fields {told}: behaviour is undefined; legal are {', '.join(metadata.legal)}",)


def _conditions(catalog: Catalog) -> list[dict[str, tuple[str | int, ...]]]:
    """When metadata must be ordered."""
    return [condition for pattern in catalog.database.spec.granularities for condition in pattern.ordered_when]


def constant_before(text: bytes, offset: int, name: bytes) -> int | None:
    """The constant that ``mov`` gave a register before a place, in the same basic block; None where that cannot be seen."""
    first = max(0, offset - _BEFORE)
    at = offset
    while (at := text.rfind(name, first, at)) >= 0:
        end = at + len(name)
        if text[end] in _NAME_BYTES or (at and text[at - 1] in _NAME_BYTES):
            continue
        start = max(text.rfind(mark, first, at) for mark in (b";", b":", b"\n")) + 1
        stop = text.find(b";", at, offset)
        written = _WRITTEN.match(text, start)
        if stop < 0 or written is None or at >= written.end():
            continue  # it is read here
        move = _MOVE.match(text, start, stop)
        between = text[stop:offset]
        if move is None or move[1] != name or _LABEL.search(between) or _BRANCH.search(between):
            return None
        return constants.integer(move[2])
    return None
