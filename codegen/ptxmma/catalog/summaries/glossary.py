"""Names that are no instructions: a version, an element type, a descriptor or its field, a topic of the spec; each with a short answer."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ptxmma.arguments import one_of
from ptxmma.catalog import requirements
from ptxmma.catalog.descriptors.bits import bits_of
from ptxmma.catalog.instructions import Catalog, Instruction, words
from ptxmma.catalog.instructions.meanings import meanings, single, words_of
from ptxmma.catalog.instructions.user_names import BETWEEN, is_target
from ptxmma.catalog.summaries import listing
from ptxmma.catalog.summaries.listing import least_targets
from ptxmma.catalog.variants import fixed_tokens
from ptxmma.model import DescriptorField, DescriptorFormat, ElementType, IsaVersion, Spec, Version

_PARTS = re.compile(r"[\w:]+")
_VERSION = re.compile(
    r"(?P<latest>(?:latest|newest|current) )?(?P<of>ptx|cuda)(?: ?isa)?(?: ?version)? ?(?(latest)|(?P<number>\d+(?:\.\d+)?))"
)
#: Words of a question that say nothing of a descriptor.
_IDLE = {"of", "the", "a", "for", "in", "field", "fields", "dimension"}


class Explanation(NamedTuple):
    """The short answer about a name.

    Attributes:
        name: the name as the spec has it.
        text: a sentence.
        facts: further lines, by title.
        commands: commands that say more.
    """

    name: str
    text: str
    facts: dict[str, list[str]]
    commands: Sequence[str]


@functools.lru_cache(maxsize=4)  # a question without a verb is explained for its verb, and then by it
def explanation(catalog: Catalog, text: str) -> Explanation | None:
    """The explanation of a name; None for another text.

    Raises:
        ValueError: a version that the spec does not have.
    """
    plain = " ".join(text.lower().split())
    ways: tuple[Callable[[Catalog, str], Explanation | None], ...] = (
        _topic, _version, _type, _format, _descriptor, _field, _operand, _comparison,
    )  # fmt: skip
    return next((found for way in ways if (found := way(catalog, plain))), None)


def _comparison(catalog: Catalog, plain: str) -> Explanation | None:
    """Two names with a word between them that compares them: ``e4m3 vs e5m2``, ``mma.sync vs wgmma``."""
    parts = BETWEEN.split(plain)
    if len(parts) != 2 or not all(parts):
        return None
    every = [_family(catalog, part) or explanation(catalog, part) for part in parts]
    found = [each for each in every if each]
    if len(found) < len(parts):
        return None
    titles = Counter(title for each in found for title in each.facts)
    facts = {title if titles[title] == 1 else f"{title} of {each.name}": lines for each in found for title, lines in each.facts.items()}
    commands = dict.fromkeys(command for each in found for command in each.commands)
    return Explanation(plain, " ".join(f"{each.text.rstrip('.')}." for each in found), facts, [*commands])


def _family(catalog: Catalog, plain: str) -> Explanation | None:
    """A family or an opcode, by a word for it or with modifiers that all of it has: ``tma``, ``mma.sync``."""
    spec = catalog.database.spec
    opcodes = [".".join(words) for words in meanings(spec, words_of(plain))]
    for entry in spec.instructions:
        usual = {*fixed_tokens(entry.syntax)}
        for name in (entry.family, entry.name):
            if any(f"{each}.".startswith(f"{name}.") and {*each.split(".")} - {*name.split(".")} <= usual for each in opcodes):
                answer = listing.summary(catalog, name)
                rows = [f"{title}: {text}" for title, text in listing.facts(answer)]
                rows += _by_targets(spec, ((type_, each) for each in listing.members_of(catalog, name) for type_ in _types(each) or [name]))
                return Explanation(name, f"{name}: {answer['titles'][0]}", {name: rows}, [f"ptxmma show {name}"])
    return None


def _types(instruction: Instruction) -> list[str]:
    """The element types of an instruction's matrices, or the ones that it spells."""
    return sorted(words.types(instruction, *words.MATRICES) - {""}) or [*listing.spelled_types(instruction)]


def _format(catalog: Catalog, plain: str) -> Explanation | None:
    """A format whose blocks have a scale factor: ``nvfp4``, ``mxfp8``."""
    spec = catalog.database.spec
    names = next((entry.names for entry in spec.words if plain in entry.names), (plain,))
    every = [each for each in spec.block_formats if each.name in names or each.name.partition("_")[0] in names]
    if not every:
        return None
    blocks = [f"{each.block} elements {each.element} along K share a scale factor {each.scale}" for each in every]
    matches = (match.instruction for match in words.matching(catalog, plain))
    having = _by_targets(spec, ((each.family, each) for each in matches if each.documented))
    return Explanation(
        plain, f"{plain}: {'; '.join(blocks)}", {"instructions": having}, [f"ptxmma list --type {plain}", f"ptxmma show {plain}"]
    )


def _topic(catalog: Catalog, plain: str) -> Explanation | None:
    """A topic of the spec: ``cute::Copy_Atom``, ``tensor memory of B200``; its words in any order, namespaces and targets left out."""
    parts = plain.replace("_", " ").replace("-", " ").split("::")
    names = {frozenset(" ".join(parts[first:]).split()) for first in range(len(parts))}
    spec = catalog.database.spec
    names |= {frozenset(word for word in name if not is_target(spec, word)) for name in names}
    every = [(topic, {frozenset(name.split()) for name in topic.names}) for topic in spec.topics]
    exact = (topic for topic, own in every if names & own)
    about = (
        topic for topic, own in every if any(name <= frozenset[str]().union(*own) and any(each <= name for each in own) for name in names)
    )
    topic = next(exact, next(about, None))
    if topic is None:
        return None
    rules = _space(catalog, topic.names[0]) or _tensor_maps(spec, topic.names[0])
    return Explanation(topic.names[0], topic.text, rules, topic.commands)


def _tensor_maps(spec: Spec, title: str) -> dict[str, list[str]]:
    """The rules of tensor maps of every mode, if that is the title; empty for another."""
    maps = spec.tensor_maps
    if maps is None or title != "tensor map":
        return {}
    texts = [rule.text for rule in maps.rules if not (rule.modes or rule.when or "{" in rule.text)]
    return {"rules": [f"a box has at most {maps.limits.largest_box} elements along each dimension", *texts]}


def _space(catalog: Catalog, title: str) -> dict[str, list[str]]:
    """The sizes and the rules of the space with a title: ``column: 576 on sm_107f; 512 on sm_100f, sm_101f``; empty where there is none."""
    space = next((each for each in catalog.database.spec.spaces if each.title == title), None)
    if space is None:
        return {}
    sizes = {
        name: "; ".join(f"{each.size}" + (f" on {', '.join(each.targets)}" if each.targets else "") for each in every)
        for name, every in space.coordinates.items()
    }
    return {"sizes": [f"{name}: {text}" for name, text in sizes.items() if text], "rules": [note.text for note in space.notes]}


def _version(catalog: Catalog, plain: str) -> Explanation | None:
    """A PTX ISA version, by its number or the number of the CUDA release that brought it; or the latest."""
    match = _VERSION.fullmatch(plain)
    if match is None:
        return None
    spec = catalog.database.spec
    number: Callable[[IsaVersion], str] = (lambda entry: entry.version) if match["of"] == "ptx" else (lambda entry: entry.cuda)
    asked = match["number"] or max(map(Version, map(number, spec.isa_versions)))
    asked = asked if "." in asked else f"{asked}.0"
    one_of(f"{match['of'].upper()} version", asked, map(number, spec.isa_versions))
    entry = next(entry for entry in spec.isa_versions if number(entry) == asked)
    version = Version(entry.version)
    accepted = ((each.family, requirements.accepted_by(spec, each.variant)) for each in catalog.all())
    first = Counter(family for family, targets in accepted if min(targets.values(), default=None) == version)
    facts = {
        "new targets": [" ".join(new)] if (new := [target.name for target in spec.targets if target.ptx == version]) else [],
        "families with new instructions": [f"{family}: {count}" for family, count in first.items()],
    }
    text = f"PTX ISA {entry.version} came with CUDA {entry.cuda}" + (f" and driver {entry.driver} for Linux" if entry.driver else "")
    text += f" ({entry.note})." if entry.note else "."
    return Explanation(f"PTX ISA {entry.version}", text, facts, [f"ptxmma list --ptx {entry.version}"])


def _type(catalog: Catalog, plain: str) -> Explanation | None:
    """An element type, or several of one width, by a name in PTX or elsewhere: ``e4m3``, ``fp8``, ``CUDA_R_8F_E4M3``."""
    spec = catalog.database.spec
    meant = single(spec, plain)
    named = [entry for entry in spec.types.elements if entry.name in meant or (entry.tma or "").lower() == plain]
    if not named or len(named) < len(meant):
        return None
    facts = {f"numbers of {entry.name}": [_numbers(entry)] for entry in named if entry.form == "float"}
    families = {entry.name: _families(catalog, entry.name) for entry in named}
    facts |= {f"operands of {name} have": own for name, own in families.items() if own}
    return Explanation(
        named[0].name if len(named) == 1 else plain,
        "; ".join(map(_described, named)),
        facts,
        [f"ptxmma list --type {entry.name}" for entry in named],
    )


def _families(catalog: Catalog, element: str) -> list[str]:
    """The families with operands of a type, each after the targets that it needs: ``"sm_89+: mma mma.sp"``."""
    spec = catalog.database.spec
    every = catalog.all(lambda entry: element in words.entry_vocabulary(spec, entry))
    having = (each for each in every if element in {*each.qualifiers.values(), *words.types(each, *words.MATRICES)})
    return _by_targets(spec, ((each.family, each) for each in having))


def _by_targets(spec: Spec, instructions: Iterable[tuple[str, Instruction]]) -> list[str]:
    """The names of groups of instructions, each after the targets that the group needs."""
    accepted = dict[str, set[str]]()
    for name, each in instructions:
        accepted.setdefault(name, set()).update(each.accepted_by())
    targets: dict[str, list[str]] = {}
    for name, names in accepted.items():
        targets.setdefault(" ".join(least_targets(spec, names)), []).append(name)
    return [f"{needed}: {' '.join(group)}" for needed, group in targets.items()]


def _numbers(entry: ElementType) -> str:
    """The parts of a floating-point number, and the range of the type."""
    parts = f"{'' if entry.sign else 'no '}sign, {entry.exponent} bits of exponent with bias {entry.bias}, {entry.mantissa} of mantissa"
    ends = " and ".join(name for name, has in (("infinity", entry.infinity), ("NaN", entry.nan)) if has)
    return f"{parts}; normal from {entry.smallest_normal:g} to {entry.largest:.8g}; {ends or 'neither infinity nor NaN'}"


def _described(entry: ElementType) -> str:
    """An element type in short, with its names in C++, NumPy and the driver."""
    elsewhere = ", ".join(filter(None, (entry.c_type, entry.numpy, entry.tma)))
    return f"{entry.name}: {entry.title}, {entry.bits} bits" + (f" ({elsewhere})" if elsewhere else "")


def _descriptor(catalog: Catalog, plain: str) -> Explanation | None:
    """A descriptor, by words of its title: ``wgmma descriptor``; several are listed."""
    asked = {*_PARTS.findall(plain)} - _IDLE | {"descriptor"}
    titles = [(each, {*_PARTS.findall(each.title.lower())} - _IDLE) for each in catalog.database.spec.descriptors]
    every = [each for each, title in titles if asked == title]
    if not every and "descriptor" in plain:
        every = [each for each, title in titles if asked <= {*title, each.family, *each.kinds, *each.short_kinds}]
    if not every:
        return None
    lines = {each.title: [f"{bits_of(field)}  {field.name}  {field.title}" for field in each.fields] for each in every}
    text = every[0].title if len(every) == 1 else f"{len(every)} descriptors: {'; '.join(each.title for each in every)}"
    return Explanation(plain, text, lines, list(dict.fromkeys(map(_command, every))))


def _field(catalog: Catalog, plain: str) -> Explanation | None:
    """A field of descriptors, by its name, its title or the letters in parentheses: ``leading byte offset``, ``LBO of wgmma``."""
    spec = catalog.database.spec
    families = {part for each in spec.descriptors for part in (each.family, *each.family.split("."))}
    asked = plain.replace("_", " ").split()
    name = " ".join(word for word in asked if word not in families | _IDLE | {"descriptor"} and not word.isdigit())
    found = [(each, field) for each in spec.descriptors for field in each.fields if name in _names(field)]
    found = [(each, field) for each, field in found if families.isdisjoint(asked) or each.family in asked]
    if not found:
        return None
    lines = [
        f"{each.title}, bits {bits_of(field)}" + (f", in units of {1 << field.shift} {field.unit}" if field.shift else "") + _values(field)
        for each, field in found
    ]
    return Explanation(
        found[0][1].name, found[0][1].title, {"descriptors": lines}, list(dict.fromkeys(_command(each) for each, _ in found))
    )


def _values(field: DescriptorField) -> str:
    """The values of a field by their names: ``": none 0, 128B 1"``; empty for numbers."""
    values = {name: number for case in field.cases for name, number in case.values.items()}
    return f": {', '.join(f'{name} {number}' for name, number in values.items())}" if values else ""


def _operand(catalog: Catalog, plain: str) -> Explanation | None:
    """An operand by its name, also with an instruction or a family: ``scale-d``, ``tcgen05.mma enable-input-d``."""
    *of, name = plain.rsplit(" ", 1)
    entries = [each for each in catalog.database.spec.instructions if not of or f"{each.name}.".startswith(f"{of[0]}.")]
    kinds = ((each.name, operand, kind.title) for each in entries for operand, kind in each.operand_kinds.items())
    found = [each for each in kinds if each[1].lower() == name]
    if not found or len(name) == 1:  # a letter is an operand of too many
        return None
    titles = dict.fromkeys(title for _, _, title in found)
    limits = {opcode: listing.limits(listing.members_of(catalog, opcode)).get(operand, "") for opcode, operand, _ in found}
    lines = [": ".join(filter(None, (opcode, title * (len(titles) > 1), limits[opcode]))) for opcode, _, title in found]
    return Explanation(found[0][1], "; ".join(titles), {"operand of": lines}, [f"ptxmma show {found[0][0]}"])


def _names(field: DescriptorField) -> Iterator[str]:
    """The names of a field, in small letters."""
    title = re.split(r"[;:]", field.title.lower())[0]
    yield field.name.replace("_", " ")
    yield re.sub(r" \(.*\)", "", title)
    yield from re.findall(r"\((\w+)\)", title)


def _command(descriptor: DescriptorFormat) -> str:
    """The command that reads a descriptor."""
    verbs = {"matrix": "decode", "instruction": "instruction", "columns": "zero-column-mask", "sparsity": "sparsity"}
    return f"ptxmma descriptor {verbs[descriptor.describes]} --help"
