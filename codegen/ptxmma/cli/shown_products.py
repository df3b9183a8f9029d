"""``ptxmma show`` about products in tensor memory: what the instruction descriptor chooses, where the operands lie, what to ask next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxmma.catalog.instructions import Instruction

#: The plain data that :func:`ptxmma.catalog.summaries.description.describe` returns.
Answer = dict[str, Any]


def choice(answer: Answer) -> list[str]:
    """The product and its instruction descriptor, or of an opcode alone the products that are legal."""
    if not answer["product"]:
        return list(answer["legal_products"])
    said = ", ".join(f"{name} = {value}" for name, value in answer["product"].items())
    return [said, f"instruction descriptor {answer['instruction_descriptor']['bits']}, with 0 for what the product leaves open"]


def places(answer: Answer) -> list[str]:
    """The layouts in tensor memory, each with its formulas in both directions."""
    lines = []
    for layout in answer["tensor_layouts"]:
        lines.append(f"{', '.join(layout['operands'])}: {layout['name']}, {layout['title']}")
        for way in (layout["at"], layout["back"]):
            lines += [f"  {name} = {text}" for name, text in way.items()]
        lines += [f"  {name}: {' or '.join(map(str, values))}" for name, values in layout["selections"].items()]
    return lines


def questions(instruction: Instruction, answer: Answer) -> list[str]:
    """Commands that answer more about a product, or about one that an opcode has."""
    from ptxmma.catalog.products import resolution

    if instruction.operation != resolution.OPERATION:
        return []
    if not answer["product"]:
        first = next(resolution.every(instruction.database.spec, instruction.variant), None)
        return [f"ptxmma show {_subject(instruction, dict(first.chosen))}"] if first else []
    subject = _subject(instruction, answer["product"])
    descriptor = answer["instruction_descriptor"]
    result = next(operand["name"] for operand in answer["operands"] if operand["kind"] == "tensor-accumulator")
    return [
        f"ptxmma layout {subject} --operand {result} --row 0 --col 0",
        f"ptxmma trace {subject} --row 0 --col 0",
        f"ptxmma descriptor instruction {descriptor['kind']} {descriptor['bits']}",
    ]


def _subject(instruction: Instruction, product: Mapping[str, str | int]) -> str:
    return " ".join([instruction.canonical, *(f"--{name} {value}" for name, value in product.items())])
