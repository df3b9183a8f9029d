"""Links from the page of a form to the pages beside it: other shapes and widths, the sparse or dense counterpart, other families."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.generator.emit.docs import rest
from ptxmma.generator.emit.docs.form_groups import FormGroup

#: The factor by which a sparse product covers more of K, with as many products.
_RATIO = 2


def bullets(group: FormGroup, every: Sequence[FormGroup]) -> list[str]:
    """Lines with links; empty where a group has no neighbours."""
    return [
        f"{what}: {', '.join(rest.link(other.title, other.label) for other in others)}" for what, others in _kinds(group, every) if others
    ]


def _kinds(group: FormGroup, every: Sequence[FormGroup]) -> Iterator[tuple[str, list[FormGroup]]]:
    others = [other for other in every if other.path != group.path]
    own = [other for other in others if other.family == group.family]
    first = group.own[0]
    sparse = first.sparse
    yield f"The {'dense' if sparse else 'sparse'} counterpart", [other for other in others if _is_counterpart(group, other)]
    yield "The same width", [other for other in own if other.bits == group.bits and group.bits]
    yield "The same shape", [other for other in own if other.shape == group.shape and other.bits != group.bits]
    yield "Used with it", [other for other in own if not other.bits] if first.operation != "synchronise" else []
    yield "Others of the family", own if first.operation == "synchronise" else []
    if first.operation != "multiply":
        return
    yield (
        "Other families with these types",
        [
            other
            for other in others
            if other.family != group.family and set(other.types) & set(group.types) and other.own[0].operation == "multiply"
        ],
    )


def _is_counterpart(group: FormGroup, other: FormGroup) -> bool:
    """Whether two groups multiply the same types alike, one of them a sparse A with twice the K."""
    one, two = group.own[0], other.own[0]
    if (
        one.sparse == two.sparse
        or not set(group.types) & set(other.types)
        or one.variant.instruction.scope != two.variant.instruction.scope
    ):
        return False
    dense, sparse = (two, one) if one.sparse else (one, two)
    return sparse.extents | {"k": dense.extents.get("k")} == dense.extents and sparse.extents.get("k") == _RATIO * dense.extents.get("k", 0)
