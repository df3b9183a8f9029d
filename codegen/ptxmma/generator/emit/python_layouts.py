"""Python functions: which thread holds what, forward and inverse, a module per family; and shared memory.

The functions are expressions over ``>> << & | ^`` and arithmetic, which integers, NumPy arrays and torch tensors share.  They
have no annotations: no built-in type says "an integer or an array of them, and the same comes back", and they import nothing.
"""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ptxmma.catalog.descriptors.bits import ones, placed
from ptxmma.catalog.descriptors.shared_formats import matrix_formats, swizzle_encoding
from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output, index_functions, shared_functions, tensor_functions
from ptxmma.generator.emit.formula_text import to_python
from ptxmma.generator.emit.index_functions import IndexFunction
from ptxmma.generator.emit.templating import banner, render
from ptxmma.model import DescriptorFormat, SharedMemory, Spec

_PACKAGE = "generated/python/ptxmma_layouts"
_LONGEST_LINE = 140


class Function(NamedTuple):
    """One function: its parameters as the signature has them, the lines of its docstring and of its body."""

    name: str
    parameters: str
    doc: list[str]
    body: list[str]


def emit(catalog: Catalog) -> Iterator[Output]:
    """The package: a module for each family that has layouts, and one for shared memory."""
    spec = catalog.database.spec
    families: dict[str, list[Function]] = {}
    for layout, made in index_functions.functions(catalog):
        families.setdefault(layout.family, []).extend(map(_function, made))
    modules: dict[str, tuple[str, dict[str, dict[str, int]], list[Function]]] = {}
    for family, functions in families.items():
        modules[_identifier(family)] = (f"Layouts of {_plain(family)}: which thread holds which element.", {}, functions)
    memory = spec.shared_memory
    if memory is not None:
        title = "Matrices in shared memory: swizzles, canonical layouts and the matrix descriptor."
        tables = {
            "SWIZZLE_SPAN": {mode.name: mode.bytes for mode in memory.swizzles},
            "SWIZZLE_PATTERN": {mode.name: mode.pattern for mode in memory.swizzles},
            **{
                f"{_of(each, first)}SWIZZLE_ENCODING".upper(): swizzle_encoding(spec, each.family)
                for first, *others in [matrix_formats(spec)]
                for each in (first, *others)
            },
        }
        modules["shared_memory"] = (title, tables, list(_shared_memory(spec, memory)))
    for each in spec.tensor_memories:
        functions = [_function(function.written(to_python)) for function in tensor_functions.functions(each)]
        modules[tensor_functions.module(each)] = (tensor_functions.title(each), {}, functions)
    shared = {"banner": banner("#", catalog, ["spec/"]), "document": _plain(spec.document)}
    for name, (title, tables, functions) in modules.items():
        text = render("python/module.py.jinja", title=title, tables=tables, functions=functions, **shared)
        yield Output(f"{_PACKAGE}/{name}.py", text)
    titles = {name: title for name, (title, _, _) in modules.items()}
    yield Output(f"{_PACKAGE}/__init__.py", render("python/package.py.jinja", version=spec.version, modules=titles, **shared))
    yield Output(f"{_PACKAGE}/py.typed", "")


def _identifier(name: str) -> str:
    """A name of the spec as a Python identifier."""
    result = re.sub(r"\W", "_", name)
    return f"{result}_" if keyword.iskeyword(result) else result


def _plain(text: str) -> str:
    """Text of the spec, escaped for a docstring."""
    return text.replace("\\", "/").replace('"', "'")


def _doc(title: str, lines: Iterable[str], source: str) -> list[str]:
    return [title, "", *lines, f"Source: {_plain(source)}."]


def _function(function: IndexFunction) -> Function:
    """A function in Python."""
    parameters = ", ".join(f"{name}=0" if name in function.optional else name for name in function.parameters)
    body = [*(f"{name} = {expression}" for name, expression in function.steps), f"return {', '.join(function.results.values())}"]
    doc = _doc(_plain(function.title), map(_plain, function.notes), function.source)
    return Function(_identifier(function.name), parameters, doc, body)


# --- shared memory ----------------------------------------------------------------------------------------------------------


def _shared_memory(spec: Spec, memory: SharedMemory) -> Iterator[Function]:
    tables = {"swizzle": ("See SWIZZLE_SPAN.",), "base_offset": ("See SWIZZLE_PATTERN.",)}
    for function in shared_functions.swizzles(memory, to_python):
        yield _function(function._replace(notes=(*function.notes, *tables.get(function.name, ()))))
    for layout, mode, function in shared_functions.offsets(memory, to_python):
        yield _function(function)
        name = _identifier(function.name)
        title = f"Absolute address of the first byte of element (``x``, ``k``): {layout.majorness}-major, swizzle {_plain(mode.name)}."
        lines = [f"``start`` is the absolute address of the matrix; the rest as for ``{name}`` and ``swizzle``."]
        offset = f"start + {name}(x, k, bits, lbo, sbo)"
        own = f"swizzle_{_identifier(mode.name).lower()}({offset}, base_offset)"
        body = [f"return {own if mode.formula else f'swizzle({offset}, {mode.bytes}, base_offset)'}"]
        doc = _doc(title, lines, layout.source)
        yield Function(name.replace("offset", "address", 1), "start, x, k, bits, lbo, sbo, base_offset=0", doc, body)
    first, *others = matrix_formats(spec)
    for format in (first, *others):
        yield from _descriptor(format, _of(format, first))


def _of(format: DescriptorFormat, first: DescriptorFormat) -> str:
    """The start of the names about the descriptors of a family; empty for the first family."""
    return "" if format is first else f"{_identifier(format.family)}_"


def _descriptor(format: DescriptorFormat, stem: str) -> Iterator[Function]:
    fields = [field for field in format.fields if field.fixed is None]
    names = [_identifier(field.name) for field in fields]
    source = ", ".join(dict.fromkeys(field.source for field in format.fields))
    lines = []
    terms = [f"0x{placed(field, field.fixed):X}" for field in format.fields if field.fixed]
    for name, field in zip(names, fields, strict=True):
        unit = f", in {_plain(field.unit)}" if field.unit and not any(case.values for case in field.cases) else ""
        lines += textwrap.wrap(f"``{name}``: {_plain(field.title)}{unit}.", _LONGEST_LINE - 4, subsequent_indent="    ")
        value = f"({name} - {field.less})" if field.less else name
        value = f"({value} >> {field.shift})" if field.shift else value
        terms += [f"({value} >> {field.width} & 1) << {field.upper}"] if field.upper is not None else []
        value = f"({value} & 0x{ones(field.width):X})"
        terms.append(f"({value} << {field.low})" if field.low else value)
    body = [f"return {' | '.join(terms)}"]
    if len(body[0]) + 4 > _LONGEST_LINE:
        body = ["return (", *(f"    {'| ' if index else ''}{term}" for index, term in enumerate(terms)), ")"]
    yield Function(
        f"encode_{stem}descriptor",
        ", ".join(names),
        _doc(f"The 64-bit matrix descriptor of {_plain(format.family)} of its fields.", lines, source),
        body,
    )
    body = []
    for name, field in zip(names, fields, strict=True):
        value = f"(descriptor >> {field.low})" if field.low else "descriptor"
        value = f"{value} & 0x{ones(field.width):X}"
        value = f"{value} | (descriptor >> {field.upper} & 1) << {field.width}" if field.upper is not None else value
        value = f"({value}) << {field.shift}" if field.shift else value
        body.append(f"{name} = ({value}) + {field.less}" if field.less else f"{name} = {value}")
    body.append(f"return {', '.join(names)}")
    title = f"The fields of a 64-bit matrix descriptor of {_plain(format.family)}: the inverse of ``encode_{stem}descriptor``."
    yield Function(f"decode_{stem}descriptor", "descriptor", _doc(title, [f"-> {', '.join(names)}."], source), body)
