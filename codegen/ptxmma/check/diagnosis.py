"""The reasons why a spelling is not an instruction of a target and version, and the closest one that is."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ptxmma.catalog import evidence
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.instructions.explanation import changes, closest
from ptxmma.catalog.instructions.spellings import hint_values, without_own_hints
from ptxmma.catalog.products.product_rules import TYPES
from ptxmma.catalog.products.resolution import OPERATION
from ptxmma.catalog.requirements import targets_of
from ptxmma.catalog.variants import fixed_tokens, qualifier_values
from ptxmma.check import rule_examples as examples
from ptxmma.check.legality import accepted
from ptxmma.check.operand_faults import listing
from ptxmma.check.rule import Rule
from ptxmma.model import Version

_OLD = ".version 8.4\n.target sm_90a\n.entry kernel()\n{\n    wgmma.fence.sync.aligned;\n}\n"

RULES: Mapping[str, Rule] = {
    "target": Rule(
        "The target of the module supports the instruction.",
        "The assembler refuses the module. Targets with a letter, such as sm_90a, are not included in later ones.",
        "Use the instruction that the message proposes, or change .target.",
        ".version 8.0\n.target sm_90\n.entry kernel()\n{\n    wgmma.fence.sync.aligned;\n}\n",
        ".version 8.0\n.target sm_90a\n.entry kernel()\n{\n    wgmma.fence.sync.aligned;\n}\n",
    ),
    "unknown-instruction": Rule(
        "The opcode with its modifiers is an instruction.",
        "The assembler refuses it.",
        "Write the instruction that the message names as the closest, or look it up with ptxmma list.",
        examples.MMA.replace("m16n8k16", "m16n8k32"),
        examples.MMA,
    ),
    "version": Rule(
        "The PTX ISA version of the module exists and has the instruction for the target.",
        "The assembler refuses the module.",
        "Raise .version to the one in the message.",
        _OLD.replace("8.4", "7.8"),
        _OLD,
    ),
}

#: Different opcodes for which the closest is looked up: the search is slow, and nobody reads more of them.
_MOST = 100
#: Characters of a spelling that are looked at.
_LONGEST = 1000
#: Of a wrong opcode that is very long: characters of a modifier, and modifiers, that a message repeats.
_MOST_SHOWN, _MOST_TOKENS = 60, 8
#: As many modifiers that could stand in a place are listed.
_MOST_OTHERS = 8


class Diagnosis(NamedTuple):
    """The fault of an opcode.

    Attributes:
        rule: ``"unknown-instruction"``, ``"target"`` or ``"version"``.
        message: the fault in words, with the closest legal spelling.
        token: the modifier that is wrong, ``""`` for the whole.
        cause: the reason that instructions with the same wrong target or version share; ``""`` where the opcode is wrong.
        mended: the only opcode that adds so few modifiers; ``""`` where several do, or none.
    """

    rule: str
    message: str
    token: str = ""
    cause: str = ""
    mended: str = ""


class Diagnoses:
    """Explains opcodes; answers are remembered."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        #: The first words of hints: "collector" of "collector::a::fill".
        entries = catalog.database.spec.instructions
        self._hints = tuple({value.split("::")[0] for value in hint_values(entries)})
        self._modifiers = {token for entry in entries for token in fixed_tokens(entry.syntax)}
        self._modifiers |= {value for entry in entries for name in entry.qualifiers for value in qualifier_values(entry, name)}
        self._substitutes = Substitutes(catalog)
        self._known: dict[tuple[str, str, str], Diagnosis] = {}

    def unknown(self, spelling: str, target: str, version: str) -> Diagnosis:
        """Explain a spelling that is not an instruction."""
        key = (spelling[:_LONGEST], target, version)
        if key not in self._known:
            if len(self._known) >= _MOST:
                return Diagnosis("unknown-instruction", "no such instruction")
            self._known[key] = self._explained(*key)
        return self._known[key]

    def unsupported(self, instruction: Instruction, target: str, version: str) -> Diagnosis:
        """Explain why a target or version does not have an instruction; the version may also be unknown."""
        key = (instruction.canonical, target, version)
        if key not in self._known:
            if len(self._known) >= _MOST:
                return Diagnosis("target", f"{target} does not support it with PTX ISA {version}")
            self._known[key] = self._refused(instruction, target, version)
        return self._known[key]

    def _explained(self, spelling: str, target: str, version: str) -> Diagnosis:
        tokens = spelling.split(".")
        close = self._closest(spelling)
        if close is None:
            return Diagnosis("unknown-instruction", "no such instruction")
        proposed = f"the closest is {close.canonical}"
        if not accepted(close, target, version):
            near = self._closest(spelling, target, version)
            wanted = Counter(tokens)
            if near is not None and changes(near, wanted) <= changes(close, wanted):
                close, proposed = near, f"the closest is {near.canonical}"
            elif target:
                proposed += f", which {target} does not support" + (f"; it supports {near.canonical}" if near else "")
        own = close.canonical.split(".")
        if tokens[0] != own[0]:
            return Diagnosis("unknown-instruction", f"no such instruction: '{_cut(tokens[0])}' should be '{own[0]}'; {proposed}")
        tokens = without_own_hints(close.variant, tokens)
        hinted = [token for token in tokens if self._hints_at(token)]
        if hinted and sorted(own) == sorted(token for token in tokens if token not in hinted):
            legal = [value for _, values in close.possible_hints() for value in values if self._takes(close, value, target, version)]
            place = next((token for token in hinted if token not in legal), hinted[0])
            return Diagnosis("unknown-instruction", f"no such instruction: {_of_hints(hinted, legal, close.canonical)}", place)
        wrong = list((Counter(tokens) - Counter(own)).elements())
        missing = list((Counter(own) - Counter(tokens)).elements())
        opcode = close.variant.instruction.opcode
        if not spelling.startswith(opcode) and set(opcode.split(".")) <= set(tokens):
            return Diagnosis("unknown-instruction", f"no such instruction: {opcode} must come first; {proposed}")
        others = self._others(tokens, wrong[0]) if len(wrong) == len(missing) == 1 and not _similar(wrong[0], missing[0]) else []
        reason = ", ".join(_reasons(wrong, missing)) or "its types or layouts are in the wrong order"
        if 1 < len(others) <= _MOST_OTHERS:
            reason = f"'.{_cut(wrong[0])}' should be one of {_listed(others, 'or')}"
        message = f"no such instruction: {reason}; {proposed}{self._accepted_all_the_same(close, wrong)}"
        mended = close.canonical if missing and not wrong and self._only(spelling, close) else ""
        return Diagnosis("unknown-instruction", message, wrong[0] if wrong else "", mended=mended)

    def _others(self, tokens: list[str], wrong: str) -> list[str]:
        """The modifiers with any of which, in place of a wrong one, a spelling is an instruction."""
        place = tokens.index(wrong)
        split = (each.canonical.split(".") for each in self._catalog.all(lambda entry: entry.syntax.startswith(tokens[0])))
        rest = tokens[:place], tokens[place + 1 :]
        return list(dict.fromkeys(own[place] for own in split if len(own) == len(tokens) and (own[:place], own[place + 1 :]) == rest))

    def _only(self, spelling: str, close: Instruction) -> bool:
        """Return whether a spelling lacks modifiers of one instruction, and more of any other."""

        def lacks(each: Instruction) -> bool:
            left = iter(each.canonical.split("."))
            return all(token in left for token in spelling.split("."))

        few = close.canonical.count(".")
        return lacks(close) and not any(
            each is not close and each.canonical.count(".") <= few and lacks(each)
            for each in self._catalog.all(lambda entry: close.canonical.startswith(f"{entry.syntax.partition('.')[0]}."))
        )

    def _hints_at(self, token: str) -> bool:
        """Return whether a token is a hint, or a slip in one."""
        return token.startswith(self._hints) and token not in self._modifiers

    def _takes(self, instruction: Instruction, hint: str, target: str, version: str) -> bool:
        """Return whether a target has an instruction with a hint in a version."""
        hinted = self._catalog.meaning(f"{instruction.canonical}.{hint}")
        return hinted is not None and accepted(hinted, target, version)

    def _accepted_all_the_same(self, close: Instruction, wrong: list[str]) -> str:
        """The erratum about a modifier that no instruction of the family has, and assemblers accept."""
        family = close.variant.instruction.family
        legal = {token for each in self._catalog.all() if each.variant.instruction.family == family for token in each.canonical.split(".")}
        own = {erratum.id for erratum in self._catalog.database.spec.errata if erratum.family == family}
        for seen in evidence.of(self._catalog.database).sightings:
            if seen.erratum in own and seen.answer == "accepted" and seen.database == "refuses":
                for token in (token for token in wrong if token not in legal and token in seen.asked.split(" ")[0].split(".")):
                    return f"; assemblers accept '.{token}' all the same: see erratum {seen.erratum}"
        return ""

    def _refused(self, instruction: Instruction, target: str, version: str) -> Diagnosis:
        accepts = instruction.accepted_by()
        if accepted(instruction, target, version):
            versions = ", ".join(entry.version for entry in self._catalog.database.spec.isa_versions)
            return Diagnosis("version", f"PTX ISA {version} is unknown; known versions: {versions}")
        if target in accepts:
            text = f"needs PTX ISA {accepts[target]} on {target}, but is checked for {version}"
            return Diagnosis("version", text + self._stated(instruction), cause=text)
        known = {entry.name for entry in self._catalog.database.spec.targets}
        first = min(accepts, key=accepts.__getitem__) if accepts else ""
        where = f"{target} does not support it" if target in known else f"the target {target} is unknown"
        if not target:
            text = f"needs PTX ISA {accepts[first]}, but is checked for {version}"
            return Diagnosis("version", text + self._stated(instruction), cause=text)
        close = self._closest(instruction.canonical, target, version)
        text = f"{where}; supported: {self._named(accepts)}"
        closest = f"the closest that {target} supports is {close.canonical}" if close is not None else ""
        advice = "; ".join(["", *filter(None, [closest or self._substitutes.advice(instruction, target)])])
        return Diagnosis("target", text + self._stated(instruction) + advice, cause=text + advice)

    def _named(self, accepts: dict[str, Version]) -> str:
        """The targets, by their first version, from which it follows for all others: these include one that is named."""
        features = targets_of(self._catalog.database.spec).features

        def follows(name: str) -> bool:
            return any(other != name and other in features(name) and first <= accepts[name] for other, first in accepts.items())

        first_in: dict[Version, list[str]] = {}
        for name in accepts:
            if not follows(name):
                first_in.setdefault(accepts[name], []).append(name)
        listed = [f"{listing(first_in[version], 'and')} from PTX ISA {version}" for version in sorted(first_in)]
        others = len(accepts) - sum(map(len, first_in.values()))
        return ", ".join(listed) + (
            f", and {others} more that include {'it' if len(accepts) - others == 1 else 'one of these'}" if others else ""
        )

    def _stated(self, instruction: Instruction) -> str:
        """The sections in which the manual asks for it."""
        sections = dict.fromkeys(rule.source for rule in instruction.requirements())
        return f" [{', '.join(sections)}]" if sections else ""

    def _closest(self, spelling: str, target: str = "", version: str = "") -> Instruction | None:
        """The closest instruction with the most similar first word that the target has in the version; None where there is none."""
        tokens = [token for token in spelling.split(".") if not self._hints_at(token)]
        likely = difflib.get_close_matches(tokens[0], sorted({each.canonical.split(".")[0] for each in self._catalog.all()}), 1)
        instructions = (each for each in self._catalog.all() if each.canonical.split(".")[0] in likely)
        return next(iter(closest([each for each in instructions if accepted(each, target, version)], tokens, 1)), None)


def _of_hints(tokens: list[str], legal: list[str], takes: str) -> str:
    """The faults of tokens that begin as hints do.

    Args:
        tokens: the tokens as they are written.
        legal: the hints that the instruction takes.
        takes: the instruction, for the message.
    """
    wrong = [token for token in tokens if token not in legal]
    if not legal:
        return f"{_listed(wrong)} {'are' if len(wrong) > 1 else 'is'} not allowed here; the closest is {takes}"
    ends: dict[str, list[str]] = {}
    for value in legal:
        start, _, end = value.rpartition("::")
        ends.setdefault(start, []).append(f"::{end}")
    starts: dict[str, list[str]] = {}
    for start, last in ends.items():
        starts.setdefault(listing(last), []).append(start)
    allowed = f"{takes} takes " + " and ".join(f"{_listed(names, 'or')} with {last}" for last, names in starts.items())
    if not wrong:
        return f"{_listed(tokens)} exclude each other; {allowed}"
    near = {value.replace(":", ""): value for value in legal}.get(wrong[0].replace(":", "").replace("_", ""))
    reason = f"should be '.{near}'" if near else "is not allowed here"
    return f"'.{_cut(wrong[0])}' {reason}; {allowed}"


def _listed(tokens: Sequence[str], last: str = "and") -> str:
    return listing([f"'.{_cut(token)}'" for token in tokens[:_MOST_TOKENS]], last)


def _reasons(wrong: list[str], missing: list[str]) -> Iterable[str]:
    """The faults of modifiers, in words; each once."""
    reasons = [f"'.{_cut(one)}' should be '.{other}'" for one, other in zip(wrong, missing, strict=False)]
    extra, lacking = (list(dict.fromkeys(rest)) for rest in (wrong[len(missing) :], missing[len(wrong) :]))
    if extra:
        reasons.append(f"{_listed(extra)} {'are' if len(extra) > 1 else 'is'} not allowed here")
    if lacking:
        reasons.append(f"{_listed(lacking)} {'are' if len(lacking) > 1 else 'is'} missing")
    return dict.fromkeys(reasons)


def _similar(token: str, other: str) -> bool:
    """Return whether one modifier may be a slip for another."""
    return difflib.SequenceMatcher(None, token, other, autojunk=False).ratio() > 0.5


def _cut(token: str) -> str:
    return token[:_MOST_SHOWN]


#: Products: those into tensor memory, and all others.
_PRODUCTS = (OPERATION, "multiply")


class Substitutes:
    """Advises by a database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        spec = catalog.database.spec
        self._numbers = {entry.name: entry.number for entry in spec.targets}
        self._bits = {element.name: element.bits for element in spec.types.elements}
        into_memory = {entry.family for entry in spec.instructions if entry.operation == OPERATION}
        #: The families that need tensor memory.
        self._of_memory = {family for entry in spec.protocols if into_memory & {*entry.families} for family in entry.families}

    def advice(self, instruction: Instruction, target: str) -> str:
        """Advice for a target that does not have an instruction; empty where nothing is known.

        A target with the same number may have it; otherwise the target's own products replace a product.
        """
        if target not in self._numbers:
            return ""
        if siblings := [name for name in instruction.accepted_by() if self._numbers[name] == self._numbers[target]]:
            return f"compile for {listing(siblings)}"
        products = [each for each in self._catalog.all(lambda entry: entry.operation in _PRODUCTS) if target in each.accepted_by()]
        instead = self._instead(instruction, products) if instruction.operation in _PRODUCTS else None
        if instruction.family in self._of_memory and not any(each.family in self._of_memory for each in products):
            return f"{target} has no tensor memory" + (f"; it multiplies with {instead.canonical}" if instead is not None else "")
        return f"{target} multiplies with {instead.canonical}" if instead is not None else ""

    def _instead(self, instruction: Instruction, products: list[Instruction]) -> Instruction | None:
        """The product that has the most in common with one that is missing; an asynchronous one where there are such."""
        fitting = [each for each in products if each.sparse == instruction.sparse]
        asynchronous = [each for each in fitting if each.variant.instruction.asynchronous]
        families = [each.family for each in asynchronous or fitting]  # the plain one comes first
        own = self._traits(instruction)

        def likeness(other: Instruction) -> tuple[int, bool, int, int]:
            size = math.prod(other.extents.get(extent, 1) for extent in "mnk")
            return len(own & self._traits(other)), other.documented, self._bits.get(other.qualifiers.get("dtype", ""), 0), size

        return max((each for each in fitting if each.family in families[:1]), key=likeness, default=None)

    def _traits(self, instruction: Instruction) -> set[tuple[str, str]]:
        """The qualifiers of a product and its types, those that its descriptor may choose included."""
        rules = self._catalog.database.spec.tensor_products
        traits = {(name, value) for name, value in instruction.qualifiers.items() if value}
        if instruction.operation == OPERATION and rules is not None:
            rows = rules.fitting.types(instruction.variant.facts)
            traits |= {(name, value) for row in rows for name in TYPES for value in getattr(row, name)}
        return traits
