"""Names: no two entries share one, no two families share a file, and those that programs contain are not words of a language."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from ptxmma.catalog.names.cplusplus import RESERVED as WORDS_OF_CPP
from ptxmma.generator.emit import header_names
from ptxmma.generator.emit.tensor_functions import module
from ptxmma.generator.problems import Position, Problem, clash
from ptxmma.generator.spec_rules.rule_context import RuleContext
from ptxmma.model import formula

#: Words that JavaScript reserves and neither C++ nor Python does, and the type of all integers in C.
_WORDS = (
    WORDS_OF_CPP
    | {"arguments", "debugger", "eval", "extends", "function", "implements", "instanceof", "interface", "let", "null", "package"}
    | {"super", "typeof", "uint32_t", "var"}
)
_RESERVES_IT = "a language of the generated code reserves it; choose another name"
#: The function of a layout that gives the element of a place; the functions of its axes have the names of the axes.
_ELEMENT = "element"


def problems(context: RuleContext) -> Iterator[Problem]:
    """Entries of one list that share a name, families that share a file, and axes and sizes with the name of a word of a language."""
    yield from _repeated(context)
    yield from _memories(context)
    yield from _files(context)
    yield from _words(context)


def _words(context: RuleContext) -> Iterator[Problem]:
    """The names of axes and of sizes are names of parameters and members in C, C++, Python and JavaScript."""
    for index, layout in enumerate(context.spec.register_layouts):
        for axis in layout.axes:
            here = context.at("register_layouts", index, "axes", axis)
            if axis == _ELEMENT:
                yield Problem(here, f"an axis cannot be called {axis!r}: another function of the layout has this name; choose another")
            elif axis in _WORDS or keyword.iskeyword(axis):
                yield Problem(here, f"an axis cannot be called {axis!r}: {_RESERVES_IT}")
    for index, entry in enumerate(context.spec.instructions):
        for qualifier, extents in entry.extents.items():
            names = [*formula.placeholders(extents.pattern), *(name for sizes in extents.values.values() for name in sizes)]
            for name in dict.fromkeys(names):
                if name in _WORDS or keyword.iskeyword(name):
                    here = context.at("instructions", index, "extents", qualifier)
                    yield Problem(
                        here, f"a size cannot be called {name!r}: a language of the generated code reserves it; choose another name"
                    )


def _repeated(context: RuleContext) -> Iterator[Problem]:
    spec, memory = context.spec, context.spec.shared_memory
    for place, entries in {
        ("types", "elements"): context.elements,
        ("types", "registers"): context.registers,
        ("targets",): context.targets,
        ("isa_versions",): context.versions,
        ("instructions",): [entry.name for entry in spec.instructions],
        ("errata",): [entry.id for entry in spec.errata],
        ("descriptors",): [entry.name for entry in spec.descriptors],
        ("block_formats",): [entry.name for entry in spec.block_formats],
        ("spaces",): [entry.name for entry in spec.spaces],
        ("shared_memory", "swizzles"): [entry.name for entry in memory.swizzles] if memory else [],
    }.items():
        seen: dict[str, int] = {}
        for index, name in enumerate(entries):
            if name in seen:
                yield clash(f"{name!r} is there twice", context.at(*place, index), context.at(*place, seen[name]))
            seen.setdefault(name, index)


def _memories(context: RuleContext) -> Iterator[Problem]:
    """Layouts of all tensor memories have names of their own, and one memory at most is for what no other names."""
    names: dict[str, Position] = {}
    anything: Position | None = None
    for number, memory in enumerate(context.spec.spaces):
        here = context.at("spaces", number)
        if memory in context.spec.tensor_memories and not memory.of:
            if anything is not None:
                yield clash("a second tensor memory without `of`, for the instructions that no other memory names", here, anything)
            anything = here
        for index, layout in enumerate(memory.layouts):
            here = context.at("spaces", number, "layouts", index)
            if layout.name in names:
                yield clash(f"{layout.name!r} is there twice", here, names[layout.name])
            names.setdefault(layout.name, here)


def _files(context: RuleContext) -> Iterator[Problem]:
    files: dict[str, int] = {}
    instructions = context.spec.instructions
    headers = header_names.files(context.spec)
    reserved = headers | {module(memory) for memory in context.spec.tensor_memories}
    for index, memory in enumerate(context.spec.spaces):
        if memory in context.spec.tensor_memories and module(memory) in headers:
            yield Problem(
                context.at("spaces", index, "name"),
                f"a tensor memory cannot be called {memory.name!r}: other files have this name",
            )
    for index, entry in enumerate(instructions):
        here = context.at("instructions", index, "family")
        file = entry.family.replace(".", "_")
        if file in reserved or keyword.iskeyword(file):
            yield Problem(here, f"a family cannot be called {entry.family!r}: other files have this name")
        others = [instructions[first] for name in (file, f"{file}_pack") if (first := files.setdefault(name, index)) != index]
        for family in dict.fromkeys(other.family for other in others if other.family != entry.family):
            other = next(number for number, each in enumerate(instructions) if each.family == family)
            message = f"the families {family!r} and {entry.family!r} would share their files"
            yield clash(message, here, context.at("instructions", other, "family"))
