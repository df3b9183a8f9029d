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
#: The head and the variables of a kernel that uses tensor memory.
_TENSOR_KERNEL = """\
.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel()
{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    .shared .align 8 .b8 slot[8];
    .shared .align 8 .b8 bar[8];
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


def tensor_kernel(*lines: str) -> str:
    """An example as a module for a chip that has tensor memory."""
    return _TENSOR_KERNEL + "".join(f"    {row}\n" for line in (*lines, "ret;") for row in line.split("\n")) + "}\n"


def module(example: str) -> str:
    """An example as a module that can be checked."""
    if example.startswith((".version", "__device__")):
        return example
    return _FRAME + "".join(f"    {line}\n" for line in example.splitlines()) + "    ret;\n}\n"
