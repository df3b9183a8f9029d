"""Forms of instructions as other projects list them, with the PTX version and the targets that they state, and the comparison with ours.

A form is an instruction with its operands.  The comparison goes both ways: what a project lists and the database lacks, or allows
elsewhere, and what the database has and a project does not list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm, UnknownInstruction
from ptxmma_proof.peers import headers
from ptxmma_proof.peers.binding import bind
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.headers import Statement

#: The generated headers below cccl's checkout; each comment states what the function below it needs.
CCCL = Path("libcudacxx/include/cuda/__ptx/instructions/generated")
_FUNCTION = re.compile(r"/\*\n(?=// )")
_STATED = re.compile(r"PTX\s+ISA\s+(\d)(\d)((?:,\s+(?://\s+)?SM_\w+)+)")
_TARGET = re.compile(r"SM_\w+")
_ORDER = re.compile(r"\[(\d+)\]")
#: A fault of the names of registers, whose order is compared here.
_NAMES = "its registers are"


class Form(NamedTuple):
    """A form as a project lists it.

    Attributes:
        peer: ``"cccl"`` or ``"LLVM"``.
        statement: the instruction, with its operands.
        version: the first PTX version that it is for; empty where the project does not say.
        targets: the targets that it is for.
    """

    peer: str
    statement: Statement
    version: str
    targets: frozenset[str]


def cccl(checkout: Path) -> Iterator[Form]:
    """The forms of tcgen05 that cccl's ``cuda::ptx`` has.

    Raises:
        OSError: a header cannot be read, or there is none.
    """
    paths = sorted((checkout / CCCL).glob("tcgen05_*.h"))
    if not paths:
        raise FileNotFoundError(f"{checkout / CCCL}: no tcgen05_*.h; give a checkout of cccl")
    for path in paths:
        for function in _FUNCTION.split(path.read_text(encoding="utf-8"))[1:]:
            comment, _, body = function.partition("*/")
            stated = _STATED.search(comment)
            if stated is None:
                raise ValueError(f"{path}: a comment without a PTX version: {comment.splitlines()[0]}")
            targets = frozenset(target.lower() for target in _TARGET.findall(stated[3]))
            yield from (Form("cccl", each, f"{stated[1]}.{stated[2]}", targets) for each in headers.statements_of(body))


class Listed(NamedTuple):
    """The outcome: differences, the forms compared, and our instructions that the project does not list."""

    differences: list[Difference]
    compared: int
    lacking: list[Instruction]


def compare(catalog: Catalog, forms: Iterable[Form]) -> Listed:
    """Compare the forms of one project with a catalog."""
    own = list(forms)
    known = frozenset(target for form in own for target in form.targets)
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
        for operand, theirs, ours in _differing(form, instruction, known):
            differences.append(Difference(peer, form.statement.mnemonic, operand, theirs, ours, 1, 1))
    families = {catalog.find(name).family for name in listed}
    lacking = [one for one in catalog.all() if one.family in families and one.canonical not in listed and one.documented]
    return Listed(differences, len(own), lacking)


def _differing(form: Form, instruction: Instruction, known: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """The differing part of a form, as the project says it and as we do."""
    operands = _form(form.statement, instruction)
    if isinstance(operands, str):
        yield "form", operands, "other operands"
        return
    accepted = instruction.accepted_by(operands) if operands else instruction.accepted_by()
    ours = accepted.keys() & known
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
