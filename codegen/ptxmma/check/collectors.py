"""Products that take a matrix from a collector buffer which nothing fills."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.check.remarks import Remark
from ptxmma.check.rule import Rule
from ptxmma.check.rule_examples import tensor_kernel
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ptxmma.model import InstructionSet
    from ptxmma.ptx.statements import Statement

_FILL = "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill [%r0], %rd0, %rd1, %r1, %p0;"
_USE = "tcgen05.mma.cta_group::1.kind::f16.collector::a::lastuse [%r2], %rd0, %rd1, %r1, %p0;"
_COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"

RULES: Mapping[str, Rule] = {
    "empty-collector": Rule(
        "A kernel that uses a collector buffer fills it.",
        "With .collector::a::use or ::lastuse, the product may take A from the buffer, which holds A only after an earlier product with "
        ".collector::a::fill. Otherwise behaviour is undefined. The same holds for B and its buffers.",
        "Write ::fill at the first product with the matrix, or leave the modifier out.",
        tensor_kernel(_USE, _COMMIT),
        tensor_kernel(_FILL, _USE, _COMMIT),
    ),
}

_HINT = re.compile(rb"\.(collector::(\w+))::(fill|use|lastuse)(?![\w:])")


def of_kernel(instructions: Iterable[InstructionSet], statements: Iterable[Statement]) -> Iterator[tuple[Remark, bytes]]:
    """The first use of each buffer that no product of a kernel fills, with its opcode.

    Args:
        instructions: the spec's, which say where the manual has the buffers.
        statements: the instructions of the kernel.
    """
    hints = [(value.rpartition("::")[0], hint.source) for entry in instructions for hint in entry.hints for value in hint.values]
    sources = dict(reversed(hints))  # the first place of each
    filled = set[bytes]()
    used: dict[bytes, tuple[Statement, Token]] = {}
    for statement in statements:
        for hint in _HINT.finditer(statement.opcode):
            if hint[3] == b"fill":
                filled.add(hint[1])
            else:
                used.setdefault(hint[1], (statement, Token(hint[0][1:], statement.start + hint.start() + 1)))
    for buffer, (statement, token) in used.items():
        if buffer not in filled:
            name = buffer.decode()
            text = f"no product of the kernel fills this buffer with .{name}::fill: behaviour is undefined (PTX ISA {sources.get(name)})"
            yield Remark(token, "warning", "empty-collector", text), statement.opcode
