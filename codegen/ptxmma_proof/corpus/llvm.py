"""PTX from LLVM: every matrix intrinsic of its NVPTX backend, each called in a function of its own.

The names come from the library in ``llvmlite``.  The signatures are tried until LLVM's verifier accepts one.  No instruction is named here.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

#: Chips and versions, by LLVM's names, to write PTX for.
TARGETS = (
    ("sm_70", "64"),
    ("sm_75", "65"),
    ("sm_80", "71"),
    ("sm_89", "84"),
    ("sm_90", "78"),
    ("sm_90a", "80"),
    ("sm_120a", "88"),
)
_NAME = re.compile(rb"(?<=\0)llvm\.nvvm\.(?:wg)?mma\.[\w.]+(?=\0)")
#: The types and the numbers of a fragment's registers.
_TYPES = ("i32", "float", "<2 x half>", "double")
_COUNTS = (1, 2, 4, 8)
#: Operands after the fragments, for sparsity and block scaling, with a zero for each immediate.
_SCALES = ("i32", "i16", "i16") * 2
_TAILS: tuple[tuple[str, ...], ...] = ((), ("i32", "i32 0"), _SCALES, ("i32", "i32 0", *_SCALES), ("i64 0",))
_TRIPLE = "nvptx64-nvidia-cuda"

_Signature = tuple[str, tuple[str, ...]]


def build(folder: Path) -> Iterator[Path]:
    """Write a module for each target, with every intrinsic that LLVM selects for it."""
    known: dict[_Signature, None] = {}
    functions = [_function(name, signature) for name in _names() if (signature := _signature(name, known))]
    folder.mkdir(parents=True, exist_ok=True)
    for chip, version in TARGETS:
        place = folder / f"{chip}_ptx{version}.ptx"
        if not place.exists():
            selected = [text for text in functions if survives(text, chip, version)]
            place.write_text(emit("\n".join(selected), chip, version), encoding="utf-8")
        yield place


def version() -> str:
    """The release of LLVM."""
    return ".".join(map(str, _binding().llvm_version_info))


@cache
def _binding() -> Any:
    binding = import_module("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def _names() -> list[str]:
    folder = Path(_binding().__file__).parent
    library = next(path for path in sorted(folder.iterdir()) if path.name.startswith("libllvmlite."))
    return sorted({name.decode() for name in _NAME.findall(library.read_bytes())})


def _signature(name: str, known: dict[_Signature, None]) -> _Signature | None:
    """The signature that LLVM's verifier accepts for an intrinsic, or None; the ``known`` ones are tried first."""
    for signature in itertools.chain(list(known), _signatures(name)):
        if not _complaint(name, signature):
            known[signature] = None
            return signature
    return None


def _signatures(name: str) -> Iterator[_Signature]:
    results = [("{" + ", ".join([kind] * count) + "}") for kind in _TYPES for count in _COUNTS] + ["void"]
    result = next((text for text in results if "return type" not in _complaint(name, (text, ()))), None)
    if result is None:
        return
    for tail in _TAILS:
        yield result, tail
    # C has the result's type and count, or those that mixed precision has.
    for kind, a, b, c, count, tail in itertools.product(_TYPES, _COUNTS, _COUNTS, _TYPES, _COUNTS, _TAILS):
        yield result, (kind,) * (a + b) + (c,) * count + tail


def _complaint(name: str, signature: _Signature) -> str:
    try:
        _binding().parse_assembly(_function(name, signature)).verify()
    except RuntimeError as error:
        return str(error)
    return ""


def _function(name: str, signature: _Signature) -> str:
    """A function that passes its parameters to an intrinsic and stores the result."""
    result, arguments = signature
    passed = [text if text.endswith(" 0") else f"{text} %p{number}" for number, text in enumerate(arguments)]
    parameters = ", ".join([*(text for text in passed if "%" in text), "ptr %out"])
    types = ", ".join(text.removesuffix(" 0") for text in arguments)
    call = f"call {result} @{name}({', '.join(passed)})"
    body = call if result == "void" else f"%d = {call}\n store {result} %d, ptr %out"
    return f"declare {result} @{name}({types})\ndefine void @use_{name.replace('.', '_')}({parameters}) {{\n {body}\n ret void\n}}\n"


def survives(text: str, chip: str, version: str) -> bool:
    """Return whether LLVM can select code for a module, as in :func:`emit`; if it cannot, it ends the process."""
    process = multiprocessing.get_context("fork").Process(target=_try, args=(text, chip, version))
    process.start()
    process.join()
    return process.exitcode == 0


def _try(text: str, chip: str, version: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what it says when it cannot
    emit(text, chip, version)


def emit(text: str, chip: str, version: str) -> str:
    """The PTX of a module.

    Args:
        text: IR.
        chip: LLVM's name of the target, ``"sm_90a"``; empty for its default.  For an unknown name, it prints a message and takes the
            default.
        version: the version of PTX, ``"80"``; likewise.
    """
    binding = _binding()
    module = binding.parse_assembly(f'target triple = "{_TRIPLE}"\n{text}')
    machine = binding.Target.from_triple(_TRIPLE).create_target_machine(cpu=chip, features=f"+ptx{version}" if version else "")
    return str(machine.emit_assembly(module))
