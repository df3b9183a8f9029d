"""Register layouts: their formulas go in one direction and shadow no names; for each variant they define a name, a map and a size."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping

from ptxmma.catalog import layouts
from ptxmma.catalog.roles import ROLES, multiplicands
from ptxmma.catalog.variants import Variant
from ptxmma.generator.problems import Position, Problem, clash, of_use
from ptxmma.generator.spec_rules.rule_context import PLACES, VARIABLES, RuleContext, listed
from ptxmma.model import WINDOW, Facts, RegisterLayout, Stated, formula
from ptxmma.model.formula import FormulaError

#: Far above what hardware has; larger numbers are slips, and would keep the generator busy for hours.
LARGEST_DOMAIN = 1 << 16
#: The operations that move lanes of an on-chip memory: the rows of their fragments are lanes.
_MOVES = {"tensor-load", "tensor-reduce", "tensor-compress", "tensor-store"}


def problems(context: RuleContext) -> Iterator[Problem]:
    """Layouts with formulas for the wrong coordinates, names that hide variables, and errata that are missing."""
    errata = [entry.id for entry in context.spec.errata]
    for index, layout in enumerate(context.spec.register_layouts):
        place = ("register_layouts", index)
        yield from _directions(context, layout, index)
        for number, stated in enumerate(layout.stated):
            yield from _helpers(context, stated, layout, *place, "stated", number)
            yield from context.known("axis", stated.at, [*layout.axes, *WINDOW], *place, "stated", number, "at")
            if layout.at.keys() != layout.axes.keys():
                message = f"printed formulas are for axes, and this layout has formulas for {listed(layout.at)}; leave stated out"
                yield Problem(context.at(*place, "stated", number), message)
            if stated.erratum and not errata:
                context.lacks_entries(("errata",), "section " + stated.section)
            elif stated.erratum:
                yield from context.known("erratum", [stated.erratum], errata, *place, "stated", number, "erratum")


def _directions(context: RuleContext, layout: RegisterLayout, index: int) -> Iterator[Problem]:
    """The formulas go in one direction: one for each axis, or one for the thread and the bits of its register."""
    place = ("register_layouts", index)
    yield from _helpers(context, layout, layout, *place)
    yield from context.known("axis", layout.apart, layout.axes, *place, "apart")
    yield from context.known("axis", layout.steps, layout.axes, *place, "steps")
    for axis in layout.axes:
        yield from _hides(context, axis, VARIABLES | PLACES, layout, *place, "axes", axis)
    if layout.at.keys() == layout.axes.keys():
        return
    if not layout.at.keys() <= PLACES or "lane" not in layout.at or len(layout.at) > 2:
        wanted = f"a formula for each axis ({listed(layout.axes)}), or for lane and bit, or for lane and byte"
        yield Problem(context.at(*place, "at"), f"at: has formulas for {listed(layout.at)}; give {wanted}")


def _helpers(context: RuleContext, entry: RegisterLayout | Stated, layout: RegisterLayout, *place: str | int) -> Iterator[Problem]:
    """Helper definitions shadow no variable, and a formula reads each."""
    variables = VARIABLES.union(layout.axes) - ({"warp"} if "lane" in layout.at else set())
    texts = [*entry.let.values(), *(text for cases in entry.at.values() for case in cases for text in (case.value, case.when) if text)]
    try:
        read = {name for text in texts for name in formula.names(formula.parse(text))}
    except FormulaError:
        read = set(entry.let)  # evaluation will say where
    for name in entry.let:
        yield from _hides(context, name, variables, layout, *place, "let", name)
        if name not in read:
            yield Problem(context.at(*place, "let", name), f"no formula reads {name!r}; leave it out")


def _hides(context: RuleContext, name: str, variables: Collection[str], layout: RegisterLayout, *place: str | int) -> Iterator[Problem]:
    """A name is already a variable's, or a size's of a family that the layout is for."""
    message = f"{name!r} is a variable of formulas already; choose another name"
    if name in variables:
        yield Problem(context.at(*place), message)
        return
    for family in sorted(set().union(*map(context.families, layout.of))):
        if name in context.extents[family]:
            yield clash(message, context.at(*place), context.at("instructions", context.extents[family][name], "extents"))
            return


class LayoutUses:
    """The uses of register layouts by variants; uses of one entry with the same sizes are checked once."""

    def __init__(self, context: RuleContext) -> None:
        self._context = context
        self._sized: set[tuple[object, ...]] = set()

    def problems(self, index: int, variant: Variant, operand: str, facts: Facts, form: Position) -> Iterator[Problem]:
        """Problems of the entry numbered ``index`` where it lays out an operand of a variant, of the form there, that has these facts."""
        yield from self._axes(index, variant, operand, form)
        yield from self._name(index, variant, facts, form)
        yield from self._one_map(index, variant, form)
        yield from self._size(index, variant, operand, form)

    def _of_use(self, message: str, entry: Position, form: Position) -> Iterator[Problem]:
        yield from self._context.once(*of_use(message, entry, form))

    def _axes(self, index: int, variant: Variant, operand: str, form: Position) -> Iterator[Problem]:
        """The layout of an operand has the axes that its role requires."""
        entry, kind = self._context.spec.register_layouts[index], variant.instruction.operand_kinds[operand].kind
        if missing := [axis for axis in ROLES[kind].axes if axis not in entry.axes]:
            message = f"the layout of {operand!r}, an operand of the kind {kind}, lacks the axes {listed(missing)}"
            yield from self._of_use(message, self._context.at("register_layouts", index, "axes"), form)

    def _name(self, index: int, variant: Variant, facts: Facts, form: Position) -> Iterator[Problem]:
        """A variant has every fact that the name of its layout reads."""
        entry, place = self._context.spec.register_layouts[index], ("register_layouts", index)
        for name in formula.placeholders(layouts.ending(entry)):
            if name not in facts:
                message = f"{variant.canonical} has no {name!r} for the name {layouts.ending(entry)}; it has {listed(facts)}"
                yield from self._of_use(message, self._context.at(*place, "name"), form)

    def _one_map(self, index: int, variant: Variant, form: Position) -> Iterator[Problem]:
        """No formula for a place reads an extent that ranges: one map serves all its numbers."""
        entry = self._context.spec.register_layouts[index]
        texts = [(("let", name), text) for name, text in entry.let.items()]
        texts += [(("at", name), f"({case.when or 0}) + ({case.value})") for name, cases in entry.at.items() for case in cases]
        for key, text in texts if variant.ranging else ():
            with contextlib.suppress(FormulaError):  # evaluation will say where
                for name in formula.names(formula.parse(text)).keys() & variant.ranging.keys():
                    message = f"the formula reads {name!r}, which ranges in {variant.canonical}: one layout serves all its numbers"
                    yield from self._of_use(message, self._context.at("register_layouts", index, *key), form)

    def _size(self, index: int, variant: Variant, operand: str, form: Position) -> Iterator[Problem]:
        """The axes of a layout have sizes, and every thread has a part of what it lays out."""
        context = self._context
        variables = variant.largest | layouts.variables(context.spec, variant, operand)
        decisive = (index, variant.instruction.scope, *variables.items())
        if decisive in self._sized:
            return
        self._sized.add(decisive)
        entry = context.spec.register_layouts[index]
        sizes = []
        for key, texts in (("axes", entry.axes), ("steps", entry.steps)):
            for name, text in texts.items():
                try:
                    sizes.append(layouts.size(text, variables))
                except FormulaError as error:
                    place = context.at("register_layouts", index, key, name)
                    place = place._replace(column=place.column + error.column)
                    yield from self._of_use(f"{variant.canonical}: {error}", place, form)
        if len(sizes) < len(entry.axes) + len(entry.steps):  # some could not be evaluated
            return
        points = math.prod(sizes[: len(entry.axes)]) if min(sizes) > 0 else 0
        yield from self._matrix(index, variant, operand, variables, dict(zip(entry.axes, sizes, strict=False)), form)
        kind = variant.instruction.operand_kinds[operand].kind
        threads = 1 if kind == "address" else context.spec.scopes[variant.instruction.scope]
        if not threads <= points <= LARGEST_DOMAIN:
            message = f"{variant.canonical} has {points} elements here; there must be {threads} to {LARGEST_DOMAIN}"
            yield from self._of_use(message, context.at("register_layouts", index), form)

    def _matrix(
        self, index: int, variant: Variant, operand: str, variables: Mapping[str, int], sizes: Mapping[str, int], form: Position
    ) -> Iterator[Problem]:
        """A layout has the elements of its matrix, and what a warp moves from or to a memory lies in the lanes that it reaches."""
        context, instruction = self._context, variant.instruction
        entry, kind = context.spec.register_layouts[index], instruction.operand_kinds[operand]
        place, said = context.at("register_layouts", index, "axes"), f"{operand!r} of {variant.canonical}"
        fragment = ROLES[kind.kind].layout_kind == "fragment"
        growing = [text for text in entry.axes.values() if variant.ranging.keys() & formula.names(formula.parse(text)).keys()]
        if instruction.operation == "multiply" and variables.keys() >= set("mnk") and fragment:
            factors = dict(zip(multiplicands(instruction), ("mk", "kn"), strict=False))
            whole = math.prod(variables[name] for name in factors.get(operand, "mn"))
            whole //= variables.get("ratio", 1) if kind.sparse else 1
            here = math.prod(size for axis, size in sizes.items() if axis not in entry.apart)
            mapped = here & (here - 1) == 0 and len(growing) < 2  # of another layout the proof says why it has no map
            if here != whole and mapped:
                yield from self._of_use(f"{said} has {whole} elements; this layout has {here}: {listed(entry.axes.values())}", place, form)
        memory = context.spec.tensor_memory_of(variant.facts) if "spaces" not in context.unsound else None
        if memory and fragment and instruction.operation in _MOVES and sizes.get("row", 0) > memory.partition["lane"]:
            reached = f"a warp reaches {memory.partition['lane']} lanes of {memory.title}"
            yield from self._of_use(f"{said} lies in {sizes['row']} lanes; {reached}", place, form)
