"""Dequantisation in C++: the steps of the spec as inline asm."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma.catalog.requirements import targets_of
from ptxmma.generator.emit.cuda.functions import Guard, Guards
from ptxmma.matrices.quantised import steps
from ptxmma.matrices.quantised.conversions import functions, held
from ptxmma.model import Dequantisation, ScaleSteps, Spec, Steps, Version

#: The C++ expression of each input.
_INPUTS = {
    "codes": "codes", "zero0": "zero[0]", "zero1": "zero[1]",
    "value": "values[r]", "scale": "scale[r % 2]", "offset": "offset[r % 2]",
}  # fmt: skip


class Body(NamedTuple):
    """The body of a function for the targets that meet a requirement.

    Attributes:
        guard: the requirement.
        text: a remark for the reader.
        lines: the asm text, a line for each string literal.
        outputs, inputs: its operands: ``"=r"(out[0])`` …
    """

    guard: Guard
    text: str
    lines: list[str]
    outputs: str
    inputs: str


class Function(NamedTuple):
    """A function, and its bodies: the first that the target takes is its body.

    Attributes:
        name: the name of the function.
        parameters: its parameters.
        order: the numbers of the elements that the codes of a register are, the lowest code first.
        largest_zero: the largest zero point; 0 where it takes none.
        bodies: the bodies.
    """

    name: str
    parameters: str
    order: tuple[int, ...]
    largest_zero: int
    bodies: list[Body]


def values(spec: Spec, guards: Guards) -> dict[str, Any]:
    """The values for the template of the header."""
    bits = {entry.name: entry.bits for entry in spec.types.elements}
    return {
        "conversions": [_conversion(spec, guards, name, entries, bits[entries[0].codes]) for name, entries in functions(spec).items()],
        "scales": [_scale(spec, guards, entry) for entry in spec.scale_steps],
    }


def _conversion(spec: Spec, guards: Guards, name: str, entries: Sequence[Dequantisation], bits: int) -> Function:
    first = entries[0]
    results = steps.results(first.steps)
    zero = "const uint32_t (&zero)[2], " if first.largest_zero else ""
    outputs = {result: f"out[{number}]" for number, result in enumerate(results)}
    bodies = [_body(spec, guards, entry, outputs, "; a NaN becomes a number" if entry.finite else "") for entry in reversed(entries)]
    return Function(name, f"uint32_t codes, {zero}uint32_t (&out)[{len(results)}]", held(first, bits), first.largest_zero, bodies)


def _scale(spec: Spec, guards: Guards, entry: ScaleSteps) -> Function:
    offset = ", const uint32_t (&offset)[2]" if "offset" in steps.inputs(entry.steps) else ""
    parameters = f"uint32_t (&values)[Registers], const uint32_t (&scale)[2]{offset}"
    return Function(f"scale_{entry.of}", parameters, (), 0, [_body(spec, guards, entry, {"out0": "values[r]"})])


def _body(spec: Spec, guards: Guards, entry: Steps, outputs: Mapping[str, str], remark: str = "") -> Body:
    accepted = targets_of(spec).first_versions((entry.targets,), Version(entry.ptx))
    inputs = [register for register in _INPUTS if register in steps.inputs(entry.steps)]
    places = {register: f"%{place}" for place, register in enumerate([*outputs, *inputs])}
    lines = [re.sub(r"\b[a-z]\w*\b(?!\.)", lambda match: places.get(match[0], match[0]), step) for step in entry.steps]
    if temporaries := steps.temporaries(entry.steps):
        declared = [f".reg .b{width} {', '.join(names)};" for width, names in temporaries.items()]
        lines = [f"{{ {' '.join(declared)}", *lines]
        lines[-1] += " }"
    return Body(
        guards.meeting(accepted),
        entry.text + remark,
        lines,
        ", ".join(f'"=r"({expression})' for expression in outputs.values()),
        ", ".join(f'"r"({_INPUTS[register]})' for register in inputs),
    )
