"""The names that people give targets, element types, swizzles and operands: products, groups of types, letters of CUTLASS."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

from ptxmma.arguments import one_of, shortened
from ptxmma.catalog.instructions.meanings import single
from ptxmma.model import Part, Spec

#: ``sm_90a``, ``compute_90a``, ``90a``, ``9.0a``.
_NUMBER = re.compile(r"(?:sm_?|compute_?)?(\d{1,3})\.?(\d)([af]?)")
#: The words around the name of a chip that do not say which it is: ``NVIDIA A100-SXM4-80GB``.
_IDLE = re.compile(
    r"nvidia|gpu|geforce|quadro|tesla|sxm\d?|pcie|nvl|hbm\d+e?|\d+gb?|laptop|mobile|super|server|workstation|max|q|with|design|edition|generation|superchip|\d+w"
)
#: Words between two names that are compared.
BETWEEN = re.compile(r"\s*,\s*|\s+(?:vs\.?|versus|against|and|or|with|to)\s+")
#: Beginnings and ends of the names of modes in CUDA's driver and in CuTe.
_MODE = re.compile(
    r"^(?:\w+::)*(?:(?:CU_TENSOR_MAP_)?(?:SWIZZLE_|INTERLEAVE_)|SW(?=[0-9])|LAYOUT_(?:K|MN)_(?:SW)?)|_ATOM(?:_BITS)?(?:<.*>)?$"
)


def target_named(spec: Spec, given: str) -> str:
    """The target of a name: ``"sm_90a"`` for ``"H100"``, ``"hopper"`` and ``"SM_90A"``, ``"sm_90"`` for ``"90"`` and ``"compute_90"``.

    A product means the target with all of its features, a number the plain target.

    Raises:
        ValueError: an unknown name, or one of several targets; it lists the choices.
    """
    meant = _meant(spec, text := given.strip().lower())
    if len(meant) == 1:
        return next(iter(meant))
    if meant:
        choices = "; ".join(f"{target}: {', '.join(names)}" for target, names in meant.items())
        raise ValueError(f"{given!r} may be one of several targets; name one: {choices}")
    if _is_older(spec, text):
        oldest = min(entry.number for entry in spec.targets)
        raise ValueError(f"{given!r} has no tensor cores; the first target with matrix instructions is sm_{oldest}")
    import difflib  # only when there is something to explain

    targets = [entry.name for entry in spec.targets]
    known = {name.lower(): name for name in (*targets, *(name for gpu in spec.gpus for name in (*gpu.names, gpu.architecture)))}
    close = [known[name] for name in difflib.get_close_matches(text, known, 3)]
    raise ValueError(
        f"unknown target {shortened(given)!r}; " + (f"closest: {', '.join(close)}" if close else f"known: {', '.join(targets)}")
    )


def is_target(spec: Spec, text: str) -> bool:
    """Return whether a text names a target, or several, or one without tensor cores."""
    lowered = text.strip().lower()
    return bool(_meant(spec, lowered)) or _is_older(spec, lowered)


def compared_targets(spec: Spec, text: str) -> list[str]:
    """The names of two targets in a text that compares them: ``["H100", "B200"]`` for ``H100 vs B200``; empty for another text."""
    words = text.split()
    parts = words if len(words) == 2 else BETWEEN.split(text.strip())
    return parts if len(parts) == 2 and not is_target(spec, text) and all(is_target(spec, part) for part in parts) else []


def _is_older(spec: Spec, text: str) -> bool:
    """Return whether a text names a target or a GPU before the first with tensor cores."""
    number = _NUMBER.fullmatch(text)
    oldest = min(entry.number for entry in spec.targets)
    return (number is not None and int(number[1] + number[2]) < oldest) or _joined(text) in map(_joined, spec.older)


def _meant(spec: Spec, text: str) -> dict[str, list[str]]:
    """The targets that a name may mean, each with its products.

    The name is a target's or its number, a product's, an architecture's, part of a product's, or a product's as ``nvidia-smi`` prints it:
    ``"NVIDIA A100-SXM4-80GB"``; or some of these without spaces: ``"rtx4090"``, ``"H100PCIe"``.
    """
    number = _NUMBER.fullmatch(text)
    if number and (target := f"sm_{number[1]}{number[2]}{number[3]}") in {entry.name for entry in spec.targets}:
        return {target: [target]}
    words = _words(text) - {"nvidia", "gpu"}
    if not words:
        return {}
    # The name of an architecture beside a product's says nothing more.
    every = [
        (gpu, name, own, words - (_words(gpu.architecture) - own)) for gpu in spec.gpus for name in gpu.names for own in [_words(name)]
    ]
    whole = [(gpu.target, name) for gpu, name, own, said in every if own == said]
    parts = [(gpu.target, name) for gpu, name, own, said in every if said and said < own]
    longer = [(gpu.target, name) for gpu, name, own, said in every if own < said and all(map(_IDLE.fullmatch, said - own))]
    family = [(gpu.target, name) for gpu, name, *_ in every if words == _words(gpu.architecture)]
    run = "".join(word for word in re.split(r"[\s_-]+", text) if word in words)
    joined = [(gpu.target, name) for gpu, name, *_ in every if run in _runs(name)]
    begun = [(gpu.target, name) for gpu, name, *_ in every if run.startswith(_joined(name)) and _IDLE.fullmatch(run[len(_joined(name)) :])]
    return _grouped(whole or family or parts or longer or joined or begun)


@functools.lru_cache(maxsize=1 << 10)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.split(r"[\s_-]+", text.strip().lower())) - {""}


def _joined(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text.lower())


def _runs(name: str) -> set[str]:
    """Words of a name that follow each other, without the spaces: ``rtx6000`` of ``RTX 6000 Ada``."""
    words = re.split(r"[\s_-]+", name.lower())
    return {"".join(words[first:end]) for first in range(len(words)) for end in range(first + 1, len(words) + 1)}


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for target, name in pairs:
        groups.setdefault(target, []).append(name)
    return groups


def types_named(spec: Spec, name: str) -> tuple[str, ...]:
    """The element types that a name selects: one type, or the meanings of a word: both of ``fp8``.

    The end of a kind of ``tcgen05.mma``, ``ti16``, selects the types of A and B that it takes, unless it is a type.

    Raises:
        ValueError: an unknown type; the message names the closest.
    """
    elements = {entry.name: None for entry in spec.types.elements}
    if (meant := single(spec, name)) and elements.keys() >= {*meant}:
        return tuple(meant)
    kinds: dict[str, dict[str, None]] = {}
    for row in spec.tensor_products.types if spec.tensor_products else ():
        for kind in (kind for condition in row.of for kind in condition.get("kind", ())):
            kinds.setdefault(str(kind).rpartition("::")[2], {}).update(dict.fromkeys((*row.atype, *row.btype)))
    words = (each for entry in spec.words if elements.keys() >= {*entry.means} for each in entry.names)
    one_of("element type", name, [*elements, *kinds, *words])
    return tuple(kinds[name])


def is_format(spec: Spec, name: str) -> bool:
    """Return whether a name means a format whose blocks have a scale factor: ``nvfp4``."""
    means = next((entry.means for entry in spec.words if name.lower() in entry.names), ())
    return any(means) and all(meaning.startswith("kind::") for meaning in means)


def type_named(spec: Spec, name: str) -> str:
    """The element type that a name prefers: ``"f16"`` for ``"half"``, ``"e4m3"`` for ``"fp8"``; a name of none as it is."""
    means = next(iter(single(spec, name)), "")
    return means if any(each.name == means for each in spec.types.elements) else name


def types_in_ptx(spec: Spec, given: Mapping[str, str | int]) -> dict[str, str | int]:
    """Arguments of a product with their types by the names in PTX."""
    return {name: type_named(spec, value) if isinstance(value, str) else value for name, value in given.items()}


def swizzle_named(given: str | int) -> str:
    """The name of a swizzle or interleave mode as users write it: ``"128B"`` for ``128``, ``SW128`` and ``CU_TENSOR_MAP_SWIZZLE_128B``."""
    name = _MODE.sub("", str(given).upper())
    return f"{name}B" if name.isdigit() else name if name[:1].isdigit() else "none" if name in ("NONE", "INTER") else str(given)


def named_part(parts: Sequence[Part], given: str) -> str:
    """The operand or the axis that a name means, in small letters: ``"scale-a"`` for ``"SFA"``; another name as it is."""
    name = " ".join(given.lower().replace("_", " ").replace(" of ", " ").split())
    return next((part.means for part in parts if name in part.names), given.lower())
