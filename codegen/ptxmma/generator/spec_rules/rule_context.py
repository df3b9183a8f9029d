"""The context of all rules: the spec with its positions, the names in it, and the problems that are reported once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ptxmma.catalog.roles import OperandKeys
from ptxmma.generator.build import Positions
from ptxmma.generator.documents import kind_of
from ptxmma.generator.problems import Position, Problem, clash
from ptxmma.model import Carrier, Condition, RegisterLayout, Spec

_Entry = TypeVar("_Entry", Carrier, RegisterLayout)

#: Variables that formulas of layouts read besides extents and axes.
VARIABLES = frozenset({"lane", "warp", "i", "bits", "ratio", "chunk_size"})
#: The coordinates of a layout that places data by its axes.
PLACES = frozenset({"lane", "bit", "byte"})
#: Variables that formulas for numbers of bytes read besides extents.
NUMBERS = frozenset({"bits", "ratio", "chunk_size", "thread_bytes"})
#: Facts that conditions test besides an instruction's qualifiers and the sizes that they give; conditions on operands test more.
COMMON_FACTS = frozenset({"name", "family"})
OPERAND_FACTS = frozenset({"operand", "bits", "ratio", "chunk_size"})
#: Keys and indices that lead to a part of the model.
Place = tuple[str | int, ...]


class RuleContext:
    """A spec under check.

    Attributes:
        spec: the model.
        at: the position of a part of the model, from the keys and indices that lead to it.
        overlaid: whether an overlay added some of it.
        targets, versions, elements, registers: the names that references may use.
        extents: the names of the sizes that the values of each family give.
        broken: the indices of the instructions that contradict themselves; their variants are not checked.
        unsound: the kinds of the invalid documents; rules that depend on them are skipped.
        keys: the variants that have the same operand.
        carriers, layouts: the entries of ``types.carriers`` and ``register_layouts`` that name an operand, each with its index.
        absent: the problem for each kind of document that is missing.
    """

    def __init__(self, spec: Spec, positions: Positions) -> None:
        self.spec = spec
        self.at = positions.at
        self.overlaid = positions.overlaid
        self.targets = [entry.name for entry in spec.targets]
        self.versions = [entry.version for entry in spec.isa_versions]
        self.elements = [entry.name for entry in spec.types.elements]
        self.registers = [entry.name for entry in spec.types.registers]
        self.extents: dict[str, dict[str, int]] = {}
        for index, entry in enumerate(spec.instructions):
            sizes = self.extents.setdefault(entry.family, {})
            for name in entry.extent_names:
                sizes.setdefault(name, index)
        self.broken: set[int] = set()
        self.unsound: set[str] = set()
        self.keys = OperandKeys.of(spec)
        self.carriers = _by_operand(spec.types.carriers)
        self.layouts = _by_operand(spec.register_layouts)
        self.absent: dict[str, Problem] = {}
        self._includes = {entry.name: entry.includes for entry in spec.targets}
        self._ancestors: dict[str, set[str]] = {}
        self._reported: set[Position] = set()
        self._uncovered: set[tuple[tuple[str, ...], Position, str]] = set()

    def known(self, what: str, names: Iterable[str], known: Iterable[str], *place: str | int) -> Iterator[Problem]:
        """Every name is among the known ones."""
        allowed = list(dict.fromkeys(known))
        for name in names:
            if name not in allowed:
                yield Problem(self.at(*place), f"unknown {what} {name!r}; known: {listed(allowed)}")

    def once(self, position: Position, message: str) -> Iterator[Problem]:
        """A problem that several entries would report."""
        if position not in self._reported:
            self._reported.add(position)
            yield Problem(position, message)

    def twice(self, named: Iterable[tuple[object, Place]], message: str) -> Iterator[Problem]:
        """Entries with the name of an earlier one, each with its place; ``{}`` in the message is the name."""
        first: dict[object, Place] = {}
        for name, place in named:
            if (before := first.setdefault(name, place)) != place:
                yield clash(message.format(name), self.at(*place), self.at(*before))

    def exactly_one(
        self, fitting: Sequence[int], every: Sequence[object], section: tuple[str, ...], what: str, position: Position, operand: str = ""
    ) -> Iterator[Problem]:
        """Exactly one of the entries of a section covers ``what``, which is at ``position``; ``fitting`` are the indices of these."""
        if not every:
            self.lacks_entries(section, what)
            return
        if not fitting and (uncovered := (section, position, operand)) not in self._uncovered:
            self._uncovered.add(uncovered)  # once is enough for all variants of a form
            yield Problem(position, f"no entry of {'.'.join(section)} covers {what}")
        elif len(fitting) > 1:  # the same two cover many variants
            first, second = (self.at(*section, index) for index in fitting[:2])
            message = f"two entries of {'.'.join(section)} cover {what}"
            if position.added and not (first.added or second.added):
                yield from self.once(position, f"{message}; see {first} and {second}")
            else:
                problem = clash(message, second, first)
                yield from self.once(problem.position, problem.message)

    def lacks_entries(self, section: tuple[str, ...], what: str) -> None:
        """Report that a section is missing, once for all entries that need it."""
        kind = kind_of(section[0])
        has = "" if kind == section[-1] else f" has {section[-1]}"
        self.absent.setdefault(kind, Problem(self.at(), f"no document of kind {kind}{has}; {what} needs one"))

    def families(self, condition: Condition) -> set[str]:
        """The families that a condition names, itself or by an instruction; every family where it names neither."""
        named = [entry.family for entry in self.spec.instructions if entry.name in condition.get("name", (entry.name,))]
        return set(named).intersection(condition.get("family", named))

    def ancestors(self, name: str) -> set[str]:
        """All targets that a target includes, directly or through others."""
        if name not in self._ancestors:
            ancestors = self._ancestors[name] = set[str]()
            left = list(self._includes.get(name, ()))
            while left:
                parent = left.pop()
                if parent not in ancestors:
                    ancestors.add(parent)
                    left += self._includes.get(parent, ())
        return self._ancestors[name]


def _by_operand(entries: Sequence[_Entry]) -> dict[str, list[tuple[int, _Entry]]]:
    """The entries that name each operand, each with its index."""
    named: dict[str, list[tuple[int, _Entry]]] = defaultdict(list)
    for index, entry in enumerate(entries):
        for operand in entry.operands:
            named[operand].append((index, entry))
    return named


def listed(names: Iterable[str]) -> str:
    """Names in a sentence."""
    return ", ".join(names)
