"""The signs of mistakes in matrix descriptors as conditions and texts over plain numbers, for Python and for generated code."""

from __future__ import annotations

import ast
import copy
import string
from collections.abc import Mapping
from typing import NamedTuple

from ptxmma.model import SharedMemory, SuspicionRule, Swizzle, formula

#: Names in texts that are words, of strides alone.
WORDS = frozenset({"name", "only"})
#: The numbers that every rule may read, besides the names of ``let``, and the numbers of a stride.
NUMBERS = frozenset(
    {"start_address", "base_offset", "leading_mode", "inside", "least_start", "span", "pattern", "alignment", "reach", "along_k"}
)
STRIDE_NUMBERS = frozenset({"lines", "value", "other", "units", "by_all"})


class Condition(NamedTuple):
    """A rule of the spec for a swizzle mode, over the numbers that :class:`ptxmma.model.Suspicions` lists; ``let`` is expanded."""

    rule: SuspicionRule
    when: tuple[str, ...]  # formulas that must all hold, the cheapest first as the spec writes them
    text: tuple[tuple[str, str], ...]  # literals, each followed by a formula, one of WORDS, or nothing
    names: frozenset[str]  # the numbers that the condition and the text read


def conditions(memory: SharedMemory, mode: Swizzle | None = None) -> list[Condition]:
    """The rules for descriptors with a swizzle mode, in the order of the spec; without one they read the numbers of patterns by name.

    Raises:
        FormulaError: a formula that does not parse.
    """
    let = {**memory.suspicions.let, **(_of_pattern(memory, mode) if mode else {})}
    made = []
    for rule in memory.suspicions.rules:
        parts = [(literal, name or "") for literal, name, _, _ in string.Formatter().parse(rule.text)]
        text = tuple((literal, name if name in WORDS or not name else expanded(name, let)) for literal, name in parts)
        tree = formula.parse(expanded(rule.when, let))
        when = tuple(map(ast.unparse, tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]))
        read = [*when, *(number for _, number in text if number and number not in WORDS)]
        made.append(Condition(rule, when, text, frozenset(name for each in read for name in formula.names(formula.parse(each)))))
    return made


def _of_pattern(memory: SharedMemory, mode: Swizzle) -> dict[str, str]:
    """The base offsets that patterns need, and a test for another that moves bytes otherwise: narrow swizzles heed its low bits only."""
    moved = mode.formula or memory.swizzle_formula
    ours, theirs = (expanded(moved, {"address": "phase", "base_offset": base}) for base in ("base_offset", "phase_needed"))
    return {
        "needed": expanded(memory.base_offset, {"start": "first"}),
        "phase_needed": expanded(memory.base_offset, {"start": "phase"}),
        "misplaced": f"({ours}) != ({theirs})",
    }


def expanded(text: str, let: Mapping[str, str]) -> str:
    """A formula with formulas in the place of names, and of names in these."""
    return ast.unparse(_Expansion(let).visit(copy.deepcopy(formula.parse(text))))


class _Expansion(ast.NodeTransformer):
    def __init__(self, let: Mapping[str, str]) -> None:
        self._let = let

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._let:
            return node
        within = {name: text for name, text in self._let.items() if name != node.id}  # no formula reads itself
        tree: ast.expr = formula.parse(expanded(self._let[node.id], within))
        return tree
