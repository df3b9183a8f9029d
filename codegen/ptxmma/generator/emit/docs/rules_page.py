"""The pages of the checker's rules."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from ptxmma.check.rules import RULES
from ptxmma.generator.emit.docs import rest


def index() -> dict[str, Any]:
    """The values for the page of all rules."""
    rows = [(rest.link(code, f"rule-{code}"), rest.text(rule.what)) for code, rule in RULES.items()]
    return {"rules": rest.table(("Rule", "What it requires"), rows), "codes": [*RULES]}


def pages() -> Iterator[tuple[str, dict[str, Any]]]:
    """The code of each rule, and what its page shows."""
    for code, rule in RULES.items():
        texts = {"what": rule.what, "why": rule.why, "fix": rule.fix}
        highlighted = "cuda" if rule.language == ".cu" else "none"
        examples = {"bad": _block(rule.bad, highlighted), "good": _block(rule.good, highlighted)}
        yield code, {"code": code} | {name: rest.text(text) for name, text in texts.items()} | examples


def _block(example: str, language: str) -> str:
    return f".. code-block:: {language}\n\n{textwrap.indent(example.rstrip(), '   ')}" if example else ""
