"""References: all that an entry names exists; the steps of a protocol are the instructions that synchronise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ptxmma.catalog.citations import citations
from ptxmma.catalog.instructions.meanings import words_of
from ptxmma.catalog.instructions.spellings import hint_values
from ptxmma.catalog.instructions.words import FACTS, has_all, vocabulary
from ptxmma.catalog.products.product_rules import TYPES
from ptxmma.catalog.variants import qualifier_values
from ptxmma.generator.problems import Problem, clash
from ptxmma.generator.spec_rules.instruction_rules import modifiers_of
from ptxmma.generator.spec_rules.rule_context import Place, RuleContext, listed
from ptxmma.model import Statement, Version

#: The end of a kernel, as a transition names it.
_EXIT = "exit"
#: The forms of sums that can overflow, or that are rounded.
_SUMS = {"overflow": ("unsigned", "signed"), "rounds": ("float",)}

# --- types, targets, versions -----------------------------------------------------------------------------------------------


def problems(context: RuleContext) -> Iterator[Problem]:
    """Names that match no entry."""
    spec, elements = context.spec, context.elements
    for index, container in enumerate(spec.types.containers):
        yield from context.known("element type", container.elements, elements, "types", "containers", index, "elements")
        widest = max((element.bits for element in spec.types.elements if element.name in container.elements), default=0)
        if container.shift + widest > container.bits:
            text = f"elements of {widest} bits from bit {container.shift} on do not fit into {container.bits} bits"
            yield Problem(context.at("types", "containers", index, "shift"), f"{text}; allowed: 0 to {container.bits - widest}")
    for index, carrier in enumerate(spec.types.carriers):
        yield from context.known("element type", carrier.elements, elements, "types", "carriers", index, "elements")
        yield from context.known("register type", carrier.registers, context.registers, "types", "carriers", index, "registers")
    for index, scaling in enumerate(spec.block_scaling):
        yield from context.known("element type", scaling.types, elements, "block_scaling", index, "types")
    for index, block in enumerate(spec.block_formats):
        yield from context.known("element type", [block.element], elements, "block_formats", index, "element")
        yield from context.known("element type", [block.scale], elements, "block_formats", index, "scale")
    yield from _products(context)
    for index, entry in enumerate(spec.instructions):
        for number, semantics in enumerate(entry.semantics):
            place = ("instructions", index, "semantics", number)
            yield from context.known("element type", [semantics.sums], elements, *place, "sums")
            form = next((element.form for element in spec.types.elements if element.name == semantics.sums), "")
            for key, forms in _SUMS.items():
                if getattr(semantics, key) and form not in ("", *forms):
                    text = f"{key} is for sums of the forms {listed(forms)}; {semantics.sums} is of the form {form}: leave {key} out"
                    yield Problem(context.at(*place, key), text)
    for index, chip in enumerate(spec.throughput):
        yield from context.known("target", [chip.target], context.targets, "throughput", index, "target")
    yield from _scopes(context)
    families = dict.fromkeys(entry.family for entry in spec.instructions)
    for index, erratum in enumerate(spec.errata):
        if erratum.family:
            yield from context.known("family", [erratum.family], families, "errata", index, "family")


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


def _products(context: RuleContext) -> Iterator[Problem]:
    """Element types and targets of the products that an instruction descriptor may choose."""
    rules = context.spec.tensor_products
    for index, row in enumerate(rules.types if rules else ()):
        for name in TYPES:
            yield from context.known("element type", getattr(row, name), context.elements, "tensor_products", "types", index, name)
    for index, scale in enumerate(rules.scales if rules else ()):
        yield from context.known("element type", scale.stype, context.elements, "tensor_products", "scales", index, "stype")
    for section in ("depths", "options", "scales"):
        for index, entry in enumerate(getattr(rules, section, ())):
            yield from context.known("target", entry.targets, context.targets, "tensor_products", section, index, "targets")


def _scopes(context: RuleContext) -> Iterator[Problem]:
    """Scopes over which operands or statements are uniform, and that the spec does not list; a warp that is not a scope."""
    spec = context.spec
    for name, threads in spec.scopes.items():
        if threads & (threads - 1):
            yield Problem(context.at("scopes", name), f"a scope has a power of two of threads, not {threads}")
    if spec.lanes not in spec.scopes.values():
        text = f"{spec.lanes} lanes are not the threads of any scope; scopes have {', '.join(map(str, spec.scopes.values()))}"
        yield Problem(context.at("spaces", spec.spaces.index(spec.registers), "coordinates", "lane"), text)
    named: list[tuple[str, Place]] = []
    statements: list[tuple[tuple[Statement, ...], Place]] = []
    for index, format in enumerate(spec.descriptors):
        statements.append((format.notes, ("descriptors", index, "notes")))
    if spec.shared_memory is not None:
        statements.append((spec.shared_memory.notes, ("shared_memory", "notes")))
    statements += ((space.notes, ("spaces", index, "notes")) for index, space in enumerate(spec.spaces))
    for index, entry in enumerate(spec.instructions):
        place: Place = ("instructions", index)
        named += ((operand.uniform, (*place, "operand_kinds", name, "uniform")) for name, operand in entry.operand_kinds.items())
        statements += ((getattr(entry, key), (*place, key)) for key in ("undefined", "uniform", "notes"))
    named += ((entry.over, (*place, number, "over")) for entries, place in statements for number, entry in enumerate(entries))
    for scope, place in named if "spaces" not in context.unsound else ():
        yield from context.known("scope", filter(None, [scope]), spec.scopes, *place)


def versions(context: RuleContext) -> Iterator[Problem]:
    """CUDA releases that never were, and PTX ISA versions that match no entry, where no rule about instructions or targets looks."""
    spec = context.spec
    for index, target in enumerate(spec.targets):
        yield from _release(context, target.until, "targets", index, "until")
        for number, floor in enumerate(target.ptx_in):
            yield from _release(context, floor.cuda, "targets", index, "ptx_in", number, "cuda")
            yield from context.known("PTX ISA version", [floor.ptx], context.versions, "targets", index, "ptx_in", number, "ptx")
    for index, entry in enumerate(spec.instructions):
        for number, rule in enumerate(entry.requires):
            for field in ("since", "known"):
                yield from _release(context, getattr(rule, field), "instructions", index, "requires", number, field)
    for index, erratum in enumerate(spec.errata):
        for number, quirk in enumerate(erratum.rules):
            yield from _release(context, quirk.since, "errata", index, "rules", number, "since")
            yield from _release(context, quirk.until, "errata", index, "rules", number, "until")
        for number, bug in enumerate(erratum.overwriting):
            yield from _release(context, bug.since, "errata", index, "overwriting", number, "since")
            yield from _release(context, bug.until, "errata", index, "overwriting", number, "until")
            for name in ("lowest", "highest"):
                yield from context.known("target", [getattr(bug, name)], context.targets, "errata", index, "overwriting", number, name)


def _release(context: RuleContext, name: str, *place: str | int) -> Iterator[Problem]:
    """A CUDA release is as old as one that brought a PTX ISA version, or between two of them: not each brought one."""
    releases = sorted(Version(entry.cuda) for entry in context.spec.isa_versions)
    if name and not releases[0] <= Version(name) <= releases[-1]:
        yield Problem(context.at(*place), f"unknown CUDA release {name!r}; isa_versions has {releases[0]} to {releases[-1]}")


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
    for place, source in _sources(spec, ()):
        for release, number in citations(spec, source):
            if _chapter(number) in chapters.get(release, ()) and number not in known[release]:
                message = f"PTX ISA {release} has no section {number}; sections.yaml lists those of {_chapter(number)}"
                yield Problem(context.at(*place), message)


def _chapter(number: str) -> str:
    return ".".join(number.split(".")[:3])


def _sources(part: object, place: Place) -> Iterator[tuple[Place, str]]:
    """Every source of the model with its place."""
    if isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if name in ("source", "section") and isinstance(value, str):
                yield (*place, name), value
            else:
                yield from _sources(value, (*place, name))
    elif isinstance(part, tuple):
        for index, each in enumerate(part):
            yield from _sources(each, (*place, index))


# --- protocols --------------------------------------------------------------------------------------------------------------


def protocols(context: RuleContext) -> Iterator[Problem]:
    """Steps without an instruction, steps that repeat one, families with two protocols, and instructions without a step."""
    protocols, instructions = context.spec.protocols, context.spec.instructions
    if not protocols:
        return
    names = [entry.name for entry in instructions]
    families = [entry.family for entry in instructions]
    first: dict[str, int] = {}
    issued: dict[str, tuple[int, int]] = {}
    for number, protocol in enumerate(protocols):
        yield from context.known("family", protocol.families, families, "protocols", number, "families")
        for family in protocol.families:
            if first.setdefault(family, number) != number:
                yield clash(
                    f"{family} has two protocols", context.at("protocols", number, "families"), context.at("protocols", first[family])
                )
        for section, key in (("steps", "instruction"), ("orderings", "needs")):
            for index, part in enumerate(getattr(protocol, section)):
                if value := getattr(part, key):
                    yield from context.known("instruction", [value], names, "protocols", number, section, index, key)
        for index, issuer in enumerate(protocol.issuers):
            yield from context.known("instruction", issuer.instructions, names, "protocols", number, "issuers", index, "instructions")
            for key in ("modifiers", "both", "lone"):
                at = ("protocols", number, "issuers", index, key)
                yield from _known_modifiers(context, issuer.instructions, getattr(issuer, key), at)
            for name in issuer.instructions:
                if issued.setdefault(name, (number, index)) != (number, index):
                    other, before = issued[name]
                    here = context.at("protocols", number, "issuers", index, "instructions")
                    yield clash(f"{name} has other issuers already", here, context.at("protocols", other, "issuers", before))
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
        if entry.asynchronous and entry.family not in first:
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
        yield from context.known("instruction", pairing.made, known, *at, "made")
        tokens = {token for entry in context.spec.instructions for token in (*entry.name.split("."), *modifiers_of(entry))}
        yield from context.known("modifier", pairing.without, sorted(tokens), *at, "without")
        for place, each in enumerate(pairing.needs):
            one = (*at, "needs", place)
            yield from context.known("instruction", each.on, known, *one, "on")
            yield from context.known("instruction", each.needs, known, *one, "needs")
            yield from _known_modifiers(context, each.on, each.modifiers, (*one, "modifiers"))
        for key in ("tracked", "reads"):
            yield from context.known("instruction", getattr(pairing, key), known, *at, key)
        for key in ("waits", "arrives", "orders"):
            yield from context.known("instruction", getattr(pairing, key), known, *at, key)
            if pairing.phases and not getattr(pairing, key):
                yield Problem(context.at(*at, "phases"), f"faults of phases need instructions: say {key}")
        for place, count in enumerate(pairing.counts):
            one = (*at, "counts", place)
            yield from context.known("instruction", count.expects, known, *one, "expects")
            yield from context.known("instruction", count.brings, known, *one, "brings")
            yield from context.known("instruction", count.stores, known, *one, "stores")


def _lifecycles(context: RuleContext, number: int, names: Sequence[str]) -> Iterator[Problem]:
    """States that nothing leads to, transitions that say nothing or contradict each other, and names that are not known."""
    protocol = context.spec.protocols[number]
    known = sorted({*names, *protocol.others, _EXIT})
    followed = {name for life in protocol.lifecycles for each in life.transitions for name in each.on}
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
                states, both = (_meet(getattr(each, key), getattr(other, key)) for key in ("states", "on"))
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


def _meet(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """The names that are in both lists."""
    return [name for name in names if name in others]


def rules_of_check(context: RuleContext) -> Iterator[Problem]:
    """Rules of the checker that do not exist, or that the checker does not find by following the protocol's part that names them."""
    from ptxmma.check.rules import OF_PROTOCOLS, RULES  # the checker is large, and the other rules need none of it

    spec = context.spec
    for index, message in enumerate(spec.messages):
        yield from context.known("rule of ptxmma check", message.rules, RULES, "messages", index, "rules")
    for number, protocol in enumerate(spec.protocols):
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
