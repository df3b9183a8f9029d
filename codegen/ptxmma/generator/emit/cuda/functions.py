"""The wrapper functions of variants, and the conditions under which a compilation has them; those with like operands share their bodies."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ptxmma.catalog.instructions import Instruction, OperandForm
from ptxmma.catalog.names.cplusplus import Body, aliases, body, hint_parameters, identifier, parameters, ways
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.requirements import targets_of
from ptxmma.catalog.roles import ROLES, Parameter
from ptxmma.model import Requirement, Spec, Target, Version

# --- guards -----------------------------------------------------------------------------------------------------------------


class Guard(NamedTuple):
    """A requirement.

    Attributes:
        macro: ``PTXMMA_SM_90A_PTX_8_0``.
        text: the requirement in words, for comments: ``"PTX ISA 8.0, sm_90a"``.
        target: condition on ``PTXMMA_PASS``: the pass compiles for a target that meets it.
        near: condition on ``__CUDA_ARCH__``: the pass compiles for the chip of such a target, without its special features.
        toolkit: condition on ``PTXMMA_TOOLKIT``.
        needs_target: the message where ``target`` fails.
        needs_toolkit: the message where ``toolkit`` fails.
    """

    macro: str
    text: str
    target: str
    near: str
    toolkit: str
    needs_target: str
    needs_toolkit: str


class Guards:
    """The guards of a spec, made as they are asked for."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._targets = sorted(spec.targets, key=_code)
        self._cuda = {entry.version: entry.cuda for entry in spec.isa_versions}
        self._made: dict[tuple[tuple[str, str], ...], Guard] = {}

    def of(self, instruction: Instruction, form: OperandForm) -> Guard:
        """The guard of an instruction in one of its forms."""
        return self.meeting(instruction.accepted_by(form=form))

    def of_rules(self, rules: Sequence[Requirement]) -> Guard:
        """The guard of what meets some rules, at least one of which names a PTX ISA version."""
        ptx = max(Version(rule.ptx) for rule in rules if rule.ptx)
        return self.meeting(targets_of(self._spec).first_versions(tuple(rule.targets for rule in rules if rule.targets), ptx))

    def meeting(self, accepted: Mapping[str, Version]) -> Guard:
        """The guard of what these targets accept, each with its first PTX ISA version."""
        key = tuple(accepted.items())
        if key not in self._made:
            self._made[key] = self._guard(accepted)
        return self._made[key]

    def all(self) -> list[Guard]:
        """The guards that were asked for, each once."""
        return sorted(set(self._made.values()))

    def _guard(self, accepted: Mapping[str, Version]) -> Guard:
        # The targets that the others include; a set of targets holds every one that includes one of its own.
        first = [target for target in self._targets if target.name in accepted and not accepted.keys() & set(target.includes)]
        names = [target.name for target in first]
        needed = " or ".join(names) + ("" if first[0].suffix else " or newer")
        arch = names[0].replace("sm_", "compute_")
        example = f"-gencode arch={arch},code={names[0]}" if first[0].suffix else f"-arch={names[0]} or newer"
        ptx = min(accepted.values())
        cuda = self._cuda[ptx]
        numbers = {target.number for target in self._targets if target.name in accepted}
        featureless = [target.number for target in self._targets if not target.suffix and target.name not in accepted]
        return Guard(
            macro="_".join(["PTXMMA", *(name.upper() for name in names), "PTX", ptx.replace(".", "_")]),
            text=f"PTX ISA {ptx}, {needed}",
            target=self.passes(accepted),
            near=" || ".join(f"__CUDA_ARCH__ == {10 * number}" for number in featureless if number in numbers),
            toolkit=f"PTXMMA_TOOLKIT >= {_toolkit(cuda)}",
            needs_target=f"ptxmma: this instruction needs {needed}: compile with {example}",
            needs_toolkit=f"ptxmma: this instruction needs PTX ISA {ptx}: compile with CUDA {cuda} or newer",
        )

    def passes(self, targets: Iterable[str]) -> str:
        """A condition on ``PTXMMA_PASS``: the pass compiles for one of these targets."""
        return " || ".join(self._runs(targets))

    def _runs(self, accepted: Iterable[str]) -> Iterator[str]:
        """Conditions for the runs of accepted targets; a run of plain ones up to the newest goes on to those not known yet."""
        allowed = set(accepted)
        for taken, group in itertools.groupby(self._targets, lambda target: target.name in allowed):
            run = list(group)
            if not taken:
                continue
            low, high = _code(run[0]), _code(run[-1])
            if run[-1] is self._targets[-1] and not run[0].suffix:
                yield f"PTXMMA_PASS >= {low}"
            elif low == high:
                yield f"PTXMMA_PASS == {low}"
            else:
                yield f"(PTXMMA_PASS >= {low} && PTXMMA_PASS <= {high})"


def _code(target: Target) -> int:
    """The value of ``PTXMMA_PASS`` for a target: 900 for sm_90, 902 for sm_90a, 1201 for sm_120f."""
    return 10 * target.number + ("", "f", "a").index(target.suffix)


def _toolkit(release: str) -> int:
    """The value of ``PTXMMA_TOOLKIT`` for a CUDA release: 1208 for 12.8."""
    major, minor = Version(release).numbers
    return 100 * major + minor


#: The C type of truth values, and a parameter that is a number.
_TRUTH, _NUMBER = "bool", re.compile(r"u?int\d+_t \w+")

# --- functions --------------------------------------------------------------------------------------------------------------


class Function(NamedTuple):
    """One wrapper.

    Attributes:
        name: the name of the function.
        spelling: the spelling of its instruction.
        guard: the requirement.
        remark: a remark for the reader; empty without one.
        body: its text.
    """

    name: str
    spelling: str
    guard: Guard
    remark: str
    body: Body


def _competes(part: Parameter, others: Iterable[Parameter]) -> bool:
    """Return whether a parameter is a truth value where another list of as many operands has a number, to which it converts."""
    return part.parameter.startswith(_TRUTH) and any(_NUMBER.fullmatch(other.parameter) for other in others)


def _exact(part: Parameter) -> Parameter:
    """A parameter that takes truth values alone: a number does not convert to it."""
    return part._replace(parameter=part.parameter.replace(_TRUTH, "Truth", 1), deduced=", class Truth, detail::only_bool<Truth> = 0")


class Functions:
    """Makes the functions of a spec and keeps what they share."""

    def __init__(self, spec: Spec) -> None:
        self._c_types = {entry.name: entry.c_type for entry in spec.types.registers}
        self._parts: dict[int, tuple[Parameter, ...]] = {}
        self._same: dict[Parameter, Parameter] = {}
        self._bodies: dict[tuple[object, ...], Body] = {}

    def c_type(self, operand: Operand) -> str:
        """The C type of the operand's registers."""
        return self._c_types[operand.register_types[0]] if operand.register_types else ""

    def of(self, instruction: Instruction, guards: Guards) -> Iterator[Function]:
        """The functions of a variant: one for each operand form and each way to pass its operands."""
        memory = instruction.variant.instruction.memory
        hints = hint_parameters(instruction)
        forms = instruction.forms or (OperandForm("", "", ()),)
        every = [way for form in forms for way in self.ways(form)] if len(forms) > 1 else []
        for form in forms:
            guard = guards.of(instruction, form)
            remark = "" if instruction.documented else "not in the manual"
            for way in self.ways(form):
                beside = [other for other in every if len(other) == len(way)]
                parts = [_exact(part) if _competes(part, others) else part for part, *others in zip(way, *beside, strict=True)]
                key = (form.syntax, memory, hints, *map(id, parts))
                made = self._bodies.get(key)
                if made is None:
                    made = self._bodies[key] = body(form, parts, memory=memory, hints=hints, brief=True)
                yield Function(instruction.identifier, instruction.canonical, guard, remark, made)
                for alias in aliases(instruction.variant):
                    yield Function(alias, instruction.canonical, guard, f"the same as {instruction.identifier}", made)

    def ways(self, form: OperandForm) -> list[list[Parameter]]:
        """The ways to pass the operands of a form: a part of a signature for each operand."""
        return ways([self._ways(operand) for operand in form.operands])

    def _ways(self, operand: Operand) -> tuple[Parameter, ...]:
        """The ways to pass an operand; the database keeps its operands and gives like variants the same ones."""
        parts = self._parts.get(id(operand))
        if parts is None:
            either = ROLES[operand.kind].either(operand, identifier(operand.name), self.c_type(operand))
            made = (either,) if either is not None else parameters(operand, self.c_type(operand))
            parts = self._parts[id(operand)] = tuple(self._same.setdefault(part, part) for part in made)
        return parts
