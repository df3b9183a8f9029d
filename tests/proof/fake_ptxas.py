"""A program that answers like ``ptxas``, from the table ``answers.json`` beside it.

It logs every question, and ends as if interrupted when the table says so.
"""

import json
import os
import re
import signal
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_ANSWERS = json.loads((_HERE / "answers.json").read_text(encoding="utf-8"))


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _assemble(name: str) -> int:
    lines = Path(name).read_text(encoding="utf-8").splitlines()
    version = lines[0].split()[1]
    if _key(version) > _key(_ANSWERS["ptx"]):
        print(f"ptxas {name}, line 1; fatal   : Unsupported .version {version}; current version is '{_ANSWERS['ptx']}'")
        return 255
    target = lines[1].split()[1]
    with (_HERE / "log").open("a", encoding="utf-8") as log:
        log.write(f"{target} {version}\n")
    if len((_HERE / "log").read_text(encoding="utf-8").splitlines()) == _ANSWERS.get("interrupted"):
        os.kill(os.getpid(), signal.SIGTERM)
    if _key(version) < _key(_ANSWERS["targets"][target]):
        print(f"ptxas {name}, line 2; error   : PTX .version {version} does not support .target {target}")
        return 255
    code = 0
    for number, line in enumerate(lines, 1):
        if not re.match(r"[a-z]", line) or line.startswith("ret"):
            continue
        first = _ANSWERS["accepted"].get(line, {}).get(target)
        if line in _ANSWERS.get("crashes", ()):
            os.kill(os.getpid(), signal.SIGSEGV)
        if first is None or _key(version) < _key(first):
            print(f"ptxas {name}, line {number}; error   : Not today")
            code = 255
    return code


if sys.argv[1] == "--version":
    print(f"Cuda compilation tools, release {_ANSWERS['cuda']}, V{_ANSWERS['cuda']}.7")
elif sys.argv[1] == "--help":
    print("Allowed values: " + ",".join(f"'{target}'" for target in _ANSWERS["targets"]))
else:
    sys.exit(_assemble(sys.argv[-1]))
