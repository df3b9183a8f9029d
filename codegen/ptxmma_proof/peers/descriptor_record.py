"""Compares descriptors with CuTe, Triton and JAX."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ptxmma.catalog import digest
from ptxmma.catalog.evidence import witnesses
from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.peers import (
    cute_descriptors,
    dsl_descriptors,
    headers,
    mosaic,
    mosaic_descriptors,
    probe,
    sm107_descriptors,
    sources,
    triton_compiler,
    triton_descriptors,
)
from ptxmma_proof.peers.compared import Difference
from ptxmma_proof.peers.descriptor_words import Words
from ptxmma_proof.peers.findings import Findings
from ptxmma_proof.peers.sources import Source


def run(catalog: Catalog, given: Mapping[str, Source], date: str, nvcc: str = "nvcc") -> Findings:
    """Compare the descriptors of a catalog with checkouts of CUTLASS and with the installed Triton and JAX.

    Raises:
        MissingPeerError: a checkout of CUTLASS, the compiler, Triton or JAX are not there.
        CompilerError: the compiler refuses the headers.
    """
    cutlass, triton, jax = headers.find(given), triton_compiler.find(), mosaic.find()
    dsl = sources.checkout(given, "CUTLASS")._replace(name=dsl_descriptors.NAME)
    newer = sources.checkout(given, "CUTLASS-4.8")._replace(name=sm107_descriptors.NAME)
    answers = cute_descriptors.compare(catalog, cutlass, nvcc)
    answers += [*dsl_descriptors.compare(catalog, dsl.folder), *sm107_descriptors.compare(catalog, newer.folder)]
    answers += [*triton_descriptors.compare(catalog), *mosaic_descriptors.compare(catalog)]
    tools = (cutlass.tool(date), probe.tool(nvcc, date), dsl.tool(date), newer.tool(date), triton.tool(date), jax.tool(date))
    return findings(catalog, answers)._replace(tools=tools)


def findings(catalog: Catalog, answers: Iterable[Words]) -> Findings:
    """The findings of answers of peers."""
    spec = catalog.database.spec
    agree: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    differ: dict[str, list[str]] = defaultdict(list)
    shown: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    known = list(answers)
    for each in known:
        (differ[each.format] if each.differing else agree[each.format][each.peer]).append(each.subject)
        for field in each.fields if not each.differing else ():
            shown[each.format, field][each.peer] = None
    lines = [
        witnesses.Laid(
            layout=format.name,
            facts=digest.descriptor_format(format),
            agree={peer: tuple(subjects) for peer, subjects in agree[format.name].items()},
            differ=tuple(differ[format.name]),
            fields={field.name: tuple(peers) for field in format.fields if (peers := shown[format.name, field.name])},
        )
        for format in spec.descriptors
        if agree[format.name] or differ[format.name]
    ]
    rows = Counter(each.peer for each in known)
    return Findings((), rows, list(_differences(known)), [*lines], {"compared": sum(len(each.said) for each in known)})


def _differences(answers: Iterable[Words]) -> Iterator[Difference]:
    """The first question to each definition to which a peer gives another answer than we do."""
    for each in answers:
        for theirs, ours, question in each.differing[:1]:
            said = f"{question} is {theirs:#x}", f"{question} is {ours:#x}"
            yield Difference(each.peer, each.subject, each.format, *said, len(each.differing), len(each.said))
