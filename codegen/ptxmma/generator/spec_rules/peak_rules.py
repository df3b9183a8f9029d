"""Published peaks: each is the product of rate, SMs and clock, and belongs to instructions that the chip has."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog import requirements
from ptxmma.catalog.variants import expand
from ptxmma.generator.problems import Problem
from ptxmma.generator.spec_rules.reach_rules import unreached
from ptxmma.generator.spec_rules.rule_context import RuleContext

#: The largest deviation of published peaks from the product of their parts: they are rounded, and some are twice a rounded number.
_TOLERANCE = 0.005


def problems(context: RuleContext) -> Iterator[Problem]:
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
