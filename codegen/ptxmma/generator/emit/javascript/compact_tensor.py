"""Tensor memory and the products of ``tcgen05.mma`` as JavaScript reads them: formulas and conditions are texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ptxmma.generator.emit.javascript.shortening import columns, condition, formula_text, without_empty
from ptxmma.model import Granularity, ProductOption, Range, Space, Spec, TensorLayout, TensorProducts

_PACKED = "bits"


def tables(spec: Spec) -> dict[str, Any]:
    """Tensor memory, the rules of products, and the containers of narrow elements; nothing where the spec has no tensor memory."""
    if not spec.tensor_memories:
        return {}
    containers = [
        {"elements": each.elements, "bits": each.bits} | without_empty(shift=each.shift, when=condition(each.when))
        for each in spec.types.containers
    ]
    rules = {} if spec.tensor_products is None else {"products": _products(spec.tensor_products, spec.granularities)}
    return {"tensor": [_memory(memory) for memory in spec.tensor_memories], "containers": containers, **rules}


def _memory(memory: Space) -> dict[str, Any]:
    return (
        {"name": memory.name, "title": memory.title}
        | without_empty(of=condition(memory.of))
        | {
            "lanes": memory.most("lane"),
            "cell": memory.cell,
            "columns": memory.most("column"),
            "partition": memory.partition["lane"],
            "address": memory.address,
            "layouts": columns([_layout(layout) for layout in memory.layouts]),
        }
    )


def _layout(layout: TensorLayout) -> dict[str, Any]:
    """A layout; its formulas are texts, which JavaScript evaluates."""
    unit = layout.unit if layout.unit != _PACKED else ""
    selections = [{"name": each.name, "values": each.values} | without_empty(when=condition(each.when)) for each in layout.selections]
    return {"name": layout.name, "title": layout.title, "operand": layout.operand, "of": condition(layout.of)} | without_empty(
        matrix=layout.matrix,
        unit=unit and formula_text(unit),
        axes=_formulas(layout.axes),
        apart=layout.apart,
        selections=selections,
        at=_formulas(layout.at),
        back=_formulas(layout.back),
        align=layout.align if layout.align != (0,) else (),
        source=layout.source,
    )


def _formulas(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: formula_text(text) for name, text in texts.items()}


def _products(rules: TensorProducts, granularities: Sequence[Granularity]) -> dict[str, Any]:
    return without_empty(
        types=[{"of": condition(row.of), "dtype": row.dtype, "atype": row.atype, "btype": row.btype} for row in rules.types],
        depths=[{"of": condition(row.of), "k": row.k} | without_empty(targets=row.targets) for row in rules.depths],
        shapes=[{"of": condition(row.of), "m": row.m, "n": _spans(row.n)} for row in rules.shapes],
        options=[
            {"of": condition(row.of), "field": row.field, "value": row.value}
            | without_empty(targets=row.targets, sparsity=_sparsity(granularities, row))
            for row in rules.options
        ],
        limits=[{"of": condition(row.of)} | without_empty(m=row.m, n=_spans(row.n), fields=row.fields) for row in rules.limits],
        scales=[
            {"of": condition(row.of), "stype": row.stype, "block": row.block} | without_empty(targets=row.targets) for row in rules.scales
        ],
    )


def _sparsity(granularities: Iterable[Granularity], option: ProductOption) -> dict[str, int]:
    """The chunk that a value of a field chooses, and the elements of it that are kept; empty where the field does not choose them."""
    chosen = (entry for entry in granularities for part in entry.of if option.value in part.get(option.field, ()))
    return next(({"chunk": entry.chunk, "kept": entry.kept} for entry in chosen), {})


def _spans(ranges: Iterable[Range]) -> list[tuple[int, int, int]]:
    return [(span.first, span.last, span.step) for span in ranges]
