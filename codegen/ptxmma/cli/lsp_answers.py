"""Answers about a source in an editor: its findings, the instruction at a place, the modifiers and operands that may come next.

Lines and columns count from 1, columns in characters, as in findings.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, OperandForm, catalog
from ptxmma.catalog.instructions.continuations import continuations
from ptxmma.catalog.instructions.explanation import closest
from ptxmma.catalog.instructions.user_names import target_named
from ptxmma.catalog.instructions.words import Match, preferred
from ptxmma.catalog.names.links import page
from ptxmma.check import Checker, Finding
from ptxmma.check.configuration import Configuration, Selection, configuration, once
from ptxmma.check.findings import Fix
from ptxmma.check.legality import accepted
from ptxmma.check.operand_faults import wanted
from ptxmma.check.remarks import spelling_of
from ptxmma.cli.served import printed
from ptxmma.ptx import lines as ptx
from ptxmma.ptx.languages import language_named, language_of_text
from ptxmma.ptx.python_strings import NotPythonError
from ptxmma.ptx.spots import Spot, spot
from ptxmma.ptx.statements import Module

#: The languages that are read, by the names that editors have for them.
_LANGUAGES = {
    "ptx": "ptx", "llvm": "llvm", "python": "python",
    **dict.fromkeys(("cuda", "cuda-cpp", "c", "cpp", "c++", "hip", "objective-c", "objective-cpp"), "c++"),
}  # fmt: skip
#: An opcode up to a place.
_BEGUN = re.compile(r"(?<![\w$%.:])[a-z]\w*(?:\.[\w:]*)*\Z")
#: A string that goes on in the next literal, and escapes at its ends.
_CONTINUED = re.compile(r'\\[nrt]|"\s*"')
#: So many lines may have the literals of an opcode.
_LITERALS = 20
_FIRST_WORD = re.compile(r"(?:^|[;{}:])\s*(?:@!?[%\w$]+\s+)?[a-z]\w*\Z")


class Document:
    """A source as an editor has it.

    Args:
        text: the source.
        path: its path, or another name.
        language: the editor's name of the language, which counts where the path says none.

    Attributes:
        lines: the lines without their ends.
        language: the language in which it is read.

    Raises:
        ptxmma.ptx.languages.UnreadLanguageError: the language is not read.
    """

    def __init__(self, text: str, path: str, language: str) -> None:
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.path = path
        self.data = "\n".join(self.lines).encode("utf-8", "replace")
        self.language = language_named(path) or _LANGUAGES.get(language, "") or language_of_text(self.data)

    def before(self, line: int, column: int) -> str:
        """The text up to a place, where string literals that follow each other are one; empty where there is no such line."""
        if line > len(self.lines):
            return ""
        own = self.lines[line - 1][: column - 1]
        if self.language == "ptx":
            return own
        return _CONTINUED.sub(
            lambda match: "" if match[0][0] == '"' else " ", "\n".join([*self.lines[max(line - _LITERALS, 0) : line - 1], own])
        )


class Hover(NamedTuple):
    """The short answer about an instruction.

    Attributes:
        answer: the text that ``ptxmma show`` prints.
        page: the address of its page below the site.
        line, column, length: the place of its opcode.
    """

    answer: str
    page: str
    line: int
    column: int
    length: int


class Signature(NamedTuple):
    """The operands of an instruction.

    Attributes:
        instruction: its spelling.
        lists: each of its operand lists: the operands, each with its description.
        operand: the index of the operand at the place.
    """

    instruction: str
    lists: Sequence[Sequence[tuple[str, str]]]
    operand: int


class Answers:
    """Answers with the packaged database, and remembers what it has seen.

    Args:
        target, ptx: the target and the version of code that does not declare its own; ``""`` for any.
    """

    def __init__(self, target: str, ptx: str) -> None:
        self._known = catalog()
        self._declared = Checker()
        self._targets = {entry.name for entry in self._known.database.spec.targets}
        self._target, self._ptx = target, ptx
        self._given(target, ptx)  # refuses an unknown one at once

    def findings(self, document: Document, root: Path | None, stale: Callable[[], bool]) -> list[Finding]:
        """The findings of a source, notes included unless the configuration names a severity; incomplete once it is stale.

        Args:
            document: the source.
            root: the folder below which configuration is read; None to read none.
            stale: whether nobody wants the answer any more.

        Raises:
            ValueError: the source or the configuration cannot be read.
        """
        configured = _configured(document, root)
        checker = self._declared if b".target" in document.data else self._given(*self._undeclared(configured))
        causes, found = set[str](), list[Finding]()
        for part in checker.parts(io.BytesIO(document.data), document.path, document.language):
            found += once(configured.selection.with_notes().applied(part, configured.root), causes)
            if stale():
                break
        return found

    def hover(self, document: Document, line: int, column: int) -> Hover | None:
        """The short answer about the instruction whose opcode is at a place."""
        place = self._spot(document, line, column)
        instruction = self._meant(place) if place and place.in_opcode else None
        if place is None or instruction is None:
            return None
        start, length = place.function.position(place.statement.start), len(place.statement.opcode)
        return Hover(self._shown(instruction.canonical), f"reference/{page(instruction)}.html", *start, length)

    def continuations(self, document: Document, line: int, column: int, root: Path | None) -> tuple[str, dict[str, Instruction]]:
        """The begun token at a place, and the tokens in its place that lead to an instruction of the target, each with the first.

        Args:
            document: the source.
            line: the line, from 1.
            column: the column in characters, from 1.
            root: the folder below which configuration is read; None to read none.

        Raises:
            ValueError: the configuration cannot be read.
        """
        before = document.before(line, column)
        opcode = _BEGUN.search(before)
        *tokens, begun = opcode[0].split(".") if opcode else [""]
        if opcode is None or not (tokens or (document.language == "ptx" and _FIRST_WORD.search(before))):
            return "", {}
        if begun and not document.lines[line - 1][: column - 1].endswith(begun):  # it began in another literal
            return "", {}
        target, version = self._in_force(document, line, root)
        found = continuations(self._known, tokens, lambda instruction: accepted(instruction, target, version))
        fitting = {token: instruction for token, instruction in found.items() if token.startswith(begun)}
        matches = [Match(instruction) for instruction in fitting.values()]
        usual = {match.instruction for match in preferred(self._known.database.spec, matches)[0]} if matches else set()
        return begun, dict(sorted(fitting.items(), key=lambda item: item[1] not in usual))

    def fix(self, document: Document, root: Path | None, finding: Finding) -> tuple[int, Fix | None]:
        """The fix of a finding with its column; for an opcode that the target does not have, the nearest that it has."""
        if finding.fix is not None or finding.rule not in ("unknown-instruction", "target"):
            return finding.column, finding.fix
        opcode, target, version = finding.instruction, *self._in_force(document, finding.line, root)
        tokens = opcode.split(".")
        named = self._known.all(lambda entry: entry.syntax.split(".")[0] == tokens[0])
        near = next(iter(closest((each for each in named if accepted(each, target, version)), tokens, 1)), None)
        start = document.lines[finding.line - 1].rfind(opcode, 0, finding.column - 1 + len(opcode))
        return start + 1, Fix(opcode, near.canonical, safe=False) if near and start >= 0 else None

    def signature(self, document: Document, line: int, column: int) -> Signature | None:
        """The operands of the instruction among whose operands a place is."""
        place = self._spot(document, line, column)
        instruction = self._meant(place) if place and not place.in_opcode else None
        if place is None or instruction is None:
            return None
        lists = [[(item, _described(form, item)) for item in ptx.items(form.syntax)] for form in instruction.forms]
        return Signature(instruction.canonical, lists, place.operand)

    def _spot(self, document: Document, line: int, column: int) -> Spot | None:
        try:
            return spot(self._declared.functions(iter([document.data]), document.language), line, column)
        except NotPythonError:  # it is being typed
            return None

    def _meant(self, place: Spot) -> Instruction | None:
        return self._known.meaning(spelling_of(place.statement.opcode))

    def _in_force(self, document: Document, line: int, root: Path | None) -> tuple[str, str]:
        """The target and the version of code in a line."""
        module = Module()
        if document.language == "ptx":
            module.read("\n".join(document.lines[:line]).encode("utf-8", "replace"))
        target, version = self._undeclared(_configured(document, root))
        return module.target if module.target in self._targets else target, module.version or version

    def _undeclared(self, configured: Configuration) -> tuple[str, str]:
        """The target and the version of code that declares none: the project's before the server's."""
        spec, code = self._known.database.spec, configured.code
        return target_named(spec, code.target) if code.target else self._target, code.ptx or self._ptx

    @functools.lru_cache(maxsize=8)  # noqa: B019  # one object, which lives as long as the server
    def _given(self, target: str, ptx: str) -> Checker:
        """The checker of code that declares neither."""
        return Checker(target=target or None, ptx=ptx or None)

    @functools.lru_cache(maxsize=64)  # noqa: B019  # one object, which lives as long as the server
    def _shown(self, spelling: str) -> str:
        return printed(["show", "--", spelling]).answer


def _configured(document: Document, root: Path | None) -> Configuration:
    """The configuration of a document's folder, read below ``root``."""
    folder = Path(document.path).parent
    return Configuration(Selection(), folder) if root is None else configuration(folder, root)


def _described(form: OperandForm, item: str) -> str:
    """The legal values of each operand that an item of an operand list names."""
    operands = [form.operand(name) for name in ptx.named(item)]
    return "; ".join(f"{operand.name}, {operand.kind}: {wanted(operand)}" for operand in operands)
