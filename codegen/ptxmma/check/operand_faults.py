"""The fault of one operand, by the manual's demands on it: its register, constant, list or address."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ptxmma.check import rule_examples as examples
from ptxmma.check.rule import Rule
from ptxmma.ptx.operand_values import (
    ANYTHING,
    BROKEN,
    DOUBLE,
    FLOAT,
    FLOATING,
    NEGATED,
    SINK,
    UNDECLARED,
    UNREGISTERED,
    ZERO,
    Address,
    Scalar,
    Several,
    Value,
)

if TYPE_CHECKING:
    from ptxmma.catalog.operands import Operand

RULES: Mapping[str, Rule] = {
    "constant": Rule(
        "A register is a register, and not a constant in its place.",
        "The manual does not have the constant, and not all assemblers generate code for it.",
        "Move the constant into a register first.",
        f"wgmma.fence.sync.aligned;\n{examples.WGMMA.replace('%rd1', '0x4000004000010040')}",
        f"mov.b64 %rd1, 0x4000004000010040;\nwgmma.fence.sync.aligned;\n{examples.WGMMA}",
    ),
    "immediate": Rule(
        "A constant is in the range that the operand allows.",
        "The assembler refuses it.",
        "Write one of the values that the message lists.",
        examples.ORDERED_SPARSE.replace("%r4, 0;", "%r4, 4;"),
        examples.ORDERED_SPARSE,
    ),
    "list": Rule(
        "A list is registers of one type in braces, and a single operand has no braces.",
        "Some assemblers accept other lists for some targets; what they make of them changes from release to release.",
        "Declare the registers of a list with one type.",
        examples.MMA.replace("%r3}", "%f7}"),
        examples.MMA,
    ),
    "operand-kind": Rule(
        "An operand is a register, a constant, a list or an address, as its syntax says.",
        "The assembler refuses anything else.",
        "Write the kind of operand that the message names.",
        "wgmma.wait_group.sync.aligned %r0;",
        "wgmma.wait_group.sync.aligned 0;",
    ),
    "register-count": Rule(
        "A list has as many registers as the operand needs.",
        "The assembler refuses it. The number follows from the shape and the type: each thread has an equal part of the matrix.",
        "Add or remove registers; ptxmma layout shows which element each one has.",
        examples.MMA.replace("{%r0, %r1, %r2, %r3}", "{%r0, %r1, %r2}"),
        examples.MMA,
    ),
    "register-type": Rule(
        "Registers have one of the types that assemblers accept for the operand.",
        "The assembler refuses other types; it does not convert.",
        "Declare the registers with a type that the message lists, or move the bits with mov.",
        examples.MMA.replace("{%r4, %r5}", "{%rd1, %rd2}"),
        examples.MMA,
    ),
    "sink": Rule(
        "The sink _ replaces elements of a result that are not needed, but not all of them, and nothing that is read.",
        "The assembler refuses it elsewhere.",
        "Write a register.",
        examples.MMA.replace("{%r4, %r5}", "{%r4, _}"),
        examples.MMA,
    ),
    "state-space": Rule(
        "The variable of an address lies in the state space of the instruction, a tensor map in parameter, constant or global memory.",
        "The assembler refuses another variable, or the instruction reads other memory. Of a parameter that is not __grid_constant__ the "
        "compiler makes a copy in local memory. An address that mapa gives is one of .shared::cluster: .shared is the thread block's own.",
        "Name the variable's state space in the instruction, or copy the matrix to shared memory. Take the address of a tensor map that is "
        "a const __grid_constant__ parameter.",
        examples.LOAD.replace("tile", "weights"),
        examples.LOAD,
    ),
    "undeclared": Rule(
        "Registers are declared before they are used, in a block that is open.",
        "The assembler refuses others. In inline assembly, the compiler refuses a number without an operand.",
        "Declare the register with .reg, or add the operand.",
        examples.MMA.replace("%r5", "%r99"),
        examples.MMA,
    ),
}

#: Values that are neither a register nor an integer, in words.
_IN_WORDS = {
    FLOAT: "an f32 constant",
    DOUBLE: "an f64 constant",
    ZERO: "an f64 constant",
    UNDECLARED: "a name that is not declared here",
    SINK: "_",
    NEGATED: "a negated predicate",
    BROKEN: "text that cannot be read",
    UNREGISTERED: "a special register or part of a variable",
}
#: The rule that a value breaks where a register is expected; of all others it is "operand-kind".
_RULES = {UNDECLARED: "undeclared", BROKEN: "syntax"}


class Fault(NamedTuple):
    """The fault of an operand.

    Attributes:
        rule: short name of what is broken: a key of :data:`ptxmma.check.rules.RULES`.
        message: the fault in words.
        operand: number of the operand in the instruction, from 0; -1 for the operands as a whole.
        element: number of the element in its list, from 0; -1 for all of the operand.
        severe: whether assemblers refuse it.
        braces: whether only the braces around a single register are wrong.
    """

    rule: str
    message: str
    operand: int = -1
    element: int = -1
    severe: bool = True
    braces: bool = False


def of_single(operand: Operand, value: Value) -> Fault | None:
    """The fault of an operand that is one register, constant or address."""
    must = f"{operand.name} must be {wanted(operand)}"
    if value == SINK and operand.droppable:
        return None
    if operand.kind == "sink":
        return None if value == SINK else Fault("operand-kind", f"it must be _, which drops the result, not {in_words(value)}")
    if operand.bracketed or isinstance(value, Address):
        return _of_address(operand, value, must)
    if isinstance(value, tuple):
        return Fault("list", f"{must}, without braces")
    if isinstance(value, int):
        if operand.immediates is None:
            return Fault("operand-kind", f"{must}, not {in_words(value)}")
        # In place of a register, nvcc writes constants of 32 bits with a sign: -1 for 0xffffffff. A stride is a number.
        of_bits = operand.takes_register and operand.kind != "stride"
        unsigned = value % (1 << 32) if of_bits and -(1 << 31) <= value < 0 else value
        known = value in operand.immediates or unsigned in operand.immediates
        return None if known else Fault("immediate", f"{must}, not {value}")
    if value == FLOAT and operand.takes_register and "f32" in operand.register_types:
        text = f"{operand.name} should be {wanted(operand)}: assemblers accept a constant, but not all generate code for it"
        return Fault("constant", text, severe=False)
    if isinstance(value, str) and value.startswith("."):
        rule = "state-space" if operand.spaces else "operand-kind"
        return None if value[1:] in operand.spaces else Fault(rule, f"{must}, not {in_words(value)}")
    if value in _IN_WORDS:
        return Fault(_RULES.get(value, "operand-kind"), f"{must}, not {in_words(value)}")
    if not operand.takes_register:
        return Fault("operand-kind", f"{must}, not a register")
    return None if value in operand.register_types else Fault("register-type", f"{must}, not .{value}")


def _of_address(operand: Operand, value: Value, must: str) -> Fault | None:
    """The fault of an operand that is an address, or must not be one."""
    if not operand.bracketed or not isinstance(value, Address):
        plain = isinstance(value, str) and value not in _IN_WORDS
        return Fault("operand-kind", f"{must}, not {'a register without brackets' if plain else in_words(value)}")
    base = value.base
    if base == ANYTHING or base in operand.register_types:
        return None
    if isinstance(base, int):
        return Fault("operand-kind", f"{must}, not {in_words(base)}")
    if base == BROKEN:
        return Fault("syntax", f"{must}; this cannot be read as one")
    if base in _RULES:
        return Fault(_RULES[base], f"{must}, not {in_words(base)}", element=0)
    if not base.startswith("."):
        narrow = base in ("b32", "u32", "s32") and "shared" in operand.spaces
        hint = "; for an address of 32 bits write .shared, .shared::cta or .shared::cluster into the opcode" if narrow else ""
        return Fault("register-type", f"{must}, not of .{base}{hint}", element=0)
    return None if base[1:] in operand.spaces else Fault("state-space", f"{must}, not one in {base}", element=0)


def of_list(operand: Operand, value: Value) -> Fault | None:
    """The fault of an operand that is a list of registers."""
    must = f"{operand.name} must be {wanted(operand)}"
    if not isinstance(value, tuple):
        return Fault("list", f"{must}, not {in_words(value)}")
    if BROKEN in value:
        return Fault("syntax", f"{must}; this is not a register", element=value.index(BROKEN))
    if len(value) != operand.registers:
        return Fault("register-count", f"{must}, not of {len(value)}")
    if FLOATING & set(value) and not set(value) <= {DOUBLE, ZERO} and _takes_constants(operand):
        others = tuple(ANYTHING if each in FLOATING else each for each in value)
        return of_list(operand, others) or _of_constants(operand, value)
    registers = [each for each in value if isinstance(each, str) and each not in (SINK, ANYTHING)]
    for element, each in enumerate(value):
        if each == SINK and operand.access != "write":
            return Fault("sink", f"{must}: _ can only replace results that are not needed", element=element)
        if isinstance(each, int) and operand.immediates is not None:
            if each not in operand.immediates:
                return Fault("immediate", f"{must}, not of {each}", element=element)
        elif isinstance(each, int) or each in FLOATING:
            return Fault("list", f"{must}, not of {in_words(each)}", element=element)
        if each != SINK and each in _IN_WORDS:
            return Fault(_RULES.get(each, "operand-kind"), f"{must}, not of {in_words(each)}", element=element)
    if not registers:
        return Fault("sink", f"{must}: at least one result must be kept") if SINK in value else None
    first = registers[0]
    if operand.immediates is not None:  # each is a number of its own
        wrong = (element for element, each in enumerate(value) if each in registers and each not in operand.register_types)
        return next((Fault("register-type", f"{must}, not of .{value[element]}", element=element) for element in wrong), None)
    for element, each in enumerate(value):
        if each not in (SINK, ANYTHING, first):
            text = f"{operand.name} must have registers of one type, not .{first} and .{each}"
            return Fault("list", text, element=element)
    return None if first in operand.register_types else Fault("register-type", f"{must}, not of .{first}")


def _takes_constants(operand: Operand) -> bool:
    """Return whether assemblers accept floating-point constants in a list: ptxas 11.7 to 13.5 do so in C, beside registers or not."""
    return operand.kind == "accumulator" and operand.access == "read" and "f32" in operand.register_types


def _of_constants(operand: Operand, value: tuple[Scalar, ...]) -> Fault:
    """The fault of floating-point constants in a list that takes them."""
    if DOUBLE in value:
        text = f"assemblers read the lower half of an f64 constant's bits as {operand.name}: 1.5 becomes 0; write f32, such as 0f3FC00000"
        return Fault("constant", text, element=value.index(DOUBLE), severe=False)
    text = f"{operand.name} should be {wanted(operand)}: assemblers accept f32 constants, but the manual does not have them"
    return Fault("list", text, element=next(place for place, each in enumerate(value) if each in FLOATING), severe=False)


def wanted(operand: Operand) -> str:
    """The legal values of an operand, in words."""
    types = listing([f".{kind}" for kind in operand.register_types])
    variable = f" or a variable in {listing([f'.{space}' for space in operand.spaces])}" if operand.spaces else ""
    if operand.bracketed:
        offset = "" if operand.kind == "tensormap" else " or [x+constant]"
        return f"an address [x]{offset} where x is a {types} register{variable}"
    if operand.listed:
        return f"a list of {counted(operand.registers, f'{types} register')}{'' if operand.immediates is None else ' or constants'}"
    register = f"a {types} register{variable}" if operand.takes_register else ""
    return " or ".join(filter(None, (register, constants(operand.immediates))))


def constants(values: Sequence[int] | None) -> str:
    """The legal constants of an operand, in words."""
    if values is None:
        return ""
    if isinstance(values, range) and values.step > 1:
        return f"a multiple of {values.step} from {values[0]} to {values[-1]}"
    if isinstance(values, range) or len(values) > 4:
        doubling = all(after == 2 * before for before, after in itertools.pairwise(values))
        return f"a {'power of two' if doubling else 'constant'} from {values[0]} to {values[-1]}"
    return f"the constant {listing(list(map(str, values)))}"


def listing(words: Sequence[str], last: str = "or") -> str:
    """``a, b or c``."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def in_words(value: Value) -> str:
    """The words of a message for a value."""
    if isinstance(value, Address):
        return "an address"
    if isinstance(value, Several):
        return "an address with a list in its brackets"
    if isinstance(value, tuple):
        return "such a list"
    if isinstance(value, int):
        return f"the constant {value}"
    return f"a variable in {value}" if value.startswith(".") else _IN_WORDS.get(value, f".{value}")


def counted(number: int, what: str) -> str:
    """``1 operand``, ``2 operands``."""
    return f"{number} {what}{'' if number == 1 else 's'}"
