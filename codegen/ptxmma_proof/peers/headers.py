"""CUTLASS's headers, and the atoms that CuTe's part of them declares.

An atom is a structure of ``cute/arch/mma_sm*.hpp`` whose ``fma`` is an inline assembly statement.  The statement names the instruction and
its registers in their order; this module knows none of them beforehand.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ptxmma_proof.peers import sources
from ptxmma_proof.peers.sources import Source

#: The peer, which is part of CUTLASS.
NAME = "CuTe"
_PACKAGE = "nvidia-cutlass"
_INCLUDE = "cutlass_library/source/include"
_ARCHITECTURES = "cute/arch/mma_sm*.hpp"
_TRAITS = "cute/atom/mma_traits_sm*.hpp"


class Bound(NamedTuple):
    """One place of an instruction's operand list: ``"=r"(d0)``, or a literal without a constraint."""

    constraint: str
    expression: str


class Statement(NamedTuple):
    """One instruction in an atom's assembly text, with all its places in order; braces are ignored."""

    mnemonic: str
    places: tuple[Bound, ...]
    text: str  # as written, with %0, %1 …
    operands: tuple[Bound, ...]  # the operands %0, %1 …


class Atom(NamedTuple):
    """A structure whose ``fma`` is one instruction, or several that make one product of complex numbers.

    ``type`` is what C++ calls it, with arguments for all its parameters, ``name`` without those that move no element and without
    CuTe's own namespace; ``file`` is below the folder of headers.
    """

    name: str
    type: str
    file: str
    statements: tuple[Statement, ...]
    has_layouts: bool


def find(given: Mapping[str, Source]) -> Source:
    """Return CuTe, whose folder is the one to include from: of CUTLASS's checkout, or of the installed package.

    Raises:
        MissingPeerError: neither is there.
    """
    if (checkout := given.get("CUTLASS")) is not None:
        return Source(NAME, checkout.folder / "include", checkout.version)
    return sources.installed(NAME, _PACKAGE, _INCLUDE, "cute/**/*.hpp")


def atoms(cutlass: Source) -> list[Atom]:
    """Every atom, in the order of the files; a structure with several vector sizes once for each."""
    described = _described(cutlass)
    every = []
    for path in sorted(cutlass.folder.glob(_ARCHITECTURES)):
        structures = list(_structures(path.read_text(encoding="utf-8")))
        bodies = {structure.name: structure.body for structure in structures}
        for structure in structures:
            file = path.relative_to(cutlass.folder).as_posix()
            has_layouts = structure.name.split("::")[-1] in described
            for name, numbers in structure.types():
                body = _chosen(structure.body, numbers)
                if statements := tuple(statements_of(body)) or tuple(_borrowed(body, bodies)):
                    every.append(Atom(_shortened(name), name, file, statements, has_layouts))
    return every


def statements(cutlass: Source, file: str) -> dict[str, tuple[Statement, ...]]:
    """The instructions of each structure of a header, by the structure's name without its namespaces.

    Raises:
        OSError: the header cannot be read.
    """
    structures = _structures((cutlass.folder / file).read_text(encoding="utf-8"))
    every = {structure.name.split("::")[-1]: tuple(statements_of(structure.body)) for structure in structures}
    return {name: own for name, own in every.items() if own}


def _shortened(name: str) -> str:
    """A type without the arguments that move no element."""
    for value in _ARGUMENTS.values():
        name = name.replace(f", {value}", "").replace(value, "")
    return name.removesuffix("<>").removeprefix("cute::")


def _described(cutlass: Source) -> set[str]:
    """The names, without namespaces, of the structures for which there are ``MMA_Traits``."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(cutlass.folder.glob(_TRAITS)))
    aliases = dict(re.findall(r"\busing\s+(\w+)\s*=\s*([\w:]+)\s*[;<]", text))
    names = re.findall(r"struct\s+MMA_Traits<\s*([\w:]+)", text)
    return {aliases.get(name, name).split("::")[-1] for name in names}


# --- structures -------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"
    |\bnamespace\s*(?P<namespace>[\w:]*)\s*\{
    |(?:\btemplate\s*<(?P<parameters>[^{};]*?)>\s*)?\bstruct\s+(?P<struct>\w+)\s*(?P<arguments><[^{};]*?>)?\s*\{
    |[{}]""",
    re.DOTALL | re.VERBOSE,
)
_BRANCH = re.compile(r"\bif constexpr\s*\(\s*(\w+)\s*==\s*(\d+)\s*\)\s*\{")
#: The argument for each kind of parameter; none of them moves an element.
_ARGUMENTS = {"GMMA::Major": "cute::SM90::GMMA::Major::K", "GMMA::ScaleIn": "cute::SM90::GMMA::ScaleIn::One"}
_ARGUMENTS["GMMA::SparseSel"] = "cute::SM90::GMMA::SparseSel::Zero"


class _Structure(NamedTuple):
    name: str  # with its namespaces
    parameters: str
    arguments: str
    body: str

    def types(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The structure with arguments, once for each legal number, and the arguments by the names of the parameters."""
        parameters = [part.split("=")[0].split() for part in self.parameters.split(",") if part.strip()]
        choices = [self._choices(" ".join(kind), name) for *kind, name in parameters]
        for values in itertools.product(*choices):
            named = {name: value for (*_, name), value in zip(parameters, values, strict=True)}
            if not self.arguments:
                yield f"{self.name}<{', '.join(values)}>" if values else self.name, named
                continue
            arguments = self.arguments
            for name, value in named.items():
                arguments = re.sub(rf"\b{name}\b", value, arguments)
            yield self.name + arguments, named

    def _choices(self, kind: str, name: str) -> list[str]:
        if kind == "int":
            asserted = "".join(re.findall(r"CUTE_STATIC_ASSERT\(([^;]*)\);", self.body))
            return sorted(set(re.findall(rf"\b{name} == (\d+)", asserted))) or [name]
        return [_ARGUMENTS.get(kind, name)]


def _structures(text: str) -> Iterator[_Structure]:
    """Every structure in a namespace, with its body."""
    open_blocks: list[tuple[str, re.Match[str] | None]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "}":
            _, opened = open_blocks.pop()
            if opened is not None and opened["struct"]:
                spaces = [name for name, _ in open_blocks if name]
                if len(spaces) == len(open_blocks):
                    name = "::".join([*spaces, opened["struct"]])
                    body = text[opened.end() : token.start()]
                    yield _Structure(name, opened["parameters"] or "", opened["arguments"] or "", body)
        elif token[0].endswith("{"):
            open_blocks.append((token["namespace"] or "", token))


# --- assembly ---------------------------------------------------------------------------------------------------------------

_ASM = re.compile(r"\basm\s*(?:volatile\s*)?\(")
_STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
#: A string, which may have slashes in it, or a comment.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
_OPERAND = re.compile(r'"([^"]*)"\s*\(')
_PLACE = re.compile(r"\[?[^\s{},|\[\]]+\]?")
_DECLARATIONS = (".", "setp.")


def assembly_of(body: str) -> Iterator[tuple[str, tuple[Bound, ...]]]:
    """The text of each assembly statement, and its operands by number."""
    for opening in _ASM.finditer(body):
        strings, operands = _asm(_enclosed(body, opening.end()))
        yield "".join(strings).replace("\\n", "\n").replace("\\t", " "), operands


def statements_of(body: str) -> Iterator[Statement]:
    """The instructions of all assembly statements, without their declarations and comparisons."""
    for assembly, operands in assembly_of(body):
        for line in assembly.split(";"):
            text = line.strip().removeprefix("{").strip()
            mnemonic = re.match(r"[a-z][\w.:]*", text)
            if mnemonic and not text.startswith(_DECLARATIONS):
                written = _PLACE.findall(text[mnemonic.end() :])
                places = tuple(operands[int(place[1:])] if place[0] == "%" else Bound("", place) for place in written)
                yield Statement(mnemonic[0], places, text, operands)


def _chosen(body: str, numbers: Mapping[str, str]) -> str:
    """The body of a structure without the branches ``if constexpr (name == number)`` that these arguments do not take."""
    for branch in reversed(list(_BRANCH.finditer(body))):
        if numbers.get(branch[1], branch[2]) != branch[2]:
            depth, end = 1, branch.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(body[end], 0)
                end += 1
            body = body[: branch.start()] + body[end:]
    return body


def _asm(inside: str) -> tuple[list[str], tuple[Bound, ...]]:
    """The text of an assembly statement, and its operands."""
    inside = _COMMENT.sub(lambda match: match[1] or "", inside)
    end = _first_colon(inside)
    operands = []
    for opening in _OPERAND.finditer(inside, end):
        operands.append(Bound(opening[1], _enclosed(inside, opening.end())))
    return [match[1] for match in _STRING.finditer(inside[:end])], tuple(operands)


def _first_colon(inside: str) -> int:
    """The place where the text ends and the operands begin."""
    return next((match.start() for match in re.finditer(r'"(?:\\.|[^"\\])*"|:', inside) if match[0] == ":"), len(inside))


def _enclosed(text: str, start: int) -> str:
    """The text between the parenthesis before ``start`` and the one that closes it."""
    depth = 1
    for match in re.compile(r'"(?:\\.|[^"\\])*"|[()]').finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return text[start : match.start()].strip()
    raise ValueError("an assembly statement without its closing parenthesis")


def _borrowed(body: str, bodies: dict[str, str]) -> Iterator[Statement]:
    """The instructions of the atoms whose ``fma`` a body calls: products of complex numbers are made of real ones."""
    for called in re.findall(r"\b(\w+)::fma\(", body):
        owner = next((text for name, text in bodies.items() if name.split("::")[-1] == called), "")
        yield from statements_of(owner)
