"""The projects that tensor memory and its descriptors are compared with: what is installed of them, and how the records name it."""

from __future__ import annotations

from typing import NamedTuple

from ptxmma.catalog.evidence.witnesses import Tool
from ptxmma_proof import peers
from ptxmma_proof.peers import headers, mosaic, probe, triton_compiler
from ptxmma_proof.peers.headers import Cutlass
from ptxmma_proof.peers.mosaic import Mosaic
from ptxmma_proof.peers.triton_compiler import Triton


class Installed(NamedTuple):
    """CUTLASS's headers, Triton and JAX."""

    cutlass: Cutlass
    triton: Triton
    jax: Mosaic

    def tools(self, nvcc: str, date: str) -> tuple[Tool, ...]:
        """Their names and versions, for the record."""
        return (
            Tool(kind="peer", name=headers.PACKAGE, version=self.cutlass.version, sha256=self.cutlass.digest(), date=date),
            Tool(kind="compiler", name=f"compiler for {headers.PACKAGE}", version=probe.version(nvcc), date=date),
            Tool(kind="peer", name="Triton", version=self.triton.version, sha256=self.triton.digest(), date=date),
            Tool(kind="peer", name="JAX", version=self.jax.version, sha256=self.jax.digest(), date=date),
        )


def find() -> Installed:
    """Return what is installed.

    Raises:
        MissingPeerError: one of them is not.
    """
    cutlass, triton, jax = headers.installed(), triton_compiler.installed(), mosaic.installed()
    if cutlass is None:
        raise peers.MissingPeerError(f"CUTLASS's headers are not installed: pip install --no-deps {headers.PACKAGE}")
    if triton is None:
        raise peers.MissingPeerError(f"Triton is not installed: pip install {triton_compiler.PACKAGE}")
    if jax is None:
        raise peers.MissingPeerError(f"JAX is not installed: pip install {mosaic.PACKAGE}")
    return Installed(cutlass, triton, jax)
