"""The pages of descriptors: the bits of each format as a table and a picture."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog import digest
from ptxmma.catalog.descriptors.bits import spare
from ptxmma.catalog.evidence import LayoutEvidence
from ptxmma.catalog.evidence.witnesses import DESCRIPTORS, Laid, Witness
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.generator.emit.docs import evidence_pages, instruction_tables, rest
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.formula_text import to_latex
from ptxmma.matrices import pictures
from ptxmma.model import ColumnMask, DescriptorField, DescriptorFormat, FieldCase, Spec

#: Bits on a line of a picture, and the width of each in pixels: a field of one bit has room for its name.
_PER_LINE, _CELL = 16, 72


def instructions(spec: Spec, gallery: Gallery, witness: Witness | None) -> dict[str, Any]:
    """The values for the page of instruction descriptors, zero-column masks included."""
    formats = [each for each in spec.descriptors if each.describes != "matrix"]
    masks = [
        {"formula": to_latex(mask.zero), "source": rest.source(mask.source), "examples": _examples(mask)} for mask in spec.column_masks
    ]
    return {
        "formats": [shown(each, gallery, witness) for each in formats],
        "masks": masks,
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
    lines = witness.of(Laid) if witness is not None else ()
    for line in lines:
        if line.layout == format.name:
            counts = {peer: len(subjects) for peer, subjects in line.agree.items()}
            stale = () if line.facts == digest.descriptor_format(format) else (DESCRIPTORS,)
            said = evidence_pages.agreement([LayoutEvidence(agreeing=counts, differing=line.differ, stale=stale)])
            return f"{said} :ref:`Peers <peers>` says what was compared."
    return ""


def shown(format: DescriptorFormat, gallery: Gallery, witness: Witness | None) -> dict[str, Any]:
    """A format with its table and picture."""
    return {
        "title": rest.text(format.title),
        "family": rest.text(format.family),
        "label": rest.label("descriptor", format.name),
        "kinds": rest.codes(f".{kind}" for kind in format.kinds),
        "agreeing": _agreeing(format, witness),
        "bits": str(format.bits),
        "table": _table(format),
        "picture": gallery.other(format.name, lambda: _picture(format)),
        "spare": _spare(format),
        "function": rest.code(f"ptxmma_{format.name}_encode"),
        "notes": instruction_tables.statements(format.notes),
        "source": rest.source(format.source),
    }


def bits(field: DescriptorField) -> str:
    """The bits of a field: ``28:24``, ``2``, ``3, 31``."""
    own = _range(field.low, field.width)
    return own if field.upper is None else f"{field.upper}, {own}"


def _range(low: int, width: int) -> str:
    return f"{low + width - 1}:{low}" if width > 1 else str(low)


def _table(format: DescriptorFormat) -> str:
    rows = [
        (bits(field), rest.code(field.name), rest.text(field.title), _values(field), rest.source(field.source)) for field in format.fields
    ]
    return rest.table(("Bits", "Field", "Meaning", "Holds", "Source"), rows)


def _values(field: DescriptorField) -> str:
    """The content of a field: the number of each named value, else the encoding of a number."""
    if field.fixed is not None:
        return f"always {field.fixed:#0{field.width + 2}b}"
    named = [case for case in field.cases if case.values]
    if named:
        return "\n\n".join(_case(case) for case in named)
    less = f"{field.unit or 'value'} - {field.less}" if field.less else field.unit or "value"
    text = f"{less} >> {field.shift}" if field.shift else less if field.less else "0 or 1" if field.width == 1 else "the value itself"
    conditions = "; ".join(_where(case) for case in field.cases)
    return f"{text} {conditions}" if conditions else text


def _case(case: FieldCase) -> str:
    pairs = ", ".join(f"{rest.code(name)} = {stored}" for name, stored in sorted(case.values.items(), key=lambda item: item[1]))
    where = _where(case)
    return f"{pairs}{where and ' '}{where}"


def _where(case: FieldCase) -> str:
    """The condition under which a case applies, in words."""
    kinds = " or ".join(rest.codes(f".{kind}" for kind in when["kind"]) for when in case.when if "kind" in when)
    others = [{key: values for key, values in when.items() if key != "kind"} for when in case.when]
    parts = [f"with {kinds}"] if kinds else []
    parts += [f"where {rest.condition(others)}"] if any(others) else []
    parts += [f"on {' and '.join(case.targets)}"] if case.targets else []
    return ", ".join(parts)


def _spare(format: DescriptorFormat) -> str:
    runs = ", ".join(_range(*run) for run in spare(format))
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
