"""The lists of variants: a row for each, whose extents and types a family names once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ptxmma.catalog import requirements
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.cplusplus import type_qualifiers
from ptxmma.catalog.variants import placeholders
from ptxmma.generator.emit import c_text
from ptxmma.model import InstructionSet, Spec, Target

_NONE = "PTXMMA_TYPE_NONE"
COLUMNS = "identifier, spelling, family, extents, types, qualifiers, sparse, documented, ptx_major, ptx_minor, targets"


class VariantList(NamedTuple):
    """The variants of a family.

    Attributes:
        stem: its name as part of an identifier: ``"mma_sp"``.
        name: its name: ``"mma.sp"``.
        extents: the sizes that its rows have, in order: ``["m", "n", "k"]``.
        types: the qualifiers that are element types, in order: ``["dtype", "atype", "btype", "ctype"]``.
        about: the content of its list, in words.
        rows: the rows.
    """

    stem: str
    name: str
    extents: list[str]
    types: list[str]
    about: str
    rows: list[str]


def of(catalog: Catalog, family: str, stem: str, sets: dict[str, tuple[Target, ...]]) -> VariantList:
    """The list of a family; the sets of targets that its rows name join ``sets``."""
    spec = catalog.database.spec
    entries = [entry for entry in spec.instructions if entry.family == family]
    members = list(catalog.all(lambda entry: entry.family == family))
    elements = {"", *(element.name for element in spec.types.elements)}
    typed = dict.fromkeys(name for entry in entries for name in type_qualifiers(entry))
    types = [name for name in typed if all((one.variant.facts.get(name) or "") in elements for one in members)]
    extents = list(dict.fromkeys(name for instruction in members for name in instruction.extents))
    telling = {entry.name: _telling(entry, types) for entry in entries}
    names: dict[tuple[Target, ...], str] = {}
    rows = []
    for instruction in members:
        accepting = requirements.accepting(spec, instruction.variant)
        if accepting not in names:
            names[accepting] = _set_name(spec, accepting)
            sets[names[accepting]] = accepting
        facts, entry = instruction.variant.facts, instruction.variant.instruction
        others = [f"{name}={facts[name]}" for name in telling[entry.name] if facts.get(name)]
        cells = [
            c_text.identifier(instruction.identifier),
            c_text.string(instruction.canonical),
            stem,
            _listed(str(instruction.extents.get(name, 0)) for name in extents) or "(0)",
            _listed(_type(instruction, name) for name in types) or f"({_NONE})",
            c_text.string(" ".join(others)),
            str(int(entry.sparse)),
            str(int(instruction.documented)),
            *requirements.floor(instruction.variant).split("."),
            names[accepting],
        ]
        rows.append(", ".join(cells))
    about = (
        f"Every variant of {family}: canonical spelling, family, extents in parentheses ({', '.join(extents) or 'it has none'}; 0 where a "
        f"variant lacks one), element types in parentheses ({', '.join(types) or 'it has none'}), the other qualifiers that tell it from "
        'variants of its instruction ("name=value", with spaces between them), whether A is sparse, whether the manual has it, its first '
        "PTX ISA version (a target may need a later one), and the targets that accept it: those named and all that include one of them."
    )
    return VariantList(stem, family, extents, types, about, rows)


def _type(instruction: Instruction, name: str) -> str:
    value = instruction.variant.facts.get(name)
    return f"PTXMMA_TYPE_{c_text.macro(str(value))}" if value else _NONE


def _listed(cells: Iterable[str]) -> str:
    """Cells in parentheses; empty without any."""
    text = ", ".join(cells)
    return f"({text})" if text else ""


def _telling(entry: InstructionSet, types: list[str]) -> list[str]:
    """The qualifiers, beside types and the shape, that some variants of an instruction have and others lack or have otherwise."""
    values = {name: {value for form in entry.forms for value in form.qualifiers.get(name, ("",))} for name in placeholders(entry.syntax)}
    return [name for name, known in values.items() if len(known) > 1 and name not in types and name != entry.shape]


def _set_name(spec: Spec, members: tuple[Target, ...]) -> str:
    """The lowest members: the set has every target that includes one of them, but for the ones named after WITHOUT.

    Targets that assemblers no longer knew when the instruction came are such exceptions: ``SM_90_WITHOUT_SM_101``.
    """
    targets, names = requirements.targets_of(spec), {target.name for target in members}
    lowest = _lowest(targets, names)
    missing = {target.name for target in targets.including(lowest)} - names
    without = ["WITHOUT", *_lowest(targets, missing)] if missing else []
    return c_text.macro("_".join([*lowest, *without])) or "NONE"


def _lowest(targets: requirements.Targets, names: set[str]) -> list[str]:
    """The names of targets that include no other of them, in the order of the spec."""
    return [name for name in targets.by_name if name in names and targets.features(name) & names == {name}]
