"""Addresses inside of the explorer."""

from __future__ import annotations

from urllib.parse import quote

#: The name of its file.
EXPLORER = "explorer.html"

#: What a browser leaves as it is in the end of an address.
_PLAIN = ":,/"


def explorer(**state: str) -> str:
    """The end of the explorer's address for what it shows: ``"#i=mma.sync…&at=a:9,3"``.

    Args:
        state: ``i`` the canonical spelling of the instruction, ``v`` the view (``"memory"``, ``"sparsity"``, ``"copy"``), ``at`` an
            element (``"a:9,3"``) or a thread (``"lane:5"``), ``image`` what lies in shared memory (``"bf16,K,128B,64,64"``).
    """
    return "#" + "&".join(f"{name}={quote(value, safe=_PLAIN)}" for name, value in state.items())
