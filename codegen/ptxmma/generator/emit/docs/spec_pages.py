"""The pages of facts that the spec has as tables: types and registers, targets and versions, protocols, published peaks, messages."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ptxmma.catalog.names.links import EXPLORER
from ptxmma.catalog.summaries.listing import few
from ptxmma.generator.emit.docs import family, rest, struct_tables
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.struct_fields import fields
from ptxmma.matrices import pictures
from ptxmma.model import Container, Counterpart, ElementType, Gpu, Issuer, Message, Protocol, Race, Spec, Step, Target, Transition, Version

# --- types and registers ----------------------------------------------------------------------------------------------------

#: The names of an element type in other languages and in the driver.
_ELSEWHERE = ("numpy", "tma", "c_type", "c_header")


def types(spec: Spec, gallery: Gallery) -> dict[str, Any]:
    """The values for the page's template."""
    by_name = {element.name: element for element in spec.types.elements}
    return {
        "elements": struct_tables.table(
            spec.types.elements, titles={"name": "Type", "title": "Meaning", "form": "Kind"}, code=("name",), without=_ELSEWHERE
        ),
        "elsewhere": struct_tables.table(
            spec.types.elements,
            titles={"name": "Type"},
            code=("name", *_ELSEWHERE),
            without={field.name for field in fields(ElementType)} - {"name", *_ELSEWHERE},
        ),
        "containers": struct_tables.table(
            spec.types.containers,
            titles={"elements": "Types", "bits": "Container", "shift": "Lowest bit"},
            cells={"bits": lambda element: f"{element.bits} bits"},
        ),
        "registers": struct_tables.table(
            spec.types.registers, titles={"name": "Register type", "title": "Meaning"}, code=("name", "c_type", "constraint")
        ),
        "carriers": struct_tables.table(
            spec.types.carriers, titles={"elements": "With elements", "registers": "Register types", "spaces": "Variables in"}
        ),
        "explorer": f"../{EXPLORER}",
        "picture_name": gallery.other("types", lambda: _types_picture(spec.types.elements)) if spec.types.elements else "",
        "container_picture": gallery.other("containers", lambda: _containers_picture(spec.types.containers, by_name))
        if spec.types.containers
        else "",
    }


def _type_fields(element: ElementType, low: int = 0) -> list[pictures.Field]:
    """The fields of an element whose lowest bit is ``low``."""
    if element.form != "float":
        return [pictures.Field(low, element.bits, f"{element.bits} bits" if element.bits > 1 else "1", 0)]
    above = [("sign", int(element.sign), 1), ("exponent", element.exponent, 5), ("mantissa", element.mantissa, 9)]
    used = sum(width for _, width, _ in above)
    # A float without a sign leaves the place of its sign empty; any other ends above bits that are ignored.
    top = low + (element.bits if element.sign else used)
    fields = [pictures.Field(low + used, element.bits - used, "0", pictures.BLANK)] if top < low + element.bits else []
    for name, width, colour in above:
        if width:
            top -= width
            fields.append(pictures.Field(top, width, name, colour))
    return [*fields, pictures.Field(low, top - low, "ignored", pictures.BLANK)] if top > low else fields


def _types_picture(elements: Sequence[ElementType]) -> str:
    words = [(element.name, element.bits, _type_fields(element)) for element in elements]
    return pictures.bit_fields("Element types", ["The highest bit is on the left."], words, per_line=32, cell=28)


def _containers_picture(containers: Sequence[Container], elements: dict[str, ElementType]) -> str:
    words = []
    for container in containers:
        for name in container.elements:
            element = elements[name]
            fields = _type_fields(element, container.shift)
            spare = [pictures.Field(0, container.shift, "0", pictures.BLANK)] if container.shift else []
            above = container.shift + element.bits
            spare += [pictures.Field(above, container.bits - above, "0", pictures.BLANK)] if above < container.bits else []
            words.append((name, container.bits, fields + spare))
    return pictures.bit_fields("Elements in wider containers", [], words, per_line=32, cell=36)


# --- targets and PTX ISA versions -------------------------------------------------------------------------------------------


#: Products that a row names.
_FEW = 4


def _by_number(spec: Spec) -> dict[int, list[Target]]:
    """The targets of each chip: the plain one and those with a suffix."""
    numbers: dict[int, list[Target]] = {}
    for target in spec.targets:
        numbers.setdefault(target.number, []).append(target)
    return numbers


def target_table(spec: Spec, accepted: Mapping[str, Mapping[str, Version]]) -> str:
    """The first PTX ISA version of each column on each chip that takes anything.

    ``accepted`` has the versions by target for each heading.
    """
    rows = []
    for targets in _by_number(spec).values():
        cells = [_first_version(targets, versions) for versions in accepted.values()]
        if any(cells):
            gpus = [gpu for gpu in spec.gpus if gpu.target in [target.name for target in targets]]
            shown = rest.link(targets[0].name, rest.label("target", targets[0].name))
            rows.append([shown, _products(gpus), *(cell or rest.NOTHING for cell in cells)])
    return rest.table(["Target", "Chips", *accepted], rows, kind="targets")


def _family_table(spec: Spec, accepted: Mapping[str, Mapping[str, Version]]) -> str:
    """The first PTX ISA version of each family on each chip: there are more families than chips, so these are the columns."""
    chips = list(_by_number(spec).values())
    header = [rest.link(targets[0].name, rest.label("target", targets[0].name)) for targets in chips]
    rows = [
        [rest.link(name, rest.label("family", name)), *(_first_version(targets, versions) or rest.NOTHING for targets in chips)]
        for name, versions in accepted.items()
    ]
    return rest.table(["Family", *header], rows, kind="families")


def _first_version(targets: list[Target], versions: Mapping[str, Version]) -> str:
    """The first version on a plain target; else those with a suffix: ``8.7 a, 8.8 f``."""
    plain = next((versions[target.name] for target in targets if not target.suffix and target.name in versions), None)
    if plain is not None:
        return str(plain)
    special = sorted((versions[target.name], target.suffix) for target in targets if target.name in versions)
    return ", ".join(f"{version}{rest.SPACE}{suffix}" for version, suffix in special)


def _products(gpus: list[Gpu]) -> str:
    """``Hopper: H100, H200, GH200``."""
    names = [name for gpu in gpus for name in gpu.names]
    return rest.text(f"{gpus[0].architecture}: {few(names, _FEW)}") if gpus else ""


def targets(spec: Spec, forms: Mapping[str, Sequence[family.Row]]) -> dict[str, Any]:
    """The values for the page's template; ``forms`` are the :func:`family.rows` of each instruction."""
    accepted: dict[str, dict[str, Version]] = {entry.family: {} for entry in spec.instructions}
    for entry in spec.instructions:
        first = accepted[entry.family]
        for row in forms[entry.name]:
            for target, version in row.accepted.items():
                first[target] = min(first.get(target, version), version)
    return {
        "older": spec.older,
        "chips": [_chip(spec, targets) for targets in _by_number(spec).values()],
        "versions": struct_tables.table(
            spec.isa_versions,
            titles={"version": "PTX ISA", "new": "New targets"},
            cells={"new": lambda version: rest.codes(target.name for target in spec.targets if target.ptx == version.version)},
        ),
        "matrix": _family_table(spec, accepted),
    }


def _chip(spec: Spec, targets: Sequence[Target]) -> dict[str, Any]:
    """A chip: its targets, and the products with it."""
    cuda = {version.version: version.cuda for version in spec.isa_versions}
    gpus = [gpu for gpu in spec.gpus if gpu.target in [target.name for target in targets]]
    names = [name for gpu in gpus for name in gpu.names]
    plain = targets[0].name
    return {
        "title": ", ".join(dict.fromkeys(gpu.architecture for gpu in gpus)) + f": {plain}" if gpus else plain,
        "labels": [rest.label("target", target.name) for target in targets] + [rest.label("gpu", name) for name in names],
        "names": rest.text(", ".join(names)),
        "compile": rest.codes(dict.fromkeys(gpu.target for gpu in gpus)),
        "capacity": next((entry for entry in spec.capacities if plain in entry.targets), None),
        "targets": struct_tables.table(
            targets,
            titles={
                "name": "Target",
                "ptx": "First PTX ISA",
                "until": "Last CUDA",
                "releases": "Releases that differ",
                "cuda": "First CUDA",
            },
            cells={"cuda": lambda target: rest.text(cuda.get(target.ptx, ""))},
            code=("name",),
        ),
    }


# --- protocols of asynchronous instructions ---------------------------------------------------------------------------------


def protocols(spec: Spec) -> dict[str, Any]:
    """The values for the page's template."""
    return {"protocols": [_protocol(spec, protocol) for protocol in spec.protocols], "meetings": spec.meetings}


def protocol_label(family: str, spec: Spec) -> str:
    """The label of the protocol of a family; ``""`` without one."""
    return next((rest.label("protocol", entry.title) for entry in spec.protocols if family in entry.families), "")


def _protocol(spec: Spec, protocol: Protocol) -> dict[str, Any]:
    known = {entry.name for entry in spec.instructions}
    numbers = {step.name: str(number) for number, step in enumerate(protocol.steps, 1)}

    def instruction(step: Step) -> str:
        protocol_label = rest.label("instruction", step.instruction)
        return rest.link(step.instruction, protocol_label) if step.instruction in known else rest.code(step.instruction)

    return {
        "protocol": protocol,
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
        "races": struct_tables.table(
            protocol.races,
            titles={"earlier": "Access", "later": "Access of another thread", "rule": "With nothing between them"},
            cells={
                "earlier": lambda each: rest.codes(each.earlier),
                "later": _named,
                "rule": lambda each: f"{rest.text(each.text)}: {rest.link(each.rule, f'rule-{each.rule}')}",
            },
            without=("modifiers", "warps", "resets", "text", "mend"),
        ),
        "issuers": struct_tables.table(
            protocol.issuers,
            titles={"alone": "In one thread block", "pair": "In a pair", "text": "Why"},
            cells={"instructions": _named},
            without=("modifiers", "once", "both"),
        ),
        "pairings": [
            {
                "pairing": pairing,
                "needs": struct_tables.table(
                    pairing.needs,
                    titles={"on": "Instruction", "needs": "Needs one of", "text": "Otherwise"},
                    cells={"on": _named, "needs": lambda each: rest.codes(each.needs)},
                    without=("modifiers", "unless", "each", "rule"),
                ),
                "counts": struct_tables.table(
                    pairing.counts,
                    titles={"expects": "Says how many bytes come", "brings": "Brings them", "text": "Otherwise"},
                    cells={
                        "expects": lambda each: rest.codes(each.expects),
                        "brings": lambda each: rest.codes((*each.brings, *each.stores)),
                    },
                    without=("stores", "rule"),
                ),
                "phases": struct_tables.table(
                    pairing.phases,
                    titles={"fault": "Fault", "text": "What is wrong"},
                    cells={"fault": lambda each: rest.link(each.rule, f"rule-{each.rule}")},
                    without=("rule",),
                ),
            }
            for pairing in protocol.pairings
        ],
        "lifecycles": [
            {
                "life": life,
                "transitions": struct_tables.table(
                    life.transitions,
                    titles={"to": "Then", "text": "Why"},
                    cells={
                        "states": lambda each: rest.codes(each.states),
                        "on": _named,
                        "to": lambda each: rest.code(each.to) if each.to else f"wrong: {rest.link(each.rule, f'rule-{each.rule}')}",
                    },
                    without=(
                        *("modifiers", "without", "adds", "counted", "keeps"),
                        *("full", "several", "always", "by_others", "after", "of_all", "first", "rule"),
                    ),
                ),
            }
            for life in protocol.lifecycles
        ],
    }


def _named(each: Transition | Counterpart | Issuer | Race) -> str:
    """The instructions that a part of a protocol names, with the modifiers that they have."""
    names = each.instructions if isinstance(each, Issuer) else each.later if isinstance(each, Race) else each.on
    lacks = each.without if isinstance(each, Transition) else ()
    parts = [(" with", name) for name in each.modifiers] + [(" without", name) for name in lacks]
    return rest.codes(names) + "".join(f"{word} {rest.code(f'.{name}')}" for word, name in parts)


# --- published peaks --------------------------------------------------------------------------------------------------------


def throughput(spec: Spec) -> dict[str, Any]:
    """The values for the page's template."""
    return {
        "chips": struct_tables.table(
            spec.throughput, titles={"clock": "Clock"}, cells={"clock": lambda chip: f"{chip.clock} MHz"}, code=("target",)
        ),
        "peaks": [
            {
                "chip": chip,
                "rates": struct_tables.table(
                    chip.rates,
                    titles={"dense": "Dense", "sparse": "Sparse A", "published": "Of the whole chip"},
                    cells={"published": lambda rate: " and ".join(map(rest.text, rate.published))},
                ),
            }
            for chip in spec.throughput
        ],
    }


# --- messages of assemblers -------------------------------------------------------------------------------------------------


def messages(spec: Spec) -> dict[str, Any]:
    """The values for the sections of the guide to messages: the messages of each topic."""
    topics: dict[str, list[Message]] = {}
    for message in spec.messages:
        topics.setdefault(message.topic, []).append(message)
    return {"topics": {topic: [_message(each) for each in members] for topic, members in topics.items()}}


def _message(message: Message) -> dict[str, Any]:
    name = message.code.lower()
    return {
        "code": message.code,
        "said": textwrap.fill(message.text, 140, initial_indent="    ", subsequent_indent="    "),
        "cause": rest.text(message.cause),
        "remedy": rest.text(message.remedy),
        "rules": " and ".join(rest.link(rule, f"rule-{rule}") for rule in message.rules),
        "program": f"{'error_' if message.error else ''}{name}.cu" if message.example else "",
    }
