"""Addresses inside of the explorer."""

from __future__ import annotations

from urllib.parse import quote

#: What a browser leaves as it is in the end of an address.
_PLAIN = ":,/"


def explorer(canonical: str, **state: str) -> str:
    """The end of the explorer's address that shows an instruction: ``"#i=mma.sync…"``.

    Args:
        canonical: its spelling.
        state: what else is shown: ``v`` the view, ``at`` an element (``"a:9,3"``) or a thread (``"lane:5"``).
    """
    return "#" + "&".join(f"{name}={quote(value, safe=_PLAIN)}" for name, value in {"i": canonical, **state}.items())
