"""Names: no two entries share one, no two families share a file, and those that programs contain are not words of a language."""

from __future__ import annotations

import keyword
from collections.abc import Collection, Iterator

from ptxmma.catalog.names.cplusplus import RESERVED as WORDS_OF_CPP
from ptxmma.generator.emit import header_names
from ptxmma.generator.emit.tensor_functions import NUMBER_WORDS, module
from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext
from ptxmma.model import Spec, formula

#: Words that JavaScript reserves and neither C++ nor Python does, and the type of all integers in C.
_WORDS = (
    WORDS_OF_CPP
    | {"arguments", "debugger", "eval", "extends", "function", "implements", "instanceof", "interface", "let", "null", "package"}
    | {"super", "typeof", "uint32_t", "var"}
)
_RESERVES_IT = "a language of the generated code reserves it; choose another name"
#: The parameters of functions that encode a descriptor, beside its fields.
_OF_DESCRIPTORS = ("database", "describes", "family", "kind", "self", "target")
#: The function of a layout that gives the element of a place; the functions of its axes have the names of the axes.
_ELEMENT = "element"


def problems(context: RuleContext) -> Iterator[Problem]:
    """Entries of one list that share a name, families that share a file, and axes and sizes with the name of a word of a language."""
    yield from _repeated(context)
    yield from _memories(context)
    yield from _files(context)
    yield from _words(context)


def _words(context: RuleContext) -> Iterator[Problem]:
    """Generated code contains the names of axes, sizes, fields and layouts: none is a word of C, C++, Python or JavaScript."""
    for what, name, place, taken in _named(context.spec):
        if name in taken:
            text = f"{what} cannot be called {name!r}: another function or parameter of the generated code has this name; choose another"
            yield Problem(context.at(*place), text)
        elif name in _WORDS or keyword.iskeyword(name):
            yield Problem(context.at(*place), f"{what} cannot be called {name!r}: {_RESERVES_IT}")


def _named(spec: Spec) -> Iterator[tuple[str, str, Place, Collection[str]]]:
    """The names that generated code contains: of what, the name, its place, and the names that its neighbours have."""
    for index, layout in enumerate(spec.register_layouts):
        yield from (("an axis", axis, ("register_layouts", index, "axes", axis), {_ELEMENT}) for axis in layout.axes)
    for index, entry in enumerate(spec.instructions):
        for qualifier, extents in entry.extents.items():
            names = dict.fromkeys([*formula.placeholders(extents.pattern), *(name for sizes in extents.values.values() for name in sizes)])
            yield from (("a size", name, ("instructions", index, "extents", qualifier), ()) for name in names)
    for index, space in enumerate(spec.spaces):
        yield "a space", space.name, ("spaces", index, "name"), ()
        functions = {"address", *(f"{name}_of" for name in space.address)}
        functions |= {f"{placed.name}_inverse" for placed in space.layouts}
        for number, placed in enumerate(space.layouts):
            here: Place = ("spaces", index, "layouts", number)
            yield "a layout", placed.name, (*here, "name"), functions
            parameters = {*space.coordinates, *NUMBER_WORDS}
            yield from (("an axis", axis, (*here, "axes", axis), parameters) for axis in placed.axes)
            for count, selection in enumerate(placed.selections):
                yield "a selection", selection.name, (*here, "selections", count, "name"), {*parameters, *placed.axes}
    for index, format in enumerate(spec.descriptors):
        yield "a descriptor", format.name, ("descriptors", index, "name"), ()
        for number, field in enumerate(format.fields):
            yield "a field", field.name, ("descriptors", index, "fields", number, "name"), _OF_DESCRIPTORS


def _repeated(context: RuleContext) -> Iterator[Problem]:
    spec, memory = context.spec, context.spec.shared_memory
    lists: dict[Place, list[str]] = {
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
        ("column_masks",): [entry.descriptor for entry in spec.column_masks],
        ("messages",): [entry.code for entry in spec.messages],
        ("throughput",): [f"{entry.chip} at {entry.clock} MHz" for entry in spec.throughput],
        **{("protocols", index, "steps"): [step.role for step in entry.steps] for index, entry in enumerate(spec.protocols)},
        **{("protocols", index, "same"): [same.qualifier for same in entry.same] for index, entry in enumerate(spec.protocols)},
        **{("targets", index, "ptx_in"): [floor.cuda for floor in entry.ptx_in] for index, entry in enumerate(spec.targets)},
    }
    for place, entries in lists.items():
        yield from context.twice(((name, (*place, index)) for index, name in enumerate(entries)), "{!r} is there twice")


def _memories(context: RuleContext) -> Iterator[Problem]:
    """Layouts of all tensor memories have names of their own, and one memory at most is for what no other names."""
    spaces = list(enumerate(context.spec.spaces))
    layouts = (
        (layout.name, ("spaces", number, "layouts", index)) for number, space in spaces for index, layout in enumerate(space.layouts)
    )
    yield from context.twice(layouts, "{!r} is there twice")
    anything = (((), ("spaces", number)) for number, space in spaces if space in context.spec.tensor_memories and not space.of)
    yield from context.twice(anything, "a second tensor memory without `of`, for the instructions that no other memory names")


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
