"""Mutants against the descriptors of other projects: the fields that these show in the same bits."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from ptxmma.catalog import digest
from ptxmma.catalog.descriptors.bits import FieldValue
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import cute_descriptors, descriptor_words, dsl_descriptors

#: Descriptors of each kind that are compared.
_WORDS = 64
#: Peers that make a descriptor of the sizes of a product.
_COMPILERS = frozenset({"Triton", "JAX"})


class Described:
    """The fields that ``spec/evidence/descriptors.jsonl`` says others fill as the spec does, to compare its mutants with.

    A mutant is contradicted that reads another number in such a field of a legal descriptor, another size, or another name than CuTe's
    enumerator has.  Formats with outdated evidence are left out.
    """

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        laid = {line.layout: line for line in witnesses.Witness(folder / f"{witnesses.DESCRIPTORS}.jsonl").of(witnesses.Laid)}
        self._spec = catalog.database.spec
        self._peers = {
            format.name: laid[format.name].fields
            for format in self._spec.descriptors
            if format.name in laid and laid[format.name].facts == digest.descriptor_format(format)
        }
        self._words = {
            (name, kind): list(islice(descriptor_words.drawn(codec, self._peers[name]), _WORDS))
            for (name, kind), codec in _codecs(catalog).items()
            if name in self._peers
        }
        self._read = self._all(catalog)

    def contradiction(self, catalog: Catalog) -> str:
        """The first field that a catalog reads otherwise, in words."""
        if catalog.database.spec.descriptors == self._spec.descriptors:
            return ""
        now = self._all(catalog)
        for (name, kind, field, word), said in self._read.items():
            if now.get((name, kind, field, word)) != said:
                return f"{', '.join(self._peers[name][field])}: {field} of {name} {word:#x}, {kind}, is {said}"
        return ""

    def _all(self, catalog: Catalog) -> dict[tuple[str, str, str, int], object]:
        """The number in each field of each word, with its meaning as far as a peer shows it."""
        codecs = _codecs(catalog)
        return {
            (*key, each.field.name, word): self._said(key, each)
            for key, words in self._words.items()
            if key in codecs
            for word in words
            for each in codecs[key].explain(word)
            if each.field.name in self._peers[key[0]]
        }

    def _said(self, key: tuple[str, str], read: FieldValue) -> object:
        """The number, and what it means to a peer that names it or that makes descriptors of sizes."""
        field = read.field.name
        named = {*cute_descriptors.ENUMERATORS.get((*key, field), ())} | {*dsl_descriptors.ENUMERATORS.get((*key, field), ("", ()))[1]}
        of_sizes = isinstance(read.value, int) and not _COMPILERS.isdisjoint(self._peers[key[0]][field])
        return read.stored, read.value if of_sizes or read.value in named else None


def _codecs(catalog: Catalog) -> dict[tuple[str, str], Codec]:
    spec = catalog.database.spec
    return {(format.name, kind): Codec(spec, format, kind) for format in spec.descriptors for kind in format.kinds or ("",)}
