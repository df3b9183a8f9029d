"""CUTLASS's headers, for tests that are skipped where there are none."""

from __future__ import annotations

import pytest

from ptxmma_proof.peers import headers
from ptxmma_proof.peers.sources import MissingPeerError, Source


def cutlass() -> Source:
    """Return the installed headers of CUTLASS, or skip the test."""
    try:
        return headers.find({})
    except MissingPeerError as error:
        pytest.skip(str(error))
