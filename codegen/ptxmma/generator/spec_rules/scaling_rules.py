"""Block scaling: scale vectors, scale types and block-scaled formats are those of the forms, and blocks of one size fill K."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxmma.catalog.variants import Variant, expand
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.rule_context import RuleContext, listed
from ptxmma.model import matches


def problems(context: RuleContext) -> Iterator[Problem]:
    """Entries that contradict the forms, and forms that no entry describes."""
    spec = context.spec
    if not spec.block_scaling and not spec.block_formats:
        return
    variants = [variant for entry in spec.instructions for variant in expand(entry)]
    scaled = [variant for variant in variants if variant.facts.get("scale_vec")]
    if spec.block_scaling:
        yield from _vectors(context, scaled)
    if spec.block_formats:
        yield from _formats(context, variants, scaled)
        for variant in scaled:
            yield from _covered(context, variant)


def _vectors(context: RuleContext, scaled: Sequence[Variant]) -> Iterator[Problem]:
    """Scale vectors have the scale types and the number of blocks of the forms."""
    combinations: dict[tuple[str, str], set[str]] = {}
    for variant in scaled:
        facts = variant.facts
        combinations.setdefault((str(facts.get("kind", "")), str(facts["scale_vec"])), set()).add(str(facts.get("stype", "")))
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(context.spec.block_scaling):
        here = context.at("block_scaling", index)
        key = (entry.kind, entry.scale_vec)
        if key in seen or combinations.get(key) != set(entry.stypes) or len(set(entry.stypes)) != len(entry.stypes):
            yield Problem(here, f"{' with '.join(key)} has the scale types {listed(sorted(combinations.get(key, ()))) or 'of no form'}")
        seen.add(key)
        sizes = {variant.extents.get("blocks", 1) for variant in scaled if variant.facts["scale_vec"] == entry.scale_vec}
        if sizes - {entry.blocks}:
            layout = listed(map(str, sorted(sizes)))
            yield Problem(here, f"{entry.scale_vec} has {entry.blocks} blocks here, and {layout} in its layout")
    for key in combinations.keys() - seen:
        yield Problem(context.at("block_scaling"), f"no entry has {' with '.join(key)}, which forms have")


def _formats(context: RuleContext, variants: Sequence[Variant], scaled: Sequence[Variant]) -> Iterator[Problem]:
    """Instructions that a format names multiply it."""
    for index, block in enumerate(context.spec.block_formats):
        here = context.at("block_formats", index)
        for variant in variants:
            facts = variant.facts
            if not matches(block.of, facts):
                continue
            blocks = variant.extents.get("blocks", 0)
            if not blocks:
                yield from context.once(here, f"{block.name}: {variant.canonical} scales nothing")
                continue
            if facts.get("stype") != block.scale:
                yield from context.once(here, f"{block.name}: {variant.canonical} takes no {block.scale}")
            if block.block * blocks != int(facts["k"]):
                message = f"{block.name}: {variant.canonical} has {blocks} blocks along k, not of {block.block} elements"
                yield from context.once(here, message)
        admitted = [variant.facts for variant in scaled if matches(block.of, variant.facts)]
        if not any(block.element in (facts.get("atype"), facts.get("btype")) and facts.get("stype") == block.scale for facts in admitted):
            message = f"{block.name}: no instruction multiplies {block.element} with scale factors {block.scale}"
            yield from context.once(here, message)


def _covered(context: RuleContext, variant: Variant) -> Iterator[Problem]:
    """A variant that multiplies the blocks of a format is among those that the format names, and its types are those of a format."""
    facts, formats = variant.facts, context.spec.block_formats
    if facts.get("atype") != facts.get("btype"):
        return
    fitting = [index for index, block in enumerate(formats) if (block.element, block.scale) == (facts["atype"], facts["stype"])]
    if not fitting:
        types = f"{facts['atype']} with scale factors {facts['stype']}"
        message = f"no format has elements of {types}, which {variant.canonical} multiplies"
        yield from context.once(context.at("block_formats"), message)
    blocks = variant.extents.get("blocks", 1)
    for index in fitting:
        block = formats[index]
        named = any(facts["family"] in condition.get("family", (facts["family"],)) for condition in block.of)
        if named and block.block * blocks == int(facts["k"]) and not matches(block.of, facts):
            message = f"{block.name}: {variant.canonical} multiplies such blocks too"
            yield from context.once(context.at("block_formats", index, "of"), message)
