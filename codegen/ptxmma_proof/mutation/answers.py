"""Mutants against recorded answers: of other projects, of tools about errata, of a chip's driver about tensor maps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.evidence.witnesses import Sighting
from ptxmma.catalog.instructions import Catalog
from ptxmma.model import Database, Spec
from ptxmma_proof import errata
from ptxmma_proof.peers import compared, recorded
from ptxmma_proof.peers.recorded_products import Products
from ptxmma_proof.peers.recorded_tensor import Tensor
from ptxmma_proof.silicon import tensor_maps as driver

#: The first answer that a catalog contradicts, in words; ``""`` where there is none.
Contradiction = Callable[[Catalog], str]

#: Parts of a spec that no layout depends on.
WITHOUT_LAYOUTS = ("descriptors", "tensor_maps", "tensor_products", "throughput", "protocols", "errata", "words", "preferences")
#: Parts of a spec that no answer about a line depends on.
_WITHOUT_ANSWERS = ("tensor_maps", "throughput", "protocols", "words", "preferences", "gpus")
#: One copy of so many is repeated, in so many bytes of memory.
_STEP, _MEMORY = 10, 1 << 20


def parts(spec: Spec, *without: str) -> tuple[object, ...]:
    """All parts of a spec but the named ones, to compare with another spec's."""
    return tuple(getattr(spec, name) for name in spec.__struct_fields__ if name not in without)


def _where_changed(
    catalog: Catalog, facts: Callable[[Database], object], contradictions: Callable[[Catalog], Iterator[str]]
) -> Contradiction:
    """The first contradiction of a mutant; none where it has the facts of the spec, on which the answers depend."""
    before = facts(catalog.database)
    return lambda mutant: "" if facts(mutant.database) == before else next(contradictions(mutant), "")


def layouts(catalog: Catalog) -> Contradiction:
    """The layouts of CuTe."""
    theirs = recorded.read()

    def contradictions(mutant: Catalog) -> Iterator[str]:
        differences = compared.compare(theirs, mutant).differences
        return (f"{each.subject}, {each.operand}: {each.theirs}" for each in differences)

    return _where_changed(catalog, lambda database: parts(database.spec, *WITHOUT_LAYOUTS[1:]), contradictions)


def tensor_memory(catalog: Catalog) -> Contradiction:
    """The places, registers and sizes that other projects have in tensor memory."""

    def facts(database: Database) -> object:
        return database.spec.spaces, database.spec.tensor_products, database.layouts, database.spec.types.elements

    return _where_changed(catalog, facts, Tensor.read().contradictions)


def products(catalog: Catalog) -> Contradiction:
    """The sizes and types of products of another project."""
    theirs = Products.read()

    def contradictions(mutant: Catalog) -> Iterator[str]:
        rules = mutant.database.spec.tensor_products
        return iter(()) if rules is None else theirs.contradictions(rules)

    return _where_changed(catalog, lambda database: database.spec.tensor_products, contradictions)


def tensor_maps(catalog: Catalog) -> Contradiction:
    """The driver's verdicts about the tensor maps that a chip was given, and the images of copies."""
    memory = np.random.default_rng(0).integers(0, 256, _MEMORY, np.uint8)
    rows = [row for row in driver.read() if not driver.contradiction(row, None, catalog.database)]
    copies = [row for row in rows if "runs" in row][::_STEP]

    def facts(database: Database) -> object:
        return database.spec.tensor_maps, database.spec.shared_memory, database.spec.types.elements

    def contradictions(mutant: Catalog) -> Iterator[str]:
        verdicts = (driver.contradiction(row, None, mutant.database) for row in rows)
        images = (driver.contradiction(row, memory, mutant.database) for row in copies)
        return filter(None, itertools.chain(verdicts, images))

    return _where_changed(catalog, facts, contradictions)


def sightings(catalog: Catalog, folder: Path) -> Contradiction:
    """The answers of tools about errata, ``spec/evidence/errata.jsonl``, as far as the rules of the spec give them, too."""
    answers = witnesses.Witness(folder / f"{witnesses.ERRATA}.jsonl").of(Sighting)
    misjudged = set(errata.misjudged(catalog, answers))

    def contradictions(mutant: Catalog) -> Iterator[str]:
        found = (each for each in errata.misjudged(mutant, answers) if each not in misjudged)
        return (f"{seen.tool} on {target}: {seen.answer}: {seen.asked}" for seen, target in found)

    return _where_changed(catalog, lambda database: parts(database.spec, *_WITHOUT_ANSWERS), contradictions)
