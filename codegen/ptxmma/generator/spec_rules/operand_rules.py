"""The operands of an instruction: each says what its kind needs, and the operand lists name them in an order that makes sense."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.catalog.instructions import operand_names
from ptxmma.catalog.operands import ROLES
from ptxmma.catalog.variants import qualifier_values
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext, listed
from ptxmma.model import InstructionSet, OperandKind, formula

#: What formulas may read beside the sizes of an instruction.
_NUMBERS = frozenset({"bits", "ratio", "chunk_size", "thread_bytes"})
#: Kinds of operands of which an instruction has one for each matrix that they describe.
_ONE_FOR_EACH = ("descriptor", "scale-data")
_SCALE_IDS = ("byte-id", "thread-id")
#: Kinds of operands that describe another.
_DESCRIBING = (*_ONE_FOR_EACH, *_SCALE_IDS, "metadata", "selector", "majorness", "negation", "address")
#: Kinds of operands that the alternative operand lists of one form may have or lack.
_VARYING = ("fragment", "descriptor", "immediate", "majorness", "negation", "stride")


def problems(context: RuleContext, entry: InstructionSet, place: Place) -> Iterator[Problem]:
    """Problems of the operands of the instruction at ``place``."""
    described = [(operand.kind, operand.of) for operand in entry.operand_kinds.values() if operand.kind in _ONE_FOR_EACH]
    for kind, of in sorted({pair for pair in described if described.count(pair) > 1}):
        yield Problem(context.at(*place, "operand_kinds"), f"two operands of kind {kind} are of {of!r}")
    for name, operand in entry.operand_kinds.items():
        yield from _kind(context, entry, name, operand, (*place, "operand_kinds", name))
    for key, texts in entry.operands.items():
        here = (*place, "operands", key)
        for text in texts:
            yield from context.known("operand", operand_names(text), entry.operand_kinds, *here)
            yield from _scale_ids(context, entry, text, here)
        yield from _alternatives(context, entry, texts, here)


def _kind(context: RuleContext, entry: InstructionSet, name: str, operand: OperandKind, place: Place) -> Iterator[Problem]:
    """An operand says all that its kind needs."""
    here = context.at(*place)
    if ROLES[operand.kind].typed:
        yield from context.known("qualifier", [operand.type], entry.qualifiers, *place, "type")
        if operand.type in entry.qualifiers:
            for value in sorted(qualifier_values(entry, operand.type) - set(context.elements)):
                message = f"{operand.type!r} gives no element types: it may be {value!r}; known: {listed(context.elements)}"
                yield Problem(context.at(*place, "type"), message)
    if operand.kind in ("metadata", "selector") and not entry.sparse:
        yield Problem(here, f"{name!r} is for a sparse matrix; no operand of this instruction says sparse: true")
    if operand.kind in _DESCRIBING and not operand.of:
        yield Problem(here, f"{name!r} is a {operand.kind}: say of: and the operand that it describes")
    if operand.kind in _SCALE_IDS and not operand.immediate:
        yield Problem(here, f"{name!r} may be an immediate, as every scale id: say immediate: true")
    if operand.kind == "address" and not operand.alignment:
        yield Problem(here, f"address {name!r} needs alignment: the bytes to whose multiples it is aligned")
    for key, text in (("alignment", operand.alignment), ("row_bytes", operand.row_bytes)):
        yield from _size(context, entry, text, (*place, key))
    if operand.kind == "majorness" and not operand.meanings:
        yield Problem(here, f"{name!r} needs meanings: what each legal immediate means")
    if operand.kind in ("immediate", "negation") and not operand.values and operand.limit < 0:
        yield Problem(here, f"immediate {name!r} needs values: [...] or limit: N (for 0..N)")
    elif operand.default is not None and operand.default not in (
        values := operand.values or (*operand.meanings.values(),) or range(operand.limit + 1)
    ):
        allowed = listed(map(str, values if operand.limit < 0 else ())) or f"0..{operand.limit}"
        yield Problem(context.at(*place, "default"), f"{operand.default} is no value of {name!r}; there are {allowed}")


def _size(context: RuleContext, entry: InstructionSet, text: str, place: Place) -> Iterator[Problem]:
    """A formula for a number of bytes reads the sizes of its instruction, and what formulas of layouts read."""
    sizes = {name for extents in entry.extents.values() for name in formula.placeholders(extents.pattern)}
    sizes |= {name for extents in entry.extents.values() for numbers in extents.values.values() for name in numbers}
    try:
        unknown = sorted(formula.names(formula.parse(text)).keys() - sizes - _NUMBERS) if text else []
    except formula.FormulaError as error:
        position = context.at(*place)
        yield Problem(position._replace(column=position.column + error.column), str(error))
        return
    for name in unknown:
        yield Problem(context.at(*place), f"unknown name {name!r}; known here: {listed(sorted(sizes | _NUMBERS))}")


def _scale_ids(context: RuleContext, entry: InstructionSet, text: str, place: Place) -> Iterator[Problem]:
    """Scale ids stand after the scale factors that they choose from."""
    of = ""
    for name in operand_names(text):
        operand = entry.operand_kinds.get(name)
        if operand is not None and operand.kind == "scale-data":
            of = operand.of
        elif operand is not None and operand.kind in _SCALE_IDS and operand.of != of:
            message = f"{name!r} is of {operand.of!r}, and stands after the scale factors of {of or 'nothing'!r}"
            yield Problem(context.at(*place), message)


def _alternatives(context: RuleContext, entry: InstructionSet, texts: Sequence[str], place: Place) -> Iterator[Problem]:
    """The operand lists of one form differ in where their matrices stand, and in the constants that go with it."""
    rests = []
    for text in texts:
        kinds = {name: entry.operand_kinds[name].kind for name in operand_names(text) if name in entry.operand_kinds}
        rests.append([name for name, kind in kinds.items() if kind not in _VARYING])
    for rest in rests[1:]:
        if rest != rests[0]:
            message = f"besides matrices and constants one list has {listed(rest)}, another {listed(rests[0])}: they are of two forms"
            yield Problem(context.at(*place), message)
