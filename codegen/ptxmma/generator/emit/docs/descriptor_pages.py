"""The pages of descriptors, the bits of each format as a table and a picture, and of swizzles and canonical layouts in shared memory."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog import digest
from ptxmma.catalog.descriptors.bits import bit_range, bits_of, spare
from ptxmma.catalog.descriptors.shared_formats import swizzle_encoding
from ptxmma.catalog.evidence import LayoutEvidence
from ptxmma.catalog.evidence.witnesses import DESCRIPTORS, Laid, Witness, only
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.generator.emit.docs import evidence_pages, rest, struct_tables
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.matrices import pictures
from ptxmma.matrices.shared.canonical import canonical
from ptxmma.model import ColumnMask, DescriptorField, DescriptorFormat, FieldCase, SharedMemory, Spec, Swizzle

#: Bits on a line of a picture, and the width of each in pixels: a field of one bit has room for its name.
_PER_LINE, _CELL = 16, 72


def instructions(spec: Spec, gallery: Gallery, witness: Witness | None) -> dict[str, Any]:
    """The values for the page of instruction descriptors, zero-column masks included."""
    formats = [each for each in spec.descriptors if each.describes != "matrix"]
    return {
        "formats": [shown(each, gallery, witness) for each in formats],
        "masks": [(mask, _examples(mask)) for mask in spec.column_masks],
        "explorer": f"../{EXPLORER}{explorer(v='descriptors')}",
    }


def _examples(mask: ColumnMask) -> str:
    """The manual's masks with the fields that make them."""
    rows = [
        (
            str(example.m),
            ", ".join(f"{rest.code(name)} = {value}" for name, value in example.fields.items()),
            "\n\n".join(map(rest.code, example.masks)),
            rest.source(example.source),
        )
        for example in mask.examples
    ]
    return rest.table(("M", "Fields that are not 0", "Lowest columns of each part", "Source"), rows)


def _agreeing(format: DescriptorFormat, witness: Witness | None) -> str:
    """The peers that agree about a format."""
    line = _laid(format, witness)
    if line is None:
        return ""
    counts = {peer: len(subjects) for peer, subjects in line.agree.items()}
    stale = () if line.facts == digest.descriptor_format(format) else (DESCRIPTORS,)
    said = evidence_pages.agreement([LayoutEvidence(agreeing=counts, differing=line.differ, stale=stale)])
    return f"{said} :ref:`Peers <peers>` says what was compared."


def _laid(format: DescriptorFormat, witness: Witness | None) -> Laid | None:
    return next((line for line in witness.of(Laid) if line.layout == format.name), None) if witness is not None else None


def shown(format: DescriptorFormat, gallery: Gallery, witness: Witness | None) -> dict[str, Any]:
    """A format with its table and picture."""
    return {
        "format": format,
        "agreeing": _agreeing(format, witness),
        "table": _table(format, _laid(format, witness)),
        "picture": gallery.other(format.name, lambda: _picture(format)),
        "spare": _spare(format),
    }


def _table(format: DescriptorFormat, laid: Laid | None) -> str:
    rows = [
        (
            bits_of(field).replace(",", ", "),
            rest.code(field.name),
            rest.text(field.title),
            _values(format, field),
            f"{rest.source(field.source)}{_alone(field, laid)}",
        )
        for field in format.fields
    ]
    return rest.table(("Bits", "Field", "Meaning", "Holds", "Source"), rows)


def _alone(field: DescriptorField, laid: Laid | None) -> str:
    """A mark of a field whose source is the only one."""
    return "\n\n*one source*" if laid is not None and only(field.source, laid.fields.get(field.name, ())) else ""


def _values(format: DescriptorFormat, field: DescriptorField) -> str:
    """The content of a field: the number of each named value, else the encoding of a number."""
    if field.fixed is not None:
        return f"always {field.fixed:#0{field.width + 2}b}"
    named = [case for case in field.cases if case.values]
    if named:
        return "\n\n".join(_case(format, case) for case in named)
    less = f"{field.unit or 'value'} - {field.less}" if field.less else field.unit or "value"
    text = f"{less} >> {field.shift}" if field.shift else less if field.less else "0 or 1" if field.width == 1 else "the value itself"
    conditions = "; ".join(_where(format, case) for case in field.cases)
    return f"{text} {conditions}" if conditions else text


def _case(format: DescriptorFormat, case: FieldCase) -> str:
    pairs = ", ".join(f"{rest.code(name)} = {stored}" for name, stored in sorted(case.values.items(), key=lambda item: item[1]))
    where = _where(format, case)
    return f"{pairs}{where and ' '}{where}"


def _where(format: DescriptorFormat, case: FieldCase) -> str:
    """The condition under which a case applies, in words."""
    qualifier = format.qualifier
    kinds = " or ".join(rest.codes(f".{kind}" for kind in when[qualifier]) for when in case.when if qualifier in when)
    others = [{key: values for key, values in when.items() if key != qualifier} for when in case.when]
    parts = [f"below {case.below}"] if case.below else []
    parts += [f"with {kinds}"] if kinds else []
    parts += [f"where {rest.condition(others)}"] if any(others) else []
    parts += [f"on {' and '.join(case.targets)}"] if case.targets else []
    return ", ".join(parts)


def _spare(format: DescriptorFormat) -> str:
    runs = ", ".join(bit_range(*run) for run in spare(format))
    what = "must be 0" if format.spare == "zero" else "have no effect"
    return f"Bits {runs} {what}." if runs else ""


def _picture(format: DescriptorFormat) -> str:
    fields = []
    for index, field in enumerate(format.fields):
        name, colour = field.name.replace("_", " "), 4 * index + 1
        fields.append(pictures.Field(field.low, field.width, name, colour))
        if field.upper is not None:
            fields.append(pictures.Field(field.upper, 1, f"{name} high", colour))
    unused = [pictures.Field(low, width, "", pictures.BLANK) for low, width in spare(format)]
    note = "Grey bits must be 0." if format.spare == "zero" else "Grey bits are not used."
    return pictures.bit_fields(format.title, [note], [("", format.bits, [*fields, *unused])], per_line=_PER_LINE, cell=_CELL)


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
        "memory": memory,
        "formats": [shown(each, gallery, witness) for each in formats],
        "explorer": f"../{EXPLORER}{explorer(v='memory')}",
        "encodings": rest.table(header, rows),
        "strides": _strides(memory),
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
        "memory": memory,
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
        "names": struct_tables.table(
            memory.swizzles,
            titles={"title": "Mode"},
            code=("cute", "tma"),
            without=("name", "bytes", "pattern", "formula", "atom_mn", "atom_k", "source"),
        ),
        "atoms": [
            {
                "title": f"{rest.text(swizzle.title)}, {major}-major",
                "picture": gallery.atom(canonical(memory, major, swizzle.name)),
                "explorer": f"../{EXPLORER}{explorer(v='memory', image=f',{major},{swizzle.name}')}",
            }
            for swizzle in memory.swizzles
            for major in dict.fromkeys(layout.majorness for layout in memory.layouts if swizzle.name in layout.swizzles)
        ],
        "layouts": [
            {
                "layout": layout,
                "picture": gallery.canonical_layout(canonical(memory, layout.majorness, layout.swizzles[0])),
                "explorer": f"../{EXPLORER}{explorer(v='memory', image=f',{layout.majorness},{layout.swizzles[0]}')}",
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
