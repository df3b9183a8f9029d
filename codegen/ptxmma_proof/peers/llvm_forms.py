"""Forms of tcgen05 in LLVM's NVPTX backend: every intrinsic with every value of its immediates, as the LLVM in Triton selects them.

The names come from Triton's library; the order of some operands is tried until LLVM selects one.
"""

from __future__ import annotations

import faulthandler
import functools
import itertools
import multiprocessing
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from ptxmma_proof.peers.forms import Form, Ours, statements

_NAME = re.compile(rb"(?<=\0)llvm\.nvvm\.tcgen05\.[\w.]+(?=\0)")
#: LLVM's own commit, in its library.
_COMMIT = re.compile(rb"LLVM version [\w.]+ \(([0-9a-f]{12})")
#: Targets in LLVM's words; for each intrinsic one of the first has it.
_CHIPS = ("sm_100a", "sm_103a", "sm_107a", "sm_100f", "sm_103f", "sm_107f", "sm_110a", "sm_110f")
_FIRST = _CHIPS[:3]
#: PTX versions that brought something, and the newest.
_OLDER, _NEWEST = ("86", "87", "88", "90"), "94"
_TRIPLE = "nvptx64-nvidia-cuda"
_SPACE, _SHARED = "ptr addrspace(6)", "ptr addrspace(3)"
#: Registers of a load or store for each repetition.
_WIDTHS = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}

#: The values of immediates: bits; kinds, groups and collectors; other numbers.
_RANGES = {"i1 ?": range(2), "i32 ?": range(4), "i64 ?": range(1, 2)}
_Key = TypeVar("_Key")


def version() -> str:
    """The commit of LLVM in Triton.

    Raises:
        ImportError: Triton is not installed.
    """
    match = _COMMIT.search(_library().read_bytes())
    return match[1].decode() if match else ""


def forms(ours: Ours) -> Iterator[Form]:
    """Yield every form, with the targets for which LLVM selects it, and the first PTX version for which it does on the first of them."""
    functions = dict(enumerate(_functions()))
    selected = {chip: _selected(functions, chip, _NEWEST) for chip in _CHIPS}
    for chip, texts in selected.items():
        left = {number: functions.pop(number) for number in texts if number in functions}
        older = {version: _selected(left, chip, version) for version in _OLDER}
        for number in left:
            targets = frozenset(other for other, chosen in selected.items() if number in chosen)
            first = next((version for version, chosen in older.items() if number in chosen), _NEWEST)
            for statement in statements(texts[number]):
                if ours.has(statement.mnemonic):
                    yield Form("LLVM", statement, f"{first[0]}.{first[1]}", targets, frozenset(_CHIPS))


@functools.cache
def _llvm() -> Any:
    llvm = import_module("triton._C.libtriton").llvm
    llvm.init_targets()
    return llvm


def _library() -> Path:
    return Path(str(import_module("triton._C.libtriton").__file__))


def _functions() -> Iterator[str]:
    """A function for each intrinsic and each value of its immediates."""
    for name in sorted({name.decode() for name in _NAME.findall(_library().read_bytes())}):
        for result, arguments in _signatures(name.removeprefix("llvm.nvvm.tcgen05.")):
            own = functools.partial(_function, name, result, arguments)
            if _on_any({0: own(itertools.repeat(1))}):
                yield from map(own, itertools.product(*_legal(own, [_RANGES[each] for each in arguments if each in _RANGES])))
                break


def _signatures(name: str) -> Iterator[tuple[str, list[str]]]:
    """The results and arguments that an intrinsic may have; ``"i1 ?"`` is an immediate."""
    kind, *parts = name.split(".")
    if parts[:1] == ["red"]:
        shape, count, element = parts[1], int(parts[2][1:]), parts[3].replace("f32", "float")
        split, of_float = ["i64 ?"] * (shape == "16x32bx2"), ["i1 ?", "i1 ?"] * (element == "float")
        yield f"{{<{count} x {element}>, {element}}}", [_SPACE, *split, "i32 ?", *of_float]
    elif kind in ("ld", "st"):
        shape, count = parts[0], int(parts[1][1:])
        data = f"<{count * _WIDTHS[shape]} x i32>"
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


def _legal(function: Callable[[Iterable[int]], str], ranges: Sequence[range]) -> Iterator[list[int]]:
    """The legal values of each immediate, where all others are 1."""
    tried = {(at, value): [value if at == place else 1 for place in range(len(ranges))] for at, own in enumerate(ranges) for value in own}
    found = _on_any({key: function(values) for key, values in tried.items()})
    for at, own in enumerate(ranges):
        yield [value for value in own if (at, value) in found]


def _function(name: str, result: str, arguments: Sequence[str], values: Iterable[int]) -> str:
    left = iter(values)
    passed = [argument.replace("?", str(next(left))) if "?" in argument else f"{argument} %a{i}" for i, argument in enumerate(arguments)]
    parameters = ", ".join([*(text for text in passed if "%" in text), "ptr %out"])
    types = ", ".join(argument.removesuffix(" ?") for argument in arguments)
    call = f"call {result} @{name}({', '.join(passed)})"
    body = call if result == "void" else f"%d = {call}\n store {result} %d, ptr %out"
    return f"declare {result} @{name}({types})\ndefine void @used({parameters}) {{\n {body}\n ret void\n}}\n"


def _selected(functions: Mapping[_Key, str], chip: str, version: str) -> dict[_Key, str]:
    """The PTX of the functions for which LLVM selects code; at the first that it refuses, it ends its process."""
    _llvm()  # once, and not in each process
    selected: dict[_Key, str] = {}
    left = list(functions)
    while left:
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_select, args=(functions, left, chip, version, there))
        process.start()
        there.close()
        try:
            while left:
                key, text = here.recv()
                selected[key] = text
                left.remove(key)
        except EOFError:
            del left[0]  # the one that it refused
        process.join()
    return selected


def _on_any(functions: Mapping[_Key, str]) -> set[_Key]:
    """The functions that LLVM selects for one of the first targets."""
    found: set[_Key] = set()
    for chip in _FIRST:
        found |= _selected({key: text for key, text in functions.items() if key not in found}, chip, _NEWEST).keys()
    return found


def _select(functions: Mapping[_Key, str], keys: Iterable[_Key], chip: str, version: str, there: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what it says when it refuses
    faulthandler.disable()
    for key in keys:
        module = f'target triple = "{_TRIPLE}"\n{functions[key]}'
        there.send((key, _llvm().translate_to_asm(module, _TRIPLE, chip, f"+ptx{version}", [], True, False, False)))
