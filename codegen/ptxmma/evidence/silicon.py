"""What a chip did: ``spec/evidence/silicon.json``."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ptxmma.evidence.reports import Count, Entry, Positive, Report, Sha256


class Chip(Entry, frozen=True, kw_only=True):
    """A chip and its driver."""

    name: str  # "NVIDIA H200"
    compute_capability: str  # "9.0"
    driver: str


class Compiler(Entry, frozen=True, kw_only=True):
    """What made the kernels."""

    cuda: str  # release of the toolkit
    nvcc: str  # version of the compiler
    ptxas_sha256: Sha256  # of the assembler's binary


class Launch(Entry, frozen=True, kw_only=True):
    """A launch that can be repeated without the chip: see :mod:`ptxmma_proof.silicon.replay`.

    Attributes:
        form: name of the operand form.
        constants: by the operands' names.
        seed: of the words in registers and memory.
        image: bytes of shared memory.
        descriptors: by the operands' names, for shared memory that starts at 0.
        d: digest of D's registers.
    """

    form: str = ""
    constants: dict[str, int] = msgspec.field(default_factory=dict)
    seed: int
    image: Count = 0
    descriptors: dict[str, int] = msgspec.field(default_factory=dict)
    d: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]


class Execution(Entry, frozen=True, kw_only=True):
    """What became of one instruction.

    Attributes:
        instruction: canonical spelling.
        facts: digest of what the database said of it, see :func:`ptxmma.evidence.facts.executed`.
        launches: with random whole numbers, against NumPy's product.
        wrong: launches in which an element of D was wrong.
        machine: the tensor-core instructions that the assembler made of it; more than one for kernels that differ.
        replays: further launches.
    """

    instruction: str
    facts: Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
    launches: Positive
    wrong: Count = 0
    machine: Annotated[tuple[str, ...], Meta(min_length=1)]
    replays: Annotated[tuple[Launch, ...], Meta(min_length=1)]


class Beside(Entry, frozen=True, kw_only=True):
    """An instruction without matrices that kernels executed beside their products: a fence, a wait.

    Attributes:
        instruction: canonical spelling.
        facts: digest of what the database said of it, see :func:`ptxmma.evidence.facts.executed`.
        launches: of kernels that call its wrapper.
        wrong: launches in which an element of D was wrong.
    """

    instruction: str
    facts: Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
    launches: Positive
    wrong: Count = 0


class Held(Entry, frozen=True, kw_only=True):
    """How often a layout of registers was held against the chip."""

    layout: str
    launches: Positive
    wrong: Count = 0


class Shared(Entry, frozen=True, kw_only=True):
    """How often an operand was read from shared memory."""

    operand: str
    type: str
    majorness: str
    swizzle: str
    launches: Positive
    wrong: Count = 0
    base_offsets: tuple[int, ...]  # that occurred


class Failure(Entry, frozen=True, kw_only=True):
    """A kernel with a wrong element."""

    instruction: str
    form: str
    constants: dict[str, int]
    launches: Positive
    wrong: Positive


class Observation(Entry, frozen=True, kw_only=True):
    """What the manual leaves open and the chip answered; never a rule."""

    question: str
    instruction: str
    tried: str
    seen: str


class Silicon(Report, frozen=True, kw_only=True):
    """All that a chip was asked."""

    target: str
    chip: Chip
    compiler: Compiler
    instructions: tuple[Execution, ...]
    beside: tuple[Beside, ...]
    layouts: tuple[Held, ...]
    shared_memory: tuple[Shared, ...]
    failures: tuple[Failure, ...]
    observations: tuple[Observation, ...]

    @property
    def executed(self) -> dict[str, Execution | Beside]:
        """All that ran, by its canonical spelling."""
        rows: list[Execution | Beside] = [*self.instructions, *self.beside]
        return {row.instruction: row for row in rows}
