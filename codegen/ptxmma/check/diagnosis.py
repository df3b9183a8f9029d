"""Why a spelling is not an instruction of a target and version, and which one is closest."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.requirements import targets_of
from ptxmma.check.legality import accepted
from ptxmma.model import Version

#: Different opcodes for which the closest is looked up: the search is slow, and nobody reads more of them.
_MOST = 100
#: Characters of a spelling that are looked at.
_LONGEST = 1000
#: Of a wrong opcode that is very long: characters of a modifier, and modifiers, that a message repeats.
_MOST_SHOWN, _MOST_TOKENS = 60, 8


class Diagnosis(NamedTuple):
    """What is wrong with an opcode.

    Attributes:
        rule: ``"unknown-instruction"``, ``"target"`` or ``"version"``.
        message: in words, with the closest legal spelling.
        token: the modifier that is wrong, ``""`` for the whole.
    """

    rule: str
    message: str
    token: str = ""


class Diagnoses:
    """Explains opcodes; answers are remembered."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[tuple[str, str, str], Diagnosis] = {}

    def unknown(self, spelling: str, target: str, version: str) -> Diagnosis:
        """Explain a spelling that is not an instruction."""
        key = (spelling[:_LONGEST], target, version)
        if key not in self._known:
            if len(self._known) >= _MOST:
                return Diagnosis("unknown-instruction", "no such instruction")
            self._known[key] = self._explained(*key)
        return self._known[key]

    def unsupported(self, instruction: Instruction, target: str, version: str) -> Diagnosis:
        """Explain why a target or version does not have an instruction; the version may also be unknown."""
        key = (instruction.canonical, target, version)
        if key not in self._known:
            if len(self._known) >= _MOST:
                return Diagnosis("target", f"{target} does not support it with PTX ISA {version}")
            self._known[key] = self._refused(instruction, target, version)
        return self._known[key]

    def _explained(self, spelling: str, target: str, version: str) -> Diagnosis:
        tokens = spelling.split(".")
        close = self._legal(spelling, target, version) or self._legal(spelling, "", "")
        if not close:
            return Diagnosis("unknown-instruction", "no such instruction")
        own = close.split(".")
        wrong = list((Counter(tokens) - Counter(own)).elements())
        missing = list((Counter(own) - Counter(tokens)).elements())
        lacks = f"{_listed(missing)} {_are(missing)} missing"
        if wrong:
            reason = f"{_listed(wrong)} {_are(wrong)} not allowed here" + (f", {lacks}" if missing else "")
        else:
            reason = lacks if missing else "its types or layouts are in the wrong order"
        return Diagnosis("unknown-instruction", f"no such instruction: {reason}; the closest is {close}", wrong[0] if wrong else "")

    def _refused(self, instruction: Instruction, target: str, version: str) -> Diagnosis:
        accepts = instruction.accepted_by()
        if accepted(instruction, target, version):
            versions = ", ".join(entry.version for entry in self._catalog.database.spec.isa_versions)
            return Diagnosis("version", f"PTX ISA {version} is unknown; known versions: {versions}")
        if target in accepts:
            return Diagnosis(
                "version", f"needs PTX ISA {accepts[target]} on {target}, but is checked for {version}{self._stated(instruction)}"
            )
        known = {entry.name for entry in self._catalog.database.spec.targets}
        first = min(accepts, key=accepts.__getitem__) if accepts else ""
        where = f"{target} does not support it" if target in known else f"the target {target} is unknown"
        if not target:
            return Diagnosis("version", f"needs PTX ISA {accepts[first]}, but is checked for {version}{self._stated(instruction)}")
        close = self._legal(instruction.canonical, target, version)
        text = f"{where}; supported: {self._named(accepts)}{self._stated(instruction)}"
        return Diagnosis("target", text + (f"; the closest that {target} supports is {close}" if close else ""))

    def _named(self, accepts: dict[str, Version]) -> str:
        """The target that had it first, and those that include no other one, each with its first version."""
        targets = targets_of(self._catalog.database.spec.targets)
        first = min(accepts, key=accepts.__getitem__)
        least = [name for name in accepts if not any(other != name and other in targets.features(name) for other in accepts)]
        return ", ".join(f"{name} from PTX ISA {accepts[name]}" for name in dict.fromkeys([first, *least]))

    def _stated(self, instruction: Instruction) -> str:
        """Where the manual asks for it."""
        sections = dict.fromkeys(rule.source for rule in instruction.requirements())
        return f" [{', '.join(sections)}]" if sections else ""

    def _legal(self, spelling: str, target: str, version: str) -> str:
        """The closest canonical spelling that the target has in the version; empty where nothing is near."""
        tokens = spelling.split(".")
        wanted = Counter(tokens)
        numbers = _numbers(tokens)
        best: tuple[float, int, str] | None = None
        for instruction in self._catalog.all():
            own = instruction.canonical.split(".")
            if own[0] != tokens[0] or not (target == version == "" or accepted(instruction, target, version)):
                continue
            share = -2 * (Counter(own) & wanted).total() / (len(own) + len(tokens))
            far = sum(abs(one - other) for one, other in zip(numbers, instruction.shape or (), strict=False))
            if best is None or (share, far, instruction.canonical) < best:
                best = (share, far, instruction.canonical)
        return best[2] if best else ""


def _numbers(tokens: list[str]) -> tuple[int, ...]:
    match = next(filter(None, (re.fullmatch(r"m(\d{1,4})n(\d{1,4})k(\d{1,4})", token) for token in tokens)), None)
    return tuple(map(int, match.groups())) if match else ()


def _are(tokens: list[str]) -> str:
    return "are" if len(tokens) > 1 else "is"


def _listed(tokens: list[str]) -> str:
    return ", ".join(f"'.{token[:_MOST_SHOWN]}'" for token in tokens[:_MOST_TOKENS])
