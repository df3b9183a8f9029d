"""The text of a rule, for its page and for the formats that carry help."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule.

    Attributes:
        what: the rule's demand, in one sentence.
        why: the consequence of breaking it.
        fix: the repair.
        bad, good: an example that breaks the rule, and the same mended: the body of a kernel, a whole module, or CUDA; ``""`` without one.
    """

    what: str
    why: str
    fix: str
    bad: str = ""
    good: str = ""

    @property
    def language(self) -> str:
        """The language of the examples, as the ending of a file's name."""
        return ".cu" if self.bad.startswith("__device__") else ".ptx"

    @property
    def help(self) -> str:
        """The text of the rule in one paragraph."""
        return f"{self.what} {self.why} {self.fix}"
