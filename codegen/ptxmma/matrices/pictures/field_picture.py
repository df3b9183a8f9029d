"""Words as their bit fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxmma.matrices.pictures.svg_sheet import BLANK, CELL_HEIGHT, MARGIN, NARROWEST, above_panels, colour, document, wrapped, xml


class Field(NamedTuple):
    """A field of a word; ``colour`` is :data:`BLANK` for bits that mean nothing."""

    low: int
    width: int
    text: str
    colour: int


def bit_fields(title: str, notes: Sequence[str], words: Sequence[tuple[str, int, Sequence[Field]]], *, per_line: int, cell: int) -> str:
    """Words as their fields, highest bit on the left; ``words`` are ``(name, bits, fields)``, cut into lines of ``per_line`` bits."""
    axis = 7 * max((len(name) for name, _, _ in words), default=0)
    width = max(axis + cell * min(per_line, max(bits for _, bits, _ in words)), 8 * len(title), NARROWEST)
    lines = wrapped(notes, width)
    y = above_panels(lines) + 10
    body: list[str] = []
    for name, bits, fields in words:
        for low in range(bits - per_line if bits > per_line else 0, -1, -per_line):
            high = min(low + per_line, bits)
            right = MARGIN + axis + cell * min(per_line, max(word[1] for word in words))
            if name:
                body.append(f'<text class="p r" x="{MARGIN + axis - 8}" y="{y + 22}">{xml(name)}</text>')
            for field in fields:
                first, last = max(field.low, low), min(field.low + field.width, high)
                if first >= last:
                    continue
                left, across = right - cell * (last - low), cell * (last - first)
                fill = 'class="o b"' if field.colour == BLANK else f'class="b" fill="{colour(field.colour)}"'
                body.append(f'<path {fill} d="M{left} {y + 4}h{across}v{CELL_HEIGHT}h-{across}z"/>')
                text = next((text for text in (field.text, field.text[:1]) if 6 * len(text) <= across), "")
                body.append(f'<text class="t" x="{left + across // 2}" y="{y + 21}">{xml(text)}</text>')
                edges = f"{last - 1}" if last - first == 1 else f"{last - 1}:{first}"
                body.append(f'<text class="x" x="{left + across // 2}" y="{y}">{edges}</text>')
            y += CELL_HEIGHT + 20
    return document(title, lines, width + 2 * MARGIN, y, body)
