"""The C headers: layouts of each family, tables of types, targets and variants, shared memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from ptxmma.catalog import requirements
from ptxmma.catalog.descriptors.shared_formats import matrix_formats, read_by, swizzle_encoding
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.names.cplusplus import enumerator
from ptxmma.generator.emit import Output, c_text, formula_text, tensor_functions
from ptxmma.generator.emit.c_headers import descriptor_structs, layout_functions, variant_lists
from ptxmma.generator.emit.c_headers.family_layouts import Family
from ptxmma.generator.emit.c_headers.layout_functions import Function
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import CanonicalLayout, Condition, DescriptorFormat, SharedMemory, Spec, Swizzle, Target

_FOLDER = "generated/include/ptxmma"
#: A set of targets is one 64-bit word.
_MOST_TARGETS = 64


def emit(catalog: Catalog) -> Iterator[Output]:
    """Every header, and the lists that they are built from."""
    spec = catalog.database.spec
    families = {name: c_text.identifier(name) for name in dict.fromkeys(entry.family for entry in spec.instructions)}
    headers = ["config.h", "types.h", "targets.h", "variants.h"]

    def file(path: str, template: str, source: str, **values: Any) -> Output:
        text = render(f"c/{template}.jinja", spec=spec, c=c_text, **values)
        return Output(f"{_FOLDER}/{path}", banner("//", catalog, [source]) + text)

    def rows(path: str, source: str, macro: str, columns: str, about: str, entries: Iterable[str]) -> Output:
        text = c_text.paragraph(f"{about} Define {macro}, include this file, undefine it.")
        return file(path, "list.def", source, macro=macro, columns=columns, text=text, rows=entries)

    yield file("config.h", "config.h", "spec/spec.yaml", version=spec.version.split("."))

    yield rows("types.def", "spec/types.yaml", "PTXMMA_TYPE", *_types(spec))
    yield rows("register_types.def", "spec/types.yaml", "PTXMMA_REGISTER_TYPE", *_register_types(spec))
    forms = dict.fromkeys(entry.form for entry in spec.types.elements)
    yield file("types.h", "types.h", "spec/types.yaml", forms=forms, containers=_containers(spec))

    yield rows("targets.def", "spec/targets.yaml", "PTXMMA_TARGET", *_targets(spec))
    yield rows("isa_versions.def", "spec/isa_versions.yaml", "PTXMMA_ISA_VERSION", *_isa_versions(spec))
    yield file("targets.h", "targets.h", "spec/targets.yaml")

    sets: dict[str, tuple[Target, ...]] = {}
    lists = []
    for name, stem in families.items():
        one = variant_lists.of(catalog, name, stem, sets)
        lists.append(one)
        yield rows(f"variants/{stem}.def", "spec/instructions", "PTXMMA_VARIANT", variant_lists.COLUMNS, one.about, one.rows)
    masks = {name: _set(spec, members) for name, members in sets.items()}
    yield file("variants.h", "variants.h", "spec/instructions", sets=masks, lists=lists, columns=variant_lists.COLUMNS)

    for name, stem in families.items():
        family = Family(catalog, name)
        if family.threads:
            headers.append(f"{stem}.h")
            members = [entry for entry in spec.instructions if entry.family == name]
            yield file(f"{stem}.h", "family.h", "spec/layouts", family=family, members=members)
    if spec.shared_memory is not None:
        headers.append("shared_memory.h")
        yield file("shared_memory.h", "shared_memory.h", "spec/shared_memory.yaml", **_shared_memory(spec, spec.shared_memory))
    for memory in spec.tensor_memories:
        headers.append(f"{tensor_functions.module(memory)}.h")
        values = {"memory": memory, "title": tensor_functions.title(memory), "functions": layout_functions.tensor_groups(memory)}
        yield file(headers[-1], "tensor_memory.h", "spec/tensor_memory.yaml", **values)
    if spec.descriptors:
        headers.append("descriptors.h")
        names = {"kinds": descriptor_structs.kinds(spec.descriptors), "enumerator": enumerator}
        structs = [descriptor_structs.struct(spec, format) for format in spec.descriptors]
        masks_of_columns = [descriptor_structs.mask(spec, entry) for entry in spec.column_masks]
        yield file("descriptors.h", "descriptors.h", "spec/descriptors.yaml", structs=structs, masks=masks_of_columns, **names)
        yield rows("descriptor_fields.def", "spec/descriptors.yaml", "PTXMMA_DESCRIPTOR_FIELD", *_descriptor_fields(spec))
    yield file("ptxmma.h", "ptxmma.h", "spec", headers=headers)


#: The columns of a list, what it lists, and its rows.
_List = tuple[str, str, list[str]]


def _row(*values: str | int) -> str:
    return ", ".join(map(str, values))


# --- types ------------------------------------------------------------------------------------------------------------------


def _types(spec: Spec) -> _List:
    rows = [
        _row(
            c_text.macro(entry.name),
            c_text.string(entry.name),
            c_text.macro(entry.form),
            *(entry.bits, entry.exponent, entry.mantissa, entry.bias),
            *(int(entry.sign), int(entry.infinity), int(entry.nan)),
            c_text.string(entry.title),
        )
        for entry in spec.types.elements
    ]
    columns = "identifier, name, form, bits, exponent, mantissa, bias, sign, infinity, nan, title"
    return columns, "Every element type; what its parts are wide, and whether it has a sign, infinities, NaNs.", rows


def _register_types(spec: Spec) -> _List:
    rows = [
        _row(
            c_text.macro(entry.name),
            c_text.string(entry.name),
            entry.bits,
            c_text.identifier(entry.c_type),
            c_text.string(entry.constraint),
            c_text.string(entry.title),
        )
        for entry in spec.types.registers
    ]
    columns = "identifier, name, bits, c_type, constraint, title"
    return columns, "Every PTX register type, with the C type and the inline-asm constraint that go with it.", rows


def _containers(spec: Spec) -> list[dict[str, Any]]:
    """Each element type that some instructions take in a wider container.

    Where others take it in another part of one as wide, the name of the second has the lowest bit.
    """
    bits, stems = {entry.name: entry.bits for entry in spec.types.elements}, set[str]()
    rows = []
    for entry in spec.types.containers:
        for name in entry.elements:
            stem = f"{c_text.identifier(name)}_b{entry.bits}"
            stem = stem if stem not in stems else f"{stem}_from_{entry.shift}"
            stems.add(stem)
            rows.append(
                {
                    "name": name,
                    "stem": stem,
                    "bits": entry.bits,
                    "shift": entry.shift,
                    "last": entry.shift + bits[name] - 1,
                    "pack": f"(element & {(1 << bits[name]) - 1:#x})" + (f" << {entry.shift}" if entry.shift else ""),
                    "unpack": (f"(container >> {entry.shift})" if entry.shift else "container") + f" & {(1 << bits[name]) - 1:#x}",
                    "when": _condition(entry.when),
                    "source": entry.source,
                }
            )
    return rows


def _condition(when: tuple[Condition, ...]) -> str:
    """A condition in words: ``under kind::f8f6f4 or kind::mxf8f6f4``."""
    parts = (" and ".join(" or ".join(_value(key, value) for value in values) for key, values in one.items()) for one in when)
    return " under " + ", or ".join(dict.fromkeys(parts)) if when else ""


def _value(key: str, value: str | int) -> str:
    """A value that a condition allows; a number with its name."""
    return f"{key} = {value}" if isinstance(value, int) else value


# --- targets ----------------------------------------------------------------------------------------------------------------


def _targets(spec: Spec) -> _List:
    targets = requirements.targets_of(spec)
    rows = []
    for target in spec.targets:
        features = targets.features(target.name)
        has = _set(spec, [one for one in spec.targets if one.name in features])
        name, suffix = c_text.string(target.name), c_text.string(target.suffix)
        rows.append(_row(c_text.macro(target.name), name, target.number, suffix, *target.ptx.split("."), has))
    about = (
        'Every target: ten times its compute capability, "a" or "f" or "", the first PTX ISA version that knows it, and the set of '
        "targets whose features it has, itself included (bit 0 is the first target of this list)."
    )
    return "identifier, name, number, suffix, ptx_major, ptx_minor, features", about, rows


def _isa_versions(spec: Spec) -> _List:
    rows = [_row(*entry.version.split("."), c_text.string(entry.cuda)) for entry in spec.isa_versions]
    return "major, minor, cuda", "Every PTX ISA version with the CUDA release that brought it.", rows


def _set(spec: Spec, members: Iterable[Target]) -> str:
    """A set of targets as a number: bit t for the target at place t."""
    if len(spec.targets) > _MOST_TARGETS:
        raise ValueError(f"{len(spec.targets)} targets; a set in the C tables holds {_MOST_TARGETS}")
    names = {target.name for target in members}
    return f"UINT64_C({sum(1 << place for place, target in enumerate(spec.targets) if target.name in names):#x})"


# --- descriptors ------------------------------------------------------------------------------------------------------------


def _descriptor_fields(spec: Spec) -> _List:
    rows = [
        _row(format.name, field.name, field.low, field.width, -1 if field.upper is None else field.upper, field.shift, field.less)
        + f", {c_text.string(field.title)}"
        for format in spec.descriptors
        for field in format.fields
    ]
    about = (
        "Every field of every descriptor: it holds (value - less) >> shift in `width` bits from bit `low` up; `upper` is one more bit, "
        "the highest, that lies apart, or -1."
    )
    return "descriptor, name, low, width, upper, shift, less, title", about, rows


# --- shared memory ----------------------------------------------------------------------------------------------------------


def _shared_memory(spec: Spec, memory: SharedMemory) -> dict[str, Any]:
    """Swizzle modes, and canonical layouts with a function for each of their modes."""
    first, *others = matrix_formats(spec)
    own = read_by(spec, memory, first.family)
    return {
        "first": first,
        "families": [each.family for each in others],
        "memory": memory,
        "majorness": own.majorness,
        "modes": _modes(spec, memory, first),
        "others": [
            (
                mode,
                [each.family for each in (first, *others) if mode.name in swizzle_encoding(spec, each.family)],
                formula_text.to_c(mode.formula, {"span": str(mode.bytes)}),
            )
            for mode in memory.swizzles
            if mode.formula
        ],
        "majornesses": list(dict.fromkeys(layout.majorness for layout in memory.layouts)),
        "layouts": [(layout, _offsets(memory, layout)) for layout in memory.layouts],
        "swizzle": formula_text.to_c(memory.swizzle_formula),
        "base_offset": formula_text.to_c(memory.base_offset),
    }


def _modes(spec: Spec, memory: SharedMemory, first: DescriptorFormat) -> list[tuple[Swizzle, int]]:
    """The swizzle modes with their numbers: those that the first descriptors hold, and larger ones for modes that they lack."""
    encoded = swizzle_encoding(spec, first.family)
    next_number = itertools.count(max(encoded.values()) + 1)
    numbered = [(mode, encoded[mode.name] if mode.name in encoded else next(next_number)) for mode in memory.swizzles]
    return sorted(numbered, key=lambda pair: pair[1])


def _offsets(memory: SharedMemory, layout: CanonicalLayout) -> list[Function]:
    """The offset of an element, for each swizzle mode of a canonical layout."""
    functions = []
    for mode in memory.swizzles:
        if mode.name in layout.swizzles:
            name = c_text.identifier(f"ptxmma_offset_{layout.majorness}_{mode.name}").lower()
            expression = formula_text.to_c(layout.element_offset, {"span": str(mode.bytes)})
            functions.append(Function(f"{layout.majorness}-major, {mode.title}.", name, ("x", "k", "bits", "lbo", "sbo"), expression))
    return functions
