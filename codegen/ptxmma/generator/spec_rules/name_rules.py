"""Names: no two entries share one, and no two families share a file."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.rule_context import RuleContext

#: Files and folders beside which the headers and modules of the families are.
RESERVED = frozenset(
    {"block_scaling", "config", "cuda", "isa_versions", "pack", "ptxmma", "register_types", "shared_layout", "shared_memory", "sparse"}
    | {"status", "targets", "types", "variants"}
)


def problems(context: RuleContext) -> Iterator[Problem]:
    """Entries of one list that share a name, and families that share a file."""
    yield from _repeated(context)
    yield from _files(context)


def _repeated(context: RuleContext) -> Iterator[Problem]:
    spec, memory = context.spec, context.spec.shared_memory
    for place, entries in {
        ("types", "elements"): context.elements,
        ("types", "registers"): context.registers,
        ("targets",): context.targets,
        ("isa_versions",): context.versions,
        ("instructions",): [entry.name for entry in spec.instructions],
        ("errata",): [entry.id for entry in spec.errata],
        ("block_formats",): [entry.name for entry in spec.block_formats],
        ("shared_memory", "swizzles"): [entry.name for entry in memory.swizzles] if memory else [],
        ("shared_memory", "descriptor"): [entry.name for entry in memory.descriptor] if memory else [],
    }.items():
        seen: dict[str, int] = {}
        for index, name in enumerate(entries):
            if name in seen:
                yield clash(f"{name!r} is there twice", context.at(*place, index), context.at(*place, seen[name]))
            seen.setdefault(name, index)


def _files(context: RuleContext) -> Iterator[Problem]:
    files: dict[str, int] = {}
    instructions = context.spec.instructions
    for index, entry in enumerate(instructions):
        here = context.at("instructions", index, "family")
        file = entry.family.replace(".", "_")
        if file in RESERVED or keyword.iskeyword(file):
            yield Problem(here, f"a family cannot be called {entry.family!r}: other files have this name")
        others = [instructions[first] for name in (file, f"{file}_pack") if (first := files.setdefault(name, index)) != index]
        for family in dict.fromkeys(other.family for other in others if other.family != entry.family):
            other = next(number for number, each in enumerate(instructions) if each.family == family)
            message = f"the families {family!r} and {entry.family!r} would share their files"
            yield clash(message, here, context.at("instructions", other, "family"))
