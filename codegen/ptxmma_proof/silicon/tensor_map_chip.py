"""Gives tensor maps to the chip of this machine, and reads its answers."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ptxmma.catalog.instructions import DatabaseLike
from ptxmma.matrices.shared.box import tensor_maps_of
from ptxmma_proof.silicon.tensor_map_draws import draw
from ptxmma_proof.silicon.tensor_maps import Row, contradiction, made

_PROGRAM = Path(__file__).with_name("tensor_maps.cu")
#: Members of the program's ``Case`` that a row's tensor map has, with their lengths and the number that fills them up.
_MAP = (
    ("type", 1, 0), ("rank", 1, 0), ("shape", 5, 1), ("strides", 4, 0), ("box", 5, 1), ("element_strides", 5, 1), ("interleave", 1, 0),
    ("swizzle", 1, 0), ("fill", 1, 0), ("address", 1, 0), ("lower", 3, 0), ("upper", 3, 0), ("channels", 1, 0), ("pixels", 1, 0),
)  # fmt: skip
#: The program's ``Copy``.
_COPIES = {None: 0, "load": 1, "store": 2}
#: Bytes that hold every tensor that is drawn.
_MEMORY = 1 << 20
_TRAPS = {715: "illegal instruction", 716: "misaligned address"}


def measure(nvcc: str, target: str, include: Path, database: DatabaseLike = None) -> list[Row]:
    """Return drawn rows with the answers of the chip of this machine.

    Args:
        nvcc: the compiler.
        target: the chip's target: ``"sm_90a"``.
        include: the generated headers.
        database: the spec from which the rows are drawn.

    Raises:
        subprocess.CalledProcessError: the program does not compile, or stops.
    """
    rows = draw(tensor_maps_of(database))
    with tempfile.TemporaryDirectory() as folder:
        program, asked, answered = (Path(folder) / name for name in ("tensor_maps", "cases", "answers"))
        build(nvcc, target, include, program)
        asked.write_bytes(cases(rows, database))
        subprocess.run([program, asked, answered], check=True)
        return list(answers(rows, answered.read_text(), database))


def words(rows: Iterable[Row], database: DatabaseLike = None) -> Iterator[str]:
    """The answers of the chip that differ from the rules and the images, in words."""
    memory = np.random.default_rng(0).integers(0, 256, _MEMORY, np.uint8)
    yield from filter(None, (contradiction(row, memory, database) for row in rows))


def build(nvcc: str, target: str, include: Path, program: Path) -> None:
    """Compile the measuring program.

    Raises:
        subprocess.CalledProcessError: it does not compile.
    """
    virtual = target.replace("sm_", "compute_")
    options = ["-std=c++17", "-O2", "-gencode", f"arch={virtual},code={target}", "-I", str(include)]
    subprocess.run([nvcc, *options, str(_PROGRAM), "-o", str(program)], check=True)


def cases(rows: Iterable[Row], database: DatabaseLike = None) -> bytes:
    """Rows as the program reads them."""
    return b"".join(_case(row, database) for row in rows)


def _case(row: Row, database: DatabaseLike) -> bytes:
    given = row["map"] | {"rank": len(row["map"]["shape"])}
    numbers = [int("pixels" in given)]
    for name, length, filler in _MAP:
        value = given.get(name, [])
        entries = value if isinstance(value, list) else [value]
        numbers += [*entries, *[filler] * (length - len(entries))]
    numbers += [_COPIES[row.get("copy")], made(row, database=database).transaction_bytes if "copy" in row else 0]
    for name, length in (("at", 5), ("offsets", 3)):
        numbers += [*row.get(name, []), *[0] * (length - len(row.get(name, [])))]
    return struct.pack(f"<{len(numbers) + 1}q", *numbers, row.get("destination", 0))


def answers(rows: Iterable[Row], lines: str, database: DatabaseLike = None) -> Iterator[Row]:
    """Rows with the program's answers."""
    for row, line in zip(rows, lines.splitlines(), strict=True):
        verdict, *copied = map(int, line.split())
        answer = row | {"accepted": verdict == 0}
        if copied and copied[0] in _TRAPS:
            answer["trap"] = _TRAPS[copied[0]]
        elif copied:
            outcome, *runs = copied
            assert outcome <= 0, (row, outcome)
            answer["bytes"] = made(row, database=database).transaction_bytes
            answer |= {"miscounted": outcome} if outcome else {}
            answer["runs"] = [runs[first : first + 3] for first in range(0, len(runs), 3)]
        yield answer
