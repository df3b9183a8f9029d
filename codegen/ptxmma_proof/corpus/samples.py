"""A few neighbours of each instruction of a corpus, some for each kind of change."""

from __future__ import annotations

import functools
import random

from ptxmma.catalog.instructions import Catalog
from ptxmma_proof.neighbours import Neighbourhood, Neighbours

#: The kinds of change, by the words that their descriptions share.
_KINDS = ("without", "twice", "at the end", "change places", "joins", "registers for", "immediate for", "for ")


class Samples:
    """Samples of neighbours; a spelling always has the same ones."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self._neighbourhood = catalog, Neighbourhood(catalog)
        self.of = functools.cache(self._of)

    def _of(self, spelling: str, most: int) -> Neighbours:
        """The neighbours of each kind of change, ``most`` at most, each with its kind; none for an unknown spelling."""
        instruction = self._catalog.meaning(spelling)
        kinds: dict[str, list[str]] = {}
        for line, change in self._neighbourhood.of(instruction).items() if instruction else ():
            kind = next((kind for kind in _KINDS if kind in change), "another part")
            kinds.setdefault(kind, []).append(line)
        chance = random.Random(spelling)
        return {line: kind for kind, lines in kinds.items() for line in chance.sample(lines, min(most, len(lines)))}
