"""The pictures that pages show: one file for each map, however many layouts share it."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable

from ptxmma.catalog.instructions import Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.matrices import pictures
from ptxmma.matrices.shared.canonical import Canonical
from ptxmma.model import Granularity, Layout, Version


class Gallery:
    """Pictures by file name, drawn when they are first asked for.

    A picture that layouts of several families share has the name of the oldest family's layout: a family that is added moves none,
    wherever its file is in the spec.
    """

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        self._names: dict[Hashable, str] = {}
        self.files: dict[str, str] = {}
        first: dict[str, Version] = {}
        shown: dict[str, tuple[Layout, Operand]] = {}
        for each in instructions:
            version = min(Version(rule.ptx) for rule in each.variant.instruction.requires if rule.ptx)
            first[each.family] = min(version, first.get(each.family, version))
            for operand in each.operands:
                if operand.layout is not None:
                    shown.setdefault(operand.layout.name, (operand.layout, operand))
        for _, operand in sorted(shown.values(), key=lambda pair: (first[pair[0].family], pair[0].family)):
            self.layout(operand)

    def _show(self, key: Hashable, name: str, draw: Callable[[], str]) -> str:
        if key not in self._names:
            self._names[key] = name
            self.files[f"{name}.svg"] = draw()
        return self._names[key]

    def layout(self, operand: Operand) -> str:
        """The picture of a register operand's layout: a fragment, metadata or scale factors."""
        layout = operand.layout
        assert layout is not None
        sizes = [size for axis, size in layout.axes.items() if size > 1 or axis in layout.coordinates]
        key: tuple[Hashable, ...] = (layout.kind, *sizes, repr(layout.map.bits))
        if layout.kind == "fragment":
            per_register, endless, pattern = operand.elements_per_register, bool(layout.growing), operand.sparsity
            ratio = (pattern.chunk, pattern.kept) if pattern else None
            key = (*key, layout.operands, per_register, endless, ratio, operand.observed)
        if layout.kind == "scale":
            key = (*key, *layout.axes.items(), *layout.steps.items())
        return self._show(key, layout.name, lambda: pictures.operand(operand))

    def width(self, name: str) -> int:
        """The natural width of a picture in pixels."""
        match = re.search(r'width="(\d+)"', self.files[f"{name}.svg"])
        assert match is not None
        return int(match[1])

    def area(self, name: str) -> int:
        """The natural size of a picture in square pixels."""
        match = re.search(r'height="(\d+)"', self.files[f"{name}.svg"])
        assert match is not None
        return self.width(name) * int(match[1])

    def storage(self, pattern: Granularity) -> str:
        """The picture of an example of sparse storage; patterns of one name, which differ in the legal fields alone, share it."""
        return self.other(f"sparsity_{pattern.name.replace(':', '_')}", lambda: pictures.storage(pattern))

    def atom(self, layout: Canonical) -> str:
        """The picture of a swizzle atom."""
        return self.other(f"swizzle_{layout.mode.name}_{layout.layout.majorness.lower()}", lambda: pictures.atom(layout))

    def canonical_layout(self, layout: Canonical) -> str:
        """The picture of a canonical layout."""
        name = f"canonical_{layout.mode.name}_{layout.layout.majorness.lower()}"
        return self.other(name, lambda: pictures.canonical_layout(layout))

    def other(self, name: str, draw: Callable[[], str]) -> str:
        """A picture that is shown once."""
        return self._show(name, name, draw)
