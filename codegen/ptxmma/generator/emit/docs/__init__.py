"""The reference: a page for each instruction family and one for each part of the spec that families share.

Pages are reStructuredText below ``docs/reference/``, pictures SVG beside them; ``docs/`` holds the site around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ptxmma import requirements
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.docs import family, pictures, rest
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.generator.emit.expressions import cases_to_latex, to_latex
from ptxmma.generator.emit.templating import banner, render
from ptxmma.instructions import Catalog
from ptxmma.model import Container, ElementType, Granularity, SharedMemory, Spec

_FOLDER = "docs/reference"
#: What templates leave where a section is absent.
_BLANK_LINES = re.compile(r"\n{3,}")
#: The rows of forms of each instruction.
Forms = Mapping[str, Sequence[family.Row]]
#: Bits of the 16-byte units that shared memory is swizzled in.
_UNIT_BITS = 128


def emit(catalog: Catalog) -> Iterator[Output]:
    """Pages and pictures."""
    spec = catalog.database.spec
    gallery = Gallery(spec)
    families = list(dict.fromkeys(entry.family for entry in spec.instructions))
    forms = {entry.name: family.rows(catalog, entry) for entry in spec.instructions}
    pages: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in families:
        pages[f"instructions/{_file(name)}"] = "family", family.page(catalog, gallery, name, forms)
    pages["all_instructions"] = "all_instructions", _all_instructions(spec, forms)
    pages["types"] = "types", _types(spec, gallery)
    pages["targets"] = "targets", _targets(spec, forms)
    if spec.granularities:
        pages["sparsity"] = "sparsity", _sparsity(spec, gallery)
    if spec.block_scaling:
        pages["block_scaling"] = "block_scaling", _block_scaling(spec)
    if spec.shared_memory is not None:
        pages["descriptors"] = "descriptors", _descriptors(spec.shared_memory, gallery)
        pages["swizzles"] = "swizzles", _swizzles(spec, spec.shared_memory, gallery)
    if spec.protocol is not None:
        pages["protocol"] = "protocol", _protocol(spec)
    if spec.errata:
        pages["errata"] = "errata", {"errata": family.errata_table(spec.errata, labelled=True)}
    pages["index"] = "index", _index(spec, families, forms, list(pages))
    first = banner("..", catalog, ["spec/"])
    shared = {"banner": first, "document": rest.text(spec.document), "version": rest.text(spec.version)}
    for path, (template, data) in pages.items():
        text = render(f"docs/{template}.rst.jinja", **shared, **data)
        yield Output(f"{_FOLDER}/{path}.rst", _BLANK_LINES.sub("\n\n", text).rstrip() + "\n")
    for path, picture in gallery.files.items():
        yield Output(f"{_FOLDER}/pictures/{path}", picture)


def _file(name: str) -> str:
    return name.replace(".", "_")


def _index(spec: Spec, families: Sequence[str], forms: Forms, pages: Sequence[str]) -> dict[str, Any]:
    rows = []
    for name in families:
        entries = [entry for entry in spec.instructions if entry.family == name]
        accepted = [row.accepted for entry in entries for row in forms[entry.name]]
        earliest = min(accepted, key=lambda one: min(map(requirements.version_key, one.values()), default=(0,)))
        rows.append(
            (
                rest.link(name, rest.label("family", name)),
                rest.text(entries[0].title),
                rest.codes(entry.name for entry in entries),
                str(sum(len(row.members) for entry in entries for row in forms[entry.name])),
                family.needs(spec, earliest),
            )
        )
    header = ("Family", "What it does", "Instructions", "Variants", "First variant needs")
    return {
        "families": rest.table(header, rows),
        "pages": [page for page in pages if not page.startswith("instructions/")],
        "family_pages": [page for page in pages if page.startswith("instructions/")],
    }


def _all_instructions(spec: Spec, forms: Forms) -> dict[str, Any]:
    return {
        "instructions": [
            {
                "name": rest.text(entry.name),
                "link": rest.link(entry.name, rest.label("instruction", entry.name)),
                "title": rest.text(entry.title),
                "patterns": [family.pattern(entry, row) for row in forms[entry.name] if row.form.documented],
                "beyond": [family.pattern(entry, row) for row in forms[entry.name] if not row.form.documented],
            }
            for entry in spec.instructions
        ]
    }


# --- types and targets ------------------------------------------------------------------------------------------------------


def _types(spec: Spec, gallery: Gallery) -> dict[str, Any]:
    types = spec.types
    elements = rest.table(
        *rest.dense(
            ("Type", "Meaning", "Kind", "Bits", "Sign", "Exponent", "Mantissa", "Bias", "Infinity", "NaN", "Source"),
            (
                (
                    rest.code(one.name),
                    rest.text(one.title),
                    rest.text(one.form),
                    str(one.bits),
                    "yes" if one.sign else "",
                    str(one.exponent or ""),
                    str(one.mantissa or ""),
                    str(one.bias or ""),
                    "yes" if one.infinity else "",
                    "yes" if one.nan else "",
                    rest.source(one.source),
                )
                for one in types.elements
            ),
        )
    )
    containers = rest.table(
        ("Types", "Where", "Container", "Lowest bit", "Source"),
        (
            (rest.codes(one.elements), rest.condition(one.when) or "always", f"{one.bits} bits", str(one.shift), rest.source(one.source))
            for one in types.containers
        ),
    )
    registers = rest.table(
        ("Register type", "Meaning", "Bits", "C type", "Constraint", "Source"),
        (
            (
                rest.code(one.name),
                rest.text(one.title),
                str(one.bits),
                rest.code(one.c_type),
                rest.code(one.constraint),
                rest.source(one.source),
            )
            for one in types.registers
        ),
    )
    carriers = rest.table(
        *rest.dense(
            ("Operands", "With elements", "Where", "Register types", "Source"),
            (
                (
                    rest.codes(one.operands),
                    rest.codes(one.elements),
                    rest.condition(one.when),
                    rest.codes(one.registers),
                    rest.source(one.source),
                )
                for one in types.carriers
            ),
        )
    )
    by_name = {one.name: one for one in types.elements}
    return {
        "elements": elements,
        "containers": containers,
        "registers": registers,
        "carriers": carriers,
        "picture_name": gallery.other("types", lambda: _types_picture(types.elements)) if types.elements else "",
        "container_picture": gallery.other("containers", lambda: _containers_picture(types.containers, by_name))
        if types.containers
        else "",
    }


def _type_fields(one: ElementType, low: int = 0) -> list[pictures.Field]:
    """The fields of an element whose lowest bit is ``low``."""
    if one.form != "float":
        return [pictures.Field(low, one.bits, f"{one.bits} bits" if one.bits > 1 else "1", 0)]
    above = [("sign", int(one.sign), 1), ("exponent", one.exponent, 5), ("mantissa", one.mantissa, 9)]
    used = sum(width for _, width, _ in above)
    # A float without a sign leaves the place of its sign empty; any other ends above bits that are ignored.
    top = low + (one.bits if one.sign else used)
    fields = [pictures.Field(low + used, one.bits - used, "0", pictures.BLANK)] if top < low + one.bits else []
    for name, width, colour in above:
        if width:
            top -= width
            fields.append(pictures.Field(top, width, name, colour))
    return [*fields, pictures.Field(low, top - low, "ignored", pictures.BLANK)] if top > low else fields


def _types_picture(elements: Sequence[ElementType]) -> str:
    words = [(one.name, one.bits, _type_fields(one)) for one in elements]
    return pictures.bit_fields("Element types", ["The highest bit is on the left."], words, per_line=32, cell=28)


def _containers_picture(containers: Sequence[Container], elements: dict[str, ElementType]) -> str:
    words = []
    for container in containers:
        for name in container.elements:
            one = elements[name]
            fields = _type_fields(one, container.shift)
            spare = [pictures.Field(0, container.shift, "0", pictures.BLANK)] if container.shift else []
            above = container.shift + one.bits
            spare += [pictures.Field(above, container.bits - above, "0", pictures.BLANK)] if above < container.bits else []
            words.append((name, container.bits, fields + spare))
    return pictures.bit_fields("Elements in wider containers", [], words, per_line=32, cell=36)


def _targets(spec: Spec, forms: Forms) -> dict[str, Any]:
    cuda = {version.version: version.cuda for version in spec.isa_versions}
    accepted: dict[str, dict[str, str]] = {entry.family: {} for entry in spec.instructions}
    for entry in spec.instructions:
        first = accepted[entry.family]
        for row in forms[entry.name]:
            for target, version in row.accepted.items():
                first[target] = min(first.get(target, version), version, key=requirements.version_key)
    return {
        "targets": rest.table(
            ("Target", "First PTX ISA", "CUDA", "Includes", "Source"),
            (
                (
                    rest.code(target.name),
                    rest.text(target.ptx),
                    rest.text(cuda.get(target.ptx, rest.NOTHING)),
                    rest.codes(target.includes) or rest.NOTHING,
                    rest.source(target.source),
                )
                for target in spec.targets
            ),
        ),
        "versions": rest.table(
            ("PTX ISA", "CUDA", "New targets", "Source"),
            (
                (
                    rest.text(version.version),
                    rest.text(version.cuda),
                    rest.codes(target.name for target in spec.targets if target.ptx == version.version) or rest.NOTHING,
                    rest.source(version.source),
                )
                for version in spec.isa_versions
            ),
        ),
        "matrix": family.matrix(spec, {rest.link(name, rest.label("family", name)): first for name, first in accepted.items()}, "Family"),
    }


# --- sparsity and block scaling ---------------------------------------------------------------------------------------------


def _sparsity(spec: Spec, gallery: Gallery) -> dict[str, Any]:
    found: dict[str, list[Granularity]] = {}
    for pattern in spec.granularities:
        found.setdefault(gallery.storage(pattern), []).append(pattern)
    return {
        "granularities": rest.table(
            ("Pattern", "Where", "Chunk", "Kept", "Legal fields", "Legal with ordered metadata", "Source"),
            (
                (
                    rest.text(one.name),
                    rest.condition(one.of),
                    f"{one.chunk} columns",
                    f"{one.kept}" + (f", {one.unit} by {one.unit}" if one.unit > 1 else ""),
                    rest.codes(one.legal),
                    rest.codes(one.ordered) or "the same",
                    rest.source(one.source),
                )
                for one in spec.granularities
            ),
        ),
        "patterns": [
            {
                "name": rest.text(group[0].name),
                "text": rest.text(group[0].text),
                "picture": picture,
                "fields": rest.table(
                    ("Field", *map(rest.code, group[0].legal)),
                    [
                        (
                            "Keeps columns" if group[0].unit == 1 else f"Keeps groups of {group[0].unit} columns",
                            *(", ".join(map(str, pictures.kept_units(group[0], field))) for field in group[0].legal),
                        )
                    ],
                ),
            }
            for picture, group in found.items()
        ],
        "metadata": rest.table(
            ("Where", "Selectors", "Contributing threads", "Source"),
            (
                (rest.condition(one.of), rest.numbers(range(one.selectors)), rest.text(one.contributors), rest.source(one.source))
                for one in spec.metadata
            ),
        ),
        "families": ", ".join(
            rest.link(name, rest.label("family", name))
            for name in dict.fromkeys(entry.family for entry in spec.instructions if entry.sparse)
        ),
    }


def _block_scaling(spec: Spec) -> dict[str, Any]:
    return {
        "combinations": rest.table(
            ("Kind", "Scale vector", "Scale types", "Scale factors along K", "Source"),
            (
                (
                    rest.code(f".{one.kind}"),
                    rest.code(f".{one.scale_vec}"),
                    rest.codes(one.stypes),
                    str(one.blocks),
                    rest.source(one.source),
                )
                for one in spec.block_scaling
            ),
        ),
        "scales": rest.table(
            ("Operand", "Where", "Blocks", "byte-id", "thread-id", "Thread", "Byte", "Source"),
            (
                (
                    rest.code(one.operand),
                    rest.condition(one.of),
                    str(one.blocks),
                    rest.numbers(one.byte_ids),
                    rest.numbers(one.thread_ids),
                    f":math:`{cases_to_latex(one.lane)}`",
                    f":math:`{cases_to_latex(one.byte)}`",
                    rest.source(one.source),
                )
                for one in spec.scales
            ),
        ),
        "families": ", ".join(
            rest.link(entry.family, rest.label("family", entry.family))
            for entry in spec.instructions
            if any(kind.kind == "scale-data" for kind in entry.operand_kinds.values())
        ),
    }


# --- shared memory and the protocol -----------------------------------------------------------------------------------------


def _descriptors(memory: SharedMemory, gallery: Gallery) -> dict[str, Any]:
    fields = [
        pictures.Field(field.low, field.width, field.name.replace("_", " "), 4 * index + 1) for index, field in enumerate(memory.descriptor)
    ]
    low = 0
    spare = []
    for field in sorted(memory.descriptor, key=lambda field: field.low):
        if field.low > low:
            spare.append(pictures.Field(low, field.low - low, "", pictures.BLANK))
        low = field.low + field.width
    words = [("", 64, [*fields, *spare])]
    draw_note = ["Grey bits are not used."]
    return {
        "fields": rest.table(
            ("Bits", "Field", "Meaning", "Encoding", "Source"),
            (
                (
                    f"{field.low + field.width - 1}:{field.low}",
                    rest.code(field.name),
                    rest.text(field.title),
                    f"{field.unit or 'value'} >> {field.shift}" if field.shift else "as it is",
                    rest.source(field.source),
                )
                for field in memory.descriptor
            ),
        ),
        "picture_name": gallery.other(
            "descriptor", lambda: pictures.bit_fields("Matrix descriptor", draw_note, words, per_line=32, cell=32)
        ),
        "base_offset": to_latex(memory.base_offset),
        "alignment": str(memory.alignment),
        "encodings": rest.table(
            ("Swizzle mode", "Encoding", "Pattern starts at a multiple of", "Source"),
            (
                (rest.text(one.title), str(one.encoding), f"{one.pattern} bytes", rest.source(one.source))
                for one in sorted(memory.swizzles, key=lambda one: one.encoding)
            ),
        ),
        "strides": _strides(memory),
        "notes": family.statements(memory.notes),
        "source": rest.source(memory.source),
    }


def _strides(memory: SharedMemory) -> str:
    """What LBO and SBO mean."""
    return rest.table(
        ("Majorness", "Swizzle", "Leading dimension byte offset", "Stride dimension byte offset", "Source"),
        (
            (
                f"{one.majorness}-major",
                rest.codes(one.swizzles),
                rest.text(one.lbo) + ("" if one.uses_lbo else " (otherwise ignored)"),
                rest.text(one.sbo),
                rest.source(one.source),
            )
            for one in memory.layouts
        ),
    )


def _swizzles(spec: Spec, memory: SharedMemory, gallery: Gallery) -> dict[str, Any]:
    widths = _widths(spec)
    return {
        "modes": rest.table(
            ("Mode", "Encoding", "Swizzled together", "Pattern", "CuTe", "MN-major atom", "K-major atom", "Source"),
            (
                (
                    rest.text(one.title),
                    str(one.encoding),
                    f"{one.bytes} bytes",
                    f"{one.pattern} bytes",
                    rest.code(one.cute),
                    _size(one.atom_mn),
                    _size(one.atom_k),
                    rest.source(one.source),
                )
                for one in memory.swizzles
            ),
        ),
        "elements": rest.table(
            ("Mode", "Majorness", *(f"{width}-bit elements" if width > 1 else "single bits" for width in widths)),
            (
                (rest.text(one.title), f"{major}-major", *(_size(_scaled(atom, major, width)) for width in widths))
                for one in memory.swizzles
                for major, atom in (("MN", one.atom_mn), ("K", one.atom_k))
            ),
        ),
        "formula": to_latex(memory.swizzle_formula),
        "atoms": [
            {"title": f"{rest.text(one.title)}, {major}-major", "picture": gallery.atom(memory, one, major)}
            for one in memory.swizzles
            for major in ("K", "MN")
        ],
        "layouts": [
            {
                "title": f"{one.majorness}-major, {rest.codes(one.swizzles)}",
                "cute": rest.code(one.cute),
                "formula": to_latex(one.offset),
                "lbo": rest.text(one.lbo),
                "sbo": rest.text(one.sbo),
                "source": rest.source(one.source),
            }
            for one in memory.layouts
        ],
        "strides": _strides(memory),
        "majorness": rest.table(
            ("Majorness", "Where", "What can be read", "Source"),
            (
                (f"{one.majorness}-major", rest.condition(one.of) or "always", rest.text(one.text), rest.source(one.source))
                for one in memory.majorness
            ),
        ),
        "examples": rest.table(
            ("Example", "Majorness", "Swizzle", "Type", "m", "k", "Layout", "LBO", "SBO", "LBO encoded", "SBO encoded", "Source"),
            (
                (
                    rest.text(one.name),
                    f"{one.majorness}-major",
                    rest.code(one.swizzle),
                    rest.code(one.type),
                    str(one.m),
                    str(one.k),
                    rest.code(one.cute),
                    str(one.lbo or rest.NOTHING),
                    str(one.sbo or rest.NOTHING),
                    str(one.lbo_encoding),
                    str(one.sbo_encoding),
                    rest.source(one.source),
                )
                for one in memory.examples
            ),
        ),
        "notes": family.statements(memory.notes),
        "source": rest.source(memory.source),
    }


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
    return sorted({one.bits for one in spec.types.elements if one.name in read})


def _scaled(atom: tuple[int, int], majorness: str, width: int) -> tuple[int, int]:
    """An atom in elements: 128-bit units grow along the leading dimension, which comes first when MN-major."""
    factor = _UNIT_BITS // width
    return (atom[0] * factor, atom[1]) if majorness == "MN" else (atom[0], atom[1] * factor)


def _size(atom: tuple[int, int]) -> str:
    return f"{atom[0]}{rest.TIMES}{atom[1]}"


def _protocol(spec: Spec) -> dict[str, Any]:
    protocol = spec.protocol
    assert protocol is not None
    known = {entry.name for entry in spec.instructions}
    return {
        "steps": rest.table(
            *rest.dense(
                ("", "Step", "Instruction", "What happens", "Source"),
                (
                    (
                        str(number),
                        rest.text(step.name),
                        rest.link(step.instruction, rest.label("instruction", step.instruction))
                        if step.instruction in known
                        else rest.code(step.instruction),
                        rest.text(step.text),
                        rest.source(step.source),
                    )
                    for number, step in enumerate(protocol.steps, 1)
                ),
            )
        ),
        "definitions": rest.table(
            *rest.dense(
                ("Term", "Meaning", "Formula", "Source"),
                (
                    (rest.text(one.name), rest.text(one.text), rest.code(one.formula), rest.source(one.source))
                    for one in protocol.definitions
                ),
            )
        ),
        "fences": family.statements(protocol.fences),
        "proxies": family.statements(protocol.proxies),
        "source": rest.source(protocol.source),
    }
