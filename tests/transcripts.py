"""Records the sessions of the pages again: `make transcripts`, after a change that shows in what commands print.

A session whose output still matches is left alone.  Where a page leaves lines out, the new output leaves out what comes between the same
two lines; where they are gone, everything is shown, and a person decides what to leave out.
"""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
from pathlib import Path

from ptxmma import paths
from shown_sessions import is_shown, printed, sessions

_ROOT = Path(__file__).resolve().parent.parent
#: Pages with sessions that have a test of their own, or need what is not installed.
_ELSEWHERE = {"agents", "corpus", "editors", "index", "outputs", "peers", "verify"}
#: The other pages that may have sessions.
PAGES = [_ROOT / "README.md", *(path for path in sorted((_ROOT / "docs").glob("*.rst")) if path.stem not in _ELSEWHERE)]
#: Files that a page shows, which its commands read.
_FILES = re.compile(r"^\.\. code-block:: \w+\n   :caption: (\S+)\n\n((?:   .*\n|\n)+)", re.M)


def write_files(page: str, folder: Path) -> dict[str, Path]:
    """Write the files that a page shows into a folder; the path of each by its name on the page."""
    files = {}
    for name, lines in _FILES.findall(page):
        files[name] = folder / Path(name).name
        files[name].write_text(textwrap.dedent(lines).rstrip("\n") + "\n", encoding="utf-8")
    return files


def recorded(page: str, indent: str, folder: Path) -> str:
    """A page with the present output of its commands, run in turn in a folder."""
    for command, shown in list(sessions(page + "\n")):
        text = printed(command, folder, SPEC=str(paths.SPEC))
        if not is_shown(text, shown):
            page = page.replace(_block(command, shown, indent), _block(command, elided(text, shown), indent), 1)
    return page


def elided(text: str, shown: str) -> str:
    """A text without the lines that the page leaves out."""
    lines, before = text.split("\n"), shown.split("\n")
    for place, line in enumerate(before):
        if line.strip() != "...":
            continue
        above, below = before[place - 1 : place], before[place + 1 : place + 2]
        if all(each in lines for each in above + below):
            first = lines.index(above[0]) + 1 if above else 0
            last = lines.index(below[0], first) if below and below[0] in lines[first:] else len(lines)
            lines[first:last] = [line]
    return "\n".join(lines)


def _block(command: str, text: str, indent: str) -> str:
    """A command and its output as a page has them."""
    first, *more = command.split("\n")
    lines = [f"$ {first}", *(f"> {line}" for line in more), *([text] if text else [])]  # a new command has no output yet
    return textwrap.indent("\n".join(lines), indent) + "\n"


def main() -> int:
    """Record every page; says which have changed."""
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as scratch:
            write_files(page, Path(scratch))
            new = recorded(page, "   " * (path.suffix == ".rst"), Path(scratch))
        print(f"{path.name}: {'is up to date' if new == page else 'recorded again'}")
        if new != page:
            path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
