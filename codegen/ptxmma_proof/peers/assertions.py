"""The comparison as C++: a ``static_assert`` for each operand of each atom, over all threads and values.

Whoever has CUTLASS can compile it; that it compiles is the proof.  Our layouts stand in it as what each bit of the thread's and of the
value's number adds to the index.  Where a report says that a layout differs, the text asserts that it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.operands import Operand
from ptxmma.evidence.peers import AtomRecord, Report
from ptxmma.matrices.interop import from_cute
from ptxmma_proof.peers import comparison, places
from ptxmma_proof.peers.comparison import role
from ptxmma_proof.peers.headers import Atom
from ptxmma_proof.peers.places import Values
from ptxmma_proof.peers.probe import INCLUDES

_HELPERS = r"""
template <int... weights> struct Bits {
  static constexpr int at(int number) {
    int sum = 0, bit = 0;
    ((sum += (number >> bit++ & 1) * weights), ...);
    return sum;
  }
};

template <class Theirs, int threads, class ThreadBits, int values, class ValueBits> constexpr bool equal() {
  if (size<0>(Theirs{}) != threads || size<1>(Theirs{}) != values) return false;
  for (int thread = 0; thread < threads; ++thread)
    for (int value = 0; value < values; ++value)
      if (int(Theirs{}(thread, value)) != ThreadBits::at(thread) + ValueBits::at(value)) return false;
  return true;
}
// Evaluated once for all atoms that share a layout.
template <class... T> struct Same;
template <class Theirs, class Threads, class ThreadBits, class Values, class ValueBits>
struct Same<Theirs, Threads, ThreadBits, Values, ValueBits>
    : std::bool_constant<equal<Theirs, Threads::value, ThreadBits, Values::value, ValueBits>()> {};
"""


def source(catalog: Catalog, report: Report, atoms: Iterable[Atom]) -> str:
    """The text for those atoms that the report has; operands in shared memory and layouts that are no functions are left out."""
    records = {record.atom: record for record in report.atoms}
    differing = {(entry.subject, entry.operand) for entry in report.differences}
    lines: list[str] = []
    for atom in atoms:
        if atom.name in records:
            lines += _asserted(catalog, report, atom, records[atom.name], differing)
    return INCLUDES + _HELPERS + "\n".join(lines) + "\n"


def _asserted(catalog: Catalog, report: Report, atom: Atom, record: AtomRecord, differing: set[tuple[str, str]]) -> Iterator[str]:
    instruction = catalog.find(record.instruction)
    form = next(form for form in instruction.forms if form.name == record.form)
    for name in record.layouts:
        operand = form.operand(name)
        ours = _expected(instruction, operand, record, report)
        if ours is not None:
            told = f"MMA_Traits<{atom.type}>::{role(instruction, operand)}Layout, {_bits(ours)}"
            denied = "!" if (atom.name, name) in differing else ""
            yield f'static_assert({denied}Same<{told}>::value, "{atom.name}: {name}");'


def _expected(instruction: Instruction, operand: Operand, record: AtomRecord, report: Report) -> Values | None:
    """Our places of an operand, of the first product; None where the peer's layout is none or has another size."""
    try:
        theirs = from_cute(report.layouts[record.layouts[operand.name]])
        threads = from_cute(report.layouts[record.threads])
        values = places.evaluated(theirs).shape[1]
        return next(comparison.ours(instruction, operand, threads(np.arange(threads.size)), values, record.vector))
    except (ValueError, places.OtherSizeError):
        return None


def _bits(ours: Values) -> str:
    """Sizes, and what each bit adds."""
    return ", ".join(
        f"Int<{line.size}>, Bits<{', '.join(str(int(line[1 << bit])) for bit in range((line.size - 1).bit_length()))}>"
        for line in (ours[:, 0], ours[0])
    )
