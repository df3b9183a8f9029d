"""The pages of matrix descriptors, and of swizzles and canonical layouts in shared memory."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.descriptors.shared_formats import swizzle_encoding
from ptxmma.catalog.evidence.witnesses import Witness
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.generator.emit.docs import descriptor_pages, instruction_tables, rest, struct_tables
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.formula_text import to_latex
from ptxmma.model import SharedMemory, Spec, Swizzle

#: Bits of the 16-byte units that shared memory is swizzled in.
_UNIT_BITS = 128


def descriptors(spec: Spec, memory: SharedMemory, gallery: Gallery, witness: Witness | None) -> dict[str, Any]:
    """The values for the page of matrix descriptors."""
    formats = [each for each in spec.descriptors if each.describes == "matrix"]
    encodings = [swizzle_encoding(spec, each.family) for each in formats]
    header = ("Swizzle mode", *(f"Holds for {rest.code(each.family)}" for each in formats), "Pattern starts at a multiple of", "Source")
    rows = [
        (
            rest.text(mode.title),
            *(str(encoding.get(mode.name, rest.NOTHING)) for encoding in encodings),
            f"{mode.pattern} bytes",
            rest.source(mode.source),
        )
        for mode in memory.swizzles
    ]
    return {
        "formats": [descriptor_pages.shown(each, gallery, witness) for each in formats],
        "explorer": f"../{EXPLORER}{explorer(v='memory')}",
        "base_offset": to_latex(memory.base_offset),
        "alignment": str(memory.alignment),
        "encodings": rest.table(header, rows),
        "strides": _strides(memory),
        "notes": instruction_tables.statements(memory.notes),
        "source": rest.source(memory.source),
    }


def _strides(memory: SharedMemory) -> str:
    """The meaning of LBO and SBO."""
    return struct_tables.table(
        memory.layouts,
        titles={"swizzles": "Swizzle", "lbo": "Leading dimension byte offset", "sbo": "Stride dimension byte offset"},
        cells={
            "majorness": lambda layout: f"{layout.majorness}-major",
        },
        without=("cute", "offset"),
    )


def swizzles(spec: Spec, memory: SharedMemory, gallery: Gallery) -> dict[str, Any]:
    """The values for the page of swizzles."""
    return {
        "modes": struct_tables.table(
            memory.swizzles,
            titles={"title": "Mode", "bytes": "Swizzled together", "atom_mn": "MN-major atom", "atom_k": "K-major atom"},
            cells={
                "bytes": lambda swizzle: f"{swizzle.bytes} bytes",
                "pattern": lambda swizzle: f"{swizzle.pattern} bytes",
                "atom_mn": lambda swizzle: _size(swizzle.atom_mn),
                "atom_k": lambda swizzle: _size(swizzle.atom_k),
            },
            without=("name", "cute", "tma", "formula"),
        ),
        "elements": _atoms_in_elements(spec, memory),
        "formula": to_latex(memory.swizzle_formula),
        "others": [{"title": rest.text(each.title), "formula": to_latex(each.formula)} for each in memory.swizzles if each.formula],
        "names": struct_tables.table(
            memory.swizzles,
            titles={"title": "Mode"},
            code=("cute", "tma"),
            without=("name", "bytes", "pattern", "formula", "atom_mn", "atom_k", "source"),
        ),
        "banks": {"count": memory.banks.count, "bytes": memory.banks.bytes, "source": rest.source(memory.banks.source)},
        "atoms": [
            {
                "title": f"{rest.text(swizzle.title)}, {major}-major",
                "picture": gallery.atom(memory, swizzle, major),
                "explorer": f"../{EXPLORER}{explorer(v='memory', image=f',{major},{swizzle.name}')}",
            }
            for swizzle in memory.swizzles
            for major in dict.fromkeys(layout.majorness for layout in memory.layouts if swizzle.name in layout.swizzles)
        ],
        "layouts": [
            {
                "title": f"{layout.majorness}-major, {rest.codes(layout.swizzles)}",
                "cute": rest.code(layout.cute),
                "formula": to_latex(layout.element_offset),
                "lbo": rest.text(layout.lbo),
                "sbo": rest.text(layout.sbo),
                "source": rest.source(layout.source),
            }
            for layout in memory.layouts
        ],
        "majorness": struct_tables.table(
            memory.majorness, titles={"text": "What can be read"}, cells={"majorness": lambda entry: f"{entry.majorness}-major"}
        ),
        "padded": struct_tables.table(
            memory.padded,
            titles={"text": "How they lie", "group": f"Elements in {memory.alignment} bytes"},
            cells={"majorness": lambda entry: f"{entry.majorness}-major"},
        )
        if memory.padded
        else "",
        "examples": struct_tables.table(
            memory.examples,
            titles={"name": "Example", "cute": "Layout", "lbo_encoding": "LBO encoded", "sbo_encoding": "SBO encoded"},
            cells={
                "majorness": lambda example: f"{example.majorness}-major",
                "lbo": lambda example: str(example.lbo or ""),
                "sbo": lambda example: str(example.sbo or ""),
            },
            code=("swizzle", "type", "cute"),
        ),
        "notes": instruction_tables.statements(memory.notes),
        "source": rest.source(memory.source),
    }


def _atoms_in_elements(spec: Spec, memory: SharedMemory) -> str:
    widths = _widths(spec)
    header = ("Mode", "Majorness", *(f"{width}-bit elements" if width > 1 else "single bits" for width in widths))

    def cells(swizzle: Swizzle, major: str, atom: tuple[int, int]) -> tuple[str, ...]:
        return (rest.text(swizzle.title), f"{major}-major", *(_size(_scaled(atom, major, width)) for width in widths))

    atoms = ((swizzle, major, atom) for swizzle in memory.swizzles for major, atom in (("MN", swizzle.atom_mn), ("K", swizzle.atom_k)))
    return rest.table(header, (cells(*atom) for atom in atoms))


def _widths(spec: Spec) -> list[int]:
    """The widths of the elements that some instruction reads through a descriptor."""
    read = {
        value
        for entry in spec.instructions
        for kind in entry.operand_kinds.values()
        if kind.kind == "descriptor"
        for form in entry.forms
        for value in form.qualifiers.get(f"{kind.of}type", ())
    }
    return sorted({element.bits for element in spec.types.elements if element.name in read})


def _scaled(atom: tuple[int, int], majorness: str, width: int) -> tuple[int, int]:
    """An atom in elements: 128-bit units grow along the leading dimension, which comes first when MN-major."""
    factor = _UNIT_BITS // width
    return (atom[0] * factor, atom[1]) if majorness == "MN" else (atom[0], atom[1] * factor)


def _size(atom: tuple[int, int]) -> str:
    return f"{atom[0]}{rest.TIMES}{atom[1]}" if all(atom) else rest.NOTHING
