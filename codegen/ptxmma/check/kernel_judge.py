"""Judges what instructions do together in a kernel: their order, their descriptors, and the tensor memory that they use."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ptxmma.check import costs, flow, shared_races
from ptxmma.check.alignment import Alignment
from ptxmma.check.clusters import Clusters
from ptxmma.check.counterparts import Counterparts
from ptxmma.check.descriptors import MatrixDescriptors, TensorDescriptors
from ptxmma.check.executions import Executions
from ptxmma.check.kernels import Kernel
from ptxmma.check.last_readers import silent_waits
from ptxmma.check.mbarriers import Mbarriers
from ptxmma.check.phases import PhaseJudge
from ptxmma.check.proxies import Proxies
from ptxmma.check.register_pools import RegisterPools
from ptxmma.check.remarks import Remark
from ptxmma.check.tensor_kernels import TensorKernels
from ptxmma.check.thread_fences import ThreadFences
from ptxmma.check.thread_orders import ThreadOrders
from ptxmma.ptx.blocks import NotFollowedError
from ptxmma.ptx.outline import Outline
from ptxmma.ptx.statements import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Set

    from ptxmma.catalog.instructions import Catalog
    from ptxmma.model import Pairing
    from ptxmma.ptx.statements import Function, Module


class KernelJudge:
    """Judges kernels by a database, and remembers what it has seen."""

    def __init__(self, catalog: Catalog) -> None:
        self._descriptors = MatrixDescriptors(catalog)
        self._tensor_descriptors = TensorDescriptors(catalog)
        self._protocol = flow.protocol(catalog)
        self._tensors = TensorKernels(catalog)
        self._proxies = Proxies(catalog)
        self._alignment = Alignment(catalog)
        self._clusters = Clusters(catalog)
        self._executions = Executions(catalog)
        self._pools = RegisterPools(catalog.database.spec)
        spec = catalog.database.spec
        self._races, self._meetings = [race for protocol in spec.protocols for race in protocol.races], spec.meetings
        protocols = catalog.database.spec.protocols
        self._orders = ThreadOrders(protocols)
        self._counterparts = Counterparts(protocols)
        self._phases = PhaseJudge(catalog)
        self._fences = ThreadFences(catalog)
        self._words = self._executions.words | self._phases.words | self._fences.words
        self._lifecycles = [life for protocol in protocols for life in protocol.lifecycles]
        self._pairings = [pairing for protocol in protocols for pairing in protocol.pairings]
        self._debugged: Module | None = None  # the last module that was noted to be one for debugging

    def mixed_groups(self, function: Function, opcodes: Set[bytes]) -> Iterator[tuple[Remark, bytes]]:
        """The remark on groups of CTAs that differ, with the opcode that it is about."""
        return self._tensors.mixed_groups(function, opcodes)

    def of_function(self, function: Function, opcodes: Set[bytes], target: str) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on a function as a whole, each with the opcode that it is about.

        Args:
            function: the function.
            opcodes: the opcodes of its matrix instructions.
            target: the target that it is for.
        """
        kernel = Kernel(function, opcodes, target, self._lifecycles, self._words, lambda: self._own_waits(barriers))
        barriers = functools.cache(functools.partial(Mbarriers, kernel))
        if self._protocol is not None:
            yield from self._of_flow(kernel, self._protocol)
        if not function.module.debug and function.text.startswith(b".entry"):
            yield from self._orders.of_kernel(kernel, barriers)
            yield from self._counterparts.of_kernel(kernel)
            yield from self._phases.of_kernel(kernel, barriers)
            yield from self._fences.of_kernel(kernel, barriers)
            yield from self._executions.of_kernel(kernel)
            yield from self._pools.of_kernel(kernel)
            yield from shared_races.of_kernel(kernel, self._races, self._meetings)
        yield from self._alignment.of_kernel(kernel)
        yield from self._clusters.of_kernel(kernel)
        yield from self._tensors.of_kernel(kernel, self._tensor_descriptors.product)
        yield from self._tensor_descriptors.of_kernel(kernel)
        if kernel.unfollowed:
            text = f"too many paths of this kernel differ, or a label is missing; not followed: {', '.join(sorted(kernel.unfollowed))}"
            yield Remark(Token(function.text[: len(b".entry")], 0), "note", "not-followed", text), b""

    def _own_waits(self, barriers_of: Callable[[Pairing], Mbarriers]) -> Set[int]:
        """The places of waits that say nothing of other warps, or of their last reads."""
        try:
            known = [barriers_of(each) for each in self._pairings]
            return frozenset[int]().union(*(each.own_waits | silent_waits(each) for each in known))
        except NotFollowedError:
            return frozenset()

    def misaligned(self, function: Function, opcodes: Set[bytes]) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on addresses of a function that are never aligned, each with the opcode that it is about.

        Args:
            function: the function.
            opcodes: the opcodes of its matrix instructions.
        """
        return self._alignment.of_kernel(Kernel(function, opcodes, "", (), frozenset()))

    def _of_flow(self, kernel: Kernel, protocol: flow.Protocol) -> Iterator[tuple[Remark, bytes]]:
        """The remarks on the order of asynchronous instructions; of a module for debugging, the one that they are not followed."""
        function = kernel.function
        if function.module.debug:
            first = flow.first_issue(function, protocol)
            if first is not None and function.module is not self._debugged:
                self._debugged = function.module
                text = "the module is compiled for debugging, where the compiler adds copies of its own: fences and waits are not checked"
                yield Remark(first, "note", "debug-build", text), first.text
            return
        yield from self._proxies.of_kernel(kernel)
        if not any(opcode.startswith((*protocol.opcodes.issues,)) for opcode in kernel.opcodes):
            return
        outline = Outline(function.text, protocol.opcodes)
        for hazard in flow.hazards(function, outline, protocol):
            token = Token(b" " * hazard.length, hazard.offset)
            yield Remark(token, hazard.severity, hazard.rule, hazard.message), hazard.instruction.encode()
        yield from costs.of_loops(outline, protocol)
        yield from self._descriptors.of_kernel(kernel, outline)
