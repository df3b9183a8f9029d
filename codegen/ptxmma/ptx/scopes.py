"""The registers that a function declares, and where each is visible; the variables that it can name."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from ptxmma.ptx.tokens import braces
from ptxmma.ptx.variables import Variable, declared, special

_Declared = TypeVar("_Declared")

_REG = re.compile(rb"\.reg\b\s*((?:\.align\s+\d+\s*)?(?:\.\w+\s*)+)([^;(){}.]*)")
#: A declaration, unless the block that has it ends soon, as most blocks of assembly do: nothing of it is visible after it.
_VISIBLE = re.compile(rb"\.reg\b(?!(?:[^{}]{0,200}\{[^{};]*\}){0,4}[^{}]{0,200}\})")
_NAME = re.compile(rb"([\w$%]+)\s*(?:<\s*(\w+)\s*>)?")
_SELECTED = re.compile(rb"([\w$%]+)\.([xyzwrgba])\Z")
_STEM = re.compile(rb"\{\s*(%[A-Za-z]+)[0-9]")
_VECTOR = re.compile(r"v([248])\.(\w+)")
#: Names that are remembered at a time.
_MOST_KNOWN = 1 << 16
_DIGITS = b"0123456789"
#: Numbers for what is declared.
_numbers = itertools.count(1)
#: Digits at the end of a name that can be a number of ``%r<100>``.
_MOST_DIGITS = 9


class _Names(Generic[_Declared]):
    """The declarations of names, and of the prefixes of ``%r<100>``."""

    def __init__(self) -> None:
        self.names: dict[bytes, _Declared] = {}
        self.numbered: dict[bytes, tuple[int, _Declared]] = {}  # prefix -> (how many, what)

    def find(self, name: bytes) -> _Declared | None:
        declared = self.names.get(name)
        if declared is None and self.numbered:
            stem = name.rstrip(_DIGITS)
            for cut in range(max(len(stem), len(name) - _MOST_DIGITS), len(name)):
                numbered = self.numbered.get(name[:cut])
                if numbered and int(name[cut:]) < numbered[0]:
                    return numbered[1]
        return declared


class _Scope(_Names[str]):
    """The registers that one block declares, with their types."""

    def __init__(self, depth: int, state: int = 0) -> None:
        super().__init__()
        self.depth = depth
        self.state = state  # a number for what it and the blocks around it declare


class _Open(list[_Scope]):
    """The open blocks that declare registers, the innermost last, and for each name the blocks that declare it.

    Attributes:
        stems: the number of names that they declare of each stem, which is a name without the digits at its end.
    """

    def __init__(self) -> None:
        super().__init__([_Scope(0)])
        self._declaring: dict[bytes, list[int]] = {}  # names -> places in the list, ascending
        self._numbering: dict[bytes, list[int]] = {}  # the same for prefixes
        self.stems: Counter[bytes] = Counter()

    def declare(self, fresh: _Scope) -> None:
        """Add what the innermost block declares."""
        scope, place = self[-1], len(self) - 1
        for own, given, declaring in self._tables(scope, fresh):
            for name in given:
                if name not in own:
                    declaring.setdefault(name, []).append(place)
                    self.stems[name.rstrip(_DIGITS)] += 1
        scope.names.update(fresh.names)
        scope.numbered.update(fresh.numbered)

    def close(self) -> _Scope:
        """Close the innermost block, and return what it declared."""
        scope = self.pop()
        for own, _, declaring in self._tables(scope, scope):
            for name in own:
                declaring[name].pop()
                self.stems[name.rstrip(_DIGITS)] -= 1
        return scope

    def find(self, name: bytes) -> str | None:
        """The type of a register; the innermost declaration counts."""
        place = (self._declaring.get(name) or [-1])[-1]
        kind = self[place].names[name] if place >= 0 else None
        stem = name.rstrip(_DIGITS)
        for cut in range(max(len(stem), len(name) - _MOST_DIGITS), len(name)) if self._numbering else ():
            for other in reversed(self._numbering.get(name[:cut], ())):
                if other <= place:
                    break
                count, numbered = self[other].numbered[name[:cut]]
                if int(name[cut:]) < count:
                    place, kind = other, numbered
                    break
        return kind

    def numbered(self, stem: bytes) -> tuple[int, str]:
        """The number of registers of a stem that one declaration has, and their type; 0 where another one also has such names."""
        places = self._numbering.get(stem)
        return self[places[-1]].numbered[stem] if places and self.stems[stem] == 1 else (0, "")

    def _tables(self, scope: _Scope, fresh: _Scope) -> Iterator[tuple[Collection[bytes], Collection[bytes], dict[bytes, list[int]]]]:
        """The names and the prefixes of a block, of what is added or removed, and who declares them."""
        yield scope.names, fresh.names, self._declaring
        yield scope.numbered, fresh.numbered, self._numbering


class Variables(_Names[Variable]):
    """The variables of a module or of a function.  Of a name that is declared twice, what the declarations have in common is known."""

    def declare(self, text: bytes) -> None:
        """Add what a text without comments declares."""
        for name, count, variable in declared(text):
            before = self.names.get(name)
            if count:
                self.numbered[name] = _number(count), variable
            else:
                self.names[name] = before.merged(variable) if before and before != variable else variable


class _Known(dict[bytes, str]):
    """Names that were looked up in the open scopes, the innermost last; a new one is looked up when it is asked for."""

    def __init__(self, scopes: _Open) -> None:
        super().__init__()
        self._scopes = scopes

    def __missing__(self, name: bytes) -> str:
        if len(self) > _MOST_KNOWN:
            self.clear()
        found = self._scopes.find(name)
        kind = self[name] = _of_vector(name, self.__getitem__) if found is None else found
        return kind


def _of_vector(name: bytes, kind_of: Callable[[bytes], str]) -> str:
    """The type of an element of a vector, ``""`` for another name; assemblers do not mind an element that the vector does not have."""
    selected = _SELECTED.match(name)
    vector = _VECTOR.fullmatch(kind_of(selected[1])) if selected else None
    return vector[2] if vector else ""


class Opened(NamedTuple):
    """The declarations at a place of a function.

    Attributes:
        depth: the number of blocks that are open.
        scopes: the open blocks that declare registers, the innermost last.
        variables: the function's variables.
    """

    depth: int
    scopes: _Open
    variables: Variables


class Scopes:
    """The visible registers of a function, as one walks through it from front to back.

    :meth:`at` goes to a place.  ``known[name]`` is then the type of a register without its dot (``"b32"``, ``"v4.f32"`` for a vector), and
    ``""`` for a name that is not declared there.

    Args:
        text: the function's text.
        outer: a depth of blocks: declarations there are visible up to the end.
        given: registers that are declared before it.
        module: its variables.
        before: the declarations with which the text goes on, where it is not the first part of a function.
    """

    def __init__(
        self,
        text: bytes,
        outer: int = 0,
        given: dict[bytes, str] | None = None,
        module: Variables | None = None,
        before: Opened | None = None,
    ) -> None:
        self._text = text
        self._module = module
        self._outer = outer
        self._place = 0
        self._before = before or Opened(0, _Open(), Variables())
        self._depth, self._scopes = self._before.depth, self._before.scopes
        if given:
            self._scopes.declare(_of_names(given))
        self._next = 0  # where declarations have not been looked for
        self.known = _Known(self._scopes)
        self._states: dict[tuple[int, bytes, bytes], int] = {}  # numbers for what is visible, by what was before, and what is added

    @property
    def visible(self) -> int:
        """A number for what is declared at the place: the same where that is the same."""
        return self._scopes[-1].state

    def at(self, offset: int) -> Scopes:
        """Go on to a place; offsets must not descend."""
        while visible := _VISIBLE.search(self._text, self._next, offset):
            self._next = visible.end()
            if match := _REG.match(self._text, visible.start()):
                self._walk(visible.start())
                self._declare(match)
                self._next = match.end()
        self._next = max(self._next, offset)
        if self._scopes[-1].depth > self._outer:
            self._walk(offset)
        return self

    def numbered(self, stem: bytes) -> int:
        """The number of registers ``%r0``, ``%r1``, ... of a stem that one declaration has; 0 where another one also has such names."""
        return self._scopes.numbered(stem)[0]

    def alike(self, operand: bytes) -> tuple[str, ...]:
        """The types of the registers in a list if one declaration has them all, ``{%f7, %f8}``; otherwise empty."""
        first = _STEM.match(operand)
        if first is None:
            return ()
        numbers = [*map(bytes.strip, operand[1:-1].replace(first[1], b"").split(b","))]
        if operand.count(first[1]) != len(numbers) or not all(map(bytes.isdigit, numbers)):
            return ()
        count, kind = self._scopes.numbered(first[1])
        return (kind,) * len(numbers) if max(map(int, numbers)) < count else ()

    def opened(self) -> Opened:
        """The declarations that are open at the end of the text."""
        self.at(len(self._text))._walk(len(self._text))
        return Opened(self._depth, self._scopes, self._local)

    def variable(self, name: bytes) -> Variable | None:
        """A variable of the function or its module; it may belong to a block that is not open."""
        local = self._local.find(name)
        outer = self._module.find(name) if self._module is not None else None
        return outer.merged(local) if local and outer else local or outer

    def unregistered(self, name: bytes) -> str:
        """The type that a list gives a special register or a variable, ``""`` for another name."""
        return special(name) or self._listed(name)

    def _listed(self, name: bytes) -> str:
        """The type of a variable in a list, or of an element of a vector variable: the type of a register."""
        if variable := self.variable(name):
            return variable.kind
        return _of_vector(name, self._listed)

    @functools.cached_property
    def _local(self) -> Variables:
        local = self._before.variables
        local.declare(self._text)
        return local

    def _walk(self, offset: int) -> None:
        """Open and close the blocks up to a place."""
        closes, opens = braces(self._text[self._place : offset])
        self._place = offset
        self._depth = max(0, self._depth - closes)
        while self._scopes[-1].depth > self._depth:
            self._forget(self._scopes.close())
        self._depth += opens

    def _declare(self, match: re.Match[bytes]) -> None:
        if self._scopes[-1].depth < self._depth:
            self._scopes.append(_Scope(self._depth, self._scopes[-1].state))
        scope = self._scopes[-1]
        fresh = _declared(match[1], match[2])
        self._scopes.declare(fresh)
        added = (scope.state, match[1], match[2])
        scope.state = self._states.get(added) or self._states.setdefault(added, next(_numbers))
        self._forget(fresh)

    def _forget(self, scope: _Scope) -> None:
        """The names that a scope declares must be looked up again."""
        if scope.numbered:
            self.known.clear()
        else:
            for name in scope.names:
                self.known.pop(name, None)


def _of_names(given: Mapping[bytes, str]) -> _Scope:
    """A scope that declares some names with their types."""
    scope = _Scope(0)
    scope.names.update(given)
    return scope


@functools.lru_cache(maxsize=1 << 8)
def _declared(kinds: bytes, names: bytes) -> _Scope:
    """The registers of a declaration; compilers repeat the declarations of assembly in blocks of its own."""
    kind = b".".join(part for part in kinds.replace(b".", b" ").split() if part != b"align" and not part.isdigit())
    fresh = _Scope(0)
    for name, count in _NAME.findall(names):
        if count:
            fresh.numbered[name] = (_number(count), kind.decode(errors="replace"))
        else:
            fresh.names[name] = kind.decode(errors="replace")
    return fresh


def _number(text: bytes) -> int:
    try:
        return int(text[:18], 0)
    except ValueError:
        return int(text[:18], 8) if text[:18].isdigit() and not set(text[:18]) & set(b"89") else 0
