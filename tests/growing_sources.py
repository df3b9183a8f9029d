"""Sources in which something repeats that once made ``ptxmma check`` slow: for its tests and for ``make bench``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

_HEAD = (
    ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry kernel()\n{\n.reg .f32 %f<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\n"
)
_WGMMA = """\
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
"""
_END = "ret;\n}\n"


def _scopes(count: int) -> str:
    """Nested scopes, each of which declares registers."""
    return _HEAD + "".join(f"{{\n.reg .b32 %inner{number}_<2>;\n{_WGMMA}" for number in range(count)) + "}\n" * count + _END


def _asm(count: int) -> str:
    """Statements whose parentheses are never closed."""
    return 'asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"\n' * count


def _tables(count: int) -> str:
    """Branches, each of which may go to every label."""
    labels = [f"L{number}" for number in range(8 * count)]
    table = f"T: .branchtargets {', '.join(labels)};\n"
    return _HEAD + _WGMMA + table + "".join(f"{label}:\nbrx.idx %r1, T;\n" for label in labels) + _WGMMA + _END


#: Each by a file's name, made of how often something repeats.
SOURCES: Mapping[str, Callable[[int], str]] = {"scopes.ptx": _scopes, "asm.cu": _asm, "tables.ptx": _tables}
