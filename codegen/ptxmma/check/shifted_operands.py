"""Products that read A in tensor memory after another product has shifted it.

Followed is one address: the same text, with a register that the kernel writes once.  A path is followed through products: after a store, a
copy, a shift or a wait, A may be another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.check import rule_examples as examples
from ptxmma.check.remarks import Remark, spelling_of
from ptxmma.check.rule import Rule
from ptxmma.ptx.blocks import NotFollowedError, blocks
from ptxmma.ptx.flow_events import Asynchronous, Event, words_of
from ptxmma.ptx.graphs import reachable, spread
from ptxmma.ptx.outline import Outline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.check.kernels import Kernel
    from ptxmma.ptx.blocks import Blocked
    from ptxmma.ptx.conditions import Predicates
    from ptxmma.ptx.statements import Statement

#: The modifier that shifts A.
_MODIFIER = "ashift"
_SHIFTING = f"tcgen05.mma.cta_group::1.kind::f16.{_MODIFIER} [%r0], [%r2], %rd0, %r1, %p0;"
_READING = "tcgen05.mma.cta_group::1.kind::f16 [%r3], [%r2], %rd0, %r1, %p0;"

RULES: Mapping[str, Rule] = {
    "shifted-operand": Rule(
        f"A product that reads A in tensor memory after a product with .{_MODIFIER} is meant to read the shifted rows.",
        f"The product with .{_MODIFIER} reads A as it is, and then writes it: in each 32 lanes a lane receives the row of the next one, "
        "and the last lane keeps its own. The manual says neither when nor which way: an example of CUTLASS observed it on a B200.",
        f"Write .{_MODIFIER} at the last product that reads A unshifted, or store A again. If the shift is meant, ignore the note.",
        examples.tensor_kernel(_SHIFTING, _READING, examples.TENSOR_COMMIT),
        examples.tensor_kernel(_READING, _SHIFTING, examples.TENSOR_COMMIT),
    ),
}

#: Waits for other threads, which may store A.
_WAITS = tuple(word.encode() for word in ("bar", "barrier", "mbarrier.try_wait", "mbarrier.test_wait"))


def of_kernel(catalog: Catalog, kernel: Kernel, statements: Sequence[Statement]) -> Iterator[tuple[Remark, bytes]]:
    """The note on each product that reads A after it was shifted, with the product's opcode; none in a kernel that cannot be followed.

    Args:
        catalog: the catalog of the instructions.
        kernel: the kernel.
        statements: its instructions on tensor memory.
    """
    if not any(f".{_MODIFIER}" in spelling_of(each.opcode) for each in statements):
        return
    products = {each.start: product for each in statements if (product := _product(catalog, each))}
    words = (*_WAITS, *{each.opcode for each in statements})
    try:
        graph = blocks(Outline(kernel.text, Asynchronous({word: {} for word in words})))
    except NotFollowedError:
        return
    for reader, earlier in _readers(graph, products, kernel.registers):
        product = products[reader]
        line = kernel.function.position(earlier)[0]
        text = f"the product of line {line} has .{_MODIFIER}, which shifts this A after it has read it: each lane "
        text += f"has the row of the next one here, except for the last of each 32 ({products[earlier].shifts})"
        yield Remark(kernel.function.operand(product.statement, product.place), "note", "shifted-operand", text), product.statement.opcode


class _Product(NamedTuple):
    """A product.

    Attributes:
        statement: the instruction.
        place: the number of its operand A; -1 where A is in shared memory.
        shifts: the source that says how it shifts A; empty if it does not.
    """

    statement: Statement
    place: int
    shifts: str


def _product(catalog: Catalog, statement: Statement) -> _Product | None:
    """The product that an instruction is; None of another one."""
    instruction = catalog.meaning(spelling_of(statement.opcode)) if statement.broken is None else None
    if instruction is None or instruction.operation != OPERATION:
        return None
    matrices = {place for form in instruction.forms for place, operand in enumerate(form.operands) if operand.kind == "tensor-matrix"}
    place = next((place for place, operand in enumerate(statement.operands) if place in matrices and operand.startswith(b"[")), -1)
    of_shift = (note for note in instruction.notes() if any(_MODIFIER in condition for condition in note.when))
    source = next((note.source for note in of_shift if instruction.qualifiers.get(_MODIFIER) and place >= 0), "")
    return _Product(statement, place, source)


def _readers(graph: Sequence[Blocked], products: Mapping[int, _Product], registers: Predicates) -> Iterator[tuple[int, int]]:
    """The places of products that read a shifted A, each with the place of the first product that may have shifted it."""
    address_of = {offset: each.statement.operands[each.place] for offset, each in products.items() if each.place >= 0}
    once = (offset for offset, text in address_of.items() if all(len(registers.writes(name)) <= 1 for name in words_of(text)))
    shifting = {offset: 1 << number for number, offset in enumerate(each for each in once if products[each].shifts)}

    def through(number: int, shifted: int) -> tuple[dict[int, int], int]:
        """The products of a block that read a shifted A, and those whose A is shifted at its end: any other instruction may change A."""
        found: dict[int, int] = {}
        for event in graph[number].events:
            if isinstance(event, Event) and event.offset not in products:
                shifted = 0
            elif isinstance(event, Event) and (address := address_of.get(event.offset)) is not None:
                alike = (bit for offset, bit in shifting.items() if shifted & bit and address_of[offset] == address)
                found[event.offset] = sum(alike)
                shifted |= shifting.get(event.offset, 0)
        return found, shifted

    def leaving(number: int, shifted: int = -1) -> Iterator[tuple[int, int]]:
        _, shifted = through(number, shifted)
        return ((after, shifted) for after in graph[number].follows)

    first = dict.fromkeys(reachable([0], lambda number: graph[number].follows), 0)
    for number in [*first]:
        for after, shifted in leaving(number, 0):
            first[after] |= shifted
    places, entered = [*shifting], spread(first, leaving)
    read = sorted(pair for number in entered for pair in through(number, entered[number])[0].items())
    yield from ((offset, places[(mask & -mask).bit_length() - 1]) for offset, mask in read if mask)
