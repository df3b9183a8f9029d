"""Fields of descriptors to bits and back: one format of ``spec/descriptors.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmma.arguments import integer, shortened
from ptxmma.catalog.descriptors import chosen_product
from ptxmma.catalog.descriptors.bits import FieldValue, Mistake, Value, bit_range, counted, mask, ones, placed, spare, taken, width_of
from ptxmma.catalog.instructions.facts import Instruction
from ptxmma.catalog.requirements import targets_of
from ptxmma.model import DescriptorField, DescriptorFormat, FieldCase, Spec, matches

#: The facts that the cases of fields test: the kind, and the values of other fields.
_Facts = dict[str, Value]


class Codec:
    """One format of a descriptor, and what its fields depend on.

    Attributes:
        format: the format.
        kind: ``"kind::f16"``; empty where the format does not depend on it.
        target: for which values must be legal: ``"sm_100a"``; any if None.
        opcodes: the instructions whose product it chooses; none where it chooses no product.
        parameters: the fields that :meth:`encode` takes by name: all but those that always hold the same.
    """

    def __init__(
        self, spec: Spec, format: DescriptorFormat, kind: str = "", target: str | None = None, opcodes: Sequence[Instruction] = ()
    ) -> None:
        """A codec of one of the formats of a spec."""
        self.format, self.kind, self.target, self.opcodes = format, kind, target, tuple(opcodes)
        self._features = targets_of(spec).features(target) if target else None
        self.parameters = tuple(field for field in format.fields if field.fixed is None)
        own = {field.name for field in format.fields}
        self._tested = {field.name: {key for case in field.cases for when in case.when for key in when} & own for field in format.fields}
        #: Fields whose cases test others come after these.
        self._order = sorted(format.fields, key=lambda field: len(self._needed(field.name)))

    def encode(self, **fields: Value) -> int:
        """The bits of a descriptor.

        Args:
            fields: the value of each field by its name; a field may be left out that has a default or only one legal value.

        Raises:
            TypeError: a field that the format lacks, that is missing, or that is neither a number nor a name.
            ValueError: a value that is not legal, for this kind and target.
        """
        known = [field.name for field in self.parameters]
        for name in fields:
            if name not in known:
                raise TypeError(f"{self._title} has no field {name!r}; it has {', '.join(known)}")
        facts, bits = self._facts, 0
        for field in self._order:
            stored = self._given(field, fields[name], facts) if (name := field.name) in fields else self._assumed(field, facts)
            facts[name] = self._meaning(field, stored, facts)
            bits |= placed(field, stored)
        return bits

    def decode(self, descriptor: int) -> dict[str, Value]:
        """The value of each field of the bits: what :meth:`encode` takes.  A number without a legal meaning stays as it is.

        Raises:
            TypeError: something that is not an integer.
            ValueError: a number of more bits.
        """
        return {entry.field.name: entry.value for entry in self.explain(descriptor) if entry.field.fixed is None}

    def explain(self, descriptor: int) -> list[FieldValue]:
        """Every field of the bits, lowest first, those that always hold the same included.

        Raises:
            TypeError: something that is not an integer.
            ValueError: a number of more bits.
        """
        bits = integer("descriptor", descriptor)
        if not 0 <= bits < 1 << self.format.bits:
            raise ValueError(f"descriptor = {bits:#x} is not a {self.format.bits}-bit number")
        facts = self._facts
        rows = []
        for field in self._order:
            stored = taken(field, bits)
            facts[field.name] = self._meaning(field, stored, facts)
            rows.append(FieldValue(field, stored, facts[field.name]))
        return sorted(rows, key=lambda row: row.field.low)

    def mistakes(self, descriptor: int, unknown: int = 0) -> list[Mistake]:
        """Return the mistakes in the bits: as :meth:`wrong_fields`, and fields of which no instruction has a product.

        Raises:
            TypeError, ValueError: as :meth:`explain`.
        """
        wrong = self.wrong_fields(descriptor, unknown)
        if wrong or any(mask(field) & unknown for field in self.parameters):
            return wrong
        text = chosen_product.mistake(self.kind, self.opcodes, self.decode(descriptor & ~unknown), self.target)
        return [Mistake("", text)] if text else []

    def wrong_fields(self, descriptor: int, unknown: int = 0) -> list[Mistake]:
        """Return the mistake in each field by itself: fields whose values are not legal, and bits that must be 0.

        What depends on the bits of the mask ``unknown`` is not judged.

        Raises:
            TypeError, ValueError: as :meth:`explain`.
        """
        rows = self.explain(descriptor & ~unknown)
        facts: _Facts = self._facts | {row.field.name: row.value for row in rows}
        unread = {field.name for field in self.format.fields if mask(field) & unknown}
        wrong = []
        for field, stored, value in rows:
            if field.name in unread or self._needed(field.name) & unread:
                continue
            if field.fixed is not None and stored != field.fixed:
                wrong.append(Mistake(field.name, f"{field.name} is {stored}; it is always {field.fixed}"))
            elif field.fixed is None and not self._fits(field, stored, facts):
                said = f"is {value}" if field.shift else f"holds {stored}"
                wrong.append(Mistake(field.name, f"{field.name} {said}; {self._allowed(field, facts, named=True)}"))
        if self.format.spare == "zero":
            wrong += (
                Mistake("", f"{'bits' if width > 1 else 'bit'} {bit_range(low, width)} must be 0")
                for low, width in spare(self.format)
                if (descriptor & ~unknown) >> low & ones(width)
            )
        return wrong

    def legal(self, field: DescriptorField, stored: Mapping[str, int] | None = None) -> set[int]:
        """The numbers that a field may hold, where the fields of :meth:`needed` hold the numbers ``stored``, by name."""
        facts = self._facts
        for tested in self._order:
            if stored and tested.name in stored:
                facts[tested.name] = self._meaning(tested, stored[tested.name], facts)
        return {number for number in range(1 << width_of(field)) if self._fits(field, number, facts)}

    def needed(self, field: DescriptorField) -> list[DescriptorField]:
        """The fields on which a field depends: those that its cases test, and those on which these depend."""
        names = self._needed(field.name)
        return [each for each in self._order if each.name in names]

    def field(self, name: str) -> DescriptorField:
        """The field of a name.

        Raises:
            KeyError: the format has no such field.
        """
        for field in self.format.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def stored(self, name: str, value: Value, **others: Value) -> int:
        """The number that a field holds for a value; ``others`` has the values of the fields on which that depends.

        Raises:
            TypeError, ValueError: as :meth:`encode`.
        """
        return self._given(self.field(name), value, self._facts | others)

    def reach(self, name: str) -> int:
        """The first number, in the field's unit, that is too large for a field that holds numbers."""
        field = self.field(name)
        return max((self._end(field, case) for case in self._cases(field, self._facts)), default=self._end(field))

    def _needed(self, name: str) -> set[str]:
        found: set[str] = set()
        left = [name]
        while left:
            new = self._tested[left.pop()] - found
            found |= new
            left += new
        return found

    # --- one field ----------------------------------------------------------------------------------------------------------

    @property
    def _title(self) -> str:
        return f"the {self.format.title[0].lower()}{self.format.title[1:]}"

    @property
    def _facts(self) -> _Facts:
        return {**self.format.chosen_by(self.kind)}

    def _cases(self, field: DescriptorField, facts: Mapping[str, Value], *, anywhere: bool = False) -> Iterator[FieldCase]:
        """The cases that apply; ``anywhere``: to any target."""
        for case in field.cases:
            if matches(case.when, facts) and (anywhere or self._features is None or not case.targets or self._features & {*case.targets}):
                yield case

    def _names(self, field: DescriptorField, facts: Mapping[str, Value]) -> dict[str, int]:
        """The legal values with what the field holds for each; empty where numbers are legal, or only 0."""
        return {name: stored for case in self._cases(field, facts) for name, stored in case.values.items()}

    def _fits(self, field: DescriptorField, stored: int, facts: Mapping[str, Value]) -> bool:
        if not field.cases:
            return True
        cases = list(self._cases(field, facts))
        return any(case.admits(stored, counted(field, stored)) for case in cases) or (not cases and stored == 0)

    def _given(self, field: DescriptorField, value: Value, facts: Mapping[str, Value]) -> int:
        """Return the number in a field for a value that is given."""
        names = self._names(field, facts)
        if isinstance(value, str) and not names:
            raise ValueError(f"{field.name} must be an integer, not {shortened(repr(value))}; {self._allowed(field, facts)}")
        if names:
            name = value if isinstance(value, str) else str(int(value)) if isinstance(value, bool) else str(value)
            if name not in names:
                raise ValueError(f"{field.name} = {value} is not legal{self._where}; {self._allowed(field, facts)}")
            return names[name]
        number = integer(field.name, value)
        stored, left = divmod(number - field.less, 1 << field.shift)
        if left or not 0 <= stored <= ones(width_of(field)) or not self._fits(field, stored, facts):
            raise ValueError(f"{field.name} = {number} has no encoding in a descriptor{self._where}; {self._allowed(field, facts)}")
        return stored

    def _assumed(self, field: DescriptorField, facts: Mapping[str, Value]) -> int:
        """Return the number in a field for which no value is given."""
        if field.fixed is not None:
            return field.fixed
        legal = set(self._names(field, facts).values())
        if len(legal) == 1:
            return legal.pop()
        if field.default is None:
            raise TypeError(f"{self._title} needs {field.name}; {self._allowed(field, facts)}")
        return field.default

    def _meaning(self, field: DescriptorField, stored: int, facts: Mapping[str, Value]) -> Value:
        for anywhere in (False, True):
            for case in self._cases(field, facts, anywhere=anywhere):
                for name, number in case.values.items():
                    if number == stored:
                        return int(name) if name.isdigit() else name
        return counted(field, stored)

    @staticmethod
    def _end(field: DescriptorField, case: FieldCase | None = None) -> int:
        """The first number that is too large for a field, in one of its cases."""
        end = counted(field, 1 << width_of(field))
        return min(end, case.below) if case and case.below else end

    @property
    def _where(self) -> str:
        """The kind and the target for which a value is not legal, as the end of a sentence."""
        parts = [*([self.kind] if self.kind else ()), *([f"on {self.target}"] if self.target else ())]
        return f" with {' '.join(parts)}" if self.kind else f" {parts[0]}" if parts else ""

    def _allowed(self, field: DescriptorField, facts: Mapping[str, Value], *, named: bool = False) -> str:
        """The legal values in words; ``named``: with what the field holds for each."""
        names = self._names(field, facts)
        if names:
            known = dict(sorted(names.items(), key=lambda item: item[1]))
            listed = [f"{stored} ({name})" if named and str(stored) != name else name for name, stored in known.items()]
            return f"allowed: {', '.join(listed)}{self._elsewhere(field, facts, names)}"
        if field.cases and not any(True for _ in self._cases(field, facts)):
            return f"allowed: 0{self._elsewhere(field, facts, names)}"
        step, cases = 1 << field.shift, list(self._cases(field, facts))
        most = max((self._end(field, case) for case in cases), default=self._end(field)) - step
        others = [case for case in self._cases(field, facts, anywhere=True) if case not in cases and self._end(field, case) > most + step]
        more = "".join(f"; up to {self._end(field, case) - step} on {' and '.join(case.targets)}" for case in others)
        return f"allowed: multiples of {step} from 0 to {most}{more}" if step > 1 else f"allowed: {field.less}..{most}{more}"

    def _elsewhere(self, field: DescriptorField, facts: Mapping[str, Value], names: Mapping[str, int]) -> str:
        """The values that only other targets have."""
        others = [
            f"{name} on {' and '.join(case.targets)}"
            for case in self._cases(field, facts, anywhere=True)
            for name in case.values
            if name not in names
        ]
        return f"; {', '.join(others)}" if others else ""
