"""Layouts as SVG: small tables of cells, coloured by thread, with what a person wants to read in each.

Everything is a :class:`Panel`, a grid of equally large cells with names along its edges; a picture is one or more panels on a card
of its own, so that it reads the same on light and dark pages.  Cells of one thread are one path, labels are ``tspan`` elements of
one ``text`` per row: a picture of 2,048 cells takes about 100 kB and no time.
"""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.catalog.operands import Operand
from ptxmma.model import Granularity, Layout, ScaleLayout, Spec, Swizzle
from ptxmma.model.bitmap import Run
from ptxmma.model.formula import Value, evaluate, parse
from ptxmma.model.formula import names as names_in

#: Above this many elements a fragment is drawn with a cell for each register.
MOST_CELLS = 2048
#: A wider or higher matrix is cut into panels of this many cells.
_PANEL = 32
_WIDEST, _NARROWEST = 1340, 440
_CELL_WIDTH, _WIDE_CELL, _CELL_HEIGHT = 34, 44, 26
_AXIS, _MARGIN = 50, 14

#: A multiplication sign between spaces at which no line breaks.
TIMES = "\u00a0\u00d7\u00a0"
#: An en dash, which looks too much like a minus to stand in the code.
_TO = "\u2013"
#: Eight hues (after Okabe and Ito, who chose them for colour-blind readers) in four strengths: a quad has one hue.
_HUES = ((0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (213, 94, 0), (240, 228, 66), (140, 140, 140))
_STRENGTHS = (0.28, 0.44, 0.60, 0.76)
_COLOURS = ["#" + "".join(f"{round(255 - (255 - part) * strength):02x}" for part in hue) for hue in _HUES for strength in _STRENGTHS]
#: Bits of a thread's place in its warp.
WARP_BITS = 5
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
    labels: Sequence[Sequence[str]]
    spans: Sequence[tuple[int, int, str]] = ()
    block: tuple[int, int] = (1, 1)  # columns and rows of cells that belong together: the elements of a register
    cell: int = _CELL_WIDTH
    more: str = ""  # what follows on the right

    @property
    def width(self) -> int:
        """Pixels, with the names of the rows."""
        return max(_AXIS + self.cell * len(self.cols) + (30 if self.more else 0), 6 * len(self.head) + 8)

    @property
    def above(self) -> int:
        """Pixels of what stands above the cells."""
        return (18 if self.head else 0) + (16 if self.spans else 0) + 16

    @property
    def height(self) -> int:
        """Pixels, with all that stands above the cells."""
        return self.above + _CELL_HEIGHT * len(self.rows)


class Mark(NamedTuple):
    """A cell of :func:`table`; ``colour`` is a thread or any number, or :data:`BLANK`."""

    text: str
    colour: int


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
            x += panel.width + _MARGIN
        y += max(panel.height for panel in line) + _MARGIN
    width = max(max(x + panel.width for panel, x, _ in placed), 8 * len(title), _NARROWEST)
    lines = _wrapped(notes, width)
    top = _above(lines)
    names = itertools.count()
    body = [line for panel, x, y in placed for line in _panel(panel, x + _MARGIN, y + top, names)]
    return _document(title, lines, width + 2 * _MARGIN, top + y, body)


def _shared_out(panels: Sequence[Panel], most: int) -> list[list[Panel]]:
    """Panels as lines of at most ``most`` that are no wider than a picture may be: four of which three fit make two lines of two."""
    lines: list[list[Panel]] = []
    x = 0
    for panel in panels:
        if not lines or len(lines[-1]) == most or x + panel.width > _WIDEST:
            lines.append([])
            x = 0
        lines[-1].append(panel)
        x += panel.width + _MARGIN
    even = -(-len(panels) // len(lines))
    return lines if even >= max(map(len, lines)) else _shared_out(panels, even)


def _wrapped(notes: Iterable[str], width: int) -> list[str]:
    """Notes as lines that are no wider than the picture."""
    return [line for note in notes for line in textwrap.wrap(note, int(width / 6))]


def _above(lines: Sequence[str]) -> int:
    """Pixels that the title and the notes take."""
    return _MARGIN + 16 + 15 * len(lines)


def _document(title: str, lines: Iterable[str], width: int, height: int, body: Iterable[str]) -> str:
    notes = [f'<text class="n" x="{_MARGIN}" y="{_MARGIN + 25 + 15 * index}">{xml(line)}</text>' for index, line in enumerate(lines)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{xml(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="k" width="{width}" height="{height}" rx="8"/>',
            f'<text class="h" x="{_MARGIN}" y="{_MARGIN + 8}">{xml(title)}</text>',
            *notes,
            *body,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, x: int, y: int, names: Iterator[int]) -> Iterator[str]:
    """The elements of a panel; coordinates count from its first cell, ``names`` number what is used again."""
    width, height = panel.cell, _CELL_HEIGHT
    right, bottom = width * len(panel.cols), height * len(panel.rows)
    middles = [width * column + width // 2 for column in range(len(panel.cols))]
    yield f'<g transform="translate({x + _AXIS} {y + panel.above})">'
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
            yield f'<use href="#u{name}" y="{_CELL_HEIGHT * (row - first)}"/>'
            continue
        anchor = ""
        if text in repeated:
            seen[text] = next(names), row
            anchor = f' id="u{seen[text][0]}"'
        yield f'<text{anchor} y="{_CELL_HEIGHT * row + baseline}">{text}</text>'


def _row(middles: Sequence[int], texts: Sequence[str]) -> str:
    return "".join([f'<tspan x="{x}">{text}</tspan>' for x, text in zip(middles, texts, strict=True)])


def _blocks(panel: Panel) -> Iterator[str]:
    """A path for each colour with all its registers."""
    across, down = panel.block
    width, height = panel.cell * across, _CELL_HEIGHT * down
    shape = f"h{width}v{height}h-{width}z"
    paths: dict[int, list[str]] = {}
    for row in range(0, len(panel.rows), down):
        colours = panel.colours[row]
        for column in range(0, len(panel.cols), across):
            colour = colours[column]
            paths.setdefault(colour if colour == BLANK else colour % len(_COLOURS), []).append(
                f"M{panel.cell * column} {_CELL_HEIGHT * row}{shape}"
            )
    for colour in sorted(paths):
        fill = 'class="o"' if colour == BLANK else f'fill="{_COLOURS[colour]}"'
        yield f'<path {fill} d="{"".join(paths[colour])}"/>'


def colour(number: int) -> str:
    """The colour of a thread, or of any other number, in CSS: the four threads of a quad have strengths of one hue."""
    return _COLOURS[number % len(_COLOURS)]


def table(title: str, notes: Sequence[str], corner: str, rows: Sequence[str], cols: Sequence[str], cells: Sequence[Sequence[Mark]]) -> str:
    """A picture of any table of cells, cut into panels; rows and columns are named along its edges."""
    width = max(_CELL_WIDTH, 7 * max((len(cell.text) for line in cells for cell in line), default=0) + 8)  # of bold letters
    fit = min(_PANEL, 1 << max(1, (_WIDEST - _AXIS) // width).bit_length() - 1)
    panels = []
    for down in _cut(len(rows), 1, _PANEL):
        for across in _cut(len(cols), 1, fit):
            part = [[cells[row][col] for col in across] for row in down]
            panels.append(
                Panel(
                    head="",
                    corner=corner,
                    rows=[rows[row] for row in down],
                    cols=[cols[col] for col in across],
                    colours=[[cell.colour for cell in line] for line in part],
                    tops=[[xml(cell.text) for cell in line] for line in part],
                    labels=[],
                    cell=width,
                )
            )
    return sheet(title, notes, panels)


# --- operands ---------------------------------------------------------------------------------------------------------------


def operand(spec: Spec, shown: Operand) -> str:
    """Where the elements of an operand in registers stand: of a fragment, of sparsity metadata or of scale factors.

    Raises:
        ValueError: the operand has no layout.
    """
    layout = shown.layout
    if layout is None:
        raise ValueError(f"operand {shown.name!r} has no layout")
    if layout.kind == "fragment":
        return fragment(layout, shown.elements_per_register, endless=endless(spec, layout), pattern=shown.sparsity)
    return metadata(layout) if layout.kind == "metadata" else scales(layout, spec.scales[layout.entry])


def endless(spec: Spec, layout: Layout) -> bool:
    """Whether a layout's matrix grows with an N that has many values."""
    if "N" not in layout.shape or layout.kind != "fragment":
        return False
    entry = spec.fragments[layout.entry]
    return any("n" in names_in(parse(text)) for text in (entry.rows, entry.cols))


# --- fragments --------------------------------------------------------------------------------------------------------------


def _spread(runs: Sequence[Run], name: str, value: int) -> int:
    """What ``value`` of one input contributes to an output; an output of a permutation of bits is the sum of such parts."""
    return sum((value >> run.source & (1 << run.width) - 1) << run.target for run in runs if run.name == name)


def _grid(runs: Sequence[Run], rows: tuple[str, range], cols: tuple[str, range], **fixed: int) -> list[list[int]]:
    """An output at every row and column; the other inputs are fixed."""
    base = sum(_spread(runs, name, value) for name, value in fixed.items())
    across = [_spread(runs, cols[0], col) for col in cols[1]]
    return [[part + col for col in across] for part in (base + _spread(runs, rows[0], row) for row in rows[1])]


def block(layout: Layout, per_register: int) -> tuple[int, int]:
    """Columns and rows of the rectangle that one register's elements fill; ``(1, 1)`` where they lie apart."""
    bits = layout.map.bits["i"][: per_register.bit_length() - 1]
    if bits == tuple(("col", bit) for bit in range(len(bits))):
        return per_register, 1
    if bits == tuple(("row", bit) for bit in range(len(bits))):
        return 1, per_register
    return 1, 1


def period(layout: Layout) -> tuple[int, int]:
    """``(columns, elements)``: that many columns further on, the same threads hold the element that many numbers further on."""
    columns = layout.map.inverse().bits["col"]
    below = len(columns)
    while below and columns[below - 1][0] == "i" and (below == len(columns) or columns[below - 1][1] + 1 == columns[below][1]):
        below -= 1
    return 1 << below, 1 << columns[below][1] if below < len(columns) else 0


def shown_columns(layout: Layout, endless: bool) -> int:
    """Columns that the picture of a fragment has: all, or two periods of a layout that goes on for every N."""
    return min(2 * period(layout)[0], layout.cols) if endless else layout.cols


def by_register(layout: Layout, columns: int, per_register: int) -> bool:
    """Whether a picture has a cell for each register instead of each element."""
    return layout.rows * columns * _computations(layout) > MOST_CELLS and block(layout, per_register) != (1, 1)


def _computations(layout: Layout) -> int:
    return 1 << layout.map.outputs.get("computation", 0)


def fragment(layout: Layout, per_register: int, *, endless: bool, pattern: Granularity | None) -> str:
    """Which thread holds which element of a matrix, and where.

    ``per_register`` is the number of elements in a register; ``endless`` says that N is only the largest of many; ``pattern`` is the
    sparsity of a packed A, whose columns in the full matrix are then named too.
    """
    name = layout.operands[0]
    columns = shown_columns(layout, endless)
    merged = by_register(layout, columns, per_register)
    across, down = block(layout, per_register)
    step_x, step_y = (across, down) if merged else (1, 1)
    back = layout.map.inverse()
    lanes, items = back.runs("lane"), back.runs("i")
    threads = [f"T{thread}" for thread in range(layout.threads)]
    names = _element_names(name, 1 << layout.map.inputs["i"], per_register, merged)
    panels = []
    high = _warp_rows(layout)
    for computation in range(_computations(layout)):
        fixed = {"computation": computation} if "computation" in layout.map.outputs else {}
        for rows in _cut(layout.rows, step_y, high or _PANEL):
            for cols in _cut(columns, step_x, _PANEL):
                owners = _grid(lanes, ("row", rows), ("col", cols), **fixed)
                held = _grid(items, ("row", rows), ("col", cols), **fixed)
                panels.append(
                    Panel(
                        head=f"computation {computation}" if fixed else f"warp {rows[0] // high}" if high else "",
                        corner="row \\ col",
                        rows=_edge(rows),
                        cols=_edge(cols),
                        colours=owners,
                        tops=[[threads[owner] for owner in line] for line in owners],
                        labels=[[names[item] for item in line] for line in held],
                        spans=_windows(cols, across, pattern) if pattern else (),
                        block=(1, 1) if merged else (across, down),
                        cell=_wide(names) if merged else _CELL_WIDTH,
                        more="⋯" if columns < layout.cols else "",
                    )
                )
    title = f"{_names(layout)}: {size(layout, endless)}" + (", packed" if pattern else "")
    return sheet(title, _fragment_notes(layout, per_register, merged, endless, pattern), panels)


def _warp_rows(layout: Layout) -> int:
    """Rows that belong to one warp, where each warp has rows of its own; else 0."""
    warp = layout.map.bits["lane"][WARP_BITS:]
    top = layout.map.outputs["row"] - len(warp)
    return 1 << top if warp and warp == tuple(("row", top + bit) for bit in range(len(warp))) else 0


def _cut(count: int, step: int, cells: int) -> Iterator[range]:
    """Parts of a matrix that make a panel each."""
    for first in range(0, count, cells * step):
        yield range(first, min(first + cells * step, count), step)


def _edge(span: range) -> list[str]:
    return [str(place) if span.step == 1 else f"{place}{_TO}{place + span.step - 1}" for place in span]


def _element_names(name: str, count: int, per_register: int, merged: bool) -> list[str]:
    if merged:
        return [f"r{item // per_register}: {name}{item}{_TO}{name}{item + per_register - 1}" for item in range(count)]
    return [f"r{item // per_register} {name}{item}" if per_register > 1 else f"{name}{item}" for item in range(count)]


def _wide(names: Sequence[str]) -> int:
    return 5 * max(map(len, names)) + 10


def _windows(cols: range, width: int, pattern: Granularity) -> list[tuple[int, int, str]]:
    """The columns of the full matrix that each register's elements come from."""
    ratio = pattern.chunk // pattern.kept
    columns = width if cols.step == 1 else 1
    return [(index, columns, f"{cols[index] * ratio}{_TO}{(cols[index] + width) * ratio - 1}") for index in range(0, len(cols), columns)]


def size(layout: Layout, endless: bool) -> str:
    """Rows and columns: ``16 x 8``, ``64 x N``."""
    return f"{layout.rows}{TIMES}{'N' if endless else layout.cols}"


def _names(layout: Layout) -> str:
    """The operands as one says them: ``C and D``."""
    return " and ".join(name.upper() if len(name) == 1 else name for name in layout.operands)


def _fragment_notes(layout: Layout, per_register: int, merged: bool, endless: bool, pattern: Granularity | None) -> list[str]:
    name = layout.operands[0]
    elements = 1 << layout.map.inputs["i"]
    register = f"r{1 if elements > per_register else 0}"
    last = elements - 1 if elements <= per_register else 2 * per_register - 1
    if merged:
        notes = [f"A cell is a register of {per_register} elements: {register} is register {register[1:]}, {name}{last} is element {last}."]
    elif per_register > 1:
        notes = [f"T1 {register} {name}{last}: thread 1, register {register[1:]}, element {last}."]
        notes[0] += " Thick lines separate registers." if block(layout, per_register) != (1, 1) else ""
    else:
        notes = [f"T1 {name}{last}: thread 1, element {last}, which fills register {last}."]
    if endless:
        columns, step = period(layout)
        notes.append(f"This goes on for all of N: {columns} columns further on the same thread has the element numbered {step} higher.")
    if pattern is not None:
        notes.append("Columns are those of the packed matrix; the brackets show which columns of the full matrix a register covers.")
    return notes


# --- metadata and scale factors ---------------------------------------------------------------------------------------------


#: Metadata comes in registers of this size.
_REGISTER_BITS = 32


def metadata(layout: Layout) -> str:
    """Which bits of which thread's register describe which chunk of which row; a panel for each selector."""
    width, selectors = _REGISTER_BITS >> layout.map.outputs["field"], 1 << layout.map.inputs["selector"]
    lanes, places = layout.map.runs("lane"), layout.map.runs("field")
    fields = [f"[{width * field + width - 1}:{width * field}]" for field in range(1 << layout.map.outputs["field"])]
    cols = range(layout.cols)
    panels = []
    for selector in range(selectors):
        for rows in _cut(layout.rows, 1, _PANEL):
            owners = _grid(lanes, ("row", rows), ("chunk", cols), selector=selector)
            held = _grid(places, ("row", rows), ("chunk", cols), selector=selector)
            panels.append(
                Panel(
                    head=f"selector {selector}" if selectors > 1 else "",
                    corner="row \\ chunk",
                    rows=_edge(rows),
                    cols=_edge(cols),
                    colours=owners,
                    tops=[[f"T{owner}" for owner in line] for line in owners],
                    labels=[[fields[field] for field in line] for line in held],
                    cell=40,
                )
            )
    title = f"Metadata: {layout.rows} rows{TIMES}{layout.cols} chunks"
    note = f"T1 {fields[0]}: in the register of thread 1, bits {fields[0][1:-1]} describe this chunk of this row."
    return sheet(title, [note], panels)


def scales(layout: Layout, entry: ScaleLayout) -> str:
    """Which byte of which thread's register scales which block of which row; a panel for each pair of scale ids."""
    lanes, bytes_ = layout.map.runs("lane"), layout.map.runs("byte")
    rows, cols = range(layout.rows), range(layout.cols)
    panels = []
    for thread_index, thread_id in enumerate(entry.thread_ids):
        for byte_index, byte_id in enumerate(entry.byte_ids):
            owners = _grid(lanes, ("row", rows), ("block", cols), byte_id=byte_index, thread_id=thread_index)
            held = _grid(bytes_, ("row", rows), ("block", cols), byte_id=byte_index, thread_id=thread_index)
            panels.append(
                Panel(
                    head=f"byte-id {byte_id}, thread-id {thread_id}",
                    corner=f"{_SCALED[entry.operand][:3]} \\ block",
                    rows=_edge(rows),
                    cols=_edge(cols),
                    colours=owners,
                    tops=[[f"T{owner}" for owner in line] for line in owners],
                    labels=[[f"byte {byte}" for byte in line] for line in held],
                )
            )
    title = f"Scale factors of {entry.operand.upper()}: {layout.rows} {_SCALED[entry.operand]}s{TIMES}{layout.cols} along K"
    return sheet(title, ["T1 byte 0: in the register of thread 1, the lowest byte is this scale factor."], panels)


#: What the scale factors of an operand go by.
_SCALED = {"a": "row", "b": "column"}


# --- sparsity and shared memory ---------------------------------------------------------------------------------------------

#: Columns and chunks that an example of sparse storage has at most; the strength of its colours.
_EXAMPLE, _CHUNKS = 16, 4
_STRONG = 2


def storage(pattern: Granularity) -> str:
    """An example of sparse storage: a row of the full matrix, the packed row, and the metadata that tells one from the other."""
    values = [field for field in pattern.legal if not pattern.ordered or field in pattern.ordered]
    chunks = min(_EXAMPLE // pattern.chunk, _CHUNKS)
    chosen = [values[index * len(values) // chunks if len(values) >= chunks else index % len(values)] for index in range(chunks)]
    width = pattern.index_bits * pattern.indices
    full, packed, fields = [], [], []
    for index, field in enumerate(chosen):
        units = pattern.kept_units(field)
        first = index * pattern.chunk
        full += [(f"x{first + place}", index) if place // pattern.unit in units else ("0", BLANK) for place in range(pattern.chunk)]
        packed += [(f"x{first + unit * pattern.unit + part}", index) for unit in units for part in range(pattern.unit)]
        fields.append(f"keeps {', '.join(map(str, units))}")
    panels = [
        _strip("a row of the matrix", "column", full),
        _strip("the row as it is stored", "column", packed),
        _strip("its metadata", "bits", [(field, index) for index, field in enumerate(chosen)], fields, _CELL_WIDTH * pattern.chunk, width),
    ]
    unit = "each has" if pattern.unit == 1 else f"each {pattern.unit} together have"
    notes = [f"Of {pattern.chunk} columns (a chunk, one colour) {pattern.kept} are stored; {unit} an index of {pattern.index_bits} bits."]
    return sheet(f"Sparse storage {pattern.name}", notes, panels, stacked=True)


def _strip(
    head: str, corner: str, cells: Sequence[tuple[str, int]], labels: Sequence[str] = (), cell: int = _CELL_WIDTH, bits: int = 0
) -> Panel:
    """A panel of one row; ``cells`` are texts with the chunk that colours them, numbered, or each so many ``bits`` of a register."""
    return Panel(
        head=head,
        corner=corner,
        rows=[""],
        cols=[f"[{bits * index + bits - 1}:{bits * index}]" if bits else str(index) for index in range(len(cells))],
        colours=[[chunk if chunk == BLANK else _STRONG + 4 * chunk for _, chunk in cells]],
        tops=[[text for text, _ in cells]],
        labels=[labels] if labels else [],
        cell=cell,
    )


#: A line of the picture of shared memory: once through all banks.
_LINE = 128
_UNIT = 16


def atom_places(swizzle: Swizzle, formula: str) -> dict[tuple[int, int], int]:
    """``(strided, leading)`` in 16-byte units -> byte offset of the unit in an aligned atom, by the spec's formula."""
    leading, strided = swizzle.bytes // _UNIT, swizzle.atom_mn[1]
    tree = parse(formula)
    places = {}
    for row in range(strided):
        for unit in range(leading):
            address: Value = row * swizzle.bytes + unit * _UNIT
            value = evaluate(tree, {"address": address, "base_offset": 0, "span": swizzle.bytes})
            assert isinstance(value, int)
            places[row, unit] = value
    return places


def atom(swizzle: Swizzle, majorness: str, formula: str) -> str:
    """A swizzle atom: where each 16-byte unit of the matrix lies in shared memory."""
    places = atom_places(swizzle, formula)
    leading, strided = swizzle.bytes // _UNIT, swizzle.atom_mn[1]
    along, down = ("k", "x") if majorness == "K" else ("x", "k")
    per_line = _LINE // _UNIT
    lines = -(-leading * strided // per_line)
    holder = {place: unit for unit, place in places.items()}
    inside = [[holder[_LINE * line + _UNIT * unit] for unit in range(per_line)] for line in range(lines)]
    matrix = Panel(
        head="in the matrix",
        corner=f"{down} \\ unit",
        rows=_edge(range(strided)),
        cols=_edge(range(leading)),
        colours=[[4 * unit + row % 4 for unit in range(leading)] for row in range(strided)],
        tops=[[f"{row},{unit}" for unit in range(leading)] for row in range(strided)],
        labels=[[f"+{places[row, unit]}" for unit in range(leading)] for row in range(strided)],
        cell=40,
    )
    memory = Panel(
        head="in shared memory",
        corner="byte",
        rows=[f"+{_LINE * line}" for line in range(lines)],
        cols=[f"+{_UNIT * unit}" for unit in range(per_line)],
        colours=[[4 * unit + row % 4 for row, unit in line] for line in inside],
        tops=[[f"{row},{unit}" for row, unit in line] for line in inside],
        labels=[[_moved(row * leading + unit, place) for place, (row, unit) in enumerate(units)] for units in inside],
        cell=40,
    )
    across = swizzle.atom_k if majorness == "K" else swizzle.atom_mn
    title = f"{swizzle.title}, {majorness}-major: an atom of {across[0]}{TIMES}{across[1]} units of {_UNIT} bytes (x{TIMES}k)"
    notes = [
        f"Units run along {along}; x is a row of A or a column of B. On the left, where each unit lies: bytes from the start of the atom.",
        f"On the right, what lies there: a line is {_LINE} bytes, once through all banks; u ^ x is where unit u was moved from.",
    ]
    return sheet(title, notes, [matrix, memory])


def image(title: str, notes: Sequence[str], corner: str, step: int, addresses: Sequence[Sequence[int]]) -> str:
    """A whole matrix in shared memory: on the left where each 16-byte unit of each line lies, on the right what lies there.

    ``corner`` names lines and positions along them, ``step`` is the number of elements in a unit, ``addresses`` are those of the units,
    line by line, as they lie after the swizzle.
    """
    units = range(len(addresses[0]))
    tint = [[4 * unit + line % 4 for unit in units] for line in range(len(addresses))]
    holder = {address: (line, unit) for line, row in enumerate(addresses) for unit, address in enumerate(row)}
    base = min(holder) // _LINE * _LINE
    lines = range(base, max(holder) + 1, _LINE)
    per_line = range(0, _LINE, _UNIT)
    panels = []
    for down in _cut(len(addresses), 1, _PANEL):
        for across in _cut(len(units), 1, _PANEL):
            panels.append(
                Panel(
                    head="in the matrix",
                    corner=corner,
                    rows=_edge(down),
                    cols=[_edge(range(step * unit, step * unit + step, step))[0] for unit in across],
                    colours=[[tint[line][unit] for unit in across] for line in down],
                    tops=[[str(addresses[line][unit]) for unit in across] for line in down],
                    labels=[],
                    cell=_WIDE_CELL,
                )
            )
    for part in _cut(len(lines), 1, _PANEL):
        inside = [[holder.get(lines[line] + byte) for byte in per_line] for line in part]
        panels.append(
            Panel(
                head="in shared memory",
                corner="address",
                rows=[str(lines[line]) for line in part],
                cols=[f"+{byte}" for byte in per_line],
                colours=[[tint[at[0]][at[1]] if at else BLANK for at in row] for row in inside],
                tops=[[f"{at[0]},{step * at[1]}" if at else "" for at in row] for row in inside],
                labels=[],
                cell=_WIDE_CELL,
            )
        )
    return sheet(title, notes, panels)


def _moved(before: int, place: int) -> str:
    """How the XOR moved a unit within its line."""
    unit = before % (_LINE // _UNIT)
    return f"{unit} ^ {unit ^ place}"


# --- bit fields -------------------------------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A field of a word; ``colour`` is :data:`BLANK` for bits that mean nothing."""

    low: int
    width: int
    text: str
    colour: int


def bit_fields(title: str, notes: Sequence[str], words: Sequence[tuple[str, int, Sequence[Field]]], *, per_line: int, cell: int) -> str:
    """Words as their fields, highest bit on the left; ``words`` are ``(name, bits, fields)``, cut into lines of ``per_line`` bits."""
    axis = 7 * max((len(name) for name, _, _ in words), default=0)
    width = max(axis + cell * min(per_line, max(bits for _, bits, _ in words)), 8 * len(title), _NARROWEST)
    lines = _wrapped(notes, width)
    y = _above(lines) + 10
    body: list[str] = []
    for name, bits, fields in words:
        for low in range(bits - per_line if bits > per_line else 0, -1, -per_line):
            high = min(low + per_line, bits)
            right = _MARGIN + axis + cell * min(per_line, max(word[1] for word in words))
            if name:
                body.append(f'<text class="p r" x="{_MARGIN + axis - 8}" y="{y + 22}">{xml(name)}</text>')
            for field in fields:
                first, last = max(field.low, low), min(field.low + field.width, high)
                if first >= last:
                    continue
                left, across = right - cell * (last - low), cell * (last - first)
                fill = 'class="o b"' if field.colour == BLANK else f'class="b" fill="{_COLOURS[field.colour % len(_COLOURS)]}"'
                body.append(f'<path {fill} d="M{left} {y + 4}h{across}v{_CELL_HEIGHT}h-{across}z"/>')
                text = next((text for text in (field.text, field.text[:1]) if 6 * len(text) <= across), "")
                body.append(f'<text class="t" x="{left + across // 2}" y="{y + 21}">{xml(text)}</text>')
                edges = f"{last - 1}" if last - first == 1 else f"{last - 1}:{first}"
                body.append(f'<text class="x" x="{left + across // 2}" y="{y}">{edges}</text>')
            y += _CELL_HEIGHT + 20
    return _document(title, lines, width + 2 * _MARGIN, y, body)
