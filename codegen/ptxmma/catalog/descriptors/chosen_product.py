"""The product that the fields of an instruction descriptor choose, and the mistake where they choose none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxmma.catalog.descriptors.bits import Value
from ptxmma.catalog.instructions.facts import Instruction
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.products.product_rules import IllegalProductError


def product_of(opcode: Instruction, fields: Mapping[str, Value], target: str | None = None) -> Instruction:
    """Return the product that the fields of an instruction descriptor make of an opcode: the inverse of :func:`of_product`.

    Args:
        opcode: a ``tcgen05.mma``.
        fields: the fields of its descriptor.
        target: that must support the product, if it supports the opcode; any by default.

    Raises:
        IllegalProductError: no rule allows them together, or not on the target; the message lists what is legal.
    """
    spec = opcode.database.spec
    given = {argument: value for name, value in fields.items() if (argument := argument_of(name))}
    if not opcode.sparse:
        given.pop("sparsity_version", None)  # which versions of sparsity mean nothing to
    product = resolution.resolve(spec, opcode.variant, given)
    product_rules.check_limits(spec, opcode.canonical, {**fields, **product.facts})
    chosen = Instruction(opcode.database, product)
    if target in opcode.accepted_by() and target not in (targets := chosen.accepted_by()):
        said = ", ".join(f"{name} = {value}" for name, value in product.chosen)
        raise IllegalProductError(opcode.canonical, f"with {said} is not supported by {target}", f"on {', '.join(targets)}")
    return chosen


def mistake(kind: str, opcodes: Iterable[Instruction], fields: Mapping[str, Value], target: str | None = None) -> str:
    """Return the mistake in the fields of an instruction descriptor if none of the opcodes has such a product; empty if one does.

    Args:
        kind: ``"kind::f16"``, for the message.
        opcodes: the opcodes of the kind; passed over are opcodes that the target lacks, and opcodes that multiply dense matrices if the
            fields say sparse ones, or the other way round.
        fields: all of the descriptor.
        target: as of :func:`product_of`.
    """
    legal: dict[str, dict[str, None]] = {}
    for opcode in opcodes:
        if fields["sparse"] == opcode.sparse and (target is None or target in opcode.accepted_by()):
            try:
                product_of(opcode, fields, target)
            except IllegalProductError as error:
                legal.setdefault(error.problem, {})[error.legal] = None
            else:
                return ""
    return "; ".join(f"{kind} {problem}; legal: {'; '.join(known)}" for problem, known in legal.items())


def argument_of(field: str) -> str:
    """Return the name of a field as an argument of :func:`ptxmma.instruction`; ``""`` for a field that chooses no product."""
    name = "stype" if field == "scale_type" else field
    return name if name in product_rules.ARGUMENTS else ""
