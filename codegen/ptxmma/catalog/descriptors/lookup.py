"""Looks the codec of a descriptor up: its fields to bits and back, for every format of ``spec/descriptors.yaml``; descriptors of products.

>>> f16 = codec("instruction", kind="f16")
>>> hex(f16.encode(dtype="f32", atype="bf16", btype="bf16", m=128, n=256))
'0x8400490'
>>> f16.decode(0x8400490)["atype"]
'bf16'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxmma.catalog.descriptors.bits import Value
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.shared_formats import reads
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.catalog.instructions.facts import Instruction
from ptxmma.catalog.instructions.user_names import target_named
from ptxmma.catalog.operands.operand_form import Missing
from ptxmma.catalog.products import product_rules, resolution
from ptxmma.catalog.requirements import accepting
from ptxmma.model import DescriptorFormat


def check_target(format: DescriptorFormat, kind: str, target: str, database: DatabaseLike) -> None:
    """Check that a target has an instruction that reads a format; ``kind`` is the instruction's, or empty for any.

    Raises:
        ValueError: it has none; the message lists the targets that do.
    """
    readers = catalog(database).all(lambda entry: reads(entry.family, format.family))
    variants = (reader.variant for reader in readers if not kind or kind in reader.qualifiers.values())
    allowed = {each.name: None for variant in variants for each in accepting(catalog(database).database.spec, variant)}
    if target not in allowed:
        what = f"{format.family} with {kind}" if kind else format.family
        raise ValueError(f"{target} has no instruction of {what}; targets that have one: {', '.join(allowed)}")


def codec(describes: str, family: str = "", *, kind: str = "", target: str | None = None, database: DatabaseLike = None) -> Codec:
    """The codec of a descriptor.

    Args:
        describes: ``"matrix"`` in shared memory; ``"instruction"``; ``"columns"`` of B that are taken as zeros; ``"sparsity"`` of a vector.
        family: a family of instructions, such as ``"wgmma"``: the same bits mean different things to others.  By default the family of the
            spec's first such descriptor, and of this kind.
        kind: the kind of an instruction descriptor, as PTX has it: ``"f16"`` or ``"kind::f16"``.
        target: the values must be legal for it, by any name: ``"sm_100a"``, ``"B200"``; for any target by default.
        database: the source of the facts; the packaged database by default.

    Raises:
        ValueError: the family has no such descriptor, an unknown kind or target, or a target without instructions that read it.
    """
    spec = catalog(database).database.spec
    formats = [each for each in spec.descriptors if each.describes == describes and (not family or reads(family, each.family))]
    if not formats:
        known = dict.fromkeys(each.describes for each in spec.descriptors if not family or reads(family, each.family))
        raise ValueError(f"{family or 'the spec'} has no descriptor that describes {describes!r}; it has: {', '.join(known) or 'none'}")
    if not family:
        family = next((each.family for each in formats if kind in (*each.short_kinds, *(each.kinds or ("",)))), formats[0].family)
        formats = [each for each in formats if each.family == family]
    kinds = {short: each for format in formats for short, each in format.short_kinds.items()}
    spelled = kinds.get(kind, kind)
    if spelled not in (kinds.values() or [""]):
        known_kinds = ", ".join(kinds)
        raise ValueError(
            f"{'unknown kind ' + repr(kind) if kind else 'the descriptor depends on the kind'}; known: {known_kinds}"
            if kinds
            else f"the {describes} descriptor of {family} does not depend on a kind"
        )
    chosen = next(each for each in formats if spelled in (each.kinds or ("",)))
    memo, named = catalog(database).database.memo, target_named(spec, target) if target else None
    key = ("codec", chosen.name, spelled, named)
    if key not in memo:
        if named:
            check_target(chosen, spelled, named, database)
        chooses = describes == "instruction"
        readers = catalog(database).all(
            lambda entry: chooses and entry.operation == resolution.OPERATION and reads(entry.family, chosen.family)
        )
        memo[key] = Codec(spec, chosen, spelled, named, [each for each in readers if spelled in each.qualifiers.values()])
    made: Codec = memo[key]
    return made


def instruction_descriptor(kind: str, *, target: str | None = None, database: DatabaseLike = None, **fields: Value) -> int:
    """The 32 bits of the instruction descriptor of a ``tcgen05.mma``.

    Args:
        kind: ``"f16"`` or ``"kind::f16"``.
        target: as of :func:`codec`.
        database: as of :func:`codec`.
        fields: ``m``, ``n``, the types ``dtype``, ``atype`` and ``btype``, and what else the kind has, such as ``a_majorness="MN"``,
            ``negate_b=True``, ``sparse=1``, ``scale_type="ue8m0"``; what is left out is 0, and a type that the kind prescribes may be.

    Raises:
        TypeError, ValueError: as :func:`codec` and :meth:`Codec.encode`.

    >>> hex(instruction_descriptor("mxf8f6f4", atype="e4m3", btype="e5m2", m=128, n=64))
    '0x8900400'
    """
    return codec("instruction", kind=kind, target=target, database=database).encode(**fields)


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
    product_rules.check_limits(instruction.database.spec, instruction.canonical, {**format.decode(bits), **instruction.variant.facts})
    # To describe the operands takes longer than all else, and without fields none is selected.
    if wrong := next(misplaced(instruction, fields), "") if fields else "":
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
    spec, family = instruction.database.spec, instruction.variant.instruction.family
    deciding = (each.qualifier for each in spec.descriptors if each.describes == "instruction" and reads(family, each.family))
    kind = instruction.qualifiers.get(next(deciding, ""), "")
    return codec("instruction", family, kind=kind, target=target, database=instruction.database)
