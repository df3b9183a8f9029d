"""One instruction and everything that the database knows about it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from ptxmma.catalog import requirements, roles
from ptxmma.catalog.instructions.user_names import named_part, target_named, types_in_ptx
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.operands.metadata import Metadata
from ptxmma.catalog.operands.operand_form import Missing, OperandForm
from ptxmma.catalog.operands.scales import Scales
from ptxmma.catalog.products import resolution
from ptxmma.catalog.variants import Variant
from ptxmma.model import (
    Database,
    Erratum,
    Hint,
    Observation,
    Requirement,
    Semantics,
    Spec,
    Statement,
    Version,
    matches,
)

if TYPE_CHECKING:
    from ptxmma.catalog.evidence import Evidence

#: Kinds of operands in registers whose names may be short.
_SHORT = ("metadata", "scale-data")
#: Hints with their values.
Hints = tuple[tuple[Hint, str], ...]
_Stated = TypeVar("_Stated", Semantics, Statement)


class ByTarget(dict[str, Version]):
    """A version for each target; a name that people give a target finds its version, too: ``accepted["a100"]``."""

    def __init__(self, spec: Spec, versions: Mapping[str, Version]) -> None:
        super().__init__(versions)
        self._spec = spec

    def __missing__(self, name: str) -> Version:
        try:
            target = target_named(self._spec, name)
        except ValueError as error:
            raise KeyError(str(error)) from None
        if target not in self:
            raise KeyError(f"{target} does not accept the instruction; accepted by {', '.join(self)}")
        return self[target]


class Instruction:
    """One instruction: a canonical spelling with everything that the database knows about it."""

    def __init__(self, database: Database, variant: Variant, hints: Hints = ()) -> None:
        self.database = database
        self.variant = variant
        self._hints = hints
        self.canonical = variant.canonical + "".join(f".{value}" for _, value in hints)
        self.family = variant.instruction.family
        self.documented = variant.form.documented
        self.sparse = variant.instruction.sparse

    def __repr__(self) -> str:
        return f"<ptxmma.Instruction {self.canonical}>"

    def __eq__(self, other: object) -> bool:
        """Return whether both have one spelling, one choice of what a descriptor says, and equal databases."""
        if not isinstance(other, Instruction):
            return NotImplemented
        same = self.canonical == other.canonical and self.variant.chosen == other.variant.chosen
        return same and (self.database is other.database or self.database == other.database)

    def __hash__(self) -> int:
        return hash((self.canonical, self.variant.chosen))

    @property
    def identifier(self) -> str:
        """Its name in generated code: ``mma_sp_m16n8k32_f32_f16_f16_f32``."""
        return self.variant.identifier

    @property
    def extents(self) -> dict[str, int]:
        """The sizes that its qualifiers give: ``{"m": 16, "n": 8, "k": 16}``, ``{"rows": 8, "cols": 8, "num": 4}``."""
        return dict(self.variant.extents)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes of its shape, ``(m, n, k)`` if it multiplies; None for instructions without a shape."""
        return tuple(self.shape_sizes.values()) or None

    @property
    def shape_sizes(self) -> dict[str, int]:
        """The sizes that its shape gives: ``{"m": 16, "n": 8, "k": 16}``; empty for instructions without a shape."""
        return self.variant.sizes

    @property
    def operation(self) -> str:
        """Its operation: a key of ``ptxmma.matrices.operations.OPERATIONS``, e.g. ``"multiply"``, ``"load"`` or ``"synchronise"``."""
        return self.variant.instruction.operation

    @property
    def qualifiers(self) -> dict[str, str]:
        """The value of each qualifier, without its dot; ``""`` where it is absent."""
        return {name: str(self.variant.facts.get(name, "")) for name in self.variant.instruction.qualifiers}

    @property
    def matrix_types(self) -> dict[str, str]:
        """The element type of each of its matrices, in registers or in shared memory: ``{"d": "f32", "a": "f16", "b": "f16"}``."""
        return self.variant.types or roles.matrix_types(self.variant)

    def resolved(self, **arguments: str | int) -> Instruction:
        """The instruction with what its descriptor chooses: the arguments of :func:`ptxmma.instruction`.

        Raises:
            IllegalProductError: an argument is missing, illegal, or not for this instruction; the message lists what is legal.
            TypeError: ``m``, ``n`` or ``k`` is not an integer.
        """
        spec = self.database.spec
        return Instruction(self.database, resolution.resolve(spec, self.variant, types_in_ptx(spec, arguments)), self._hints)

    @property
    def hints(self) -> dict[str, str]:
        """The hints of its spelling, by name, each without its dot: ``{"collector_a": "collector::a::fill"}``."""
        return {hint.name: value for hint, value in self._hints}

    def hinted(self) -> Iterator[Instruction]:
        """The instruction with each combination of the hints that it takes, but for the one without any."""
        choices = [[(), *(((hint, value),) for value in values)] for hint, values in self.possible_hints()]
        for chosen in itertools.islice(itertools.product(*choices), 1, None):
            yield Instruction(self.database, self.variant, tuple(itertools.chain.from_iterable(chosen)))

    def possible_hints(self) -> list[tuple[Hint, dict[str, str]]]:
        """The hints that it takes, each with its values and what they mean."""
        facts = self.variant.facts
        return [
            (hint, {value: entry.text for value, entry in hint.values.items() if matches(entry.when, facts)})
            for hint in self.variant.instruction.hints
            if matches(hint.when, facts)
        ]

    def accepted_by(self, target: str | None = None, *, form: OperandForm | None = None) -> ByTarget:
        """Every target that accepts it, with the first PTX ISA version that does, by the newest assembler that knows the target.

        The result also takes names that people give targets: ``accepted_by()["H100"]``.

        Args:
            target: only this target, by its name or a name that people give it: ``"sm_90a"``, ``"H100"``; empty if it does not accept the
                instruction.
            form: one of :attr:`forms`, whose operands may need more than the instruction.

        Raises:
            ValueError: an unknown target, or one without matrix instructions; the message names the closest.
        """
        spec, more = self.database.spec, form is not None and form.requires
        accepted = requirements.accepted_by(spec, self.variant, more=self.needs(form)) if more else self._accepted
        if target is None:
            return ByTarget(spec, accepted)
        name = target_named(spec, target)
        return ByTarget(spec, {name: accepted[name]} if name in accepted else {})

    @functools.cached_property
    def _accepted(self) -> Mapping[str, Version]:
        return requirements.accepted_by(self.database.spec, self.variant, more=self.needs())

    def needs(self, form: OperandForm | None = None) -> tuple[Requirement, ...]:
        """Return the requirements of its hints, and of the operands of a form."""
        rules = (rule for hint, _ in self._hints for rule in hint.requires if matches(rule.when, self.variant.facts))
        return (*rules, *(form.requires if form is not None else ()))

    def requirements(self) -> list[Requirement]:
        """The manual's requirements, each with its source; all of them must hold.

        Empty for an undocumented instruction: see :meth:`accepted_by` and :meth:`observed`.
        """
        return [*requirements.stated(self.variant), *self.needs()] if self.documented else []

    def observed(self) -> list[Observation]:
        """Return the answers of assemblers that differ from the manual, or from each other."""
        return requirements.observed(self.variant)

    def releases(self) -> dict[str, str]:
        """Return the differences between releases of the assembler, in words.

        Keys are the names of accepting targets (``"sm_70": "dropped in CUDA 13.0"``), and the canonical spelling if the releases differ
        about the instruction itself.
        """
        return requirements.releases(self.database.spec, self.variant)

    def semantics(self) -> list[Semantics]:
        """The guarantees of its arithmetic."""
        return self._matching(self.variant.instruction.semantics)

    def undefined(self) -> list[Statement]:
        """The conditions under which its behaviour is undefined."""
        return self._matching(self.variant.instruction.undefined)

    def uniform(self) -> list[Statement]:
        """The operands and facts that must be uniform over the threads that execute it."""
        return self._matching(self.variant.instruction.uniform)

    def notes(self) -> list[Statement]:
        """Further notes about it."""
        return self._matching(self.variant.instruction.notes)

    def errata(self) -> list[Erratum]:
        """Return the mistakes of the manual about it, or about all of its family."""
        own = (entry for entry in self.database.spec.errata if entry.family == self.family)
        return [entry for entry in own if matches(entry.when, self.variant.facts)]

    @property
    def evidence(self) -> Evidence:
        """Its evidence: which assemblers accept it where, what chips did with it, which other projects agree."""
        from ptxmma.catalog import evidence

        return evidence.of(self.database).of(self.variant.canonical)

    def _matching(self, entries: Iterable[_Stated]) -> list[_Stated]:
        return [entry for entry in entries if matches(entry.when, self.variant.facts)]

    @functools.cached_property
    def forms(self) -> tuple[OperandForm, ...]:
        """Its operand lists, A in registers before A by descriptor."""
        return roles.forms(self.database, self.variant)

    @functools.cached_property
    def operands(self) -> tuple[Operand, ...]:
        """The operands of all operand lists, one list after the other."""
        return tuple(operand for form in self.forms for operand in form.operands)

    def operand(self, name: str) -> Operand:
        """The operand of that name, in upper or lower case, in the first form that has it; raises :class:`Missing` if none does.

        For data in tensor memory, metadata and scale factors the beginning of the name is enough, or its kind: ``"scale-A-tmem"`` and
        ``"scale-a-data"`` are ``"scale-a"``, ``"sp-meta-tmem"`` and ``"e"`` are ``"metadata"``.  Names of the field mean these:
        ``"SFA"``, ``"accumulator"``.
        """
        lower = named_part(self.database.spec.operand_names, name)
        for operand in self.operands:
            if operand.name.lower() in (name.lower(), lower):
                return operand
        held = {each.name.lower(): each for each in reversed(self.operands) if each.memory is not None or each.kind in _SHORT}
        alike = [operand for own, operand in held.items() if own.startswith(f"{lower}-") or operand.kind.removeprefix("tensor-") == lower]
        if len(alike) == 1:
            return alike[0]
        names = dict.fromkeys(operand.name for operand in self.operands)
        described = [operand.name for operand in self.operands if operand.kind == "descriptor" and operand.of == name]
        hint = f"; {described[0]} describes {name} in shared memory: ptxmma.shared_memory.SharedLayout makes both" if described else ""
        raise Missing(f"{self.canonical} has no operand {name!r}; it has {', '.join(names)}{hint}")

    @functools.cached_property
    def metadata(self) -> Metadata:
        """The operand with its sparsity metadata.

        Raises:
            Missing: the instruction is not sparse.
        """
        for operand in self.operands:
            if isinstance(operand, Metadata):
                return operand
        why = "has its metadata in tensor memory" if self.sparse else "is not sparse: it has no metadata"
        raise Missing(f"{self.canonical} {why}")

    def scales(self, matrix: str) -> Scales:
        """Return the operand with the scale factors of ``matrix``, ``"a"`` or ``"b"``.

        Raises:
            Missing: the instruction does not scale that matrix, or reads its scale factors from tensor memory.
        """
        scaled = {operand.of: operand for operand in self.operands if operand.kind in ("scale-data", "tensor-scales")}
        found = scaled.get(matrix)
        if isinstance(found, Scales):
            return found
        others = f"; it has those for {' and '.join(map(repr, scaled))}" if scaled else ""
        what = f"its scale factors for {matrix!r} in tensor memory: {found.name}" if found else f"no scale factors for {matrix!r}{others}"
        raise Missing(f"{self.canonical} has {what}")
