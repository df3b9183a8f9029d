"""CUDA headers: a wrapper for each variant and operand form, and a typed front over them.

A family is one header, or, where that would be slow to include, a folder with one for each pair of multiplicand types.
"""

from __future__ import annotations

import posixpath
import textwrap
from collections.abc import Container, Iterable, Iterator, Sequence

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.cplusplus import NO_HINT, ORDERING, header, hint_parameter, identifier
from ptxmma.catalog.variants import recased
from ptxmma.generator.emit import Output, c_text, shared_layout
from ptxmma.generator.emit.cuda import dequantisation, fragment_moves, layout_structs, tensor_maps
from ptxmma.generator.emit.cuda.fronts import Front, Fronts, depth_follows
from ptxmma.generator.emit.cuda.functions import Function, Functions, Guard, Guards
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import ElementType, InstructionSet, RegisterType

_FOLDER = "generated/include/ptxmma"
_SOURCES = ("spec/instructions", "spec/types.yaml", "spec/targets.yaml", "spec/isa_versions.yaml")
_CONFIG = "cuda/config.cuh"
_TYPES = "cuda/element_types.cuh"
_TILES = "cuda/shared_tile.cuh"
_HINTS = "cuda/hints.cuh"
_LISTS = "cuda/register_lists.cuh"

#: The parts that kernels are made of, each with the headers on which it is built.
_PARTS = {
    "cuda/copy_pipeline.cuh": (_TILES, "cp_async.cuh"),
    "cuda/stage_ring.cuh": ("mbarrier.cuh",),
    "cuda/thread_groups.cuh": ("cluster.cuh", "elect.cuh"),
    "cuda/tile_transfers.cuh": ("cp_async_bulk_tensor/cp_async_bulk_tensor.cuh",),
}


# --- files ------------------------------------------------------------------------------------------------------------------


def emit(catalog: Catalog) -> Iterator[Output]:
    """``ptxmma/**/*.cuh``."""
    families: dict[str, list[Instruction]] = {}
    ordering = []
    for instruction in catalog.all():
        if header(instruction) == ORDERING:
            ordering.append(instruction)
        else:
            families.setdefault(instruction.family, []).append(instruction)
    headers = _Headers(catalog)
    outputs = [*headers.ordering(ordering), *headers.tiles(), *headers.hints()]
    for family, members in families.items():
        outputs += headers.family(family, members)
    outputs += headers.moves()
    outputs += headers.parts({output.path.removeprefix(f"{_FOLDER}/") for output in outputs})
    outputs += headers.dequantisation()
    yield from outputs
    yield from headers.lists()
    yield headers.config()
    yield from headers.types()
    yield headers.storage()  # not in ptxmma.cuh, nor is the next: they bring in headers of the toolkit
    yield from headers.tensor_maps()
    yield headers.output("ptxmma.cuh", "all.cuh", includes=sorted(output.path.removeprefix(f"{_FOLDER}/") for output in outputs))


class _Headers:
    """Makes the headers of a catalog; the shared one last, when it is known what the others need of it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._guards = Guards(catalog.database.spec)
        self._functions = Functions(catalog.database.spec)
        self._makes = Fronts(catalog.database.spec, self._functions)
        self._fronts: list[Front] = []
        self._lists: set[int] = set()

    def ordering(self, members: Sequence[Instruction]) -> Iterator[Output]:
        """The instructions that order the instructions of large families, or of several."""
        if members:
            yield self._header(ORDERING, members, [_CONFIG])

    def types(self) -> Iterator[Output]:
        """The tags of element types as values, which tiles and products have."""
        spec = self._catalog.database.spec
        if spec.shared_memory is not None or spec.tensor_products is not None:
            yield self.output(
                _TYPES, "element_types.cuh", includes=[_CONFIG, "types.h"], elements=spec.types.elements, c=c_text, tag=identifier
            )

    def tiles(self) -> Iterator[Output]:
        """Matrices in shared memory."""
        if self._catalog.database.spec.shared_memory is not None:
            yield self.output(_TILES, "shared_tile.cuh", **shared_layout.tiles(self._catalog), c=c_text, tag=identifier)

    def tensor_maps(self) -> Iterator[Output]:
        """Tensors as the driver describes them to TMA."""
        if self._catalog.database.spec.tensor_maps is not None and self._catalog.database.spec.shared_memory is not None:
            yield self.output("cuda/tensor_map.cuh", "tensor_map.cuh", **tensor_maps.values(self._catalog))

    def hints(self) -> Iterator[Output]:
        """The tags of hints."""
        tags: dict[str, dict[str, str]] = {}
        guards: dict[str, Guard] = {}
        for hint in (hint for entry in self._catalog.database.spec.instructions for hint in entry.hints):
            tags.setdefault(hint_parameter(hint), {}).update((recased(value), value) for value in hint.values)
            if needed := [rule for rule in hint.requires if not rule.when]:
                guards[hint_parameter(hint)] = self._guards.of_rules(needed)
        if tags:
            yield self.output(_HINTS, "hints.cuh", includes=[_CONFIG], tags=tags, guards=guards, without=NO_HINT)

    def lists(self) -> Iterator[Output]:
        """The macros for long lists of registers."""
        if self._lists:
            yield self.output(_LISTS, "register_lists.cuh", counts=sorted(self._lists))

    def storage(self) -> Output:
        """The C++ types of elements."""
        types: dict[str, list[ElementType]] = {}
        for element in self._catalog.database.spec.types.elements:
            if element.c_type:
                types.setdefault(element.c_header, []).append(element)
        return self.output("cuda/storage.cuh", "storage.cuh", types=types, tag=identifier)

    def moves(self) -> Iterator[Output]:
        """Fragments to and from shared memory, and from one product to the next."""
        values = fragment_moves.values(self._catalog)
        if values is not None and self._catalog.database.spec.shared_memory is not None:
            yield self.output("cuda/fragment_moves.cuh", "fragment_moves.cuh", **values)

    def parts(self, present: Container[str]) -> Iterator[Output]:
        """The parts of kernels whose wrappers are present; of transfers, for tensors with the two dimensions of a tile and more."""
        ranks = sorted({rank for instruction in self._catalog.all() if (rank := instruction.extents.get("dim", 0)) >= 2})
        storage: dict[str, list[ElementType]] = {}
        for element in self._catalog.database.spec.types.elements:
            if element.c_type and element.form in ("float", "signed"):
                storage.setdefault(element.c_type, []).append(element)
        for path, includes in _PARTS.items():
            if all(include in present for include in includes):
                yield self.output(path, posixpath.basename(path), includes=includes, ranks=ranks, storage=storage, c=c_text)

    def dequantisation(self) -> Iterator[Output]:
        """Narrow codes to pairs of numbers."""
        if self._catalog.database.spec.dequantisations:
            values = dequantisation.values(self._catalog.database.spec, self._guards)
            yield self.output("cuda/dequantise.cuh", "dequantise.cuh", includes=[_CONFIG], **values)

    def family(self, family: str, members: Sequence[Instruction]) -> Iterator[Output]:
        """One header, or one for each pair of types beside one for their layouts."""
        stem = c_text.identifier(family)
        layouts = layout_structs.of(self._catalog, family)
        shared = [_CONFIG, *([f"{stem}.h"] if layouts else []), *self._ordered_by(family)]
        described = any(operand.kind == "descriptor" for instruction in members for operand in instruction.operands)
        if described and self._catalog.database.spec.shared_memory is not None:
            shared.append(_TILES)
        if any(instruction.variant.instruction.hints for instruction in members):
            shared.append(_HINTS)
        parts: dict[str, list[Instruction]] = {}
        for instruction in members:
            parts.setdefault(header(instruction), []).append(instruction)
        implied = depth_follows(members)
        if f"{stem}.cuh" in parts:
            yield self._header(f"{stem}.cuh", members, shared, layouts=layouts, implied=implied)
            return
        common = f"{stem}/layouts.cuh"
        yield self._header(common, [], shared, layouts=layouts)
        for path, part in parts.items():
            yield self._header(path, part, [common], implied=implied)

    def _ordered_by(self, family: str) -> list[str]:
        """The headers, other than a family's own, with the instructions that order its instructions."""
        protocols = (protocol for protocol in self._catalog.database.spec.protocols if family in protocol.families)
        names = {step.instruction for protocol in protocols for step in protocol.steps}
        ordering = self._catalog.all(lambda entry: entry.name in names and entry.operation == "synchronise")
        own = f"{c_text.identifier(family)}.cuh"
        return [path for path in dict.fromkeys(map(header, ordering)) if path != own]

    def _protocols(self, members: Sequence[Instruction]) -> Iterator[str]:
        """The protocols in which some instructions order others, in words."""
        names = {instruction.variant.instruction.name for instruction in members if instruction.operation == "synchronise"}
        for protocol in self._catalog.database.spec.protocols:
            if names.intersection(step.instruction for step in protocol.steps):
                yield from (f"{number}. {step.name}: {step.text}" for number, step in enumerate(protocol.steps, 1))
                yield from dict.fromkeys(ordering.text for ordering in protocol.orderings)

    def _header(
        self,
        path: str,
        members: Sequence[Instruction],
        includes: Sequence[str],
        *,
        layouts: Sequence[layout_structs.LayoutStruct] = (),
        implied: bool = False,
    ) -> Output:
        """A header with the functions of some instructions and the front over them."""
        functions: dict[Guard, list[Function]] = {}
        for instruction in members:
            for function in self._functions.of(instruction, self._guards):
                functions.setdefault(function.guard, []).append(function)
        every = [function for part in functions.values() for function in part]
        counts = {count for function in every for count in function.body.lists}
        self._lists |= counts
        fronts = list(self._makes.of((instruction for instruction in members if instruction.shape is not None), implied=implied))
        self._fronts += fronts
        description = [line for text in (*_describe(members), *self._protocols(members)) for line in _comment(text)]
        includes = [*includes, *([_LISTS] if counts else [])]
        return self.output(
            path,
            "family.cuh",
            includes=includes,
            description=description,
            layouts=layouts,
            functions=functions,
            fronts=fronts,
            zip=zip,
        )

    def config(self) -> Output:
        """The header that all others include."""
        spec = self._catalog.database.spec
        fenced: dict[str, RegisterType] = {}
        for entry in spec.types.registers:
            if entry.bits > 1:
                fenced.setdefault(entry.c_type, entry)
        tags = dict.fromkeys(identifier(entry.name) for entry in spec.types.elements)
        tags.update(dict.fromkeys(argument for front in self._fronts for argument in front.arguments))
        return self.output(
            _CONFIG,
            "config.cuh",
            specific=[target.number for target in spec.targets if target.suffix == "a"],
            guards=self._guards.all(),
            fenced=list(fenced.values()),
            tags=list(tags),
            options=list(dict.fromkeys(option for front in self._fronts for call in front.calls for option in call.options)),
            legal=_legal(self._fronts),
            example=next(iter(self._fronts), None),
        )

    def output(self, path: str, template: str, *, includes: Sequence[str] = (), **values: object) -> Output:
        """A file whose includes are relative to it."""
        near = [posixpath.relpath(include, posixpath.dirname(path) or ".") for include in includes]
        head = banner("//", self._catalog, _SOURCES)
        return Output(f"{_FOLDER}/{path}", render(f"cuda/{template}.jinja", banner=head, includes=near, **values))


def _legal(fronts: Iterable[Front]) -> dict[str, str]:
    """The arguments that some specialisation has at each place, for each template of the typed front."""
    places: dict[str, list[dict[str, None]]] = {}
    for front in fronts:
        known = places.setdefault(front.name, [])
        for place, argument in enumerate((front.shape, *front.arguments)):
            if place == len(known):
                known.append({})
            known[place][argument] = None
        if front.brief:
            known[0][front.brief] = None
    return {name: "; ".join(" ".join(sorted(values)) for values in known) for name, known in places.items()}


def _describe(members: Sequence[Instruction]) -> Iterator[str]:
    """The lines at the head of a file about its instructions and their operands."""
    sets: dict[str, tuple[InstructionSet, dict[str, str]]] = {}
    for instruction in members:
        entry = instruction.variant.instruction
        _, operands = sets.setdefault(entry.name, (entry, {}))
        operands.update((operand.name, operand.title) for operand in instruction.operands)
    for entry, operands in sets.values():
        yield f"{entry.name}: {entry.title}; executed by a {entry.scope} (PTX ISA {entry.source.removeprefix('PTX ISA ')})."
        yield from (f"- {name}: {title}" for name, title in operands.items())


def _comment(text: str) -> list[str]:
    """Text as lines after ``//``; none ends in a backslash, which would swallow the next."""
    return [line.rstrip("\\") for line in textwrap.wrap(c_text.comment(text), c_text.WIDTH, break_long_words=False)]
