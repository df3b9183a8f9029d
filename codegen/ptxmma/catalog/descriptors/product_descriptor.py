"""The instruction descriptor of a product of ``tcgen05.mma``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxmma.catalog.descriptors.bits import Value
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.lookup import codec
from ptxmma.catalog.instructions.facts import Instruction
from ptxmma.catalog.operands.operand_form import Missing
from ptxmma.catalog.products import product_rules

#: The field of an instruction descriptor that selects a part of an operand in tensor memory, by the kind of the operand.
SELECTED = {"tensor-scales": "scale_{of}_id", "tensor-metadata": "sparsity_selector"}


def of_product(instruction: Instruction, **fields: Value) -> int:
    """The 32 bits of the instruction descriptor of a product: its shape, its types and whether A is sparse come from the instruction.

    Args:
        instruction: a ``tcgen05.mma`` with its shape and types: ``ptxmma.instruction(opcode, m=128, n=256, …)``.
        fields: the fields that a product leaves open: ``negate_a=True``, ``b_majorness="MN"``, ``scale_a_id=2``; 0 where left out.

    Raises:
        Missing: the instruction has no such descriptor, or does not state its shape and types.
        TypeError: no instruction, a field that the product already says, such as ``n``, or one that the kind does not have.
        ValueError: a value that is not legal, alone or with the product: an N that B's majorness does not leave, or
            an ID at which the product reads no scale factors.

    >>> import ptxmma
    >>> types = {"dtype": "f32", "atype": "bf16", "btype": "bf16"}
    >>> hex(of_product(ptxmma.instruction("tcgen05.mma.cta_group::1.kind::f16", m=128, n=256, **types)))
    '0x8400490'
    """
    if not isinstance(instruction, Instruction):
        raise TypeError(f"instruction must be a tcgen05.mma from ptxmma.instruction, not {type(instruction).__name__}")
    chosen = dict(instruction.variant.chosen)
    if not chosen:
        raise Missing(f"{instruction.canonical} does not state what its instruction descriptor says")
    format = codec_of(instruction)
    own = {**chosen, "sparse": int(instruction.sparse), "scale_type": chosen.get("stype", "")}
    known = {field.name for field in format.parameters}
    said = {name: value for name, value in own.items() if name in known}
    if twice := [name for name in fields if name in own]:
        values = ", ".join(f"{name} = {own[name]}" for name in twice)
        raise TypeError(f"the product already says {values}; leave out {', '.join(twice)}, or take another product")
    bits = format.encode(**said, **fields)
    if (rules := instruction.database.spec.tensor_products) is not None:
        product_rules.check_limits(rules, instruction.canonical, {**format.decode(bits), **instruction.variant.facts})
    if wrong := next(misplaced(instruction, fields), ""):
        raise ValueError(wrong)
    return bits


def misplaced(product: Instruction, fields: Mapping[str, Value]) -> Iterator[str]:
    """Yield each selection of a descriptor at which no operand in tensor memory begins, in words."""
    for operand in product.forms[0].operands:
        field = SELECTED.get(operand.kind, "").format(of=operand.of)
        for values in operand.selections.values() if field in fields else ():
            if fields[field] not in values:
                legal = ", ".join(map(str, values))
                yield f"{field} = {fields[field]} is not legal for {operand.name} of {product.canonical}; legal: {legal}"


def codec_of(instruction: Instruction, target: str | None = None) -> Codec:
    """The codec of the instruction descriptor of an instruction, as :func:`codec` has it."""
    kind = instruction.qualifiers.get("kind", "")
    return codec("instruction", instruction.variant.instruction.family, kind=kind, target=target, database=instruction.database)
