"""Prints requirements with which the tests run: the lowest version that pyproject.toml admits of each package that the product needs."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

_LOWEST = re.compile(r"([\w.-]+)>=([\w.]+)")


def requirements(pyproject: Path) -> list[str]:
    """``["numpy==1.26", ...]`` of the dependencies and of what generating needs; and of the test tools as they are."""
    known = msgspec.toml.decode(pyproject.read_bytes())
    needed = [*known["project"]["dependencies"], *known["project"]["optional-dependencies"]["generate"]]
    bounds = {text: _LOWEST.match(text) for text in needed}
    if unbounded := [text for text, bound in bounds.items() if not bound]:
        raise ValueError(f"{pyproject}: without a lowest version: {', '.join(unbounded)}")
    return [*(f"{bound[1]}=={bound[2]}" for bound in bounds.values() if bound), *known["dependency-groups"]["test"]]


if __name__ == "__main__":
    print("\n".join(requirements(Path("pyproject.toml"))))
