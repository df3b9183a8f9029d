"""Forms of tcgen05 in LLVM's NVPTX backend: every intrinsic with every value of its immediates, as ``llvmlite``'s library selects them.

The names come from the library; the order of some operands is tried until LLVM's verifier accepts one.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from ptxmma_proof.corpus import llvm
from ptxmma_proof.peers.forms import Form
from ptxmma_proof.peers.headers import Bound, Statement

_NAME = re.compile(rb"(?<=\0)llvm\.nvvm\.tcgen05\.[\w.]+(?=\0)")
_INSTRUCTION = re.compile(r"^\s*(tcgen05[\w.:]*)\s*([^;\n]*);", re.MULTILINE)
#: The last immediate of a call.
_LAST = re.compile(r"(?<=, i32 )\d+(?=\)\n)")
_PLACE = re.compile(r"\[[^]]*\]|[^\s,{}]+")
#: Targets in LLVM's words, and a PTX version that has them all.
_CHIPS = ("sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f")
_NEWEST, _OLDER = "90", ("86", "87", "88")
#: The target that is asked about older versions.
_FIRST_CHIP = "sm_100a"
_SPACE, _SHARED = "ptr addrspace(6)", "ptr addrspace(3)"
#: Registers of a load or store for each repetition.
_WIDTHS = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}


def forms() -> list[Form]:
    """Every form, with the targets and the first PTX version for which LLVM selects it.

    Of functions that differ in their last immediate alone, which is a collector's operation, the first one is asked about targets.
    """
    groups = [list(group) for _, group in itertools.groupby(_functions(), key=_LAST.split)]
    first = [group[0] for group in groups]
    selected = {chip: _selected(first, chip, _NEWEST) for chip in _CHIPS}
    older = {version: _selected(first, _FIRST_CHIP, version) for version in _OLDER}
    made = []
    for number, group in enumerate(groups):
        targets = frozenset(chip for chip, numbers in selected.items() if number in numbers)
        if targets:
            version = next((version for version, numbers in older.items() if number in numbers), "")
            stated = f"{version[0]}.{version[1]}" if version else ""
            for text in group:
                written = _INSTRUCTION.findall(llvm.emit(text, min(targets), _NEWEST))
                made += [Form("LLVM", _statement(*match), stated, targets) for match in written]
    return made


def _statement(opcode: str, rest: str) -> Statement:
    return Statement(opcode, tuple(Bound("", place) for place in _PLACE.findall(rest)), f"{opcode} {rest}", ())


def _names() -> list[str]:
    folder = Path(str(import_module("llvmlite.binding").__file__)).parent
    library = next(path for path in sorted(folder.iterdir()) if path.name.startswith("libllvmlite."))
    return sorted({name.decode() for name in _NAME.findall(library.read_bytes())})


def _functions() -> Iterator[str]:
    """A function for each intrinsic and each value of its immediates, of which those that the verifier refuses are left out."""
    for name in _names():
        for result, arguments in _signatures(name.removeprefix("llvm.nvvm.tcgen05.")):
            texts = (_function(name, result, arguments, values) for values in _immediates(arguments))
            if legal := list(filter(_verified, texts)):
                yield from legal
                break


def _signatures(name: str) -> Iterator[tuple[str, list[str]]]:
    """The results and arguments that an intrinsic may have; ``"i1 ?"`` is an immediate."""
    kind, *parts = name.split(".")
    if kind in ("ld", "st"):
        shape, count = parts[0], int(parts[1][1:])
        registers = count * _WIDTHS[shape]
        data = "i32" if registers == 1 else f"<{registers} x i32>"
        split = ["i64 ?"] if shape == "16x32bx2" else []
        yield (data, [_SPACE, *split, "i1 ?"]) if kind == "ld" else ("void", [_SPACE, *split, data, "i1 ?"])
    elif kind == "mma":
        base = [_SPACE, _SPACE if "tensor" in parts else "i64", "i64", "i32", "i1", *([_SPACE] if "sp" in parts else [])]
        extra = [["i64 ?"]] if "scale_d" in parts else []
        extra += [["<4 x i32>" if "cg1" in parts else "<8 x i32>"]] if "disable_output_lane" in parts else []
        extra += [[_SPACE, _SPACE]] if "block_scale" in parts else []
        extra += [["i64"]] if "zero_col_mask" in parts else []
        for order, count in itertools.product(itertools.permutations(extra), (2, 3)):
            yield "void", [*base, *itertools.chain.from_iterable(order), *["i32 ?"] * count]
    else:
        pointer = _SHARED if "shared" in parts else "ptr"
        known = {"alloc": [pointer, "i32"], "dealloc": [_SPACE, "i32"], "shift": [_SPACE], "cp": [_SPACE, "i64"]}
        known |= {"commit": [pointer, "i16"] if "mc" in parts else [pointer]}
        yield "void", known.get(kind, [])


def _immediates(arguments: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """The values that immediates may have: two of bits, four of kinds, groups and collectors, one of other numbers."""
    ranges = {"i1 ?": range(2), "i32 ?": range(4), "i64 ?": range(1, 2)}
    return itertools.product(*(ranges[argument] for argument in arguments if argument in ranges))


def _function(name: str, result: str, arguments: Sequence[str], values: Sequence[int]) -> str:
    left = iter(values)
    passed = [argument.replace("?", str(next(left))) if "?" in argument else f"{argument} %a{i}" for i, argument in enumerate(arguments)]
    parameters = ", ".join([*(text for text in passed if "%" in text), "ptr %out"])
    types = ", ".join(argument.removesuffix(" ?") for argument in arguments)
    call = f"call {result} @{name}({', '.join(passed)})"
    body = call if result == "void" else f"%d = {call}\n store {result} %d, ptr %out"
    return f"declare {result} @{name}({types})\ndefine void @used({parameters}) {{\n {body}\n ret void\n}}\n"


def _verified(text: str) -> bool:
    try:
        import_module("llvmlite.binding").parse_assembly(text).verify()
    except RuntimeError:
        return False
    return True


def _selected(functions: Sequence[str], chip: str, version: str) -> set[int]:
    """The numbers of the functions for which LLVM selects code; at the first that it cannot, it ends its process."""
    chosen: set[int] = set()
    start = 0
    while start < len(functions):
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_select, args=(functions, start, chip, version, there))
        process.start()
        there.close()
        last = start - 1
        while True:
            try:
                last = here.recv()
            except EOFError:
                break
            chosen.add(last)
        process.join()
        start = last + 2  # past the one that it could not select
    return chosen


def _select(functions: Sequence[str], start: int, chip: str, version: str, there: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what it says when it cannot
    for number in range(start, len(functions)):
        llvm.emit(functions[number], chip, version)
        there.send(number)
