"""Operands that are numbers: immediates, predicates, masks, instruction descriptors, and results of each thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.catalog import layouts
from ptxmma.catalog.operands.operand import Operand
from ptxmma.catalog.roles.role import Context, Known, Parameter, Role, legal_values, register_type, template_argument, vector
from ptxmma.model import OperandKind


class Constant(Role):
    """An operand that is always an immediate."""

    carried = False

    def describe(self, context: Context) -> Known:
        """Its legal values."""
        return {"immediates": self.immediates(context), "takes_register": False, "constraint": "n", "meanings": context.entry.meanings}

    def text(self, operand: Operand) -> str:
        """The first legal value."""
        assert operand.immediates
        return str(operand.immediates[0])

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:  # noqa: ARG002  # it has no register
        """A template argument."""
        return (template_argument(operand, name),)


class Immediate(Constant, kinds=("immediate",)):
    """A constant whose legal values the spec lists."""

    varies = True

    def lacks(self, entry: OperandKind) -> Iterator[str]:
        """It needs legal values, and a default must be one of them."""
        yield from super().lacks(entry)
        values = legal_values(entry)
        if not values:
            yield "say values: [...], meanings: {...}, or limit: N for 0..N"
        elif entry.default is not None and entry.default not in values:
            shown = f"{values[0]}..{values[-1]}" if isinstance(values, range) else ", ".join(map(str, values))
            yield f"its default, {entry.default}, must be one of {shown}"

    def immediates(self, context: Context) -> Sequence[int]:
        """The values that the spec lists."""
        return legal_values(context.entry, context.variant.facts)


class Majorness(Immediate, kinds=("majorness",)):
    """Along which dimension neighbours of a matrix in shared memory lie side by side; ``meanings`` has ``"K"`` and ``"MN"``."""

    describes = True

    def lacks(self, entry: OperandKind) -> Iterator[str]:
        """It needs the meanings of its values."""
        yield from super().lacks(entry)
        if entry.values or entry.limit >= 0:
            yield "say meanings: what each legal immediate means, and neither values nor limit"


class Negation(Immediate, kinds=("negation",)):
    """The factor of a matrix: -1 negates it."""

    describes = True


class Predicate(Role, kinds=("predicate",)):
    """A predicate register."""

    varies = True

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """A number that becomes a predicate inside the asm statement, or is made of one: there is no constraint for predicates."""
        if operand.access == "write":
            declared, stored = f".reg .pred {name}; ", f" selp.b32 {{}}, 1, 0, {name};"
            value = f'"={operand.constraint}"({name})'
            return (Parameter(parameter=f"uint32_t& {name}", values=(value,), text=name, prologue=declared, epilogue=stored),)
        predicate = Parameter(
            parameter=f"{c_type} {name}",
            values=(f'"{operand.constraint}"(int{{{name}}})',),
            text=name,
            prologue=f".reg .pred {name}; setp.ne.b32 {name}, {{}}, 0; ",
        )
        return (predicate,)


class Count(Role, kinds=("size", "columns")):
    """A number of something, such as bytes or columns."""

    varies = True
    several_widths = True
    needs = (("unit", "what it counts"),)

    def describe(self, context: Context) -> Known:
        """Its unit."""
        return super().describe(context) | {"unit": context.entry.unit}


class Mask(Role):
    """A set, a bit for each of its possible members."""

    varies = True

    def immediates(self, context: Context) -> Sequence[int]:
        """Whatever fits into its register."""
        return range(1 << register_type(context.spec, context.carried()["register_types"][0]).bits)


class CtaMask(Mask, kinds=("cta-mask",)):
    """A set of thread blocks; bit ``i`` is the block whose ``%cluster_ctarank`` is ``i``."""


class ByteMask(Mask, kinds=("byte-mask",)):
    """A set of bytes; bit ``i`` is byte ``i`` of each block of bytes."""


class LaneSet(Mask, kinds=("lane-set",)):
    """A set of lanes of a warp; bit ``i`` is lane ``i``."""

    def immediates(self, context: Context) -> Sequence[int]:
        """Whatever fits into its register, signed or not: -1 is every lane."""
        unsigned = super().immediates(context)
        return range(-len(unsigned) // 2, len(unsigned))


class CachePolicy(Role, kinds=("cache-policy",)):
    """A 64-bit word, made by ``createpolicy``, that says how long a cache keeps the data."""


class InstructionDescriptor(Role, kinds=("instruction-descriptor",)):
    """A 32-bit word with the shape, the types and the options of a product."""


class LaneMask(Role, kinds=("lane-mask",)):
    """A bit for each lane of tensor memory, in a list of registers; the lanes of the bits that are set keep their values."""

    varies = True
    needs = (("count", "the registers of the list"),)

    def describe(self, context: Context) -> Known:
        """The length of the list."""
        numbers = layouts.variables(context.spec, context.variant, context.name)
        return super().describe(context) | {"registers": layouts.size(context.entry.count, numbers)}

    def text(self, operand: Operand) -> str:
        """The list in braces."""
        return vector(operand.register_types[0], operand.registers)

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """An array by reference."""
        prefix, const = ("=", "") if operand.access == "write" else ("", "const ")
        values = tuple(f'"{prefix}{operand.constraint}"({name}[{number}])' for number in range(operand.registers))
        return (Parameter(parameter=f"{const}{c_type} (&{name})[{operand.registers}]", values=values, text="{{{}}}"),)


class ColumnMask(Role, kinds=("column-mask",)):
    """A 64-bit word that says which columns of a matrix count as zero."""

    varies = True


class Register(Role, kinds=("register",)):
    """A register of each thread that is read or written."""

    varies = True

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:
        """A reference, if it is written."""
        if operand.access == "read" or (operand.carrier is not None and operand.carrier.read):
            return super().parameters(operand, name, c_type)
        return (Parameter(parameter=f"{c_type}& {name}", values=(f'"={operand.constraint}"({name})',)),)


class Reduction(Register, kinds=("reduction",)):
    """A register of each thread with one value for all of its columns."""

    typed = True
    varies = False

    def describe(self, context: Context) -> Known:
        """One register of its type."""
        return context.carried(str(context.variant.facts[context.entry.type]))


class Sink(Role, kinds=("sink",)):
    """The place of a result that is dropped: ``_``."""

    carried = False
    varies = True

    def describe(self, context: Context) -> Known:  # noqa: ARG002  # all are alike
        """Return nothing: it takes no register."""
        return {"takes_register": False}

    def text(self, operand: Operand) -> str:
        """Its name."""
        return operand.name

    def parameters(self, operand: Operand, name: str, c_type: str) -> tuple[Parameter, ...]:  # noqa: ARG002  # a function has none
        """No parameter."""
        return (Parameter(text=operand.name),)


class Vector(LaneMask, kinds=("indices", "vector")):
    """A list of registers of each thread: elements side by side from the low bits up, or their indices."""

    varies = False

    def describe(self, context: Context) -> Known:
        """A list even of one register."""
        return super().describe(context) | {"braced": True}


class NumberList(Vector, kinds=("number-list",)):
    """A list of numbers, each in a register or a constant: coordinates, offsets, sizes."""

    varies = True

    def immediates(self, context: Context) -> Sequence[int] | None:
        """The numbers that fit into a register, or into 32 bits of a wider one, signed or not."""
        bits = min(register_type(context.spec, context.carried()["register_types"][0]).bits, 32)
        return range(-1 << bits - 1, 1 << bits) if context.entry.immediate else None


class SparsityDescriptor(Role, kinds=("sparsity-descriptor",)):
    """A 32-bit word that says which elements are kept, and their type."""
