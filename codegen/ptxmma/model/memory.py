"""Matrices in shared memory and their descriptors."""

from __future__ import annotations

import functools
import re
from typing import Annotated, Literal

from ptxmma.model.digits import Summand, terms
from ptxmma.model.fields import SOME, ElementName, Entry, Formula, Identifier, Name, Natural, Positive, Source, Text, like, names
from ptxmma.model.instruction import Statement

#: A swizzle mode by name: "128B".
NewSwizzle = Annotated[str, like(r"^[A-Za-z0-9_]+$", "a swizzle mode, e.g. 128B")]
SwizzleName = Annotated[NewSwizzle, names("swizzle")]


class Swizzle(Entry, frozen=True, kw_only=True):
    """A swizzle mode of shared memory."""

    name: NewSwizzle  # "128B"
    title: Text
    bytes: Positive  # contiguous bytes that are permuted together: 16 for none
    pattern: Positive  # bytes after which the pattern repeats, and to which it is aligned
    formula: Formula = ""  # a formula of its own, in place of ``swizzle_formula``
    cute: Text  # "Swizzle<3,4,3>"
    atom_mn: tuple[Positive, Positive]  # atom in 128-bit units, MN-major: (leading, strided)
    atom_k: tuple[Natural, Natural]  # K-major; 0 where no K-major layout has this mode
    tma: Annotated[str, like(r"^CU_TENSOR_MAP_SWIZZLE_[A-Z0-9_]+$", "the same mode of a tensor map")]
    source: Source


class Banks(Entry, frozen=True, kw_only=True):
    """The banks of shared memory: consecutive words lie in consecutive banks, and each bank serves one word at a time."""

    count: Positive  # 32
    bytes: Positive  # bytes of a word: 4
    source: Source


class CanonicalLayout(Entry, frozen=True, kw_only=True, dict=True):
    """The layout of a matrix operand in shared memory for one majorness and one group of swizzle modes.

    ``offset`` gives the byte of a place, before the swizzle, as a sum of digits of x and k: ``weight * (axis // step % size)``.  The
    contiguous dimension, which the majorness names, counts bytes, the other one elements.  It is cut into *panels*, and the lines of
    the other one into *groups*: LBO leads from one of either to the next, SBO from one of the other.
    """

    majorness: Literal["K", "MN"]
    swizzles: Annotated[tuple[SwizzleName, ...], SOME]
    cute: Text  # the manual's shape:stride text
    offset: Formula  # bytes from the start, before the swizzle: a sum of digits over x, k, span, lbo, sbo
    lbo: Text  # the meaning of the leading-dimension byte offset
    sbo: Text
    source: Source

    @property
    def contiguous(self) -> str:
        """The dimension that counts bytes in the formula: ``"k"`` or ``"x"``."""
        return "k" if self.majorness == "K" else "x"

    @functools.cached_property
    def terms(self) -> tuple[Summand, ...]:
        """The digits of the formula.

        Raises:
            NotDigitsError: the formula is not a sum of digits.
        """
        return tuple(terms({"byte": self.offset}, {"x": "", "k": ""}))

    @property
    def lines(self) -> int:
        """The lines of a group."""
        return next(int(term.size) for term in self.terms if term.axis != self.contiguous and term.size)

    @property
    def panel_stride(self) -> str:
        """The stride that leads from panel to panel: ``"lbo"`` or ``"sbo"``."""
        return next(term.weight for term in self.terms if term.axis == self.contiguous and not term.size)

    @property
    def group_stride(self) -> str:
        """The stride that leads from group to group."""
        return next(term.weight for term in self.terms if term.axis != self.contiguous and not term.size)

    @functools.cached_property
    def element_offset(self) -> str:
        """The formula over elements: the byte in which element (x, k) begins, where ``bits`` is the width of an element."""
        return re.sub(rf"\b{self.contiguous}\b", f"{self.contiguous} * bits // 8", self.offset)


class Majorness(Entry, frozen=True, kw_only=True):
    """The element types that instructions can read with a majorness."""

    majorness: Literal["K", "MN"]
    family: Name  # "tcgen05": of the instructions, or of all whose families begin so
    swizzles: Annotated[tuple[SwizzleName, ...], SOME]
    elements: Annotated[tuple[ElementName, ...], SOME]  # ("f16", "bf16")
    text: Text
    source: Source


class Padded(Entry, frozen=True, kw_only=True):
    """Narrow element types that instructions read with padding: so many fill the bytes that a matrix is aligned to, the low bits first."""

    majorness: Literal["K", "MN"]
    family: Name  # the family that reads it, as in Majorness
    swizzles: Annotated[tuple[SwizzleName, ...], SOME]
    elements: Annotated[tuple[ElementName, ...], SOME]
    group: Positive  # elements that share an alignment's bytes
    text: Text
    source: Source


class Example(Entry, frozen=True, kw_only=True):
    """A worked example of the manual (Figures 166-170): what it states, which the layouts must reproduce."""

    name: Text
    majorness: Literal["K", "MN"]
    swizzle: SwizzleName
    type: ElementName
    m: Positive  # repeats
    k: Positive
    cute: Text  # the exact layout
    lbo: Natural  # elements; 0: not applicable
    sbo: Natural
    lbo_encoding: Natural
    sbo_encoding: Natural
    source: Source


class SuspicionRule(Entry, frozen=True, kw_only=True):
    """A sign of a mistake in a matrix descriptor, whose bits instructions accept silently."""

    rule: Name  # "overlap"
    field: Name = ""  # the field in doubt; none: each stride that some operand uses
    severity: Literal["warning", "note"] = "warning"  # a note: right in a usual case that the descriptor does not tell
    when: Formula
    text: Text  # names in braces stand for their numbers: "{name} is {value} bytes"


class Suspicions(Entry, frozen=True, kw_only=True):
    """The signs of mistakes in matrix descriptors.

    Conditions and texts read numbers: of the descriptor ``start_address``, ``base_offset`` and ``leading_mode`` (1: an address), ``inside``
    (the start in its pattern) and ``least_start`` (the start with 0 for bits that are not known); of the swizzle mode ``span`` and
    ``pattern``; ``alignment``; ``reach``, the first address that no descriptor reaches; ``along_k``, 1 for a K-major matrix; ``lines`` of a
    group.  For each stride: ``value``, ``other`` (the other one, 0 if no operand uses it), ``units``, the bytes that its field counts, and
    ``by_all``, 1 if all operands use it; texts have its ``name``, and ``only`` for the operands that use it where not all do.
    ``needed`` is the base offset of a pattern that starts at ``first``, ``phase_needed`` at ``phase``, and ``misplaced`` is 1 where
    the descriptor's base offset swizzles otherwise.
    """

    let: dict[Identifier, Formula] = {}  # numbers that conditions and texts read: {"group": "lines * span"}
    rules: tuple[SuspicionRule, ...] = ()


class SharedMemory(Entry, frozen=True, kw_only=True):
    """Everything about matrix operands in shared memory."""

    alignment: Positive  # bytes
    banks: Banks
    swizzle_formula: Formula  # address ^ …: formula over address, base_offset and span (swizzle bytes)
    base_offset: Formula  # formula over start (of the pattern) and pattern (its size in bytes)
    swizzles: tuple[Swizzle, ...]
    layouts: tuple[CanonicalLayout, ...]
    majorness: tuple[Majorness, ...]
    padded: tuple[Padded, ...] = ()
    examples: tuple[Example, ...]
    suspicions: Suspicions = Suspicions()
    notes: tuple[Statement, ...] = ()
    source: Source
