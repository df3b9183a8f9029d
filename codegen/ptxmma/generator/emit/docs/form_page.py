"""The page of one form: the instructions of a family with one shape and one element width, complete."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ptxmma.catalog import evidence
from ptxmma.catalog.descriptors.shared_formats import read_by
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.instructions.words import Match, preferred, types
from ptxmma.catalog.names import cplusplus
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.catalog.names.product_family import family_of, type_of_product
from ptxmma.catalog.operands import Operand, RegisterOperand
from ptxmma.catalog.roles import Parameter
from ptxmma.generator.emit.docs import (
    form_groups,
    form_sections,
    instruction_tables,
    layout_sections,
    ordering,
    overview,
    product_kinds,
    rest,
    spec_pages,
    struct_tables,
    tensor_page,
)
from ptxmma.generator.emit.docs.errata_page import errata_list
from ptxmma.generator.emit.docs.family import (
    DAGGER,
    UNDOCUMENTED,
    Row,
    form_table,
    hint_table,
    needs,
    qualifier_table,
    rows,
    spelled,
    usual,
)
from ptxmma.generator.emit.docs.form_groups import FormGroup, page_label
from ptxmma.generator.emit.docs.fragment_relations import Relations
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.docs.tensor_page import TensorUse
from ptxmma.matrices.operations import operation
from ptxmma.model import InstructionSet, Spec, Version

_Entry = TypeVar("_Entry")
_WORD = re.compile(r"[a-z0-9]+")
#: The target in the name of an atom, which is a question of its own.
_TARGET = re.compile(r"sm[0-9]+")
#: A shape as other projects write it.
_CROSSED = re.compile(r"(?<![0-9a-z])([0-9]+)x([0-9]+)x([0-9]+)(?![0-9a-z])")
#: The kinds of operands that change what an instruction computes, beside the matrices.
_OPTIONS = ("lane-mask", "column-mask", "immediate", "negation")
#: Leads from the page of a form to the first folder of the site.
_ROOT = "../../"


def page(
    catalog: Catalog, gallery: Gallery, relations: Relations, group: FormGroup, every: Sequence[FormGroup], placed: Sequence[TensorUse]
) -> dict[str, Any]:
    """The data of a page; ``every`` are the groups of all pages, ``placed`` the uses of all layouts of tensor memory."""
    spec = catalog.database.spec
    entries = group.entries()
    forms = {name: rows(spec, entry, variants) for name, (entry, variants) in entries.items()}
    shown = chosen(group.own)
    # The variant of the examples comes first among the pictures, too.
    first = {name: instruction_tables.representatives(sorted(own, key=lambda each: each != shown)) for name, (_, own) in entries.items()}
    uses = [use for name, (entry, _) in entries.items() for use in layout_sections.uses(spec, gallery, group.label, entry, first[name])]
    sections = layout_sections.sections(spec, evidence.of(catalog.database), relations, uses)
    sets, loaded = [entry for entry, _ in entries.values()], tensor_page.loaded(catalog, shown)
    memory = _memory(spec, group)
    alone, placed_here = form_groups.alone(group, every), [use for use in placed if use.instruction in entries]
    before, between = ordering.around(spec, sets[0])
    figures = form_sections.figures(gallery, sets, uses, _ROOT)
    return {
        "title": rest.text(group.title),
        "page_labels": [group.label, *map(page_label, group.aliases), *(overview.labels(group.family, sets) if alone else ())],
        "aliases": " ".join((*group.aliases, *([group.family] if alone else []))),
        "words": " ".join(_words(catalog, group)),
        "spelling": shown.canonical,
        "lacking": _lacking(group),
        "summary": ordering.summary(spec, sets[0]),
        "explorer": _ROOT + _explorer(shown, placed),
        "loaded": loaded and _ROOT + loaded,
        "family": "" if alone else rest.link(group.family, rest.label("family", group.family)),
        "statements": _statements(itertools.chain.from_iterable(first.values())),
        "before": before,
        "between": between,
        "kinds": product_kinds.kinds(spec, group.own),
        "pictures": product_kinds.pictures(placed_here, gallery, _ROOT),
        "instructions": [
            _instruction(spec, entry, variants, forms[name], first[name], several=len(entries) > 1)
            for name, (entry, variants) in entries.items()
        ],
        "several": len(entries) > 1,
        "figures": figures,
        "product": form_sections.arrangement(figures),
        "sizes": _sizes(group.own),
        "registers": layout_sections.layout_table(uses),
        "layouts": list(sections.values()),
        "tensor": tensor_page.table(placed_here, _ROOT),
        "products": form_sections.product_tables(spec, group.own),
        "targets": spec_pages.target_table(spec, _accepted(spec, list(itertools.chain.from_iterable(forms.values())))),
        "example": examples(shown),
        "memory": memory,
        "links": _shared(spec, sets, {str(use.operand.element_type) for use in uses if use.layout.summed and not use.layout.apart}),
        "errata": errata_list(erratum for erratum in _of(group.members, Instruction.errata) if erratum.when or alone),
        "family_errata": not alone and any(erratum.family == group.family and not erratum.when for erratum in spec.errata),
        "neighbours": form_sections.neighbours(group, every),
    }


def _explorer(shown: Instruction, placed: Sequence[TensorUse]) -> str:
    """The explorer's view of an instruction: the registers that it takes, or its first operand in tensor memory."""
    in_registers = any(operand.layout is not None for operand in shown.operands)
    first = next((use.explorer for use in placed if use.instruction == shown.variant.instruction.name), "")
    return EXPLORER + explorer(i=shown.canonical) if in_registers or not first else first


def _accepted(spec: Spec, forms: Sequence[Row]) -> dict[str, dict[str, Version]]:
    """The first versions by target, for each requirement of the forms: of documented ones first."""
    columns = {}
    for row in sorted(forms, key=lambda row: not row.form.documented):
        columns[needs(spec, row.accepted) + ("" if row.form.documented else f" ({UNDOCUMENTED})")] = row.accepted
    return columns


def places(spec: Spec, every: Sequence[FormGroup]) -> dict[str, int]:
    """The place of each page among the pages of forms that answer a search equally: the spec's preferences decide, then its order."""
    left = {Match(chosen(group.own)): group.path for group in every}
    order: dict[str, int] = {}
    while left:
        first = preferred(spec, [*left])[0][0]
        order[left.pop(first)] = len(order)
    return order


def _words(catalog: Catalog, group: FormGroup) -> list[str]:
    """The words for the search, each once.

    These are all words of the spellings and of the names in generated code, the operands, hints, element types, atoms, and machine
    instructions.  Where the group has documented forms, the others add none.  The name of an operand is one word: ``scale-d`` is
    ``operandscaled``.
    """
    known = evidence.of(catalog.database)
    named = [one for one in group.members if one.documented] or group.members
    own = [f"{one.canonical} {one.identifier}" for one in named]
    own += [f"{operand.kind} register" for operand in named[0].operands if isinstance(operand, RegisterOperand)]
    kinds = named[0].variant.instruction.operand_kinds
    own += [f"{' '.join(hint.values)} {hint.title}" for hint in named[0].variant.instruction.hints]
    own += [f"operand{name.replace('-', '')}" for name in kinds if "-" in name]
    own += [f"{kind.kind} {kind.title}" for kind in kinds.values() if kind.kind in (*_OPTIONS, "size")]
    for one in named:
        row = known.of(one.canonical)
        own += [
            *sorted(types(one, *"dabcs")),
            *row.peers,
            *row.differing,
            *row.atoms,
            *(code for ran in row.executed for code in ran.machine),
        ]
    words = (word for text in own for word in _WORD.findall(_CROSSED.sub(r"m\1n\2k\3", text.lower())))
    return list(dict.fromkeys(word for word in words if not _TARGET.fullmatch(word)))


def _lacking(group: FormGroup) -> str:
    """For each target that accepts some of the group, the words of spellings and types that none of these has: ``"80 86: ; 120: f16"``."""
    named = [one for one in group.members if one.documented] or group.members
    said = [({*_WORD.findall(one.canonical.lower()), *types(one, *"dabcs")}, one.accepted_by()) for one in named]
    every = set[str]().union(*(words for words, _ in said))
    numbers: dict[str, list[str]] = {}
    for number in sorted({re.sub(r"\D", "", target) for _, accepted in said for target in accepted}, key=int):
        has = (words for words, accepted in said if any(re.sub(r"\D", "", target) == number for target in accepted))
        numbers.setdefault(" ".join(sorted(every.difference(*has))), []).append(number)
    return "; ".join(f"{' '.join(targets)}: {words}" for words, targets in numbers.items())


def _statements(representatives: Iterable[Instruction]) -> list[str]:
    """The statements of what the instructions compute, and the operands that change it.

    Where variants differ, each statement has the first variant for which it holds.
    """
    statements: dict[str, str] = {}
    options: dict[str, str] = {}
    for instruction in representatives:
        statements.setdefault(operation(instruction).statement(instruction), instruction.canonical)
        kinds = instruction.variant.instruction.operand_kinds
        options |= {operand.name: kinds[operand.name].title for operand in instruction.operands if operand.kind in _OPTIONS}
    said = [f"{name}: {title}" for name, title in options.items()]
    if len(statements) == 1:
        return [*statements, *said]
    return [line for statement, spelling in statements.items() for line in (statement, f"    // such as {spelling}")] + said


def _instruction(
    spec: Spec, entry: InstructionSet, variants: Sequence[Instruction], forms: Sequence[Row], first: Sequence[Instruction], *, several: bool
) -> dict[str, Any]:
    """The values for one PTX instruction of the page."""
    described = {name: seen for name, seen in instruction_tables.described_operands(entry, first).items() if seen}
    documented = [row for row in forms if row.form.documented]
    promises = _of(variants, Instruction.semantics)
    return {
        "name": rest.text(entry.name),
        "syntax": (lines := spelled(entry, forms)),
        "syntax_lines": len(lines),
        "forms": form_table(spec, entry, documented),
        "beyond": form_table(spec, entry, [row for row in forms if not row.form.documented]),
        "usual": usual(entry),
        "dagger": DAGGER if any(row.accepted != row.stated for row in forms) else "",
        "qualifiers": qualifier_table(entry, variants),
        "hints": hint_table(entry) if entry.hints else "",
        "operands": instruction_tables.operand_table(entry, described),
        "register_types": instruction_tables.register_type_table(spec, entry, first, described),
        "functions": form_sections.functions(forms),
        "semantics": instruction_tables.semantics_table(promises),
        "accumulation": instruction_tables.accumulation_table(promises),
        "uniform": instruction_tables.statements(_of(variants, Instruction.uniform)),
        "undefined": instruction_tables.statements(_of(variants, Instruction.undefined)),
        "notes": instruction_tables.statements(_of(variants, Instruction.notes)),
        "requirements": struct_tables.table(_of(variants, Instruction.requirements), titles={"when": "When"}),
        "observed": struct_tables.table(
            _of(variants, Instruction.observed), titles={"when": "When", "releases": "Releases that differ", "source": "Seen in"}
        ),
        "rows": forms,
        "entry": entry,
        "several": several,
    }


def _of(variants: Iterable[Instruction], ask: Callable[[Instruction], Iterable[_Entry]]) -> list[_Entry]:
    """The spec's entries on any of some variants, each once, in the order of the spec."""
    return list({id(entry): entry for instruction in variants for entry in ask(instruction)}.values())


def _sizes(own: Sequence[Instruction]) -> str:
    """A row for each size where one ranges: what each thread holds of the operands that grow with it."""
    if not own[0].variant.ranging:
        return ""
    (extent,) = own[0].variant.ranging
    columns: dict[str, dict[int, str]] = {}
    for instruction in own:
        for operand in instruction.operands:
            if operand.layout is not None and operand.layout.growing:
                head = f"{rest.code(operand.name)} of {rest.code(operand.element_type or '')}"
                cell = f"{operand.elements} in {operand.registers} {operand.register_types[0]}"
                columns.setdefault(head, {})[instruction.extents[extent]] = cell
    sizes = sorted({instruction.extents[extent] for instruction in own})
    rows = ([str(size), *(column.get(size, rest.NOTHING) for column in columns.values())] for size in sizes)
    return rest.table([extent.upper(), *columns], rows, kind="sizes")


def _memory(spec: Spec, group: FormGroup) -> str:
    """The legal layouts of matrices that descriptors describe in shared memory, by their types."""
    entry = group.own[0].variant.instruction
    if spec.shared_memory is None or not any(kind.kind == "descriptor" for kind in entry.operand_kinds.values()):
        return ""
    majors = read_by(spec, spec.shared_memory, entry.family).majorness
    rows = [(rest.code(element), *("yes" if element in major.elements else "no" for major in majors)) for element in group.types]
    return rest.table(("Type", *(f"{major.majorness}-major" for major in majors)), rows)


def _shared(spec: Spec, entries: Sequence[InstructionSet], multiplied: set[str]) -> list[str]:
    """The pages that explain what the instructions share with other families; ``multiplied`` are the types of fragments of A and B."""
    kinds = {kind.kind for entry in entries for kind in entry.operand_kinds.values()}
    pages = [
        (
            any(entry.sparse for entry in entries) and spec.granularities,
            "sparsity",
            "which elements of A are kept, and the metadata that says so",
        ),
        (
            any(entry.to in multiplied for entry in spec.dequantisations),
            "dequantisation",
            "weights of 4 and 8 bits that become its fragments without a shuffle",
        ),
        ("scale-data" in kinds and spec.block_scaling, "block-scaling", "the kinds, scale vectors and scale types that go together"),
        ("descriptor" in kinds and spec.shared_memory, "descriptors", "the 64 bits that describe a matrix in shared memory"),
        ("descriptor" in kinds and spec.shared_memory, "swizzles", "how the matrix lies there"),
        (
            any(entry.asynchronous for entry in entries) and spec_pages.protocol_label(entries[0].family, spec),
            spec_pages.protocol_label(entries[0].family, spec),
            "the fences and waits that order it",
        ),
    ]
    return [f":ref:`{label}`: {what}" for here, label, what in pages if here]


# --- examples: a C++ function that calls the wrapper, the same as inline assembly, and a question in Python ----------------

#: The name of a parameter: the last word before what says that it is an array.
_NAME = re.compile(r"(\w+)\)?(?:\[\d+\])*$")
_INDENT = "  "


class Examples(NamedTuple):
    """Lines of source text."""

    header: str
    cplusplus: list[str]
    assembly: list[str]
    python: list[str]


def chosen(instructions: tuple[Instruction, ...]) -> Instruction:
    """The variant that examples show: one that the spec's preferences put first, with the widest result; of many sizes the first."""
    left, _ = preferred(instructions[0].database.spec, [Match(instruction) for instruction in instructions])
    return max((match.instruction for match in left), key=_result_bits)


def _result_bits(instruction: Instruction) -> int:
    written = (operand for operand in instruction.operands if operand.access != "read")
    return max((operand.bits for operand in written), default=0)


def examples(instruction: Instruction) -> Examples:
    """The examples of an instruction, with the operands of its first form."""
    form = instruction.forms[0] if instruction.forms else OperandForm("", "", ())
    said = cplusplus.shown(instruction)
    # The first overload takes immediates as template arguments.
    parts = cplusplus.ways([cplusplus.parameters(operand, operand.c_type) for operand in form.operands])[0]
    parameters = [part.parameter for part in parts if part.parameter]
    function = f"__device__ void {instruction.operation.replace('-', '_')}({', '.join(parameters)})"
    return Examples(said.header, _call(instruction, form, parts, said, function), _assembly(said, function), python(instruction))


def _call(instruction: Instruction, form: OperandForm, parts: list[Parameter], said: cplusplus.Shown, function: str) -> list[str]:
    """A function that calls the wrapper, and the alias that names it in the typed front."""
    given = ", ".join(name[1] for part in parts if part.parameter and (name := _NAME.search(part.parameter)))
    constants = [str(cplusplus.usual(operand)) for operand, part in zip(form.operands, parts, strict=True) if _needed(operand, part)]
    template = f"<{', '.join(constants)}>" if constants else ""
    lines = [f"#include <{said.header}>", ""]
    family, product = family_of(instruction), type_of_product(instruction)
    if family and product:
        lines = [f"#include <ptxmma/{family.calls_header(instruction)}>", "", f"using Product = {product};  // see Product::call", ""]
    elif said.front:
        lines += [f"using {instruction.operation.title().replace('-', '')} = {said.front};", ""]
    return [*lines, f"{function} {{", f"{_INDENT}ptxmma::{instruction.identifier}{template}({given});", "}"]


def _needed(operand: Operand, part: Parameter) -> bool:
    """Return whether a template argument must be given."""
    return bool(part.template) and operand.default is None


def _assembly(said: cplusplus.Shown, function: str) -> list[str]:
    return ["#include <stdint.h>", "", f"{function} {{", *(_INDENT + line for line in said.statements[0].splitlines()), "}"]


def python(instruction: Instruction) -> list[str]:
    """An element of each fragment, and back; empty without fragments."""
    operands = {operand.name: operand for operand in instruction.operands}
    shown = [operand for operand in operands.values() if operand.layout is not None and operand.layout.kind == "fragment"]
    if not shown:
        return []
    lines = [">>> import ptxmma", f'>>> instruction = ptxmma.instruction("{instruction.canonical}")']
    for operand in shown:
        lane, i = 5, operand.elements - 1
        place = operand.coords(lane, i)
        axes = ", ".join(f"{axis}={number}" for axis, number in zip(operand.axes, place, strict=True))
        lines += [
            f'>>> instruction.operand("{operand.name}").coords(lane={lane}, i={i})  # {", ".join(operand.axes)}',
            repr(place),
            f'>>> instruction.operand("{operand.name}").locate({axes})  # lane, i',
            repr(operand.locate(*place)),
        ]
    return lines
