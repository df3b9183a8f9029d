"""What the page of an instruction family says, as data for its template.

Everything is derived from the model; which sections a family has follows from what the spec says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ptxmma import layouts, requirements
from ptxmma.generator.emit import mathematics, pictures, rest
from ptxmma.generator.emit.boxes import Values, boxes
from ptxmma.generator.emit.expressions import cases_to_latex, gather, to_latex
from ptxmma.generator.emit.gallery import Gallery
from ptxmma.instructions import Catalog, Instruction, operand_names
from ptxmma.layouts import THREADS, Plan
from ptxmma.model import Cases, InstructionSet, Layout, Spec, Stated, Statement, matches
from ptxmma.operands import Operand
from ptxmma.variants import SHAPE, placeholders, shape_token, syntax_parts

#: What stands in a table where there is nothing.
NOTHING = "–"  # noqa: RUF001


def page(catalog: Catalog, gallery: Gallery, family: str) -> dict[str, Any]:
    """The data of a family's page."""
    spec = catalog.database.spec
    entries = [entry for entry in spec.instructions if entry.family == family]
    return {
        "title": rest.text(family),
        "label": rest.label("family", family),
        "keywords": ", ".join(dict.fromkeys(shape for entry in entries for shape in _every_shape(catalog, entry))),
        "instructions": [_instruction(catalog, gallery, entry) for entry in entries],
        "asynchronous": any(entry.asynchronous for entry in entries) and spec.protocol is not None,
        "errata": [erratum_cells(erratum.id, erratum) for erratum in spec.errata if erratum.family == family],
    }
