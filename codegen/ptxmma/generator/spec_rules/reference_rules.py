"""References: all that an entry names exists; the steps of a protocol are the instructions that synchronise."""

from __future__ import annotations

import functools
import typing
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from ptxmma.catalog.citations import citations
from ptxmma.catalog.instructions.meanings import words_of
from ptxmma.catalog.instructions.spellings import hint_values
from ptxmma.catalog.instructions.words import FACTS, has_all, vocabulary
from ptxmma.catalog.variants import qualifier_values
from ptxmma.generator.documents import kind_of
from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.short_forms import bare, fields
from ptxmma.generator.spec_rules.instruction_rules import modifiers_of
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext, listed
from ptxmma.model import Spec, Version

#: The end of a kernel, as a transition names it.
_EXIT = "exit"
#: The forms of sums that can overflow, or that are rounded.
_SUMS = {"overflow": ("unsigned", "signed"), "rounds": ("float",)}

# --- names that fields declare -----------------------------------------------------------------------------------------------


def problems(context: RuleContext, kind: str) -> Iterator[Problem]:
    """Names in the documents of a kind that match no entry, where :func:`ptxmma.model.fields.names` declares that a field has one."""
    known = _known(context)
    for part in (name for name in Spec.__struct_fields__ if kind_of(name) == kind):
        for place, what, name in _named(getattr(context.spec, part), (part,)):
            wrong = context.known(what, [name], known[what], *place) if what in known else ()
            for problem in _release(context, name, place) if what == "CUDA release" else wrong:
                if kind == "instruction":
                    context.broken.add(int(place[1]))
                yield problem


def _known(context: RuleContext) -> dict[str, Collection[str]]:
    """The entries of each kind whose documents are sound, by their names."""
    spec = context.spec
    entries: dict[str, tuple[str, Collection[str]]] = {
        "target": ("targets", context.targets),
        "PTX ISA version": ("isa_versions", context.versions),
        "element type": ("types", context.elements),
        "register type": ("types", context.registers),
        "scope": ("spaces", spec.scopes),
        "family": ("instruction", dict.fromkeys(entry.family for entry in spec.instructions)),
        "instruction": ("instruction", [entry.name for entry in spec.instructions]),
    }
    if spec.shared_memory:
        entries["swizzle"] = "shared_memory", [entry.name for entry in spec.shared_memory.swizzles]
    if spec.tensor_maps:
        entries["mode"] = "tensor_maps", [entry.name for entry in spec.tensor_maps.modes]
        entries["data type of tensor maps"] = "tensor_maps", [entry.name for entry in spec.tensor_maps.types]
    return {what: names for what, (kind, names) in entries.items() if kind not in context.unsound}


def _named(part: object, place: Place) -> Iterator[tuple[Place, str, str]]:
    """Every name in a part of the model that a field declares, with its place and the kind of its entry."""
    if isinstance(part, msgspec.Struct):
        for name, what in _declared(type(part)).items():
            value = getattr(part, name)
            if not what:
                yield from _named(value, (*place, name))
            else:
                yield from (((*place, name), what, each) for each in ([value] if isinstance(value, str) else value) if each)
    elif isinstance(part, (tuple, dict)):
        for index, each in part.items() if isinstance(part, dict) else enumerate(part):
            yield from _named(each, (*place, index))


@functools.cache
def _declared(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The fields of a struct with the kind of entry that they name; empty for none."""
    return {field.name: _what(hint) for field, hint in fields(struct).values()}


def _what(hint: Any) -> str:
    """The kind of entry that a value of a type names, or each of a list of values; empty for none."""
    own = (each.extra["names"] for each in getattr(hint, "__metadata__", ()) if each.extra)
    inner = bare(hint)
    return next(own, "") or (_what(typing.get_args(inner)[0]) if typing.get_origin(inner) is tuple else "")


def _release(context: RuleContext, name: str, place: Place) -> Iterator[Problem]:
    """A CUDA release is as old as one that brought a PTX ISA version, or between two of them: not each brought one."""
    releases = sorted(Version(entry.cuda) for entry in context.spec.isa_versions if "isa_versions" not in context.unsound)
    if releases and not releases[0] <= Version(name) <= releases[-1]:
        yield Problem(context.at(*place), f"unknown CUDA release {name!r}; isa_versions has {releases[0]} to {releases[-1]}")


# --- types and scopes --------------------------------------------------------------------------------------------------------


def types(context: RuleContext) -> Iterator[Problem]:
    """Elements that do not fit into their container, and statements about sums that are not for their type."""
    widths, forms = ({element.name: getattr(element, name) for element in context.spec.types.elements} for name in ("bits", "form"))
    for index, container in enumerate(context.spec.types.containers):
        widest = max((widths.get(name, 0) for name in container.elements), default=0)
        if container.shift + widest > container.bits:
            text = f"elements of {widest} bits from bit {container.shift} on do not fit into {container.bits} bits"
            yield Problem(context.at("types", "containers", index, "shift"), f"{text}; allowed: 0 to {container.bits - widest}")
    for index, entry in enumerate(context.spec.instructions):
        for number, semantics in enumerate(entry.semantics):
            form = forms.get(semantics.sums, "")
            for key, allowed in _SUMS.items():
                if getattr(semantics, key) and form not in ("", *allowed):
                    text = f"{key} is for sums of the forms {listed(allowed)}; {semantics.sums} is of the form {form}: leave {key} out"
                    yield Problem(context.at("instructions", index, "semantics", number, key), text)


def scopes(context: RuleContext) -> Iterator[Problem]:
    """Numbers of threads of scopes that are not powers of two, and a spec without a warp."""
    spec = context.spec
    for name, threads in spec.scopes.items():
        if threads & (threads - 1):
            yield Problem(context.at("scopes", name), f"a scope has a power of two of threads, not {threads}")
    if spec.lanes not in spec.scopes.values():
        text = f"{spec.lanes} lanes are not the threads of any scope; scopes have {', '.join(map(str, spec.scopes.values()))}"
        yield Problem(context.at("spaces", spec.spaces.index(spec.registers), "coordinates", "lane"), text)


# --- words of people ---------------------------------------------------------------------------------------------------------


def words(context: RuleContext) -> Iterator[Problem]:
    """People's words that name nothing or are there twice, and preferences for facts that no instruction has."""
    spec, known = context.spec, vocabulary(context.spec)
    seen: set[str] = set()
    for index, entry in enumerate(spec.words):
        for word in entry.names:
            if word in seen or word in known:
                what = "means something already" if word in seen else "is a word of PTX"
                yield Problem(context.at("words", index, "names"), f"the word {word!r} {what}: leave it out")
            seen.add(word)
        for number, meaning in enumerate(entry.means):
            if unknown := [word for word in meaning.split() if word.lower() not in known]:
                yield Problem(context.at("words", index, "means", number), f"no instruction has {listed(unknown)}")
            elif not has_all(spec, {*words_of(meaning)}):
                text = f"each word of {meaning!r} is one of PTX, but no instruction has them all: leave one out, or list them as meanings"
                yield Problem(context.at("words", index, "means", number), text)
    names = [(index, name) for index, entry in enumerate(spec.topics) for name in entry.names]
    for index, name in names:
        if [each for _, each in names].count(name) > 1:
            yield Problem(context.at("topics", index, "names"), f"the topic {name!r} is there twice: leave one out")
    facts = {*FACTS, "name"}.union(*(entry.qualifiers for entry in spec.instructions))
    for index, preference in enumerate(spec.preferences):
        for key in ("fact", "among"):
            named = [preference.fact] if key == "fact" else preference.among
            yield from context.known("fact", named, sorted(facts), "preferences", index, key)
        if preference.fact not in FACTS:  # a qualifier
            having = [entry for entry in spec.instructions if preference.fact in entry.qualifiers]
            values = sorted({value for entry in having for value in qualifier_values(entry, preference.fact)})
            if values:
                yield from context.known(preference.fact, filter(None, map(str, preference.first)), values, "preferences", index, "first")
        counted = ("modifiers", "opcode", "types", "depth")
        if not preference.first and preference.fact not in counted:
            text = f"{preference.fact} is no number: say first:, or prefer by {listed(counted)}"
            yield Problem(context.at("preferences", index, "fact"), text)


# --- sections of the manual -------------------------------------------------------------------------------------------------


def sections(context: RuleContext) -> Iterator[Problem]:
    """Sections with the number of another, and sources that cite a section that no release has, where the table has its chapter."""
    spec = context.spec
    known: dict[str, set[str]] = {}
    for index, section in enumerate(spec.sections):
        for release, number in section.numbers.items():
            if number in known.setdefault(release, set()):
                yield Problem(context.at("sections", index), f"a second section {number} of PTX ISA {release}")
            known[release].add(number)
    chapters = {release: {_chapter(number) for number in numbers} for release, numbers in known.items()}
    for place, what, source in _named(spec, ()):
        for release, number in citations(spec, source) if what == "source" else ():
            if _chapter(number) in chapters.get(release, ()) and number not in known[release]:
                message = f"PTX ISA {release} has no section {number}; sections.yaml lists those of {_chapter(number)}"
                yield Problem(context.at(*place), message)


def _chapter(number: str) -> str:
    return ".".join(number.split(".")[:3])


# --- protocols --------------------------------------------------------------------------------------------------------------


def protocols(context: RuleContext) -> Iterator[Problem]:
    """Steps without an instruction, steps that repeat one, families with two protocols, and instructions without a step."""
    protocols, instructions = context.spec.protocols, context.spec.instructions
    if not protocols:
        return
    names = [entry.name for entry in instructions]
    ordered = [(family, ("protocols", number, "families")) for number, each in enumerate(protocols) for family in each.families]
    yield from context.twice(ordered, "{} has two protocols")
    issued = (
        (name, ("protocols", number, "issuers", index, "instructions"))
        for number, protocol in enumerate(protocols)
        for index, issuer in enumerate(protocol.issuers)
        for name in issuer.instructions
    )
    yield from context.twice(issued, "{} has other issuers already")
    for number, protocol in enumerate(protocols):
        for index, issuer in enumerate(protocol.issuers):
            for key in ("modifiers", "both", "lone"):
                at = ("protocols", number, "issuers", index, key)
                yield from _known_modifiers(context, issuer.instructions, getattr(issuer, key), at)
        qualifiers = {name for entry in instructions if entry.family in protocol.families for name in entry.qualifiers}
        for index, same in enumerate(protocol.same):
            yield from context.known("qualifier", [same.qualifier], sorted(qualifiers), "protocols", number, "same", index, "qualifier")
        for index, pool in enumerate(protocol.pools):
            for key in ("takes", "gives"):
                name, _, modifier = getattr(pool, key).partition(".")
                yield from context.known("instruction", [name], names, "protocols", number, "pools", index, key)
                yield from _known_modifiers(context, [name], [modifier], ("protocols", number, "pools", index, key))
        yield from _lifecycles(context, number, names)
        yield from _pairings(context, number, names)
        steps = [step.instruction for step in protocol.steps if step.instruction]
        for index, step in enumerate(protocol.steps):
            if step.instruction and steps.count(step.instruction) > 1:
                yield Problem(context.at("protocols", number, "steps", index), f"{step.instruction} is two steps")
    steps = [step.instruction for protocol in protocols for step in protocol.steps]
    for index, entry in enumerate(instructions):
        if entry.asynchronous and entry.family not in dict(ordered):
            text = f"no protocol says how to wait for {entry.name}; add {entry.family!r} to the families of one"
            yield Problem(context.at("instructions", index, "asynchronous"), text)
        if entry.operation == "synchronise" and entry.name not in steps:
            place = context.at("instructions", index, "name")
            yield Problem(place, f"{entry.name} only orders others, and is not a step of a protocol")


def _pairings(context: RuleContext, number: int, names: Sequence[str]) -> Iterator[Problem]:
    """Instructions, modifiers and rules of pairings that are not known."""
    known = sorted({*names, *context.spec.protocols[number].others})
    for index, pairing in enumerate(context.spec.protocols[number].pairings):
        at = ("protocols", number, "pairings", index)
        tokens = {token for entry in context.spec.instructions for token in (*entry.name.split("."), *modifiers_of(entry))}
        yield from context.known("modifier", pairing.without, sorted(tokens), *at, "without")
        for place, each in enumerate(pairing.needs):
            one = (*at, "needs", place)
            for key in ("on", "needs"):
                yield from context.known("instruction", getattr(each, key), known, *one, key)
            yield from _known_modifiers(context, each.on, each.modifiers, (*one, "modifiers"))
        for key in ("made", "tracked", "reads", "waits", "arrives", "orders"):
            yield from context.known("instruction", getattr(pairing, key), known, *at, key)
        for key in ("waits", "arrives", "orders") if pairing.phases else ():
            if not getattr(pairing, key):
                yield Problem(context.at(*at, "phases"), f"faults of phases need instructions: say {key}")
        for place, count in enumerate(pairing.counts):
            for key in ("expects", "brings", "stores"):
                yield from context.known("instruction", getattr(count, key), known, *at, "counts", place, key)


def _lifecycles(context: RuleContext, number: int, names: Sequence[str]) -> Iterator[Problem]:
    """States that nothing leads to, transitions that say nothing or contradict each other, and names that are not known."""
    protocol = context.spec.protocols[number]
    known = sorted({*names, *protocol.others, _EXIT})
    followed = {name for life in protocol.lifecycles for each in life.transitions for name in each.on}
    followed |= {name for life in protocol.lifecycles for name in life.apart}
    followed |= {name for pairing in protocol.pairings for each in pairing.needs for name in (*each.on, *each.needs)}
    followed |= {
        name
        for pairing in protocol.pairings
        for name in (*pairing.waits, *pairing.arrives, *pairing.orders, *pairing.tracked, *pairing.reads)
    }
    for index, name in enumerate(protocol.others):
        if name in names or name not in followed:
            what = "the spec has it" if name in names else "no transition names it"
            yield Problem(context.at("protocols", number, "others", index), f"{name!r} is needless here, {what}: leave it out")
    for index, life in enumerate(protocol.lifecycles):
        yield from context.known("instruction", life.apart, known, "protocols", number, "lifecycles", index, "apart")
        known_states = sorted({life.start, *(each.to for each in life.transitions if each.to)})
        for place, each in enumerate(life.transitions):
            at = ("protocols", number, "lifecycles", index, "transitions", place)
            yield from context.known("state", each.states, known_states, *at, "states")
            for key in ("on", "by_others", "after"):
                yield from context.known("instruction", getattr(each, key), known, *at, key)
            described = [name for name in each.on if name not in protocol.others]
            yield from _known_modifiers(context, described, each.modifiers, (*at, "modifiers"))
            yield from _known_modifiers(context, described, each.without, (*at, "without"))
            if bool(each.to) == bool(each.rule):
                yield Problem(context.at(*at), "a transition has either the state after it, or the rule that it breaks")
            adds = any(other.adds > 0 for other in life.transitions)
            for key, fits, text in (("full", each.rule, "a fault"), ("counted", each.to, "a change")):
                if getattr(each, key) and not (fits and adds):
                    message = f"{key} is for {text} in a lifecycle in which a transition adds objects: leave it out, or say adds: 1 there"
                    yield Problem(context.at(*at, key), message)
            for key in ("several", "always", "by_others", "keeps"):
                fits, text = (each.to, "a change") if key == "keeps" else (each.rule, "a fault")
                if getattr(each, key) and not fits:
                    yield Problem(context.at(*at, key), f"{key} is for {text}: leave it out")
            for key in ("of_all", "first"):
                if getattr(each, key) and not life.each:
                    message = f"{key} is for a lifecycle in which each object has a state: leave it out, or say each: there"
                    yield Problem(context.at(*at, key), message)
            for before, other in enumerate(life.transitions[:place]):
                states, both = ([name for name in getattr(each, key) if name in getattr(other, key)] for key in ("states", "on"))
                alike = (each.modifiers, each.without, each.counted) == (other.modifiers, other.without, other.counted)
                if each.to and other.to and alike and states and both:
                    here, there = context.at(*at), context.at(*at[:-1], before)
                    yield clash(f"{listed(both)} leads from {listed(states)} to two states", here, there)


def _known_modifiers(context: RuleContext, names: Sequence[str], modifiers: Sequence[str], place: Place) -> Iterator[Problem]:
    """Modifiers that an instruction does not have; what the spec does not describe may have any."""
    for name in names if modifiers else ():
        entries = [entry for entry in context.spec.instructions if f"{entry.name}.".startswith(f"{name}.")]
        written = {token for entry in entries for token in modifiers_of(entry)} | hint_values(entries)
        if entries:
            starts = {token.split("::")[0] for token in written}
            yield from context.known(f"modifier of {name}", modifiers, sorted(written | starts), *place)


def rules_of_check(context: RuleContext) -> Iterator[Problem]:
    """Rules of the checker that do not exist, or that the checker does not find by following the protocol's part that names them."""
    from ptxmma.check.rules import OF_PROTOCOLS, RULES  # the checker is large, and the other rules need none of it

    spec = context.spec
    for index, message in enumerate(spec.messages):
        yield from context.known("rule of ptxmma check", message.rules, RULES, "messages", index, "rules")
    for number, protocol in enumerate(spec.protocols):
        for index, race in enumerate(protocol.races):
            yield from context.known("rule of ptxmma check", [race.rule], RULES, "protocols", number, "races", index, "rule")
        for index, pool in enumerate(protocol.pools):
            yield from context.known("rule of ptxmma check", [pool.rule], RULES, "protocols", number, "pools", index, "rule")
        for section, lists in (("lifecycles", ["transitions"]), ("pairings", ["needs", "counts", "phases"])):
            for index, part in enumerate(getattr(protocol, section)):
                for name in lists:
                    for place, each in enumerate(getattr(part, name)):
                        if each.rule and each.rule not in OF_PROTOCOLS[section]:
                            at = context.at("protocols", number, section, index, name, place, "rule")
                            text = (
                                f"ptxmma check has no rule {each.rule!r} about {section}; allowed: {listed(sorted(OF_PROTOCOLS[section]))}"
                            )
                            yield Problem(at, text)
