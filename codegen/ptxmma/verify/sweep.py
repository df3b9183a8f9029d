"""Every variant against every pinned assembler: accepted where the database says so, refused everywhere else.

``make sweep`` runs it.  For each release and each target that it knows, all variants that the database accepts there go into one
module, which must assemble, and all others into a second one, of which every line must be refused.  With the newest release the
first version is held too: refused in the version before it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ptxmma import paths
from ptxmma.instructions import Catalog, load
from ptxmma.requirements import version_key
from ptxmma.verify import ptx
from ptxmma.verify.assemblers import Assembler, pinned

_ERROR = re.compile(r"^ptxas (?:\S+), line (\d+); (?:error|fatal)\s*: (.*)$", re.MULTILINE)
#: A modifier in two parts, which old releases cannot even read: they give up the whole module at the first one.
_SCOPED = re.compile(r"\.\w+::\w+")

#: Where only a real architecture will do, code is made too, and thousands of wgmma in one kernel need more registers than there are.
_PAST_ALL_CHECKS = "Register allocation failed"


class Disagreement(NamedTuple):
    """A line on which an assembler and the database differ."""

    cuda: str
    target: str
    version: str
    line: str
    accepted: bool  # by the assembler
    said: str


class Job(NamedTuple):
    """One question to one assembler: are all these lines accepted, or all refused?"""

    assembler: Assembler
    target: str
    version: str
    lines: tuple[str, ...]
    accepted: bool


def knows(assembler: Assembler, target: str, version: str) -> bool:
    """Whether an assembler takes modules for a target in a version."""
    code, _, _ = _assemble(assembler, target, version, [], [])
    return code == 0


def jobs(catalog: Catalog, assemblers: Iterable[Assembler]) -> Iterator[Job]:
    """All questions to the assemblers, at the newest version of each; to the last one also at every first version."""
    accepted = {instruction: instruction.accepted_by() for instruction in catalog.all()}
    texts = {instruction: tuple(ptx.lines(instruction)) for instruction in accepted}
    versions = [entry.version for entry in catalog.database.spec.isa_versions]
    chosen = list(assemblers)
    for assembler in chosen:
        for target in catalog.database.spec.targets:
            if version_key(target.ptx) > version_key(assembler.ptx) or not knows(assembler, target.name, assembler.ptx):
                continue
            first = {instruction: found.get(target.name) for instruction, found in accepted.items()}
            yes = {i: version for i, version in first.items() if version and version_key(version) <= version_key(assembler.ptx)}
            no = [i for i in first if i not in yes]
            yield Job(assembler, target.name, assembler.ptx, tuple(text for i in yes for text in texts[i]), True)
            yield Job(assembler, target.name, assembler.ptx, tuple(text for i in no for text in texts[i]), False)
            if assembler != chosen[-1]:
                continue
            for version in dict.fromkeys(yes.values()):
                group = tuple(text for i, found in yes.items() if found == version for text in texts[i])
                before = versions[versions.index(version) - 1]
                if version != assembler.ptx:
                    yield Job(assembler, target.name, version, group, True)
                if version_key(before) >= version_key(target.ptx):
                    yield Job(assembler, target.name, before, group, False)


def run(catalog: Catalog, job: Job) -> list[Disagreement]:
    """The lines of a job on which its assembler differs."""
    banks = [entry.name for entry in catalog.database.spec.types.registers]
    left = list(job.lines)
    said: dict[str, str] = {}
    # ptxas leaves out its second set of checks once the first found an error, so survivors are asked again.
    while left:
        code, errors, output = _assemble(job.assembler, job.target, job.version, left, banks)
        if code == 0 or (not errors and _PAST_ALL_CHECKS in output):
            break
        if not errors:
            raise RuntimeError(f"ptxas of CUDA {job.assembler.cuda} failed without naming a line: {output[:400]}")
        for number, text in errors.items():
            said[left[number]] = text
            if "Parsing error" in text and (unreadable := _SCOPED.search(left[number])):
                said |= {line: text for line in left if f"{unreadable[0]}." in line}
        left = [line for line in left if line not in said]
    verdicts = ((line, line not in said) for line in job.lines)
    return [
        Disagreement(job.assembler.cuda, job.target, job.version, line, accepted, said.get(line, ""))
        for line, accepted in verdicts
        if accepted != job.accepted
    ]


def _assemble(assembler: Assembler, target: str, version: str, lines: list[str], banks: list[str]) -> tuple[int, dict[int, str], str]:
    """Exit code, what was said of which line (by index), and the whole output."""
    text, first = ptx.module(version, target, lines, banks)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        # A virtual architecture makes all checks and no code; some releases do not take that of an `a` target.
        for architecture in (target.replace("sm_", "compute_"), target):
            command = [str(assembler.path), "--gpu-name", architecture, "-O0", "--output-file", os.devnull, file.name]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            output = done.stdout + done.stderr
            if "Unsupported gpu architecture" not in output:
                break
    errors = {int(number) - first: said for number, said in _ERROR.findall(output)}
    return done.returncode, {number: said for number, said in errors.items() if 0 <= number < len(lines)}, output


def main(database: Path = paths.DATABASE) -> int:
    """Sweep every fetched assembler; print each disagreement; return 1 if there is one."""
    catalog = Catalog(load(database))
    fetched = [assembler for assembler in pinned() if assembler.fetched]
    if not fetched:
        sys.exit("no assemblers yet: run `make assemblers`")
    questions = list(jobs(catalog, fetched))
    asked = sum(len(job.lines) for job in questions)
    wrong = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda job: run(catalog, job), questions):
            for each in found:
                wrong += 1
                verdict = "accepts" if each.accepted else f"refuses ({each.said})"
                print(f"CUDA {each.cuda} {verdict} on {each.target} in {each.version}: {each.line[:160]}", flush=True)
    print(f"{len(fetched)} assemblers, {len(questions)} modules, {asked} lines, {wrong} disagreements")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
