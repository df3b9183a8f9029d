"""The languages that PTX is read in: by the name of a file, or by how its text begins."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

#: The languages that are read.
LANGUAGES = ("ptx", "c++", "python", "llvm")
#: The language of a file, by the ending of its name.
SUFFIXES: Mapping[str, str] = {
    ".ptx": "ptx",
    ".ll": "llvm",
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".cu", ".cuh", ".hip", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".impl"), "c++"),
}
#: Languages that may contain PTX but are not read, by the ending of the file's name.
UNREAD: Mapping[str, str] = {".mlir": "MLIR", ".rs": "Rust"}

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LLVM = re.compile(rb"^(?:source_filename\s*=|target (?:datalayout|triple)\s*=|define\s[^\n;]*@|declare\s[^\n;]*@|; ModuleID)", re.M)
_PYTHON = re.compile(rb"^(?:from\s+[\w.]+\s+import\s|import\s+[\w.]+[^;\n]*$|(?:async\s+)?def\s+\w+\s*\([^;\n]*$)", re.M)
_PTX = re.compile(rb"^\s*\.(?:version|target|address_size|(?:visible|extern|weak)\s+\.(?:entry|func)|entry|func|reg)\b", re.M)
_CPLUSPLUS = re.compile(
    rb"\b(?:asm|__asm__|__asm)\s*(?:(?:volatile|__volatile__|__volatile|goto|inline)\s*)*\("
    rb"|^[ \t]*#[ \t]*(?:include\s*[<\"]|define\s|pragma\s|if(?:n?def)?\s)|\b__(?:global|device|host)__\b|^\s*(?:namespace|template)\b",
    re.M,
)
_INSTRUCTION = re.compile(rb"^\s*(?:@!?[%\w$]+\s+)?[a-z][a-z0-9_]*\.[\w.:]+(?:\s+[%{\[\w$][^;]*)?;", re.M)


class UnreadLanguageError(ValueError):
    """The file is in a language that is not read."""


def language_named(file: str) -> str:
    """The language of a file by its name; ``""`` where the name does not say.

    Raises:
        UnreadLanguageError: the language is known, and not read.
    """
    suffix = PurePath(file).suffix.lower()
    if suffix in UNREAD:
        raise UnreadLanguageError(f"it is {UNREAD[suffix]}, which is not supported; check the PTX that it compiles to")
    return SUFFIXES.get(suffix, "")


def language_of_text(head: bytes) -> str:
    """The language of a text by its first bytes.

    Raises:
        UnreadLanguageError: it looks like none of :data:`LANGUAGES`.
    """
    refuse_binary(head)
    for language, pattern in (("llvm", _LLVM), ("python", _PYTHON), ("ptx", _PTX), ("c++", _CPLUSPLUS), ("ptx", _INSTRUCTION)):
        if pattern.search(head):
            return language
    if not head.strip():
        return "ptx"  # nothing in any language
    raise UnreadLanguageError(f"it looks like neither PTX, C++, LLVM IR nor Python; if it is, add --language {'|'.join(LANGUAGES)}")


def refuse_binary(head: bytes) -> None:
    """Refuse what is not text by its first bytes; a string of C may end in a NUL.

    Raises:
        UnreadLanguageError: it has a NUL before its end.
    """
    if b"\0" in head.removesuffix(b"\0"):
        raise UnreadLanguageError("it is not text; PTX comes out of a binary with cuobjdump --dump-ptx")


def as_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of a file; chunks of UTF-16 with a byte order mark become UTF-8."""
    rest = iter(chunks)
    first = next(rest, b"")
    if first.startswith(_MARKS):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        yield decoder.decode(first).encode("utf-8", "replace")
        for chunk in rest:
            yield decoder.decode(chunk).encode("utf-8", "replace")
        yield decoder.decode(b"", final=True).encode("utf-8", "replace")
        return
    if first:
        yield first
    yield from rest
