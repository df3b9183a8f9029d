"""What is no fact of an instruction, and is left as it is: the one place that says so, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence

#: Keys whose values are left alone, wherever they stand; ``a.b`` is ``b`` inside ``a``.
LEFT_OUT = {
    "kind": "says which kind of document it is (the kinds of operands and the qualifier of this name are facts: see KEPT)",
    "source": "a citation",
    "section": "a citation",
    "title": "words for readers",
    "text": "words for readers",
    "note": "words for readers",
    "releases": "words for readers",
    "contributors": "words for readers",
    "notes": "sentences for readers, and which instructions they are about",
    "undefined": "sentences for readers, and which instructions they are about",
    "uniform": "sentences for readers (over which threads they speak is a fact, and so is the key of an operand: see KEPT)",
    "says": "words for readers",
    "holds": "words for readers",
    "known": "words for readers",
    "definitions": "terms with their words (a formula is a fact: see KEPT)",
    "earlier": "words for readers",
    "later": "words for readers",
    "by": "words for readers",
    "access": "words for readers (the access of an operand is a fact: see KEPT)",
    "layouts.lbo": "words for readers",
    "layouts.sbo": "words for readers",
    "stem": "a name that is ours: how identifiers start",
    "label": "a name that is ours: what tells two layouts apart",
    "usual": "a name that is ours: what identifiers leave out",
    "document": "a citation",
    "examples.name": "a citation: the figure",
    "steps.name": "a name that is ours",
    "block_formats.name": "a name that is ours, of a standard's format",
    "version": "the edition of the spec (versions of PTX ISA are facts: see KEPT)",
    "assemblers": "what is fetched: the fetch itself holds each hash against what it got, and nothing is derived from them",
    "errata": "sentences about the manual and the tools",
}

#: Facts that have the key of something that is left out, or stand inside it.
KEPT = frozenset(
    {"operand_kinds.kind", "operand_kinds.access", "operand_kinds.uniform", "isa_versions.version", "forms.kind", "of.kind", "when.kind"}
) | {
    "ordered_when.kind",
    "block_scaling.kind",
    "uniform.over",
    "definitions.formula",
}


def left_out(keys: Sequence[str]) -> str:
    """The reason why a place in a document is left alone, ``""`` for a fact; ``keys`` lead there from the document's top."""
    for length in range(1, len(keys) + 1):
        inner = keys[:length]
        if any(f"{outer}.{inner[-1]}" in KEPT for outer in inner[:-1]) or f"{inner[-1]}.{keys[-1]}" in KEPT:
            continue
        for name, reason in LEFT_OUT.items():
            outer, _, key = name.rpartition(".")
            if inner[-1] == key and (not outer or outer in inner[:-1]):
                return reason
    return ""


def holds_facts(keys: Sequence[str]) -> bool:
    """Whether something inside a place that is left alone is a fact."""
    return any(name.startswith(f"{keys[-1]}.") for name in KEPT)
