"""Element types, their containers, the register types that carry them, and the scale factors of blocks of elements."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

from msgspec import Meta

from ptxmma.model.decision_table import DecisionTable
from ptxmma.model.fields import SOME, Condition, ElementName, Entry, Name, Natural, Positive, Source, Text, like, names

#: The sign of integers, by their form: True if they have one.
_SIGNS = {"unsigned": False, "signed": True, "sign-magnitude": True}


class ElementType(Entry, frozen=True, kw_only=True):
    """One element type, e.g. e4m3: 8 bits, 4 of exponent (bias 7), 3 of mantissa, no infinity."""

    name: Name  # "e4m3"
    title: Text  # "FP8 with 4 exponent and 3 mantissa bits"
    form: Literal["float", "unsigned", "signed", "sign-magnitude", "bits"]
    bits: Annotated[int, Meta(ge=1, le=64)]  # storage, e.g. 8; tf32 takes 32
    exponent: Natural = 0  # bits
    mantissa: Natural = 0  # explicit bits; of a sign and a magnitude, the bits of the magnitude
    bias: int = 0
    sign: bool = True  # ue8m0 has none
    infinity: bool = False
    nan: bool = False
    numpy: Annotated[
        str, like(r"^[a-z][a-z0-9_]*$", "the dtype of NumPy or ml_dtypes that holds one; unsigned for the bits of a type that they lack")
    ]  # "float8_e4m3fn"
    tma: Annotated[  # "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"
        str,
        like(r"^(CU_TENSOR_MAP_DATA_TYPE_[A-Z0-9_]+)?$", "the type of tensor maps; of packed elements, their bytes'"),
        names("data type of tensor maps"),
    ] = ""
    c_type: Annotated[str, like(r"^([a-z_][A-Za-z0-9_]*)?$", "the C++ type whose object is one element, where there is such a type")] = ""
    c_header: Annotated[str, like(r"^([a-z0-9_]+\.h)?$", "the toolkit's header that declares it; empty for types of the language")] = ""
    source: Source

    def __post_init__(self) -> None:
        """Sign, exponent and mantissa fit into its bits; what is not floating point has no exponent."""
        used = self.exponent + self.mantissa + (self.sign and self.form == "float")
        if used > self.bits:
            raise ValueError(f"sign, exponent and mantissa take {used} bits, and the type has {self.bits}")
        if self.form == "float" and not 0 <= self.bias < 1 << self.exponent:
            raise ValueError(f"a bias of {self.bias} does not go with {self.exponent} exponent bits: 0..{(1 << self.exponent) - 1}")
        if self.form != "float" and (self.exponent or self.bias or self.infinity or self.nan):
            raise ValueError("only floating point has exponent, bias, infinity and nan; leave them out")
        if self.sign != _SIGNS.get(self.form, self.sign):
            raise ValueError(
                f"a type of the form {self.form} has {'no ' if self.sign else 'a '}sign: say sign: {str(not self.sign).lower()}"
            )

    @property
    def unit(self) -> float:
        """Floating point: the distance from 1 to the next number, e.g. 2**-10 for f16."""
        return float(2.0**-self.mantissa)

    @property
    def smallest_normal(self) -> float:
        """Floating point: the smallest number that is not subnormal; of a type without a mantissa, its smallest number."""
        return float(2.0 ** ((1 if self.mantissa else 0) - self.bias))

    @property
    def largest_code(self) -> int:
        """Floating point: the bits of the largest number."""
        magnitudes = 1 << self.exponent + self.mantissa
        # Infinity has the highest exponent to itself and to NaN; without infinity NaN is the last code alone.
        return magnitudes - 1 - ((1 << self.mantissa) if self.infinity else int(self.nan))

    @property
    def emax(self) -> int:
        """Floating point: the exponent of the largest number, e.g. 8 for e4m3."""
        return (self.largest_code >> self.mantissa) - self.bias

    @property
    def largest(self) -> float:
        """Floating point: the largest number, e.g. 448 for e4m3."""
        return float(2.0**self.emax * (1 + (self.largest_code & (1 << self.mantissa) - 1) * self.unit))

    @property
    def rounds_to_largest(self) -> float:
        """Floating point: the largest number that is not nearer to what would follow the largest, e.g. 464 for e4m3."""
        return float(self.largest + 2.0**self.emax * self.unit / 2)


class Container(Entry, frozen=True, kw_only=True):
    """The position of elements in a wider container, e.g. e2m1 in bits 2..5 of a byte under ``.kind::f8f6f4``."""

    elements: Annotated[tuple[ElementName, ...], SOME]  # ("e2m1",)
    when: tuple[Condition, ...] = ()
    bits: Positive  # 8
    shift: Natural  # 2: lowest bit of the element in the container
    source: Source


#: The bits of C's types, and the constraint of inline asm that takes each.
_C_TYPES = {
    "uint16_t": (16, "h"),
    "int16_t": (16, "h"),
    "uint32_t": (32, "r"),
    "int32_t": (32, "r"),
    "uint64_t": (64, "l"),
    "int64_t": (64, "l"),
    "float": (32, "f"),
    "double": (64, "d"),
    "bool": (1, "r"),
}


class RegisterType(Entry, frozen=True, kw_only=True):
    """A PTX register type, e.g. f16x2: 32 bits, two f16 elements."""

    name: Name  # "b32"
    title: Text
    bits: Positive  # 32
    c_type: Literal["uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "float", "double", "bool"]
    constraint: Annotated[Literal["h", "r", "l", "f", "d"], Meta(description="the constraint of inline asm")]  # "r"
    read: Text = ""  # PTX that makes a register of <values>, where no constraint gives one: "cvt.u8.u16 <register>, <values>;"
    write: Text = ""  # PTX that makes values of a register: "cvt.u16.u8 <values>, <register>;"
    source: Source

    def __post_init__(self) -> None:
        """C's type and the constraint are as wide as the register, unless PTX makes it of them; a predicate passes through an integer."""
        bits, constraint = _C_TYPES[self.c_type]
        if self.constraint != constraint or (self.bits != bits and not self.read):
            raise ValueError(f"{self.c_type} has {bits} bits and the constraint {constraint}, not {self.bits} bits and {self.constraint}")

    @property
    def values(self) -> int:
        """The values of its C type that make up a register."""
        return max(1, self.bits // _C_TYPES[self.c_type][0])


#: The state spaces in which PTX declares variables.
VariableSpace = Literal["const", "global", "local", "param", "shared"]


RegisterName = Annotated[Name, names("register type")]


class Carrier(Entry, frozen=True, kw_only=True):
    """The register types that assemblers accept for an operand; wrappers use the first."""

    operands: Annotated[tuple[Name, ...], SOME]  # operands of the instructions that match: ("a", "b")
    elements: tuple[ElementName, ...]  # ("f16", "bf16"); empty: operands without elements
    when: tuple[Condition, ...]  # conditions, each with a family or an instruction
    registers: Annotated[tuple[RegisterName, ...], SOME]  # ("b32", "f16x2", "u32", "s32")
    spaces: Annotated[tuple[VariableSpace, ...], SOME] = ()  # addresses: the state spaces whose variables they take as well
    source: Source

    def __post_init__(self) -> None:
        """Only addresses, which have no elements, take variables."""
        if self.spaces and self.elements:
            raise ValueError("spaces is for addresses, which have no elements; leave one of them out")


class Types(Entry, frozen=True, kw_only=True, dict=True):
    """Element types, their containers, and the register types that carry them."""

    elements: tuple[ElementType, ...] = ()
    containers: tuple[Container, ...] = ()
    registers: tuple[RegisterType, ...] = ()
    carriers: tuple[Carrier, ...] = ()

    @functools.cached_property
    def around(self) -> DecisionTable[Container]:
        """The containers that elements sit in, looked up by the facts of an instruction."""
        return DecisionTable(self.containers, "when")


class BlockScaling(Entry, frozen=True, kw_only=True):
    """The scale factors of some instructions."""

    of: tuple[Condition, ...]  # the instructions: {"kind": ("kind::mxf4",), "scale_vec": ("scale_vec::2X",)}
    types: Annotated[tuple[ElementName, ...], SOME]  # ("ue8m0",)
    blocks: Positive  # scale factors of each row along K
    source: Source


class BlockFormat(Entry, frozen=True, kw_only=True):
    """A block-scaled number format: elements that share a scale factor, block by block."""

    name: Name  # "mxfp8_e4m3"
    title: Text  # "MXFP8 with E4M3 elements"
    element: ElementName  # type of the elements: "e4m3"
    scale: ElementName  # type of the scale factors: "ue8m0"
    block: Positive  # neighbouring elements that share one: 32
    of: tuple[Condition, ...]  # the instructions that multiply matrices of it
    source: Source
