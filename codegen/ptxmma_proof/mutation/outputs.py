"""What is generated from a mutant that nothing contradicts, against what is generated from the spec."""

from __future__ import annotations

import msgspec
import numpy as np
from jinja2 import TemplateError

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.throughput import peaks
from ptxmma.catalog.variants import ordered_tokens
from ptxmma.generator.emit import emit
from ptxmma.matrices.interop import from_cute
from ptxmma.model import InstructionSet, SharedMemory, formula, matches
from ptxmma_proof.mutation import printed

#: What is generated for machines: the reference prints what the database holds.
_OUTPUTS = ("database", "c_headers", "cuda", "shared_layout", "python_layouts")

#: The text of every generated file, by its path and section.
Texts = dict[tuple[str, str], str]


def texts(catalog: Catalog) -> Texts:
    """What is generated for machines from a catalog."""
    return {(output.path, output.section): output.text for output in emit(catalog, _OUTPUTS)}


def different(before: Texts, catalog: Catalog) -> tuple[str, ...]:
    """The paths of the generated files that a catalog changes, makes or leaves out; what cannot be generated has one of its own."""
    try:
        now = texts(catalog)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TemplateError, TypeError, ValueError) as error:
        return (f"not generated: {type(error).__name__}: {error}"[:200],)
    return tuple(sorted({path for path, section in before.keys() | now.keys() if before.get((path, section)) != now.get((path, section))}))


def answers(catalog: Catalog) -> list[object]:
    """All that is worked out from conditions, rules and formulas, however these are worded."""
    found: list[object] = [msgspec.structs.replace(layout, entry=0) for layout in catalog.database.layouts]
    for instruction in catalog.all():
        operands = [(form.syntax, [_without_source(operand) for operand in form.operands]) for form in instruction.forms]
        arithmetic = [_without_source(entry) for entry in instruction.semantics()]
        metadata = (instruction.metadata.legal, instruction.metadata.selectors) if instruction.sparse else ()
        versions = requirements.floor(instruction.variant), instruction.accepted_by(), instruction.releases()
        found.append((instruction.canonical, instruction.identifier, operands, arithmetic, metadata, versions, peaks(instruction)))
    for entry in catalog.database.spec.instructions:
        found.append((entry.opcode, entry.repeatable, _groups(entry), _defaults(catalog, entry)))
    if catalog.database.spec.shared_memory is not None:
        found.append(_permutations(catalog.database.spec.shared_memory))
    variants = [found.variant for found in catalog.all()]
    for held in catalog.database.spec.block_formats:
        found.append((_without_source(held), [variant.canonical for variant in variants if matches(held.of, variant.facts)]))
    admitted = printed.admitted_layouts(catalog)
    found.append({place: sorted(plan.name for plan in plans) for place, plans in admitted.items()})
    return found


def _permutations(memory: SharedMemory) -> list[object]:
    """Where each swizzle puts a unit of 16 bytes, by the formulas and in CuTe's words, and the base offset of each start."""
    address, base_offset = np.meshgrid(np.arange(0, 1 << 12, 16), np.arange(8))
    swizzle, base = formula.parse(memory.swizzle_formula), formula.parse(memory.base_offset)
    found: list[object] = []
    for mode in memory.swizzles:
        places = formula.evaluate(swizzle, {"address": address, "base_offset": base_offset, "span": mode.bytes})
        offsets = formula.evaluate(base, {"start": address[0], "pattern": mode.pattern})
        cute = from_cute(f"{mode.cute} o 0 o 1:1").swizzle
        found.append(
            (np.asarray(places).tolist(), np.asarray(offsets).tolist(), np.asarray(cute(address[0]) if cute else address[0]).tolist())
        )
    return found


def _defaults(catalog: Catalog, entry: InstructionSet) -> set[tuple[str, str, str]]:
    """The values that may be left out, each with the variants that are meant without it."""
    return {
        (name, default.value, found.canonical)
        for found in catalog.of(entry.name)
        for name, part in entry.qualifiers.items()
        for default in part.default
        if found.variant.facts.get(name) == default.value and matches(default.when, found.variant.facts)
    }


def _without_source(entry: msgspec.Struct) -> dict[str, object]:
    """The fields of an entry but those that only say where it stands."""
    return {
        name: value for name, value in msgspec.structs.asdict(entry).items() if name not in ("when", "of", "source", "layout", "sparsity")
    }


def _groups(entry: InstructionSet) -> frozenset[frozenset[str]]:
    """The tokens whose order counts, together where it counts among them."""
    groups: dict[int, set[str]] = {}
    for token, group in ordered_tokens(entry).items():
        groups.setdefault(group, set()).add(token)
    return frozenset(map(frozenset, groups.values()))
