"""How asynchronous instructions are ordered."""

from __future__ import annotations

from ptxmma.model.conditions import Entry


class Step(Entry, frozen=True, kw_only=True):
    """One step of the asynchronous protocol."""

    name: str
    instruction: str = ""
    text: str
    source: str


class Definition(Entry, frozen=True, kw_only=True):
    """A term with its formula."""

    name: str  # "warp rank"
    formula: str = ""
    text: str
    source: str


class Ordering(Entry, frozen=True, kw_only=True):
    """What must stand between two events so that the second sees the first."""

    earlier: str  # "access to a register"
    later: str  # "wgmma.mma_async with it as accumulator or fragment of A"
    needs: str  # the instruction: "wgmma.fence"; "": they are ordered anyway
    by: str = ""  # who executes it: "every warp of the warpgroup"
    text: str
    source: str


class ProxyAccess(Entry, frozen=True, kw_only=True):
    """Through which proxy an access to memory goes."""

    access: str
    proxy: str  # "async" or "generic"
    source: str


class Protocol(Entry, frozen=True, kw_only=True):
    """How asynchronous instructions are ordered against registers and memory."""

    definitions: tuple[Definition, ...]
    steps: tuple[Step, ...]
    orderings: tuple[Ordering, ...]
    proxies: tuple[ProxyAccess, ...]
    source: str
