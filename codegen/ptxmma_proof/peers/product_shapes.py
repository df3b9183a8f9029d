"""The sizes and types that peers allow for products of the fifth generation, and the comparison with the rules of the spec, one by one."""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ptxmma.catalog.products import product_rules
from ptxmma.model import Facts, TensorProducts, matches
from ptxmma_proof.peers import compared
from ptxmma_proof.peers.sources import Source

_OPERATIONS, _TRAITS = "cute/arch/mma_sm100_umma.hpp", "cute/atom/mma_traits_sm100.hpp"
#: TVM's checks below its checkout.
SHAPES = Path("python/tvm/backend/cuda/cpp/descriptors.py")
_RULES = ("_TCGEN05_MMA_SHAPE_RULES", "_TCGEN05_MMA_K", "_check_tcgen05_mma_matrix_shape")
_STRUCT = re.compile(r"^struct (SM10\d_\w+)", re.MULTILINE)
_ASSERT = re.compile(r"static_assert\((.*?),\s*\"", re.DOTALL)
_OPCODE = re.compile(r'"(tcgen05\.mma[\w.:]*)')
_DEPTH = re.compile(r"constexpr static int K = (\d+);")
#: A condition about sizes.
_SIZES = re.compile(r"^[MN\d\s%=<>!&|()]+$")
_MS, _NS = (32, 64, 128, 256), range(1, 257)

Sizes = frozenset[tuple[int, int]]
#: Every (dtype, atype, btype).
Types = frozenset[tuple[str, str, str]]


class Allowed(NamedTuple):
    """The sizes that a peer's definition allows, and what of the opcode it is for.

    Attributes:
        peer: the project.
        subject: the definition.
        facts: the facts of the opcode, ``k``, and ``b_majorness`` where a limit depends on it.
        sizes: all (M, N).
        reads_a: whether A lies in tensor memory.
    """

    peer: str
    subject: str
    facts: Facts
    sizes: Sizes
    reads_a: bool

    @property
    def by_m(self) -> dict[str, tuple[int, ...]]:
        """Every N of each M, as records have them."""
        return {str(m): tuple(n for _, n in group) for m, group in itertools.groupby(sorted(self.sizes), key=lambda size: size[0])}


def recorded(by_m: Mapping[str, Iterable[int]]) -> Sizes:
    """The inverse of :attr:`Allowed.by_m`."""
    return frozenset((int(m), n) for m, columns in by_m.items() for n in columns)


class Typed(NamedTuple):
    """The types that a peer takes for a product: every (dtype, atype, btype)."""

    peer: str
    subject: str
    facts: Facts
    types: Types


class Difference(NamedTuple):
    """Sizes that one side allows and the other does not."""

    allowed: Allowed
    only_theirs: Sizes
    only_ours: Sizes


def cute(cutlass: Source) -> Iterator[Allowed]:
    """The shapes that the assertions of CuTe's atoms allow."""
    text, traits = ((cutlass.folder / file).read_text(encoding="utf-8") for file in (_OPERATIONS, _TRAITS))
    starts = [*_STRUCT.finditer(text)]
    for start, end in zip(starts, [*(each.start() for each in starts[1:]), len(text)], strict=True):
        name, body = start[1], text[start.end() : end]
        conditions = [condition for condition in _ASSERT.findall(body) if _SIZES.match(condition.strip())]
        sizes = frozenset((m, n) for m in _MS for n in _NS if all(_holds(condition, m, n) for condition in conditions))
        if not any("M" in condition for condition in conditions):  # one atom leaves M to its caller
            sizes = frozenset()
        start_of_traits = traits.find(f"struct MMA_Traits<SM103::{name}<")
        deep = _DEPTH.search(traits, start_of_traits) if start_of_traits >= 0 else None
        for opcode in dict.fromkeys(_OPCODE.findall(body)):
            if sizes:
                facts = _facts(opcode) | ({"k": int(deep[1])} if deep else {})
                yield Allowed("CuTe", f"{name}: {opcode}", facts, sizes, "_TS" in name)


def _holds(condition: str, m: int, n: int) -> bool:
    text = condition.replace("&&", " and ").replace("||", " or ")
    return bool(eval(compile(ast.parse(f"({text})", mode="eval"), "assertion", "eval"), {"M": m, "N": n}))  # matched by _SIZES: sizes only


def _facts(opcode: str) -> dict[str, str | int]:
    parts = opcode.split(".")
    name = ".".join(parts[: next(index for index, part in enumerate(parts) if part.startswith("cta_group"))])
    known: dict[str, str | int] = {"name": name}
    for part in parts:
        key = "scale_vec" if part in ("block16", "block32") else part.partition("::")[0]
        if key in ("cta_group", "kind", "scale_vec"):
            known[key] = part
    return known


def tvm(checkout: Path) -> Iterator[Allowed]:
    """Return the shapes that TVM's check allows.

    Raises:
        OSError: its file cannot be read.
    """
    check = _function(checkout)
    for kind in ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"):
        for ctas in (1, 2):
            for sparse in (False, True):
                for k in (8, 16, 32, 64, 128):
                    sizes = frozenset((m, n) for m in _MS for n in _NS if _passes(check, kind, ctas, m, n, k, sparse))
                    if sizes:
                        name = "tcgen05.mma.sp" if sparse else "tcgen05.mma"
                        facts: Facts = {"name": name, "cta_group": f"cta_group::{ctas}", "kind": f"kind::{kind}", "k": k}
                        subject = f"_check_tcgen05_mma_matrix_shape({kind!r}, {ctas}, …, {k}, {sparse})"
                        yield Allowed("TVM", subject, facts, sizes, reads_a=False)


def _function(checkout: Path) -> Callable[..., bool]:
    known: dict[str, Any] = {}
    tree = ast.parse((checkout / SHAPES).read_text(encoding="utf-8"))
    for node in tree.body:
        names = (
            [node.name]
            if isinstance(node, ast.FunctionDef)
            else [each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)]
        )
        if set(names) & set(_RULES):
            exec(compile(ast.Module([node], []), SHAPES.name, "exec"), known)
    made: Callable[..., bool] = known[_RULES[-1]]
    return made


def _passes(check: Callable[..., bool], *arguments: object) -> bool:
    try:
        return check(*arguments)
    except ValueError:
        return False


def compare(rules: TensorProducts, allowed: Allowed) -> Difference:
    """The sizes on which a peer and the rules differ."""
    ours = sizes(rules, allowed.facts)
    return Difference(allowed, allowed.sizes - ours, ours - allowed.sizes)


def sizes(rules: TensorProducts, facts: Facts) -> Sizes:
    """Every M and N that the rules allow for an opcode, with the usual depth unless ``k`` says another."""
    depths = [row.k for row in rules.depths if matches(row.of, facts)]
    known = {"k": depths[0], **facts} if depths else facts
    rows = [row for row in rules.shapes if matches(row.of, known)]
    every = {(m, n) for row in rows for m in row.m for n in product_rules.numbers(row.n)}
    limits = [row for row in rules.limits if matches(row.of, known)]
    return frozenset(
        (m, n) for m, n in every if all(m in (each.m or (m,)) and n in (product_rules.numbers(each.n) or (n,)) for each in limits)
    )


def types(rules: TensorProducts, facts: Facts) -> Types:
    """The types that the rules take for an opcode and a depth: every (dtype, atype, btype)."""
    rows = [row for row in rules.types if matches(row.of, facts)]
    every = {each for row in rows for each in itertools.product(row.dtype, row.atype, row.btype)}
    depths = [row for row in rules.depths if row.k == facts["k"]]
    return frozenset(
        (d, a, b) for d, a, b in every if any(matches(row.of, {**facts, "dtype": d, "atype": a, "btype": b}) for row in depths)
    )


def differences(compared_: Iterable[Difference]) -> Iterator[compared.Difference]:
    """Sizes that differ, in words."""
    for each in compared_:
        wrong = len(each.only_theirs) + len(each.only_ours)
        if wrong:
            said = _listed(each.only_theirs), _listed(each.only_ours)
            one = each.allowed
            yield compared.Difference(one.peer, one.subject, "sizes", *said, wrong, len(one.sizes | each.only_ours))


def _listed(sizes: Sizes) -> str:
    """Sizes in words: ``M = 128 with N = 8, 24, 40, … (16)``; ``none`` without any."""
    by_m: dict[int, list[int]] = defaultdict(list)
    for m, n in sorted(sizes):
        by_m[m].append(n)
    few = 3
    texts = []
    for m, columns in by_m.items():
        shown = ", ".join(map(str, columns[:few])) + (f", … ({len(columns)} of them)" if len(columns) > few else "")
        texts.append(f"M = {m} with N = {shown}")
    return "alone allows " + " and ".join(texts) if texts else "allows no more"
