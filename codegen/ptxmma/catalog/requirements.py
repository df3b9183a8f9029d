"""Requirements: the targets that accept a variant and the first PTX ISA version on each."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

from ptxmma.catalog.variants import Variant
from ptxmma.model import IsaVersion, Observation, Requirement, Spec, Target, Version


class Targets:
    """The targets of a spec and which one has the features of which."""

    def __init__(self, targets: Iterable[Target], isa_versions: Iterable[IsaVersion]) -> None:
        self.by_name = {target.name: target for target in targets}
        self._isa_versions = tuple(isa_versions)
        self._closure: dict[str, frozenset[str]] = {}

    def features(self, name: str) -> frozenset[str]:
        """The targets whose features ``name`` has, itself included."""
        names = self._closure.get(name)
        if names is None:
            names = frozenset({name}).union(*(self.features(parent) for parent in self.by_name[name].includes))
            self._closure[name] = names
        return names

    def including(self, names: Iterable[str]) -> list[Target]:
        """Every target that has the features of at least one of ``names``, in the order of the spec."""
        wanted = set(names)
        return [target for target in self.by_name.values() if wanted & self.features(target.name)]

    @functools.cache  # noqa: B019  # a handful of Targets lives as long as the process
    def common(self, sets: tuple[tuple[str, ...], ...], first: Version) -> tuple[Target, ...]:
        """Every target that has the features of at least one of each set, in the order of the spec.

        Targets that assemblers no longer knew when PTX ISA version ``first`` came are left out.
        """
        allowed = [{target.name for target in self.including(names)} for names in sets]
        every = (target for target in self.by_name.values() if all(target.name in names for names in allowed))
        return tuple(target for target in every if self._lived_to_see(target, first))

    def _lived_to_see(self, target: Target, version: Version) -> bool:
        known = (entry for entry in self._isa_versions if Version(entry.cuda) <= Version(target.until))
        return not target.until or any(Version(entry.version) >= version for entry in known)

    @functools.cache  # noqa: B019
    def first_versions(self, sets: tuple[tuple[str, ...], ...], first: Version) -> Mapping[str, Version]:
        """Target -> the larger of ``first`` and its own first version, for :meth:`common`."""
        return {target.name: max(first, Version(target.ptx)) for target in self.common(sets, first)}


def targets_of(spec: Spec) -> Targets:
    """The :class:`Targets` of a spec, made once."""
    made: Targets | None = spec.memo.get("targets")
    if made is None:
        made = spec.memo["targets"] = Targets(spec.targets, spec.isa_versions)
    return made


def stated(variant: Variant) -> list[Requirement]:
    """The manual's requirements of a variant, rule by rule."""
    return list(variant.requires)


def observed(variant: Variant) -> list[Observation]:
    """Return the deviations of assemblers from the manual for a variant (at most one entry in a valid spec)."""
    return list(variant.observed)


def releases(spec: Spec, variant: Variant) -> dict[str, str]:
    """Return the differences between releases of the assembler, by canonical spelling (the instruction itself) or accepting target."""
    differences = {target.name: target.releases for target in accepting(spec, variant) if target.releases}
    own = "; ".join(entry.releases for entry in variant.observed if entry.releases)
    return {variant.canonical: own} | differences if own else differences


def floor(variant: Variant, cuda: str = "", more: Sequence[Requirement] = ()) -> Version:
    """The first PTX ISA version that has the instruction itself, whatever the target; the arguments are as in :func:`accepted_by`."""
    seen = [Version(entry.ptx) for entry in variant.observed if entry.ptx]
    own = seen[0] if seen else max(Version(rule.ptx) for rule in _enforced(variant, cuda) if rule.ptx)
    return max([own, *(Version(rule.ptx) for rule in more if rule.ptx)])


def accepting(spec: Spec, variant: Variant) -> tuple[Target, ...]:
    """The targets that accept a variant with the newest assembler: the smallest set that the rules leave."""
    return targets_of(spec).common(_target_sets(variant), floor(variant))


def accepted_by(spec: Spec, variant: Variant, cuda: str = "", more: Sequence[Requirement] = ()) -> Mapping[str, Version]:
    """Target -> first PTX ISA version: the larger of the instruction's and the target's own.

    Args:
        spec: the targets.
        variant: the instruction.
        cuda: the release of the assembler, e.g. ``"11.7"``; without it all rules count.
        more: the requirements of its hints and operands.
    """
    if cuda or more or variant.chosen:
        sets = (*_target_sets(variant, cuda), *(rule.targets for rule in more if rule.targets))
        return targets_of(spec).first_versions(sets, floor(variant, cuda, more))
    # Thousands of variants meet the same rules, which the spec has as the same tuples.
    known: dict[tuple[int, int], Mapping[str, Version]] = spec.memo.setdefault("accepted", {})
    key = id(variant.requires), id(variant.observed)
    if key not in known:
        known[key] = targets_of(spec).first_versions(_target_sets(variant), floor(variant))
    return known[key]


def _target_sets(variant: Variant, cuda: str = "") -> tuple[tuple[str, ...], ...]:
    """The sets of targets of which a variant needs one each."""
    seen = tuple(entry.targets for entry in variant.observed if entry.targets)
    return seen or tuple(rule.targets for rule in _enforced(variant, cuda) if rule.targets)


def _enforced(variant: Variant, cuda: str) -> list[Requirement]:
    """The rules of a variant that the assembler of a CUDA release enforces."""
    return [rule for rule in variant.requires if not (cuda and rule.since and Version(rule.known or cuda) <= cuda < Version(rule.since))]
