"""Descriptors: their fields to bits and back, for every format of ``spec/descriptors.yaml``.

>>> f16 = codec("instruction", kind="f16")
>>> hex(f16.encode(dtype="f32", atype="bf16", btype="bf16", m=128, n=256))
'0x8400490'
>>> f16.decode(0x8400490)["atype"]
'bf16'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmma.arguments import integer, shortened
from ptxmma.catalog import chosen_product, resolution
from ptxmma.catalog.descriptor_bits import FieldValue, Mistake, Value, bits_text, mask, ones, placed, spare, taken, width_of
from ptxmma.catalog.descriptor_readers import check_target, reads
from ptxmma.catalog.instruction_facts import Instruction
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.requirements import targets_of
from ptxmma.catalog.target_names import target_named
from ptxmma.model import DescriptorField, DescriptorFormat, FieldCase, Spec, matches

#: What the cases of fields test: the kind, and the values of other fields.
_Facts = dict[str, Value]
_KIND = "kind::"


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
        """A codec of one of the formats of a spec; :func:`codec` looks formats up."""
        self.format, self.kind, self.target, self.opcodes = format, kind, target, tuple(opcodes)
        self._features = targets_of(spec).features(target) if target else None
        self.parameters = tuple(field for field in format.fields if field.fixed is None)
        own = {field.name for field in format.fields}
        self._tested = {field.name: {key for case in field.cases for when in case.when for key in when} & own for field in format.fields}
        #: Fields whose cases test others come after these.
        self._order = sorted(format.fields, key=lambda field: bool(self._tested[field.name]))

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
        """What is wrong with the bits: as :meth:`wrong_fields`, and fields of which no instruction has a product.

        Raises:
            TypeError, ValueError: as :meth:`explain`.
        """
        wrong = self.wrong_fields(descriptor, unknown)
        if wrong or any(mask(field) & unknown for field in self.parameters):
            return wrong
        text = chosen_product.mistake(self.kind, self.opcodes, self.decode(descriptor & ~unknown), self.target)
        return [Mistake("", text)] if text else []

    def wrong_fields(self, descriptor: int, unknown: int = 0) -> list[Mistake]:
        """What is wrong with each field by itself: fields whose values are not legal, and bits that must be 0.

        What depends on the bits of the mask ``unknown`` is not judged.

        Raises:
            TypeError, ValueError: as :meth:`explain`.
        """
        rows = self.explain(descriptor & ~unknown)
        facts: _Facts = self._facts | {row.field.name: row.value for row in rows}
        unread = {field.name for field in self.format.fields if mask(field) & unknown}
        wrong = []
        for field, stored, _ in rows:
            if field.name in unread or self._tested[field.name] & unread:
                continue
            if field.fixed is not None and stored != field.fixed:
                wrong.append(Mistake(field.name, f"{field.name} is {stored}; it is always {field.fixed}"))
            elif field.fixed is None and not self._fits(field, stored, facts):
                wrong.append(Mistake(field.name, f"{field.name} holds {stored}; {self._allowed(field, facts, named=True)}"))
        if self.format.spare == "zero":
            wrong += (
                Mistake("", f"{bits_text(low, width)} must be 0")
                for low, width in spare(self.format)
                if (descriptor & ~unknown) >> low & ones(width)
            )
        return wrong

    def legal(self, field: DescriptorField, other: str = "", stored: int = 0) -> set[int]:
        """What a field may hold, where the field that its cases test, ``other``, holds ``stored``."""
        facts = self._facts
        for tested in self._order:
            if tested.name == other:
                facts[other] = self._meaning(tested, stored, facts)
        return {number for number in range(1 << width_of(field)) if self._fits(field, number, facts)}

    def field(self, name: str) -> DescriptorField:
        """The field of a name.

        Raises:
            KeyError: the format has no such field.
        """
        for field in self.format.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def stored(self, name: str, value: Value) -> int:
        """What a field that does not depend on others holds for a value.

        Raises:
            TypeError, ValueError: as :meth:`encode`.
        """
        return self._given(self.field(name), value, self._facts)

    def reach(self, name: str) -> int:
        """The first number, in the field's unit, that is too large for a field."""
        field = self.field(name)
        return 1 << width_of(field) + field.shift

    # --- one field ----------------------------------------------------------------------------------------------------------

    @property
    def _title(self) -> str:
        return f"the {self.format.title[0].lower()}{self.format.title[1:]}"

    @property
    def _facts(self) -> _Facts:
        return {"kind": self.kind}

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
        return any(not case.values or stored in case.values.values() for case in cases) or (not cases and stored == 0)

    def _given(self, field: DescriptorField, value: Value, facts: Mapping[str, Value]) -> int:
        """What a field holds for a value that somebody gives."""
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
        """What a field holds for which nobody gives a value."""
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
        return (stored << field.shift) + field.less

    @property
    def _where(self) -> str:
        """For what a value is not legal."""
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
        step, most = 1 << field.shift, (ones(width_of(field)) << field.shift) + field.less
        return f"allowed: multiples of {step} from 0 to {most}" if step > 1 else f"allowed: {field.less}..{most}"

    def _elsewhere(self, field: DescriptorField, facts: Mapping[str, Value], names: Mapping[str, int]) -> str:
        """The values that only other targets have."""
        others = [
            f"{name} on {' and '.join(case.targets)}"
            for case in self._cases(field, facts, anywhere=True)
            for name in case.values
            if name not in names
        ]
        return f"; {', '.join(others)}" if others else ""


# --- looking formats up -----------------------------------------------------------------------------------------------------


def codec(describes: str, family: str = "tcgen05", *, kind: str = "", target: str | None = None, database: DatabaseLike = None) -> Codec:
    """The codec of a descriptor.

    Args:
        describes: ``"matrix"`` in shared memory; ``"instruction"``; ``"columns"`` of B that are taken as zeros.
        family: of instructions, ``"wgmma"`` or ``"tcgen05"``: the same bits mean different things to them.
        kind: of an instruction descriptor, as PTX has it: ``"f16"`` or ``"kind::f16"``.
        target: the values must be legal for it, by any name: ``"sm_100a"``, ``"B200"``; for any target by default.
        database: where the facts come from; the packaged database by default.

    Raises:
        ValueError: the family has no such descriptor, an unknown kind or target, or a target without instructions that read it.
    """
    spec = catalog(database).database.spec
    formats = [each for each in spec.descriptors if each.describes == describes and reads(family, each.family)]
    if not formats:
        known = dict.fromkeys(each.describes for each in spec.descriptors if reads(family, each.family))
        raise ValueError(f"{family} has no descriptor that describes {describes!r}; it has: {', '.join(known) or 'none'}")
    kinds = [each for format in formats for each in format.kinds]
    spelled = kind if kind.startswith(_KIND) or not kind else _KIND + kind
    if spelled not in (kinds or [""]):
        known_kinds = ", ".join(each.removeprefix(_KIND) for each in kinds)
        raise ValueError(
            f"{'unknown kind ' + repr(kind) if kind else 'the descriptor depends on the kind'}; known: {known_kinds}"
            if kinds
            else f"the {describes} descriptor of {family} does not depend on a kind"
        )
    chosen = next(each for each in formats if spelled in (each.kinds or ("",)))
    memo, named = catalog(database).database.memo, target_named(spec, target) if target else None
    key = ("codec", chosen.name, spelled, named)
    if key not in memo:
        if named:
            check_target(chosen, spelled, named, database)
        chooses = describes == "instruction"
        readers = catalog(database).all(lambda entry: chooses and entry.operation == resolution.OPERATION and reads(entry.family, family))
        memo[key] = Codec(spec, chosen, spelled, named, [each for each in readers if spelled in each.qualifiers.values()])
    made: Codec = memo[key]
    return made


def instruction_descriptor(kind: str, *, target: str | None = None, database: DatabaseLike = None, **fields: Value) -> int:
    """The 32 bits of the instruction descriptor of a ``tcgen05.mma``.

    Args:
        kind: ``"f16"`` or ``"kind::f16"``.
        target: as of :func:`codec`.
        database: as of :func:`codec`.
        fields: ``m``, ``n``, the types ``dtype``, ``atype`` and ``btype``, and what else the kind has, such as ``a_majorness="MN"``,
            ``negate_b=True``, ``sparse=1``, ``scale_type="ue8m0"``; what is left out is 0, and a type that the kind prescribes may be.

    Raises:
        TypeError, ValueError: as :func:`codec` and :meth:`Codec.encode`.

    >>> hex(instruction_descriptor("mxf8f6f4", atype="e4m3", btype="e5m2", m=128, n=64))
    '0x8900400'
    """
    return codec("instruction", kind=kind, target=target, database=database).encode(**fields)
