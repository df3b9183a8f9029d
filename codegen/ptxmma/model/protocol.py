"""The order of asynchronous instructions."""

from __future__ import annotations

from typing import Annotated, Literal

from ptxmma.model.fields import SOME, Entry, Name, Source, Text, like


class Step(Entry, frozen=True, kw_only=True):
    """One step of the asynchronous protocol."""

    role: Annotated[str, like(r"^[a-z][a-z-]*$", "lower-case words with '-' between them")]  # "fence-registers": how code refers to it
    name: Text  # "fence registers": for readers
    instruction: Name = ""
    text: Text
    source: Source


class Definition(Entry, frozen=True, kw_only=True):
    """A term with its formula."""

    name: Text  # "warp rank"
    formula: Text = ""
    text: Text
    source: Source


class Ordering(Entry, frozen=True, kw_only=True):
    """The instruction that must come between two events so that the second sees the first."""

    earlier: Text  # "access to a register"
    later: Text  # "wgmma.mma_async with it as accumulator or fragment of A"
    needs: Annotated[str, like(r"^[a-z0-9_.:]*$", "an instruction, or empty")]  # "wgmma.fence"; "": they are ordered anyway
    by: Text = ""  # the threads that execute it: "every warp of the warpgroup"
    text: Text
    source: Source


class Issuer(Entry, frozen=True, kw_only=True):
    """The threads that execute some instructions, so that these take effect once."""

    instructions: Annotated[tuple[Name, ...], SOME]  # ("tcgen05.alloc", "tcgen05.dealloc")
    alone: Text  # the threads in one thread block: "one warp"
    pair: Text = ""  # the threads in a pair of thread blocks: "one warp of each"
    text: Text
    source: Source


class SameQualifier(Entry, frozen=True, kw_only=True):
    """A qualifier that has one value in all instructions of a kernel."""

    qualifier: Name  # "cta_group"
    source: Source


class ProxyAccess(Entry, frozen=True, kw_only=True):
    """The proxy of an access to memory."""

    access: Text
    proxy: Literal["async", "generic"]
    source: Source


class Protocol(Entry, frozen=True, kw_only=True):
    """The order of some families' asynchronous instructions against registers and memory."""

    title: Text  # "wgmma"
    families: Annotated[tuple[Name, ...], SOME]  # the families whose asynchronous instructions it orders
    definitions: tuple[Definition, ...]
    steps: tuple[Step, ...]
    orderings: tuple[Ordering, ...]
    proxies: tuple[ProxyAccess, ...]
    issuers: tuple[Issuer, ...] = ()
    same: tuple[SameQualifier, ...] = ()
    source: Source
