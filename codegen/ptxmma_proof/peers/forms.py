"""Forms of instructions as other projects list them, with the PTX version and the targets that they state, and the comparison with ours.

A form is an instruction with its operands.  The comparison goes both ways: what a project lists and the database lacks, or allows
elsewhere, and what the database has and a project does not list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm, UnknownInstruction
from ptxmma_proof.peers.binding import bind
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.headers import Bound, Statement

_STATEMENT = re.compile(r"^\s*([a-z][\w.:]*)\s+([^;]*);", re.MULTILINE)
_PLACE = re.compile(r"\[[^],]*\]|\[?[^\s,{}|\[\]]+\]?")
_CHIP = re.compile(r"sm_(\d+)")
#: Words that begin instructions of other chapters, too: there, as many words as these tell an instruction of ours.
_SHARED = {"cp": 5, "fence": 3, "barrier": 2, "multimem": 2, "clusterlaunchcontrol": 2, "st": 2, "red": 2}
_ORDER = re.compile(r"\[(\d+)\]")
#: A fault of the names of registers, whose order is compared here.
_NAMES = "its registers are"


class Form(NamedTuple):
    """A form as a project lists it.

    Attributes:
        peer: the project's name.
        statement: the instruction, with its operands.
        version: the first PTX version that it is for; empty where the project does not say.
        targets: the targets that it is for.
        among: the targets of which the project speaks here; empty where it states none.
    """

    peer: str
    statement: Statement
    version: str
    targets: frozenset[str] = frozenset()
    among: frozenset[str] = frozenset()


class Ours(NamedTuple):
    """Scope of a comparison: the words that our opcodes begin with, and our targets."""

    words: frozenset[str]
    targets: tuple[str, ...]

    @classmethod
    def of(cls, catalog: Catalog) -> Ours:
        """Return the scope of a catalog."""
        words = frozenset(_beginning(each.canonical) for each in catalog.all())
        return cls(words, tuple(target.name for target in catalog.database.spec.targets))

    def has(self, opcode: str) -> bool:
        """Return whether an opcode begins as one of ours."""
        return _beginning(opcode) in self.words

    def may_have(self, word: str) -> bool:
        """Return whether an opcode that begins with a word may be one of ours."""
        return any(each.split(".")[0] == word.split(".")[0] for each in self.words)

    def since(self, number: int) -> frozenset[str]:
        """Return the targets with this number or a higher one, as in ``sm_90 or higher``."""
        return frozenset(target for target in self.targets if (match := _CHIP.match(target)) and int(match[1]) >= number)


def _beginning(opcode: str) -> str:
    words = opcode.split(".")
    return ".".join(words[: _SHARED.get(words[0], 1)])


def statements(text: str) -> Iterator[Statement]:
    """Yield the instructions of PTX, or of TableGen's text for one."""
    for opcode, operands in _STATEMENT.findall(text):
        yield Statement(opcode, tuple(Bound("", place) for place in _PLACE.findall(operands)), f"{opcode} {operands}", ())


class Listed(NamedTuple):
    """The outcome: differences, the forms compared, and our instructions that the project does not list."""

    differences: list[Difference]
    compared: int
    lacking: list[Instruction]


def compare(catalog: Catalog, forms: Iterable[Form]) -> Listed:
    """Compare the forms of one project with a catalog."""
    scope = Ours.of(catalog)
    own = [form for form in forms if scope.has(form.statement.mnemonic)]
    peer = own[0].peer if own else ""
    differences: list[Difference] = []
    listed: set[str] = set()
    for form in own:
        try:
            instruction = catalog.find(form.statement.mnemonic)
        except UnknownInstruction:
            differences.append(Difference(peer, form.statement.mnemonic, "form", "lists it", "no such instruction", 1, 1))
            continue
        listed.add(instruction.variant.canonical)
        for operand, theirs, ours in _differing(form, instruction):
            differences.append(Difference(peer, form.statement.mnemonic, operand, theirs, ours, 1, 1))
    families = {catalog.find(name).family for name in listed}
    lacking = [one for one in catalog.all() if one.family in families and one.canonical not in listed and one.documented]
    return Listed(differences, len(own), lacking)


def _differing(form: Form, instruction: Instruction) -> Iterator[tuple[str, str, str]]:
    """The differing part of a form, as the project says it and as we do."""
    operands = _form(form.statement, instruction)
    if isinstance(operands, str):
        yield "form", operands, "other operands"
        return
    accepted = instruction.accepted_by(form=operands) if operands else instruction.accepted_by()
    ours = accepted.keys() & form.among
    if form.targets != ours:
        yield "targets", _besides(form.targets - ours), _besides(ours - form.targets)
    first = str(min(accepted.values()))
    if form.version and form.version != first:
        yield "version", f"PTX ISA {form.version}", f"PTX ISA {first}"


def _form(statement: Statement, instruction: Instruction) -> OperandForm | str | None:
    """The form of an instruction that a statement has; in words what does not fit; None where there are no operands."""
    if not statement.places and not instruction.forms:
        return None
    binding = bind(statement, instruction)
    if binding is None:
        return f"{len(statement.places)} operands and registers in all"
    faults = [fault for fault in binding.faults if _NAMES not in fault]
    for name, places in binding.places.items():
        order = [int(found[-1]) for place in places if (found := _ORDER.findall(place.expression))]
        if order != list(range(len(order))):
            faults.append(f"{name}: its registers are in another order")
    return faults[0] if faults else binding.form


def _besides(targets: Iterable[str]) -> str:
    return f"allows {', '.join(sorted(targets))} besides" if targets else "allows no more"
