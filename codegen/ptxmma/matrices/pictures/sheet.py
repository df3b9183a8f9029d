"""Panels, and the sheet that holds them: every picture of cells is drawn here.

A :class:`Panel` is a grid of equally large cells with names along its edges; a picture is one or more panels on a card of its own, so
that it reads the same on light and dark pages.  Cells of one thread are one path, labels are ``tspan`` elements of one ``text`` per
row: a picture of 2,048 cells takes about 100 kB and no time.
"""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

#: A wider or higher matrix is cut into panels of this many cells.
PANEL = 32
WIDEST, NARROWEST = 940, 316
CELL_WIDTH, WIDE_CELL, CELL_HEIGHT = 34, 44, 26
AXIS, MARGIN = 44, 10

#: A multiplication sign between spaces at which no line breaks.
TIMES = "\u00a0\u00d7\u00a0"
#: An en dash, which would look like a minus in the code.
TO = "\u2013"
#: Eight hues (after Okabe and Ito, who chose them for colour-blind readers) in four strengths: a quad has one hue.
_HUES = ((0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (213, 94, 0), (240, 228, 66), (140, 140, 140))
_STRENGTHS = (0.28, 0.44, 0.60, 0.76)
_COLOURS = ["#" + "".join(f"{round(255 - (255 - part) * strength):02x}" for part in hue) for hue in _HUES for strength in _STRENGTHS]
#: The number of colours.
COLOURS = len(_COLOURS)
#: The colour of a cell that belongs to nobody.
BLANK = -1

_STYLE = (
    "svg{font:9px system-ui,'Segoe UI',Helvetica,Arial,sans-serif;text-anchor:middle;fill:#14171a}"
    ".k{fill:#fff}.b{stroke:#fff;stroke-width:2}.l{fill:none;stroke:#000;stroke-opacity:.14}"
    ".t{font-size:10px;font-weight:700}.h{font-size:14px;font-weight:700;text-anchor:start}"
    ".n{font-size:11px;text-anchor:start}.p{font-size:11px;font-weight:700}.n,.x{fill:#57606a}.r{text-anchor:end}"
    ".o{fill:#e9ebee}.s{fill:none;stroke:#8b949e}"
    "@media(prefers-color-scheme:dark){.k{fill:#1c1f24}.b{stroke:#1c1f24}.h,.p{fill:#f0f2f4}.n,.x{fill:#a8b0ba}.o{fill:#8d949c}}"
)


class Panel(NamedTuple):
    """A grid of cells.

    ``colours`` holds a thread (or any number) for each cell, or :data:`BLANK`; ``tops`` and ``labels`` are the two lines in it.
    ``corner`` names the two edges; ``spans`` are ``(first column, columns, text)`` of brackets above the columns' names.
    """

    head: str
    corner: str
    rows: Sequence[str]
    cols: Sequence[str]
    colours: Sequence[Sequence[int]]
    tops: Sequence[Sequence[str]]
    labels: Sequence[Sequence[str]] = ()
    spans: Sequence[tuple[int, int, str]] = ()
    block: tuple[int, int] = (1, 1)  # columns and rows of cells that belong together: the elements of a register
    cell: int = CELL_WIDTH
    more: str = ""  # the text about what follows on the right

    @property
    def width(self) -> int:
        """Pixels, with the names of the rows."""
        return max(AXIS + self.cell * len(self.cols) + (30 if self.more else 0), 6 * len(self.head) + 8)

    @property
    def above(self) -> int:
        """Pixels above the cells."""
        return (18 if self.head else 0) + (16 if self.spans else 0) + 16

    @property
    def height(self) -> int:
        """Pixels, with those above the cells."""
        return self.above + CELL_HEIGHT * len(self.rows)


def xml(text: str) -> str:
    """``text`` as XML character data or attribute value."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def sheet(title: str, notes: Sequence[str], panels: Sequence[Panel], *, stacked: bool = False) -> str:
    """A picture of panels, side by side as far as they fit, and about equally many on each line."""
    placed: list[tuple[Panel, int, int]] = []
    y = 0
    for line in _shared_out(panels, 1 if stacked else len(panels)):
        x = 0
        for panel in line:
            placed.append((panel, x, y))
            x += panel.width + MARGIN
        y += max(panel.height for panel in line) + MARGIN
    width = max(max(x + panel.width for panel, x, _ in placed), 8 * len(title), NARROWEST)
    lines = wrapped(notes, width)
    top = above_panels(lines)
    names = itertools.count()
    body = [line for panel, x, y in placed for line in _panel(panel, x + MARGIN, y + top, names)]
    return document(title, lines, width + 2 * MARGIN, top + y, body)


def _shared_out(panels: Sequence[Panel], most: int) -> list[list[Panel]]:
    """Panels as lines of at most ``most`` within the width of a picture: if three of four fit, they make two lines of two."""
    lines: list[list[Panel]] = []
    x = 0
    for panel in panels:
        if not lines or len(lines[-1]) == most or x + panel.width > WIDEST:
            lines.append([])
            x = 0
        lines[-1].append(panel)
        x += panel.width + MARGIN
    even = -(-len(panels) // len(lines))
    return lines if even >= max(map(len, lines)) else _shared_out(panels, even)


def wrapped(notes: Iterable[str], width: int) -> list[str]:
    """Notes as lines within the width of the picture."""
    return [line for note in notes for line in textwrap.wrap(note, int(width / 6))]


def above_panels(lines: Sequence[str]) -> int:
    """Pixels that the title and the notes take."""
    return MARGIN + 16 + 15 * len(lines)


def document(title: str, lines: Iterable[str], width: int, height: int, body: Iterable[str]) -> str:
    """The SVG text of a card with a title, lines of notes and the elements below them."""
    notes = [f'<text class="n" x="{MARGIN}" y="{MARGIN + 25 + 15 * index}">{xml(line)}</text>' for index, line in enumerate(lines)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{xml(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="k" width="{width}" height="{height}" rx="8"/>',
            f'<text class="h" x="{MARGIN}" y="{MARGIN + 8}">{xml(title)}</text>',
            *notes,
            *body,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, x: int, y: int, names: Iterator[int]) -> Iterator[str]:
    """The elements of a panel; coordinates count from its first cell, ``names`` number elements that are used again."""
    width, height = panel.cell, CELL_HEIGHT
    right, bottom = width * len(panel.cols), height * len(panel.rows)
    middles = [width * column + width // 2 for column in range(len(panel.cols))]
    yield f'<g transform="translate({x + AXIS} {y + panel.above})">'
    if panel.head:
        yield f'<text class="p" x="{right // 2}" y="{6 - panel.above + 6}">{xml(panel.head)}</text>'
    for first, count, text in panel.spans:
        left, end = width * first + 3, width * (first + count) - 3
        yield f'<path class="s" d="M{left} -14v-4h{end - left}v4"/><text class="x" x="{(left + end) // 2}" y="-21">{xml(text)}</text>'
    yield f'<g class="x"><text class="r" x="-5" y="-5">{xml(panel.corner)}</text>'
    yield f'<text y="-5">{_row(middles, [xml(name) for name in panel.cols])}</text></g>'
    yield '<g class="x r">'
    yield "".join(f'<text x="-5" y="{height * row + 17}">{xml(name)}</text>' for row, name in enumerate(panel.rows)) + "</g>"
    yield '<g class="b">'
    yield from _blocks(panel)
    yield "</g>"
    lines = [f"M{width * column} 1v{bottom - 2}" for column in range(1, len(panel.cols)) if column % panel.block[0]]
    lines += [f"M1 {height * row}h{right - 2}" for row in range(1, len(panel.rows)) if row % panel.block[1]]
    if lines:
        yield f'<path class="l" d="{"".join(lines)}"/>'
    yield '<g class="t">'
    yield from _lines(panel.tops, middles, 12, names)
    yield "</g><g>"
    yield from _lines(panel.labels, middles, 22, names)
    yield "</g>"
    if panel.more:
        yield f'<text class="p x" x="{right + 16}" y="{bottom // 2 + 4}">{xml(panel.more)}</text>'
    yield "</g>"


def _lines(rows: Sequence[Sequence[str]], middles: Sequence[int], baseline: int, names: Iterator[int]) -> Iterator[str]:
    """A line of text for each row of cells; rows that say the same are written once and used again."""
    seen: dict[str, tuple[int, int]] = {}
    texts = [_row(middles, row) for row in rows]
    repeated = {text for text, count in Counter(texts).items() if count > 1}
    for row, text in enumerate(texts):
        if text in seen:
            name, first = seen[text]
            yield f'<use href="#u{name}" y="{CELL_HEIGHT * (row - first)}"/>'
            continue
        anchor = ""
        if text in repeated:
            seen[text] = next(names), row
            anchor = f' id="u{seen[text][0]}"'
        yield f'<text{anchor} y="{CELL_HEIGHT * row + baseline}">{text}</text>'


def _row(middles: Sequence[int], texts: Sequence[str]) -> str:
    return "".join([f'<tspan x="{x}">{text}</tspan>' for x, text in zip(middles, texts, strict=True)])


def _blocks(panel: Panel) -> Iterator[str]:
    """A path for each colour with all its registers."""
    across, down = panel.block
    width, height = panel.cell * across, CELL_HEIGHT * down
    shape = f"h{width}v{height}h-{width}z"
    paths: dict[int, list[str]] = {}
    for row in range(0, len(panel.rows), down):
        colours = panel.colours[row]
        for column in range(0, len(panel.cols), across):
            colour = colours[column]
            paths.setdefault(colour if colour == BLANK else colour % len(_COLOURS), []).append(
                f"M{panel.cell * column} {CELL_HEIGHT * row}{shape}"
            )
    for colour in sorted(paths):
        fill = 'class="o"' if colour == BLANK else f'fill="{_COLOURS[colour]}"'
        yield f'<path {fill} d="{"".join(paths[colour])}"/>'


def colour(number: int) -> str:
    """The colour of a thread, or of any other number, in CSS: the four threads of a quad have strengths of one hue."""
    return _COLOURS[number % len(_COLOURS)]


def cut(count: int, step: int, cells: int) -> Iterator[range]:
    """Parts of a matrix that make a panel each."""
    for first in range(0, count, cells * step):
        yield range(first, min(first + cells * step, count), step)


def edge(span: range) -> list[str]:
    """The names along an edge of a panel: numbers, or from where to where steps go."""
    return [str(place) if span.step == 1 else f"{place}{TO}{place + span.step - 1}" for place in span]
