"""Block scaling: combinations and formats belong to instructions that scale, and blocks of one size fill K."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog.layouts import SUMMED
from ptxmma.catalog.roles import matrices, multiplicands
from ptxmma.catalog.variants import Variant, of_form
from ptxmma.generator.problems import Position, Problem, of_use
from ptxmma.generator.spec_rules.rule_context import RuleContext, listed
from ptxmma.model import Condition, matches, operand_names


class _Product(NamedTuple):
    """A variant that multiplies, and how it scales."""

    variant: Variant
    form: Position
    elements: tuple[str, ...]  # types of the multiplicands
    scale: str  # type of the scale factors; "" without any
    blocks: int  # scale factors of each row along K

    def has(self, conditions: Sequence[Condition]) -> bool:
        return matches(conditions, self.variant.facts)


def problems(context: RuleContext) -> Iterator[Problem]:
    """Entries that contradict the forms, and forms that no entry describes."""
    spec = context.spec
    products = list(_products(context)) if spec.block_scaling or spec.block_formats else []
    scaled = [product for product in products if product.scale]
    if spec.block_scaling:
        yield from _combinations(context, scaled)
    for index, _ in enumerate(spec.block_formats):
        yield from _format(context, index, products)
    for product in scaled if spec.block_formats else ():
        yield from _covered(context, product)


def _products(context: RuleContext) -> Iterator[_Product]:
    for index, entry in enumerate(context.spec.instructions):
        for number, form in enumerate(entry.forms if entry.operation == "multiply" else ()):
            qualifiers = [matrices(entry)[name] for name in multiplicands(entry)]
            used = [name for text in entry.operands.get(form.operands, ()) for name in operand_names(text)]
            scales = [name for name in used if entry.operand_kinds[name].kind == "scale-data"]
            for variant in of_form(entry, number):
                elements = tuple(str(variant.facts[qualifier]) for qualifier in qualifiers)
                scale, blocks = "", 0
                if scales and (plan := context.keys.plan(variant, scales[0])) is not None:
                    scale, blocks = str(variant.facts[entry.operand_kinds[scales[0]].type]), plan.axes["block"]
                yield _Product(variant, context.at("instructions", index, "forms", number), elements, scale, blocks)


def _combinations(context: RuleContext, scaled: Sequence[_Product]) -> Iterator[Problem]:
    """One entry has the scale types and the number of blocks of each variant that scales."""
    entries = context.spec.block_scaling
    for index, entry in enumerate(entries):
        here = context.at("block_scaling", index)
        admitted = [product for product in scaled if product.has(entry.of)]
        types, blocks = {product.scale for product in admitted}, {product.blocks for product in admitted}
        if types != set(entry.types) or len(set(entry.types)) != len(entry.types):
            yield Problem(here, f"the variants of this entry have the scale types {listed(sorted(types)) or 'of no form'}")
        if blocks - {entry.blocks}:
            yield Problem(here, f"the variants of this entry have {listed(map(str, sorted(blocks)))} blocks along k, not {entry.blocks}")
    for product in scaled:
        fitting = [index for index, entry in enumerate(entries) if product.has(entry.of)]
        if len(fitting) != 1:
            count = "two entries cover" if fitting else "no entry covers"
            here = context.at("block_scaling", fitting[1]) if fitting else context.at("block_scaling")
            yield from context.once(*of_use(f"{count} {product.variant.canonical}", here, product.form))


def _format(context: RuleContext, index: int, products: Sequence[_Product]) -> Iterator[Problem]:
    """The instructions that a format names multiply it."""
    block = context.spec.block_formats[index]
    here = context.at("block_formats", index)
    admitted = [product for product in products if product.has(block.of)]
    for product in admitted:
        problem = ""
        if not product.scale:
            problem = "scales nothing"
        elif product.scale != block.scale:
            problem = f"takes no {block.scale}"
        elif block.block * product.blocks != product.variant.extents[SUMMED]:
            problem = f"has {product.blocks} blocks along k, not of {block.block} elements"
        if problem:
            yield from context.once(here, f"{block.name}: {product.variant.canonical} {problem}")
    if not any(block.element in product.elements and block.scale == product.scale for product in admitted):
        yield from context.once(here, f"{block.name}: no instruction multiplies {block.element} with scale factors {block.scale}")


def _covered(context: RuleContext, product: _Product) -> Iterator[Problem]:
    """A variant of a family that formats name multiplies one of them, and is among those that it names."""
    formats, variant = context.spec.block_formats, product.variant
    families = set().union(*(context.families(condition) for block in formats for condition in block.of))
    if len(set(product.elements)) > 1 or variant.instruction.family not in families:
        return
    fitting = [index for index, block in enumerate(formats) if (block.element, block.scale) == (product.elements[0], product.scale)]
    messages = [
        (context.at("block_formats", index, "of"), f"{formats[index].name}: {variant.canonical} multiplies such blocks too")
        for index in fitting
        if _names(context, index, variant) and not product.has(formats[index].of)
        if formats[index].block * product.blocks == variant.extents[SUMMED]
    ]
    if not fitting:
        types = f"{product.elements[0]} with scale factors {product.scale}"
        messages.append((context.at("block_formats"), f"no format has elements of {types}, which {variant.canonical} multiplies"))
    for place, message in messages:
        yield from context.once(*of_use(message, place, product.form))


def _names(context: RuleContext, index: int, variant: Variant) -> bool:
    """Return whether a format names the family of a variant."""
    return any(variant.instruction.family in context.families(condition) for condition in context.spec.block_formats[index].of)
