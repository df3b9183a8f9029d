"""Means to keep the database short: values that are written once, records by column, and texts that say much in few characters."""

from __future__ import annotations

import ast
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ptxmma.model import Condition, formula

_DIGITS = string.digits + string.ascii_lowercase
#: Signs of the lengths of runs from 2 on: for each length one for equal numbers and one for rising ones.
_LENGTHS = "!#%&'()*+,-./<=>?@[]^{|}"

# --- records ----------------------------------------------------------------------------------------------------------------


class Interned:
    """Values that are written once, each with its number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.values: list[Any] = []

    def number(self, value: Any) -> int:
        """The number of a value that equals this one."""
        key = msgspec.json.encode(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def without_empty(**values: Any) -> dict[str, Any]:
    """Without what is absent: zeros, what is empty, None and False."""
    return {key: value for key, value in values.items() if value}


def columns(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Records as a text of numbers for each key, or a list, the commonest first, without what is absent at the end of a list."""
    counts = Counter(key for record in records for key in record)
    return {key: _column([record.get(key) for record in records]) for key, _ in counts.most_common()}


def _column(values: list[Any]) -> str | list[Any]:
    while values[-1] is None:
        values.pop()
    return runs(values) if all(type(value) is int and value >= 0 for value in values) else values


#: The texts that JSON repeats: names and words with the punctuation beside them, numbers of sections, the seams of rows.
_WORD = re.compile(r'"?[A-Za-z_][A-Za-z_:.]{2,}"?[,:]?|9\.7\.\d+\.\d+(?:\.\d+)*|null,null|\],\["?')
#: The characters that take the place of words: two bytes each in UTF-8.  With more of them the page is smaller, and larger once compressed.
_MARKS = range(0x100, 0x120)
_MARK = re.compile(f"[{chr(_MARKS[0])}-{chr(_MARKS[-1])}]")
_SPECIAL = re.compile(r"[\\`$]")


#: The sign between texts of a list, and before the first.
_SEAM = "~"


def packed(data: Any) -> str:
    """A JavaScript expression for data: each word that its JSON repeats is written once, and a mark stands in its places.

    Raises:
        ValueError: a text begins as a list of texts does.
    """
    plain = _MARK.sub(lambda mark: f"\\u{ord(mark[0]):04x}", msgspec.json.encode(_joined(data)).decode())
    saved = {word: (len(word) - 2) * count - len(word) for word, count in Counter(_WORD.findall(plain)).items()}
    words = sorted(sorted((word for word in saved if saved[word] > 0), key=lambda word: (-saved[word], word))[: len(_MARKS)])
    marks = {word: chr(mark) for mark, word in zip(_MARKS, words, strict=False)}
    text = _SPECIAL.sub(r"\\\g<0>", _WORD.sub(lambda word: marks.get(word[0], word[0]), plain))
    read = f"replace(/[\\u{_MARKS[0]:04x}-\\u{_MARKS[-1]:04x}]/g, (mark) => words[mark.charCodeAt(0) - {_MARKS[0]}])"
    split = f'(key, value) => (typeof value === "string" && value[0] === "{_SEAM}" ? value.slice(1).split("{_SEAM}") : value)'
    return f"((words) => JSON.parse(`{text}`.{read}, {split}))(`{' '.join(words)}`.split(' '))"


def _joined(value: Any) -> Any:
    """Data whose lists of texts are one text each."""
    if isinstance(value, dict):
        return {key: _joined(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, str) and _SEAM not in each for each in value):
            return "".join(_SEAM + each for each in value)
        return [_joined(each) for each in value]
    if isinstance(value, str) and value.startswith(_SEAM):
        raise ValueError(f"{value!r} begins as a list of texts does in the database of JavaScript")
    return value


# --- texts; ``short_texts.js`` reads them -----------------------------------------------------------------------------------


def runs(numbers: Sequence[int]) -> str:
    """Numbers in few characters, each with the length of a run that it begins: ``"4!1"`` for 4, 4, 1 and ``"4&"`` for 4, 5, 6.

    The last digit of a number is of base 36, in capitals; the ones before it are small letters, of base 26.
    """
    text, place = "", 0
    while place < len(numbers):
        alike, rising = (_run(numbers, place, step) for step in (0, 1))
        count = min(max(alike, rising), len(_LENGTHS) // 2 + 1)
        text += _number(numbers[place]) + (_LENGTHS[2 * (count - 2) + (rising > alike)] if count > 1 else "")
        place += count
    return text


def _number(number: int) -> str:
    front, last = divmod(number, len(_DIGITS))
    text = _DIGITS[last].upper()
    while front:
        front, digit = divmod(front, len(string.ascii_lowercase))
        text = string.ascii_lowercase[digit] + text
    return text


def _run(numbers: Sequence[int], place: int, step: int) -> int:
    """The numbers from a place on that are each ``step`` more than the one before."""
    end = place + 1
    while end < len(numbers) and numbers[end] == numbers[end - 1] + step:
        end += 1
    return end - place


def beginnings(words: Iterable[str]) -> str:
    """Words, each as the number of characters that it begins with as the one before, in base 36, and the others: ``"0a_b16 2d_b16"``."""
    texts, last = [], ""
    for word in words:
        count = next(count for count in range(len(_DIGITS) - 1, -1, -1) if len(last) >= count and word.startswith(last[:count]))
        texts.append(_DIGITS[count] + word[count:])
        last = word
    return " ".join(texts)


def bit_places(places: Iterable[tuple[str, int]]) -> str:
    """Bits of the outputs of a map: ``"col:1# row:0"`` for bits 1 and 2 of ``col``, then bit 0 of ``row``."""
    words: list[tuple[str, int, int]] = []
    for output, bit in places:
        if words and (output, bit) == (words[-1][0], words[-1][1] + words[-1][2]):
            words[-1] = (output, words[-1][1], words[-1][2] + 1)
        else:
            words.append((output, bit, 1))
    return " ".join(f"{output}:{runs(range(first, first + count))}" for output, first, count in words)


def formula_text(text: str) -> str:
    """A formula as JavaScript reads it: the same text.

    Raises:
        ValueError: the formula has an operator that ``formulas.js`` does not know.
    """
    for node in ast.walk(formula.parse(text)):
        if isinstance(node, ast.Not) or (isinstance(node, ast.Compare) and len(node.ops) > 1):
            raise ValueError(f"{text!r} has `not` or a chain of comparisons, which formulas of JavaScript lack: write `== 0` or `and`")
    return text


def condition(alternatives: Sequence[Condition]) -> str:
    """Conditions in few words: ``"m=64|128 shape=x1; m=256"`` for m of 64 or 128 with the shape x1, or m of 256.

    Raises:
        ValueError: a value has a blank, or one of ``=|;``.
    """
    values = [str(value) for each in alternatives for allowed in each.values() for value in allowed]
    if wrong := [value for value in values if re.search(r"[\s=|;]", value)]:
        raise ValueError(f"{wrong[0]!r} in a condition has a character that the database of JavaScript writes between values")
    return "; ".join(" ".join(f"{name}={'|'.join(map(str, allowed))}" for name, allowed in each.items()) for each in alternatives)


def template(text: str, values: Mapping[str, str]) -> str:
    """A text with ``{atype}`` where it says the value of the qualifier ``atype``, and ``{ATYPE}`` where it says it in capitals.

    Values are looked for in their order, each once, after the one before it.

    Raises:
        ValueError: the text has braces of its own.
    """
    if "{" in text:
        raise ValueError(f"{text!r} has a brace, which stands for a value in the database of JavaScript")
    done = ""
    for name, value in values.items():
        match = re.search(f"(?P<own>{re.escape(value)})|{re.escape(value.upper())}", text) if value else None
        if match:
            done += f"{text[: match.start()]}{{{name if match['own'] else name.upper()}}}"
            text = text[match.end() :]
    return done + text
