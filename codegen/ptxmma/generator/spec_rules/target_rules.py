"""Targets and versions: a target includes what its suffix allows, versions ascend, published peaks are the product of their parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ptxmma.catalog import requirements
from ptxmma.catalog.variants import expand
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.reach_rules import unreached
from ptxmma.generator.spec_rules.rule_context import RuleContext, listed
from ptxmma.model import Target, Version

# --- targets ----------------------------------------------------------------------------------------------------------------


def problems(context: RuleContext) -> Iterator[Problem]:
    """Targets that include what they cannot, and versions out of order."""
    for index, target in enumerate(context.spec.targets):
        here = context.at("targets", index, "includes")
        if target.name in context.ancestors(target.name):
            yield Problem(here, f"{target.name} includes itself")
        elif fault := _wrong_includes(context, target):
            yield Problem(here, f"{target.name} {fault}")
    seen: set[str] = set()
    for index, capacity in enumerate(context.spec.capacities):
        here = context.at("capacities", index, "targets")
        if twice := seen.intersection(capacity.targets):
            yield Problem(here, f"two entries of capacities are for {listed(sorted(twice))}; keep one")
        if capacity.block > capacity.sm:
            yield Problem(
                context.at("capacities", index, "block"), f"a block cannot have {capacity.block} of the {capacity.sm} bytes of an SM"
            )
        seen.update(capacity.targets)
    yield from _order(context)


def _wrong_includes(context: RuleContext, target: Target) -> str:
    """The targets that a target includes agree with its suffix, which limits its features."""
    known = {entry.name: entry for entry in context.spec.targets}
    included = [known[name] for name in target.includes if name in known]
    wider = {"a": ("", "f"), "f": ("",), "": ()}[target.suffix]
    own = [entry.name for entry in known.values() if entry.number == target.number and entry.suffix in wider]
    if any(entry.suffix == "a" for entry in included):
        return "includes a target with the suffix a, whose features no other has"
    if target.suffix and not own:
        return f"includes sm_{target.number}, which is missing: add it to the targets"
    if target.suffix == "a":
        nearest = max(own)  # the f target, where there is one
        return "" if list(target.includes) == [nearest] else f"must include {nearest} and nothing else"
    if target.suffix == "f":
        others = [entry for entry in included if entry.name not in own]
        fits = set(own) <= set(target.includes) and all(entry.suffix == "f" and entry.number < target.number for entry in others)
        return "" if fits else f"must include {listed(own)}, and besides only earlier targets with the suffix f"
    if not target.includes and any(entry.suffix == "" and entry.number < target.number for entry in known.values()):
        return "includes nothing: say includes: and the earlier target without a suffix whose features it has"
    fits = all(entry.suffix == "" and entry.number < target.number for entry in included) and len(included) < 2
    return "" if fits else "may include one earlier target without a suffix, and nothing else"


def _order(context: RuleContext) -> Iterator[Problem]:
    """Versions ascend with the releases that brought them."""
    for name in ("version", "cuda"):
        values = [Version(getattr(entry, name)) for entry in context.spec.isa_versions]
        for index, (before, value) in enumerate(itertools.pairwise(values), 1):
            if value <= before:
                place = context.at("isa_versions", index, name)
                yield Problem(place, f"{name} {value} must be above {before}: list the versions in their order")


# --- published peaks --------------------------------------------------------------------------------------------------------


#: The largest deviation of published peaks from the product of their parts: they are rounded, and some are twice a rounded number.
_TOLERANCE = 0.005


def peaks(context: RuleContext) -> Iterator[Problem]:
    """Rates of instructions that a chip lacks, and peaks that are another product."""
    spec = context.spec
    known = requirements.targets_of(spec)
    accepted = [
        (variant.facts, requirements.accepting(spec, variant))
        for entry in (spec.instructions if spec.throughput else ())
        for variant in expand(entry)
    ]
    for index, chip in enumerate(spec.throughput):
        architecture = known.by_name[chip.target].number
        alike = {target for target in spec.targets if target.number == architecture}
        facts = [facts for facts, targets in accepted if not alike.isdisjoint(targets)]
        for number, rate in enumerate(chip.rates):
            place = ("throughput", index, "rates", number)
            yield from unreached(context, rate.of, facts, (*place, "of"))
            rates = [rate.dense, rate.sparse] if rate.sparse else [rate.dense]
            here = context.at(*place, "published")
            if len(rates) != len(rate.published):
                yield Problem(here, "give one number, or with sparse two: of dense and of sparse operands")
                continue
            for operations, published in zip(rates, rate.published, strict=True):
                peak = operations * chip.sms * chip.clock / 1e6
                if abs(peak - float(published)) > _TOLERANCE * float(published):
                    product = f"{operations} operations x {chip.sms} SMs x {chip.clock} MHz"
                    yield Problem(here, f"{product} are {peak:.1f} * 10**12 a second, not {published}")
