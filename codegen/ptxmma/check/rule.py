"""What a rule says: the text of its page and of the formats that carry help."""

from __future__ import annotations

from typing import NamedTuple

#: The module around the examples of rules.
_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.global .align 16 .b8 weights[512];

.visible .entry kernel()
{
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<4>;
    .shared .align 16 .b8 tile[512];
"""


class Rule(NamedTuple):
    """A rule.

    Attributes:
        what: what it requires, in one sentence.
        why: what happens otherwise.
        fix: what to do.
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


def module(example: str) -> str:
    """An example as a module that can be checked."""
    if example.startswith((".version", "__device__")):
        return example
    return _FRAME + "".join(f"    {line}\n" for line in example.splitlines()) + "    ret;\n}\n"
