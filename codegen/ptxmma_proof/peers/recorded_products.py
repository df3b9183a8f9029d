"""Answers of a peer about products as text: any spec can be compared with them without the peer.

``ptxmma_proof/recorded/products.jsonl`` has the sizes and types of each product on which the peer and we agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ptxmma.model import TensorProducts
from ptxmma_proof.peers import product_shapes
from ptxmma_proof.peers.product_shapes import Allowed, Typed
from ptxmma_proof.peers.recorded import FOLDER

_FILE = "products.jsonl"


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The sizes of a product, for each M every N, or its types."""

    peer: str
    facts: dict[str, str | int]
    sizes: dict[str, tuple[int, ...]] = {}
    types: tuple[tuple[str, str, str], ...] = ()


class Products(NamedTuple):
    """The answers of a peer about products."""

    records: tuple[Product, ...]

    @classmethod
    def of(cls, allowed: Iterable[Allowed], typed: Iterable[Typed]) -> Products:
        """Return these answers."""
        sizes = [Product(peer=each.peer, facts=dict(each.facts), sizes=each.by_m) for each in allowed]
        return cls((*sizes, *(Product(peer=each.peer, facts=dict(each.facts), types=tuple(sorted(each.types))) for each in typed)))

    @classmethod
    def read(cls, folder: Path = FOLDER) -> Products:
        """Read the file of a folder.

        Raises:
            OSError: it cannot be read.
            ValueError: a line is not such a record.
        """
        return cls(tuple(msgspec.json.Decoder(Product).decode_lines((folder / _FILE).read_bytes())))

    def write(self, folder: Path) -> None:
        """Write the file of a folder.

        Raises:
            OSError: it cannot be written.
        """
        encoder = msgspec.json.Encoder(order="sorted")
        (folder / _FILE).write_bytes(encoder.encode_lines(sorted(self.records, key=encoder.encode)))

    def contradictions(self, rules: TensorProducts) -> Iterator[str]:
        """Yield the answers that rules contradict, in words."""
        for each in self.records:
            if each.types:
                same = frozenset(each.types) == product_shapes.types(rules, each.facts)
            else:
                same = product_shapes.recorded(each.sizes) == product_shapes.sizes(rules, each.facts)
            if not same:
                yield f"{each.peer}: {msgspec.json.encode(each).decode()}"
