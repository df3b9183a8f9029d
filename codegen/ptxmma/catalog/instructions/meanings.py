"""People's words, and the words of PTX that they mean: ``nvfp4``, ``tma load``, ``torch.float16``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from ptxmma.model import Spec

#: Marks of a whole statement of PTX, which is not made of words.
_STATEMENT = re.compile(r"[\[\]{};%@]")
_SEPARATORS = re.compile(r"[\s.,?]+")
#: ``m = 64``, as programs write a size.
_ASSIGNED = re.compile(r"\b([mnk]) ?= ?(?=\d)")
_NAMESPACE = re.compile(r"^(\w+)::")
#: The rest of a word that begins with another.
_REST = re.compile(r"^_\S*")
#: More words than any instruction has, and more meanings than any text.
MOST = 24

#: Words in small letters.
Words = tuple[str, ...]


def words_of(text: str) -> Words:
    """The words of a text, in small letters; a whole statement of PTX has none."""
    if _STATEMENT.search(text):
        return ()
    return tuple(word for word in _SEPARATORS.split(_ASSIGNED.sub(r"\1", text.lower())) if word)


def meanings(spec: Spec, words: Words) -> list[Words]:
    """The words with each that PTX does not have replaced by its meanings, the preferred first.

    What the text says itself a meaning does not say again: ``mxfp8 e5m2`` has one e5m2 and no e4m3.
    """
    known = names(spec)
    parts = joined(known, words)
    choices = list[list[Words]]()
    for word in parts:
        means = sorted((meaning.lower().split() for meaning in known.get(word, (word,))), key=lambda each: -len({*each} & {*parts}))
        choices.append([tuple(each for each in meaning if word not in known or each not in parts) for meaning in means])
    return [tuple(itertools.chain.from_iterable(chosen)) for chosen in itertools.islice(itertools.product(*choices), MOST)]


def single(spec: Spec, text: str) -> list[str]:
    """The meanings of a text that are one word, the preferred first: ``["e4m3", "e5m2"]`` for ``fp8``."""
    return [meaning[0] for meaning in meanings(spec, words_of(text)) if len(meaning) == 1]


def names(spec: Spec) -> dict[str, tuple[str, ...]]:
    """The meanings of each word of the spec."""
    return {name: entry.means for entry in spec.words for name in entry.names}


def joined(known: Mapping[str, Sequence[str]], words: Words) -> list[str]:
    """The words, taken apart and put together as the spec has them.

    Words with ``_`` between them may be one: ``tma load``.  A word that begins with one of them and ``_`` is that word and the rest:
    ``sm90_tma_load_2d``.  A namespace before one is replaced, too: ``cutlass::half_t``.
    """
    parts, rest = list[str](), " ".join(words)
    while rest:
        rest = _NAMESPACE.sub(lambda match: known.get(match[1], (match[0],))[0], rest)
        line = f"{rest.replace(' ', '_')}_"
        parts.append(max((each for each in known if line.startswith(f"{each}_")), key=len, default="") or rest.partition(" ")[0])
        rest = _REST.sub(lambda match: match[0].replace("_", " "), rest[len(parts[-1]) :]).strip()
    return parts
