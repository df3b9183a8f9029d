"""The page of the protocols of asynchronous instructions."""

from __future__ import annotations

from typing import Any

from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.model import Protocol, Spec, Step


def page(spec: Spec) -> dict[str, Any]:
    """The values for the page's template."""
    return {"protocols": [_shown(spec, protocol) for protocol in spec.protocols]}


def label(family: str, spec: Spec) -> str:
    """The label of the protocol of a family; ``""`` without one."""
    return next((rest.label("protocol", entry.title) for entry in spec.protocols if family in entry.families), "")


def _shown(spec: Spec, protocol: Protocol) -> dict[str, Any]:
    known = {entry.name for entry in spec.instructions}
    numbers = {step.name: str(number) for number, step in enumerate(protocol.steps, 1)}

    def instruction(step: Step) -> str:
        label = rest.label("instruction", step.instruction)
        return rest.link(step.instruction, label) if step.instruction in known else rest.code(step.instruction)

    return {
        "title": rest.text(protocol.title),
        "label": rest.label("protocol", protocol.title),
        "steps": struct_tables.table(
            protocol.steps,
            titles={"name": "Step", "text": "What happens"},
            cells={"name": lambda step: f"{numbers[step.name]}\\. {rest.text(step.name)}", "instruction": instruction},
            without=("role",),
        ),
        "definitions": struct_tables.table(protocol.definitions, titles={"name": "Term", "text": "Meaning"}, code=("formula",)),
        "orderings": struct_tables.table(
            protocol.orderings,
            titles={"needs": "Between them", "by": "Executed by", "text": "Why"},
            cells={"needs": lambda order: rest.code(order.needs) if order.needs else "nothing"},
        ),
        "proxies": struct_tables.table(protocol.proxies),
        "issuers": struct_tables.table(
            protocol.issuers,
            titles={"alone": "In one thread block", "pair": "In a pair", "text": "Why"},
            cells={"instructions": lambda issuer: rest.codes(issuer.instructions)},
        ),
        "same": [f"{rest.code('.' + same.qualifier)} ({rest.source(same.source)})" for same in protocol.same],
        "source": rest.source(protocol.source),
    }
