"""The atoms' own assembly text, given to an assembler as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ptxmma.catalog.instructions import Catalog
from ptxmma.evidence.peers import Assembled
from ptxmma.model import Spec
from ptxmma_proof.peers.binding import Binding, bind
from ptxmma_proof.peers.headers import Atom, Bound, Statement

_ERROR = re.compile(r"^ptxas (?:\S+), line (\d+); (?:error|fatal)\s*: (.*)$", re.MULTILINE)
_REFUSES_TARGET = re.compile(r"is not defined for option 'gpu-name'|[Uu]nsupported gpu architecture|does not support \.target")
#: Thousands of instructions in one kernel need more registers than there are; by then all checks are made.
_PAST_ALL_CHECKS = "Register allocation failed"
_BANK = 512


def assemble(catalog: Catalog, atoms: Iterable[Atom], assemblers: Mapping[str, Path]) -> list[Assembled]:
    """Ask of every atom's text whether it is accepted, on a target of the architecture whose header it stands in.

    Args:
        catalog: ours; it says which targets there are.
        atoms: those whose instruction we have.
        assemblers: ``ptxas`` by CUDA release, oldest first; the newest that knows the target is asked.
    """
    found = []
    targets = [target.name for target in catalog.database.spec.targets]
    groups: dict[str, list[Atom]] = {}
    for atom in atoms:
        groups.setdefault(atom.architecture, []).append(atom)
    for architecture, group in groups.items():
        # What only the architecture-specific target takes, that one takes; where there is none, the plain one.
        names = [name for name in (f"sm_{architecture}a", f"sm_{architecture}") if name in targets]
        for target, (cuda, program) in ((name, each) for name in names for each in reversed(list(assemblers.items()))):
            if _assembled(program, catalog.database.spec, target, []) is not None:
                found.append(_asked(catalog, group, target, cuda, program))
                break
    return found


def _asked(catalog: Catalog, atoms: list[Atom], target: str, cuda: str, program: Path) -> Assembled:
    lines: dict[str, str] = {}
    for atom in atoms:
        for statement in atom.statements:
            binding = bind(statement, catalog.find(statement.mnemonic))
            if binding is not None:
                lines.setdefault(line(catalog.database.spec, statement, binding), atom.name)
    refused: dict[str, str] = {}
    left = list(lines)
    # An assembler leaves out its second set of checks once the first found an error, so survivors are asked again.
    while left:
        errors = _assembled(program, catalog.database.spec, target, left)
        if not errors:
            break
        refused |= {lines[left[index]]: said for index, said in errors.items()}
        left = [text for index, text in enumerate(left) if index not in errors]
    return Assembled(cuda=cuda, target=target, accepted=len(left), refused=refused)


def line(spec: Spec, statement: Statement, binding: Binding) -> str:
    """The statement's text with a register for each placeholder, or the first legal immediate."""
    banks: dict[str, str] = {}
    for entry in spec.types.registers:
        banks.setdefault(entry.constraint, entry.name)
    immediates = {
        place: operand.immediates for operand in binding.form.operands for place in binding.places[operand.name] if operand.immediates
    }

    def written(match: re.Match[str]) -> str:
        operand: Bound = statement.operands[int(match[1])]
        constraint = operand.constraint.strip("=+&")
        return str(immediates[operand][0]) if constraint == "n" else f"%{banks[constraint]}_{match[1]}"

    return re.sub(r"%(\d+)", written, statement.text) + ";"


def _assembled(program: Path, spec: Spec, target: str, lines: list[str]) -> dict[int, str] | None:
    """What is said of which line; None where the assembler does not know the target."""
    newest = _newest(program)
    head = [f".version {newest}", f".target {target}", ".address_size 64", ".visible .entry kernel() {", ".reg .pred p;"]
    head += [f".reg .{entry.name} %{entry.name}_<{_BANK}>;" for entry in spec.types.registers]
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", encoding="utf-8") as file:
        file.write("\n".join([*head, *(text.replace("\n", " ") for text in lines), "ret;", "}", ""]))
        file.flush()
        command = [str(program), "--gpu-name", target.replace("sm_", "compute_"), "-O0", "--output-file", os.devnull, file.name]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if _REFUSES_TARGET.search(done.stdout + done.stderr):
            command[2] = target
            done = subprocess.run(command, check=False, capture_output=True, text=True)
    output = done.stdout + done.stderr
    if _REFUSES_TARGET.search(output):
        return None
    errors = {int(number) - len(head) - 1: said for number, said in _ERROR.findall(output)}
    if done.returncode != 0 and not errors and _PAST_ALL_CHECKS not in output:
        raise RuntimeError(f"{program} failed without naming a line: {output[:400]}")
    return errors


def _newest(program: Path) -> str:
    """The newest PTX ISA version that an assembler speaks: it says so when asked for one that is far too new."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", encoding="utf-8") as file:
        file.write(".version 99.9\n.target sm_75\n")
        file.flush()
        done = subprocess.run([program, file.name, "-o", os.devnull], check=False, capture_output=True, text=True)
    found = re.search(r"current version is '([\d.]+)'", done.stdout + done.stderr)
    if found is None:
        raise RuntimeError(f"{program} does not say which versions it knows: {(done.stdout + done.stderr)[:400]}")
    return found[1]
