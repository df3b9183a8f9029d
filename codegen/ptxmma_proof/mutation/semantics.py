"""Mutants against the sentences about the arithmetic, and against what an instruction's own name says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxmma.catalog import layouts
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.model import Accumulation, Semantics, Spec

#: A type's name in the words for a precision.
_TYPE = re.compile(r"[a-z]+\d+")
_FUSED = re.compile(r"as fma\.(\w+)")
#: What is done with single bits, and what PTX calls it.
_BIT_OPERATIONS = {"and": "and", "exclusive or": "xor"}
_LOW_BITS = re.compile(r"the (\d+) low bits of a (\w+) input")
_DROPPED_BITS = re.compile(r"(\d+) low bits of each input are dropped")
_KEPT_BITS = re.compile(r"(\d+) bits below")


def contradictions(catalog: Catalog) -> Iterator[str]:
    """Where what the arithmetic promises is not what is said of it elsewhere, in words."""
    spec = catalog.database.spec
    for instruction in spec.instructions:
        for entry in instruction.semantics:
            yield from _words(spec, entry)
            yield from _low_bits(spec, entry)
            for seen in entry.observed:
                yield from _kept(spec, seen)
    yield from _left_open(spec)
    yield from _chips(catalog)
    for found in {layouts.key(found.variant): found for found in catalog.all()}.values():
        for entry in found.semantics():
            yield from _operation(found, entry)


def _words(spec: Spec, entry: Semantics) -> Iterator[str]:
    """What the arithmetic promises is what its sentence says, which calls each type by its title."""
    whole = layouts.element_type(spec, entry.sums).form != "float"
    phrases = [entry.multiply] if whole else [entry.multiply, entry.accumulate]
    for phrase in phrases:
        if phrase == "exact":
            if not whole or "In place of products" in entry.text:
                yield f"{entry.text} That is not exact"
        elif not _says(spec, entry.text, phrase):
            yield f"{entry.text} That does not say {phrase!r}"
    if _TYPE.findall(entry.accumulate)[:1] != [entry.sums]:
        yield f"sums are kept as {entry.accumulate}, not as {entry.sums}"
    if ("round to nearest" in entry.text) != bool(entry.rounds) or entry.rounds not in entry.text:
        yield f"{entry.text} That does not say that it rounds to {entry.rounds or 'nothing'}"
    if [int(count) for count in _DROPPED_BITS.findall(entry.text)] != ([entry.truncates] if entry.truncates else []):
        yield f"{entry.text} That does not say {entry.truncates}"


def _says(spec: Spec, text: str, phrase: str) -> bool:
    """Whether a sentence says what a phrase says with the names of types."""
    titles = {element.name: element.title for element in spec.types.elements}
    if phrase == "specified precision":
        return phrase in text or "roducts" not in text
    if fused := _FUSED.fullmatch(phrase):
        return f"fused multiply-add in {fused[1]}" in text
    if "," in phrase:
        return all(titles[name].split()[0] in text for name in _TYPE.findall(phrase))
    wanted = _TYPE.sub(lambda match: titles.get(match[0], match[0]), phrase)
    return re.search(rf"\b{re.escape(wanted)}\b", text) is not None


def _low_bits(spec: Spec, entry: Semantics) -> Iterator[str]:
    """Whether bits of an input that belong to no part of its type count is either said or left open."""
    names = {str(name) for condition in entry.when for name in condition.get("atype", ())}
    types = [element for element in spec.types.elements if element.name in names and element.form == "float"]
    spare = {(element.bits - int(element.sign) - element.exponent - element.mantissa, element.name) for element in types if element.sign}
    expected = set() if entry.truncates else {(count, name) for count, name in spare if count}
    found = {(int(count), name) for text in entry.unspecified for count, name in _LOW_BITS.findall(text)}
    if found != expected:
        yield f"{entry.text} That leaves open {sorted(expected) or 'no low bits'}"


def _left_open(spec: Spec) -> Iterator[str]:
    """Arithmetic of one kind leaves the same things open, wherever it is promised."""
    known: dict[tuple[bool, bool], frozenset[str]] = {}
    for instruction in spec.instructions:
        for entry in instruction.semantics:
            sort = layouts.element_type(spec, entry.sums).form == "float", bool(_FUSED.fullmatch(entry.multiply))
            left = [text for text in entry.unspecified if not _LOW_BITS.search(text)]
            if known.setdefault(sort, frozenset(left)) != frozenset(left) or len(set(entry.unspecified)) != len(entry.unspecified):
                yield f"{instruction.name}: {entry.text} Arithmetic of this kind leaves open {', '.join(sorted(known[sort])) or 'nothing'}"


def _kept(spec: Spec, seen: Accumulation) -> Iterator[str]:
    """How many bits a chip keeps is what its sentence says."""
    said = {int(count) for count in _KEPT_BITS.findall(seen.text)}
    said |= {element.mantissa for element in spec.types.elements if f"kept in {element.title}" in seen.text}
    if said != ({seen.fraction_bits} if seen.fraction_bits else set()):
        yield f"{seen.text} That is not {seen.fraction_bits} bits"


def _chips(catalog: Catalog) -> Iterator[str]:
    """Who observed a chip did so on one target, and for every floating-point sum there: whole numbers leave nothing to observe."""
    spec = catalog.database.spec
    targets: dict[str, str] = {}
    for seen in (seen for instruction in spec.instructions for entry in instruction.semantics for seen in entry.observed):
        if targets.setdefault(seen.chip, seen.target) != seen.target:
            yield f"{seen.chip} was observed on {targets[seen.chip]} and on {seen.target}"
    for found in catalog.all() if targets else ():
        accepted = found.accepted_by()
        for entry in found.semantics():
            sums = layouts.element_type(spec, entry.sums).form == "float"
            chips = [seen.chip for seen in entry.observed]
            for chip, target in targets.items():
                if target in accepted and chips.count(chip) != sums:
                    yield f"{found.canonical}: how {chip} sums is {'' if sums else 'not '}to be observed, once"


def _operation(found: Instruction, entry: Semantics) -> Iterator[str]:
    """Bits are combined as the name says, whole numbers multiplied exactly, and they alone overflow; floating point does neither."""
    spec, tokens = found.database.spec, found.canonical.split(".")
    form = layouts.element_type(spec, str(found.variant.facts["atype"])).form
    exact, bitwise = entry.multiply == "exact", entry.multiply in _BIT_OPERATIONS
    if (exact, bitwise) != (form in ("signed", "unsigned"), form == "bits"):
        yield f"{found.canonical}: {entry.multiply!r} is nothing that is done with elements of form {form}"
    named = [token for token in tokens if token in _BIT_OPERATIONS.values()]
    if bitwise and named and named != [_BIT_OPERATIONS[entry.multiply]]:
        yield f"{found.canonical}: its operation is {named[0]}, not {entry.multiply!r}"
    if (form == "float") != (layouts.element_type(spec, entry.sums).form == "float"):
        yield f"{found.canonical}: its sums are no {entry.sums}"
    expected = "" if form == "float" else "saturate" if "satfinite" in tokens else "wrap"
    if entry.overflow != expected:
        yield f"{found.canonical}: on overflow its name says {expected or 'nothing'}"
