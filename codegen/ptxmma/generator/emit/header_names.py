"""The names that headers take beside the names of instructions; the rules keep them from families, stems and modifiers.

What a header declares is read from its template.  A name of the spec stands in braces there.
"""

from __future__ import annotations

import functools
import re

from ptxmma.catalog.names.cplusplus import NO_HINT, identifier
from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.generator.emit import EMITTERS
from ptxmma.generator.emit.templating import source, templates
from ptxmma.model import Spec

#: A declaration; the stem of a family of products is the one name of the spec that is part of a longer name.
_DECLARED = re.compile(r"(?:template <.*> )?(?:struct|using|namespace) ((?:\w|\{\{ f \}\})+)(?!\w*\{\{)")


def files(spec: Spec) -> frozenset[str]:
    """The stems of headers and lists, and the folders beside them, of no family of instructions and no memory."""
    own = {name for emitter in EMITTERS.values() for name in emitter.headers}
    return frozenset(own | {f"{stem}_products" for stem in _stems(spec)})


def declared(spec: Spec) -> frozenset[str]:
    """The types, templates and namespaces in namespace ``ptxmma`` that no instruction brings.

    Some options of products have the names of fields of their instruction descriptors, or of immediate operands.
    """
    names = {name.replace("{{ f }}", stem) for name in _in_templates() for stem in (_stems(spec) if "{" in name else [""])}
    fields = {field.name for format in spec.descriptors if format.describes == "instruction" for field in format.fields}
    kinds = (kinds for entry in spec.instructions if entry.operation == OPERATION for kinds in entry.operand_kinds.items())
    immediates = {identifier(name) for name, kind in kinds if kind.kind == "immediate"}
    return frozenset({NO_HINT} | names | fields | immediates)


def _stems(spec: Spec) -> list[str]:
    """The stems of the families of products."""
    return [identifier(format.family) for format in spec.descriptors if format.describes == "instruction"]


@functools.cache
def _in_templates() -> frozenset[str]:
    """The names that templates declare in namespace ``ptxmma``, which is the outermost in each."""
    names = set()
    for template in templates("cuda/"):
        depth = 0  # the braces around a name of the spec are balanced
        for line in source(template).splitlines():
            if depth == 1 and (found := _DECLARED.match(line)):
                names.add(found[1])
            depth += line.count("{") - line.count("}")
    return frozenset(names)
