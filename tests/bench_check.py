"""How fast ``ptxmma check`` reads PTX, beside ptxas: part of ``make bench``."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from growing_sources import SOURCES
from ptxmma.check import Checker
from ptxmma_proof import assemblers

#: Bytes of the module that is read; ptxas gets a smaller one of the same text, and the times are compared per byte.
_SIZE, _SMALL = 16 << 20, 2 << 20
_DECLARED = ".reg .b32 %r<100>;\n.reg .f32 %f<100>;\n.reg .b64 %rd<100>;\n.reg .pred %p<20>;\n.reg .f32 %acc<32>;\n"
_OTHERS = [
    "\tadd.s32 \t%r{0}, %r{1}, %r{2};",
    "\tfma.rn.f32 \t%f{0}, %f{1}, %f{2}, %f{0};",
    "\tshl.b32 \t%r{0}, %r{1}, 3;",
    "\tmul.wide.u32 \t%rd{0}, %r{1}, 4;",
    "\tld.shared.v4.u32 \t{{%r{0}, %r{1}, %r{2}, %r3}}, [%rd7+{0}];",
    "\tsetp.lt.s32 \t%p{3}, %r{0}, %r{1};",
    "\tselp.b32 \t%r{0}, %r{1}, %r{2}, %p{3};",
    "\tmov.b32 \t%r{0}, {2};",
]
_MMA = [
    "\t// begin inline asm\n\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f{0}, %f{1}, %f{2}, %f3}}, "
    "{{%r{0}, %r{1}, %r{2}, %r3}}, {{%r4, %r{1}}}, {{%f{0}, %f{1}, %f{2}, %f3}};\n\t// end inline asm"
]
_ACCUMULATORS = 32
#: Times that something repeats in the smaller of two growing sources.
_REPEATED = 1000
_WGMMA = [
    "\t// begin inline asm\n\twgmma.fence.sync.aligned;\n\t// end inline asm",
    "\t// begin inline asm\n\t{{\n.reg .pred p;\nsetp.ne.b32 p, %r{0}, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{"
    + ", ".join(f"%acc{number}" for number in range(_ACCUMULATORS))
    + "}}, %rd{0}, %rd{1}, p, 1, 1, 0, 0;\n}}\n\t// end inline asm",
    "\t// begin inline asm\n\twgmma.commit_group.sync.aligned;\n\t// end inline asm",
    "\t// begin inline asm\n\twgmma.wait_group.sync.aligned 0;\n\t// end inline asm",
]


def module(size: int, ours: Sequence[str], lines: int = 100) -> bytes:
    """PTX of a given size with one matrix instruction in a given number of lines, in functions of some hundred kilobytes."""
    chance = random.Random(1)
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n"
    texts = []
    for number in range(8 * lines):
        text = chance.choice(_OTHERS) if number % lines else ours[number // lines % len(ours)]
        texts.append(text.format(chance.randrange(100), chance.randrange(100), chance.randrange(100), chance.randrange(20)))
    # The results are used, so that an assembler cannot drop them.
    used = "\tst.global.v4.b32 \t[%rd1+{0}], {{%{1}{0}, %{1}{2}, %{1}{3}, %{1}{4}}};"
    texts += [used.format(first, kind, first + 1, first + 2, first + 3) for kind in "rf" for first in range(0, 100, 4)]
    texts += [used.format(first, "acc", first + 1, first + 2, first + 3) for first in range(0, _ACCUMULATORS, 4)]
    block = "\n".join(texts) + "\n"
    many = max(1, size // (8 * len(block)))
    functions = [f".visible .entry kernel{number}()\n{{\n{_DECLARED}{block * 8}\tret;\n}}\n" for number in range(many)]
    return (head + "".join(functions)).encode()


def main() -> None:
    """Print one line for each measurement."""
    for name, ours in (("mma", _MMA), ("wgmma", _WGMMA)):
        data = module(_SIZE, ours)
        for follow, limit in ((False, 100), (True, 20)):
            checker = Checker(follow=follow)
            seconds = _median(lambda checker=checker, data=data: checker.check(data), clock=time.process_time)  # type: ignore[misc]
            title = f"check, one {name} in 100 lines{', with data flow' if follow else ''}"
            print(f"{title:<58}{len(data) / seconds / 1e6:>5.0f} MB/s  {limit} MB/s")
    for name, source in SOURCES.items():
        once, twice = (_seconds(source(count).encode(), name) for count in (_REPEATED, 2 * _REPEATED))
        title = f"check, {name} that repeats {2 * _REPEATED} times"
        print(f"{title:<58}{twice * 1e3:>5.0f} ms  {2 * once * 1e3:.0f} ms (twice that of half as many)")
    _beside_ptxas()


def _seconds(text: bytes, name: str) -> float:
    return _median(lambda: Checker().check(text, name), clock=time.process_time)


def _beside_ptxas() -> None:
    fetched = assemblers.fetched()
    if not fetched:
        print("check beside ptxas: skipped, none is fetched")
        return
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "module.ptx")
        path.write_bytes(module(_SMALL, _MMA))
        ours = _median(lambda: _run([sys.executable, "-m", "ptxmma", "check", str(path)]), 3)
        for level in ("-O3", "-O0"):
            assemble = [fetched[-1].path, level, "--gpu-name", "sm_90a", "--output-file", str(Path(scratch, "out")), str(path)]
            theirs = _median(lambda command=assemble: _run(command), 1)  # type: ignore[misc]
            what = f"ptxmma check of {_SMALL >> 20} MB, the whole command, beside ptxas {level}"
            print(f"{what:<58}{ours * 1e3:>5.0f} ms  {theirs / 20 * 1e3:.0f} ms (ptxas: {theirs:.1f} s, {theirs / ours:.0f} times as long)")


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _median(run: Callable[[], object], times: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    seconds = []
    for _ in range(times):
        start = clock()
        run()
        seconds.append(clock() - start)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
