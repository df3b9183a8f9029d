"""The base of the roles: what a kind of operand knows about itself.

A role completes an :class:`Operand` from the spec's entry and the variant, and writes it in PTX and in C++.  No other code looks at an
operand's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from ptxmma.catalog import layouts
from ptxmma.catalog.layouts import Plan
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.variants import Variant
from ptxmma.model import Database, Facts, Kind, OperandKind, RegisterType, Spec, matches

#: Fields of an :class:`Operand`.
Known = dict[str, Any]

_INT_MAX = 2**31 - 1  # nvcc prints larger immediates as negative


class Context(NamedTuple):
    """An operand that is to be described; ``plan_of`` gives the layout of any operand of a variant."""

    database: Database
    variant: Variant
    name: str
    entry: OperandKind
    plan_of: Callable[[Variant, str], Plan | None]

    @property
    def spec(self) -> Spec:
        """The spec of the database."""
        return self.database.spec

    def plan(self) -> Plan:
        """The layout of the operand.

        Raises:
            LookupError: the spec has none.
        """
        plan = self.plan_of(self.variant, self.name)
        if plan is None:
            raise LookupError(f"no layout of the spec covers operand {self.name!r} of {self.variant.canonical}")
        return plan

    def described(self) -> Context:
        """The operand that this one describes."""
        name = self.entry.of
        return self._replace(name=name, entry=self.variant.instruction.operand_kinds[name])

    def neighbour(self, kind: str) -> Context:
        """The operand of a kind that describes the same matrix."""
        kinds = self.variant.instruction.operand_kinds
        name, entry = next((name, entry) for name, entry in kinds.items() if entry.kind == kind and entry.of == self.entry.of)
        return self._replace(name=name, entry=entry)

    def layout(self) -> Known:
        """The layout of the operand, where it was observed, and its sizes where an extent ranges."""
        plan = self.plan()
        entry = self.spec.register_layouts[plan.entry]
        sizes = layouts.sizes(entry.axes, plan.variables | self.variant.extents)
        return {"layout": self.database.layout[plan.name], "observed": entry.observed, "sizes": sizes}

    def element(self, qualifier: str) -> Known:
        """The type of elements that a qualifier states."""
        element = layouts.element_type(self.spec, str(self.variant.facts[qualifier]))
        around = layouts.container(self.spec, element.name, self.variant.facts)
        bits, shift = (around.bits, around.shift) if around else (element.bits, 0)
        return {"element_type": element.name, "element": element, "bits": bits, "shift": shift}

    def carried(self, element: str = "") -> Known:
        """The register types that carry the operand.

        Raises:
            LookupError: the spec names none.
        """
        facts = {**self.variant.facts, "operand": self.name}
        for entry in self.spec.types.carriers:
            fits = self.name in entry.operands and (element in entry.elements if element else not entry.elements)
            if fits and matches(entry.when, facts):
                usual = register_type(self.spec, entry.registers[0])
                known: Known = {"register_types": entry.registers, "c_type": usual.c_type, "constraint": usual.constraint, "registers": 1}
                return known | {"spaces": entry.spaces, "carrier": usual}
        elements = f" with {element} elements" if element else ""
        raise LookupError(f"types.carriers has no entry for operand {self.name!r}{elements}")


def register_type(spec: Spec, name: str) -> RegisterType:
    """The spec's entry of a register type."""
    return next(entry for entry in spec.types.registers if entry.name == name)


class Parameter(NamedTuple):
    """The part of one operand in a C++ function with an asm statement.

    Attributes:
        parameter: ``"const uint32_t (&a)[4]"``; empty for a template argument.
        template: ``"int imm_scale_a = 1"``; empty for a parameter.
        check: statement that checks a template argument.
        values: its asm operands: ``('"r"(a[0])', …)``.
        array: the array whose elements its values are, in order, with the constraint before it: ``'"+f", d'``; empty for other values.
        text: its wording in the asm text, around the numbers of its values.
        deduced: template parameters that a call deduces, after all others, with a comma before each.
        prologue, epilogue: asm text before the instruction, and after it.
    """

    parameter: str = ""
    template: str = ""
    check: str = ""
    values: tuple[str, ...] = ()
    array: str = ""
    text: str = "{}"
    deduced: str = ""
    prologue: str = ""
    epilogue: str = ""


#: The class of each kind of operand, entered where it is defined.
ROLE_OF: dict[Kind, type[Role]] = {}


class Role:
    """A kind of operand: ``class Fragment(Role, kinds=("fragment",))``.

    Attributes:
        matrix: true if it is a matrix, or describes one in memory.
        multiplied: true if that matrix is a multiplicand where its instruction multiplies.
        layout_kind: the ``kind`` of its layouts; ``""`` for operands without layout.
        axes: axes that each of its layouts has, whatever else.
        describes: true if it describes another operand, or a matrix in memory.
        places: true if it says where in memory the elements of another operand lie.
        sparse: true if it is for a sparse matrix only.
        beside: the kind of an operand that must describe the same matrix; ``""`` for none.
        follows: true if operand lists have it after that operand, before the next of that kind.
        alone: true if an instruction has one of its kind, at most, for each matrix that it describes.
        varies: true if one of several operand lists of a form may have it and another lack it.
        needs: fields that an entry of the spec must have, each with its meaning.
        typed: true if its ``type`` decides which registers carry it.
        carried: true if registers carry it.
        several_widths: true if registers of one width and of another may carry it.
        operand_type: the class of its operands.
    """

    matrix: ClassVar[bool] = False
    multiplied: ClassVar[bool] = False
    layout_kind: ClassVar[str] = ""
    axes: ClassVar[tuple[str, ...]] = ()
    describes: ClassVar[bool] = False
    places: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    beside: ClassVar[str] = ""
    follows: ClassVar[bool] = False
    alone: ClassVar[bool] = False
    varies: ClassVar[bool] = False
    needs: ClassVar[tuple[tuple[str, str], ...]] = ()
    typed: ClassVar[bool] = False
    carried: ClassVar[bool] = True
    several_widths: ClassVar[bool] = False
    operand_type: ClassVar[type[Operand]] = Operand

    def __init_subclass__(cls, kinds: Sequence[Kind] = ()) -> None:
        """Enter a class for the kinds of operands whose role it is; none for what several roles share."""
        super().__init_subclass__()
        ROLE_OF.update(dict.fromkeys(kinds, cls))

    def lacks(self, entry: OperandKind) -> Iterator[str]:
        """The fields that an entry of this kind in the spec lacks, each as an instruction to its author."""
        if self.describes and not entry.of:
            yield "say of: and the operand or matrix that it describes"
        for field, meaning in self.needs:
            if not getattr(entry, field):
                yield f"say {field}: {meaning}"

    def describe(self, context: Context) -> Known:
        """The fields of the operand besides its name, title and source."""
        entry = context.entry
        return context.carried() | {"immediates": self.immediates(context), "takes_register": entry.register}

    def immediates(self, context: Context) -> Sequence[int] | None:
        """The legal immediates; None if it takes no immediate."""
        return legal_values(context.entry, context.variant.facts) if context.entry.immediate else None

    def text(self, operand: Operand) -> str:
        """Its usual text in PTX: its register, named after its type."""
        return register(operand.register_types[0])

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """The ways in which a C++ function takes it, the usual one first; ``name`` is its name in C++."""
        if operand.carrier is not None and operand.carrier.read:
            return (converted(operand.carrier, operand.access, name, c_type),)
        return (Parameter(parameter=f"{c_type} {name}", values=(f'"{operand.constraint}"({name})',)),)

    def either(self, operand: Operand, name: str, c_type: str) -> Parameter | None:  # noqa: ARG002  # most have no such type
        """The parameter of a C++ type that stands for all of these ways; None where there is no such type."""
        return None


def legal_values(entry: OperandKind, facts: Facts | None = None) -> Sequence[int]:
    """Return the immediates that the spec lists, or all up to its limit; with the facts of a variant the immediates of its form."""
    other = next((other for other in entry.other_values if matches(other.when, facts)), None) if facts is not None else None
    return (
        other.values
        if other is not None
        else entry.values or tuple(entry.meanings.values()) or range(entry.minimum, entry.limit + 1, entry.multiple)
    )


def register(bank: str, number: int = 0) -> str:
    """The name of a PTX register of a type: ``%b32_0``."""
    return f"%{bank}_{number}"


def vector(bank: str, count: int) -> str:
    """A list of PTX registers in braces."""
    return "{" + ", ".join(register(bank, number) for number in range(count)) + "}"


def converted(carrier: RegisterType, access: str, name: str, c_type: str) -> Parameter:
    """A register that no constraint of asm gives: PTX makes it of values before the instruction, or values of it after."""
    written = access == "write"
    prefix, const = ("=", "") if written else ("", "const ")
    parameter, values = f"{c_type}{'&' if written else ''} {name}", [name]
    if carrier.values > 1:
        parameter, values = f"{const}{c_type} (&{name})[{carrier.values}]", [f"{name}[{number}]" for number in range(carrier.values)]
    text = (carrier.write if written else carrier.read).replace("{", "{{").replace("}", "}}")
    moved = text.replace("<register>", name).replace("<values>", "{}")
    return Parameter(
        parameter=parameter,
        values=tuple(f'"{prefix}{carrier.constraint}"({value})' for value in values),
        text=name,
        prologue=f".reg .{carrier.name} {name}; {'' if written else f'{moved} '}",
        epilogue=f" {moved}" if written else "",
    )


def template_argument(operand: Operand, name: str) -> Parameter:
    """An immediate as a template argument, checked against the legal values."""
    values = operand.immediates or ()
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        check = f"PTXMMA_FROM_TO({name}, {values[0]}, {min(values[-1], _INT_MAX)})"
    else:
        check = f"PTXMMA_ONE_OF({name}, {', '.join(map(str, values))})"
    default = "" if operand.default is None else f" = {operand.default}"
    return Parameter(template=f"int {name}{default}", check=check, values=(f'"n"({name})',))
