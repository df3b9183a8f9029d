"""Programs of functions of TIRx-harness: read from the Rust sources in its package, and compiled alone."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ptxmma_proof.peers.sources import MissingPeerError, Source

#: Its name among the checkouts: the folder where its package is unpacked.
NAME = "TIRx-harness"
#: The sources below the package.
_ENGINE = Path("tirx_harness/numsim/engine-rs/src")


def answers(
    package: Source, program: Path, read: Mapping[str, Iterable[str]], methods: Mapping[str, Iterable[str]], lines: Sequence[str]
) -> list[str]:
    """The lines with which a program answers others.

    Args:
        package: the unpacked package.
        program: the source to which the definitions are added.
        read: the beginnings of the definitions of each source.
        methods: the beginnings of the methods of types with others that need the whole engine.
        lines: its input.

    Raises:
        MissingPeerError: a definition is not in the sources, or there is no compiler.
    """
    rustc = shutil.which("rustc")
    if rustc is None:
        raise MissingPeerError(f"{NAME} is read by a program in Rust, and rustc is not on the path")
    try:
        texts = {file: (package.folder / _ENGINE / file).read_text(encoding="utf-8") for file in read}
    except OSError as error:
        raise MissingPeerError(str(error)) from None
    parts = [_definition(texts[file], start) for file, starts in read.items() for start in starts]
    whole = "\n".join(texts.values())
    for name, starts in methods.items():
        body = "\n".join(
            _definition(whole[found.start() :], f"impl {name} ") for found in re.finditer(rf"^impl {name} ", whole, re.MULTILINE)
        )
        parts.append(f"impl {name} {{ {' '.join(_definition(body, start, r'^    ') for start in starts)} }}")
    with tempfile.TemporaryDirectory() as folder:
        source, built_to = Path(folder, "asked.rs"), Path(folder, "asked")
        source.write_text("\n".join([program.read_text(encoding="utf-8"), *parts]), encoding="utf-8")
        built = subprocess.run([rustc, "--edition=2021", "-o", built_to, source], capture_output=True, text=True, check=False)
        if built.returncode:
            raise MissingPeerError(f"{NAME}: its sources have changed: {built.stderr[:500]}")
        done = subprocess.run([built_to], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _definition(text: str, start: str, before: str = "^") -> str:
    """The definition that begins with some words, up to its last brace or, of a constant, semicolon; types get traits to compare them."""
    match = re.search(before + re.escape(start), text, re.MULTILINE)
    if match is None:
        raise MissingPeerError(f"{NAME}: its sources lack {start!r}")
    depth, end = 0, match.start()
    last = ";" if re.match(r"(pub )?const \w+:", text[end:]) else "}"
    for end in range(match.start(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if text[end] == last and depth == 0:
            break
    body = text[match.start() : end + 1]
    plain = re.match(r"(pub(\(crate\))? )?(struct|enum) ", body) and "Vec<" not in body
    return f"#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n{body}" if plain else body
