"""Judges the directives of a module by themselves: does the version know the target?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxmma.check.remarks import Remark
from ptxmma.model import Version
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ptxmma.model import Spec
    from ptxmma.ptx.statements import Function

#: The directives, each with what they name.
_DIRECTIVE = re.compile(rb"(\.version)\s+(\d+\.\d+)|(\.target)\s+(?:\w+\s*,\s*)*(sm_\w+)")


class Headers:
    """Judges the directives of modules by a spec.

    Args:
        spec: the targets and versions.
        target, ptx: instead of what modules declare; empty without one.
    """

    def __init__(self, spec: Spec, target: str, ptx: str) -> None:
        self._targets = {entry.name: entry for entry in spec.targets}
        self._releases = {entry.version: entry.cuda for entry in spec.isa_versions}
        self._target, self._ptx = target, ptx

    def of_text(self, function: Function) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on the directives in a text outside functions, each with the directive that it is about."""
        if function.name or b".target" not in function.text:
            return
        matches = _DIRECTIVE.finditer(function.text)
        places = {
            match[match.lastindex - 1]: Token(match[match.lastindex], match.start(match.lastindex)) for match in matches if match.lastindex
        }
        version, target = function.module.version, self._targets.get(function.module.target)
        if version not in self._releases or len(places) < 2:
            return
        if self._ptx and Version(version) > Version(self._ptx):
            text = f"drivers and assemblers of PTX ISA {self._ptx} refuse a module of PTX ISA {version}, whatever is in it"
            yield Remark(places[b".version"], "note", "version", text), b".version"
        if self._ptx or self._target or target is None:
            return
        if Version(version) < min(Version(ptx) for ptx in (target.ptx, *(each.ptx for each in target.ptx_in))):
            needed = f"needs PTX ISA {target.ptx} on {target.name}, but is checked for {version}"
            release = self._releases[target.ptx]
            text = f"{target.name} needs PTX ISA {target.ptx} (CUDA {release}), but the module is of {version} [{target.source}]"
            yield Remark(places[b".target"], "error", "version", text, cause=needed), b".target"
