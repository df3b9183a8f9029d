"""The page of tensor maps: data types, modes and rules as tables, and the way of a tile from global memory to D as a picture."""

from __future__ import annotations

from typing import Any

from ptxmma.catalog.descriptors.shared_formats import matrix_format
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.names.links import EXPLORER, explorer
from ptxmma.generator.emit.docs import rest, struct_tables
from ptxmma.generator.emit.docs.gallery import Gallery
from ptxmma.matrices import pictures
from ptxmma.matrices.shared.box import BoxGeometry
from ptxmma.matrices.shared.canonical import Geometry, canonical
from ptxmma.matrices.shared.readable_types import memory_of
from ptxmma.model import DriverDifference, TensorMapRule, TensorMaps

#: The tile of the picture: its swizzle, its extents, the tensor around it, and its coordinates there.
_SWIZZLE, _BOX, _TENSOR, _AT = "64B", (32, 64), (64, 256), (32, 5)


def page(catalog: Catalog, maps: TensorMaps, gallery: Gallery) -> dict[str, Any]:
    """The values for the page."""
    targets = {"targets": lambda entry: " ".join(map(rest.code, entry.targets))}
    return {
        "source": rest.source(maps.source),
        "modes": struct_tables.table(
            maps.modes,
            code=("name", "like", "function"),
            titles={
                "like": "Also the rules of",
                "corners": "Dimensions with corners",
                "pixels": "Pixels of every copy",
                "halo_every": "Pixels before a halo",
                "rows": "Rows with a coordinate",
            },
            without=("wide", "names"),
        ),
        "types": struct_tables.table(
            maps.types, code=("name",), titles={"group": "Elements in 16 bytes", "value": "Number"}, cells=targets, without=("elements",)
        ),
        "swizzles": struct_tables.table(
            maps.swizzles, code=("name", "formula"), titles={"value": "Number"}, cells=targets, without=("cuda", "bytes")
        ),
        "interleaves": struct_tables.table(maps.interleaves, code=("name", "cuda"), titles={"value": "Number", "unit": "Bytes of a slice"}),
        "fills": struct_tables.table(maps.fills, code=("name", "cuda"), titles={"value": "Number", "halfword": "Each 16 bits"}),
        "rules": [
            {"mode": mode.name, "title": rest.text(mode.title), "table": _rules([rule for rule in maps.rules if mode.name in rule.modes])}
            for mode in maps.modes
        ],
        "every": _rules([rule for rule in maps.rules if not rule.modes]),
        "notes": rest.bullets(f"{rest.text(note.text)} ({rest.source(note.source)})" for note in maps.notes),
        "explorer": f"../{EXPLORER}{explorer(v='memory', image=f',K,{_SWIZZLE}')}",
        "drawn": gallery.other("way_to_d", lambda: _way(catalog)),
    }


def _rules(rules: list[TensorMapRule]) -> str:
    """Rules as a table."""
    return struct_tables.table(
        rules,
        titles={"need": "Needs", "drivers": "Driver"},
        cells={"drivers": lambda rule: rest.text("; ".join(map(_departing, rule.drivers)))},
        code=("argument", "when", "need"),
        without=("modes", "text"),
        kind="conditions",
    )


def _departing(driver: DriverDifference) -> str:
    """The verdict of a driver that departs from its documentation."""
    return f"{'accepts it' if driver.accepted else 'refuses more'}: CUDA {driver.since}, {driver.lowest}"


def _way(catalog: Catalog) -> str:
    """The first lines of a tile, as the first family with matrix descriptors reads them."""
    family = matrix_format(catalog.database.spec).family
    product = next(each for each in catalog.all() if each.family == family)
    element = product.matrix_types["a"]
    alike = (each for each in catalog.all() if each.family == "mma" and each.matrix_types["a"] == element)
    from_registers = max(alike, key=lambda each: each.extents["k"])
    types = {"dtype": "f32", "atype": element, "btype": element}
    into_tensor = catalog.find("tcgen05.mma.cta_group::1.kind::f16").resolved(m=128, n=64, **types)
    ends = pictures.Ends(from_registers.operand("a"), product.operand("d"), into_tensor.operand("d-tmem"))
    box = BoxGeometry(element, _TENSOR, _BOX, swizzle=_SWIZZLE, database=catalog.database)
    layout = Geometry(element, "K", _SWIZZLE, _BOX[1], _BOX[0], family=family, database=catalog.database)
    lines = canonical(memory_of(catalog.database), "K", _SWIZZLE).layout.lines
    return pictures.way(box, _AT, layout, ends, lines)
