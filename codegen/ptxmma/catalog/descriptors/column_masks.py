"""Zero-column masks: the columns of B that ``tcgen05.mma.ws`` takes as zeros.

>>> bits = codec("columns").encode(non_zero_mask=1, skip_span=3, use_span=4)
>>> "".join(str(int(zero)) for zero in zero_columns(bits, m=128, n=16))
'0000111000011100'
"""

from __future__ import annotations

import functools

from ptxmma.arguments import integer
from ptxmma.catalog.descriptors.codec import Codec
from ptxmma.catalog.descriptors.lookup import codec
from ptxmma.catalog.instructions import DatabaseLike, catalog
from ptxmma.model import ColumnMask, Spec, formula


def zero_columns(descriptor: int, *, m: int, n: int, database: DatabaseLike = None) -> tuple[bool, ...]:
    """Return whether each of the N columns of B is taken as zeros, whatever shared memory holds; before the shift of columns.

    Args:
        descriptor: the 64 bits of the zero-column mask descriptor.
        m: rows of A: the columns fall into one part for an M of 128, two for 64, four for 32.
        n: columns of B, a multiple of the number of parts.
        database: the source of the facts; the packaged database by default.

    Source: PTX ISA 9.7.16.4.3.

    Raises:
        TypeError: an argument that is not an integer.
        ValueError: bits that are not a descriptor, an M that no instruction with a mask has, or an N that does not fall into parts.
    """
    spec = catalog(database).database.spec
    mask = spec.column_masks[0]
    reader = codec("columns", database=database)
    columns, parts = integer("n", n), mask.parts.get(str(integer("m", m)))
    if parts is None:
        raise ValueError(f"m = {m}: products with a mask have M of {' or '.join(mask.parts)}")
    if columns < 1 or columns % parts:
        raise ValueError(f"n = {columns} must be a multiple of {parts}, the parts of a mask with M of {m}")
    return tuple(zero for part in range(parts) for zero in part_of(mask, reader, descriptor, part, columns // parts))


def part_of(mask: ColumnMask, reader: Codec, descriptor: int, part: int, columns: int) -> list[bool]:
    """The first columns of a part of a mask."""
    known = {name: value for name, value in reader.decode(descriptor).items() if isinstance(value, int)}
    own = {name.removesuffix(f"_{part}"): value for name, value in known.items() if name.endswith(f"_{part}")}
    parsed = _parsed(mask.zero)
    return [bool(formula.evaluate(parsed, known | own | {"column": column})) for column in range(columns)]


def mask_problems(spec: Spec, mask: ColumnMask) -> list[tuple[int, str]]:
    """The examples of a mask that its formula contradicts: the number of each, and how."""
    format = next(each for each in spec.descriptors if each.name == mask.descriptor)
    reader = Codec(spec, format)
    wrong = []
    for number, example in enumerate(mask.examples):
        if mask.parts.get(str(example.m)) != len(example.masks):
            wrong.append((number, f"{len(example.masks)} parts do not go with M = {example.m}; parts has {mask.parts}"))
            continue
        try:
            bits = reader.encode(**example.fields)
            for part, printed in enumerate(example.masks):
                digits = printed.removeprefix("0b")
                text = "".join(str(int(zero)) for zero in reversed(part_of(mask, reader, bits, part, len(digits))))
                if text != digits:
                    wrong.append((number, f"part {part} of the mask is {text}, and not {digits}"))
        except (TypeError, ValueError) as error:
            wrong.append((number, str(error)))
    return wrong


_parsed = functools.lru_cache(maxsize=8)(formula.parse)
