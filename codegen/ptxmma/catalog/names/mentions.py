"""The instructions that a text names: by a spelling in PTX or inline asm, a function or type of the C++ headers, or an atom of CuTe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ptxmma.catalog import evidence
from ptxmma.catalog.instructions import Catalog, Instruction
from ptxmma.catalog.names.cplusplus import front_name, identifier
from ptxmma.catalog.names.product_family import product_of_type

#: A string that goes on after its quotes, and escapes at its ends.
_CONTINUED = re.compile(r'\\[nrt]|"\s*"')
#: A machine instruction with at least one modifier, or a matrix instruction without.
_MACHINE = re.compile(r"[A-Z]+MMA|[A-Z]+(?:\.[A-Z0-9x]+)+")
_SPELLING = re.compile(r"(?<![\w.])[a-z_]\w*(?:::\w+)?(?:\.[\w:]+)+")
_WORD = re.compile(r"\w+")
_FRONT = re.compile(r"\b(\w+)\s*<\s*(?:ptxmma::)?shape\s*<([\d,\s]+)>\s*,?([\w\s:,]*)>")
#: So many atoms are offered where none has a name.
_NEAREST = 4
#: Namespaces of CuTe, which users write or leave out, and majornesses, which are not part of a name.
_NAMESPACES = {"cute", "gmma", "mma", "blockscaled", "sparse", "major", "k", "mn"}


def spelling_in(catalog: Catalog, text: str) -> str:
    """The spelling of an instruction in a line of PTX or an asm string: the first that is one, or that begins like one.

    A text of a single word, or without spellings, is a spelling itself.

    >>> from ptxmma.catalog.instructions import catalog
    >>> spelling_in(catalog(), "@p mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd1, %fd2};")
    'mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64'
    """
    joined = _CONTINUED.sub(lambda match: "" if match[0][0] == '"' else " ", text).strip().rstrip(";").rstrip()
    spellings: list[str] = [word.rstrip(".:") for word in _SPELLING.findall(joined)] if re.search(r"\s", joined) else []
    opcodes = {entry.syntax.split(".")[0] for entry in catalog.database.spec.instructions}
    likely = [spelling for spelling in spellings if spelling.split(".")[0] in opcodes]
    meant = [spelling for spelling in likely if catalog.meaning(spelling)]
    return next(iter([*meant, *likely, *spellings, joined]))


def named(catalog: Catalog, text: str) -> list[Instruction]:
    """The instructions that a text names; several where an atom or a type leaves something open, empty where it names none.

    Raises:
        IllegalProductError: a type names a product that its opcode does not have.
    """
    instruction = catalog.meaning(spelling_in(catalog, text)) or product_of_type(catalog, text)
    if instruction is not None:
        return [instruction]
    for way in (_by_front, _by_identifier, _by_atom, _beginning_machine_code):
        if instructions := list(way(catalog, text)):
            return instructions
    return []


def _by_identifier(catalog: Catalog, text: str) -> Iterator[Instruction]:
    """The instructions that the name of a function means: ``ptxmma::mma_m16n8k16_f32_f16_f16_f32(…)``."""
    words = set(_WORD.findall(text))
    stems = tuple(f"{entry.stem}_" for entry in catalog.database.spec.instructions)
    if any(word.startswith(stems) or f"{word}_" in stems for word in words):
        among = catalog.all(lambda entry: any(f"{word}_".startswith(f"{entry.stem}_") for word in words))
        yield from (instruction for instruction in among if instruction.identifier in words)


def _by_front(catalog: Catalog, text: str) -> Iterator[Instruction]:
    """The instructions of a type of the typed front: ``mma<shape<16, 8, 16>, f32, f16, f16, f32>``; its last arguments may be missing."""
    match = _FRONT.search(text)
    if match is None:
        return
    sizes = tuple(int(size) for size in _WORD.findall(match[2]))
    tags = tuple(word for word in _WORD.findall(match[3]) if word != "ptxmma")
    open_ended: list[Instruction] = []
    for instruction in catalog.all(lambda entry: match[1].startswith(entry.stem)):
        if instruction.shape is None or tuple(instruction.shape_sizes.values()) != sizes:
            continue
        name, arguments = front_name(instruction.variant)
        if name != match[1] or arguments[: len(tags)] != tuple(map(identifier, tags)):
            continue
        if len(arguments) == len(tags):
            yield instruction
            return
        open_ended.append(instruction)
    yield from open_ended


def _by_atom(catalog: Catalog, text: str) -> Iterator[Instruction]:
    """The instructions that an atom's name means: ``SM80_16x8x16_F32F16F16F32_TN``, with or without namespaces, or a part of it.

    Arguments of a template that no atom has are left out: ``SM100_MMA_F16BF16_SS<bfloat16_t, …>``.
    """
    begins = re.search(r"(?<![A-Za-z0-9_])SM\d+_", text, re.IGNORECASE)  # in MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>
    text = text[begins.start() :] if begins else text
    name = re.split(r"[<>,;{(]", text)[0].strip()
    for tokens in (_tokens(text), _tokens(name)):
        named = any(re.fullmatch(r"sm\d+", token) for token in tokens) and len(tokens) > 1
        if named and (instructions := _with_name(catalog, name) or _with_atom(catalog, tokens)):
            yield from instructions
            return


def by_intrinsic(catalog: Catalog, text: str) -> list[Instruction]:
    """The instructions that LLVM makes of an intrinsic, with or without ``llvm.``; empty for another text."""
    name = text if text.startswith("llvm.") else f"llvm.{text}"
    if not name.startswith("llvm.nvvm."):
        return []
    known = next((each.instructions for each in evidence.of(catalog.database).intrinsics if each.name == name), ())
    return [instruction for canonical in known if (instruction := catalog.meaning(canonical))]


def nearest_atoms(catalog: Catalog, text: str) -> dict[str, str]:
    """The atoms of CuTe with most parts of a name that looks like one, each with its instruction, the nearest first."""
    name = text.partition("<")[0].strip().rpartition("::")[2]
    if not re.match(r"sm\d+_", name, re.IGNORECASE):
        return {}
    import difflib  # only when there is something to explain

    rows = evidence.of(catalog.database).instructions.items()
    atoms = {
        atom.rpartition("::")[2]: canonical
        for canonical, row in rows
        for peer in (*row.peers, *row.differing, *row.atoms)
        for atom in [peer.partition("<")[0]]
    }
    parts = _tokens(name)
    shared = {atom: len(parts & _tokens(atom)) for atom in atoms}
    near = [atom for atom, count in shared.items() if count == max(shared.values()) > 1]
    return {atom: atoms[atom] for atom in difflib.get_close_matches(name, near, _NEAREST, 0)}


def by_machine_code(catalog: Catalog, text: str) -> list[Instruction]:
    """The instructions that became one machine instruction of this name on a chip: ``HMMA.16816.F32``."""
    return _emitted(catalog, lambda code: code == text) if _MACHINE.fullmatch(text) else []


def _beginning_machine_code(catalog: Catalog, text: str) -> list[Instruction]:
    """The instructions that became one machine instruction whose name begins so."""
    return _emitted(catalog, lambda code: code.startswith(f"{text.strip()}.")) if _MACHINE.fullmatch(text.strip()) else []


def _emitted(catalog: Catalog, fits: Callable[[str], bool]) -> list[Instruction]:
    rows = evidence.of(catalog.database).instructions.items()
    emitted = [name for name, row in rows if any(code[:2] == "1 " and fits(code[2:]) for ran in row.executed for code in ran.machine)]
    return [known for canonical in emitted if (known := catalog.meaning(canonical)) is not None]


def _with_name(catalog: Catalog, name: str) -> list[Instruction]:
    """The instructions of atoms that lay nothing out and have exactly this name."""
    own = name.rpartition("::")[2]
    rows = evidence.of(catalog.database).instructions.items()
    return [known for canonical, row in rows if own in row.atoms and (known := catalog.meaning(canonical)) is not None]


def _with_atom(catalog: Catalog, tokens: set[str]) -> list[Instruction]:
    """The instructions of the atoms whose names have these parts: no others, or else others besides."""
    whole: list[Instruction] = []
    parts: list[Instruction] = []
    for canonical, row in evidence.of(catalog.database).instructions.items():
        for peer in (*row.peers, *row.differing, *row.atoms):
            theirs = _tokens(peer)
            if tokens <= theirs and (instruction := catalog.meaning(canonical)) is not None:
                (whole if tokens == theirs else parts).append(instruction)
    return list(dict.fromkeys(whole or parts))


def _tokens(text: str) -> set[str]:
    return {token.lower() for token in re.split(r"[^A-Za-z0-9]+", text)} - _NAMESPACES - {""}
