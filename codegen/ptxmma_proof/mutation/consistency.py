"""Mutants against what the spec itself says a second time, in another way."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

import numpy as np

from ptxmma.catalog import layouts, requirements
from ptxmma.catalog.instructions import Catalog, operand_names
from ptxmma.catalog.variants import Variant, syntax_parts
from ptxmma.matrices.interop import Swizzle, from_cute
from ptxmma.matrices.shared_memory import SharedLayout
from ptxmma.model import Granularity, InstructionSet, Protocol, Rate, RegisterType, SharedMemory, Spec, formula, matches
from ptxmma.model.formula import FormulaError
from ptxmma_proof.mutation import printed, published, semantics

#: What stands for an offset that nothing reads.
_UNUSED = 1
#: Where elements stand in their containers: "e3m2 and e2m3 its bits 5 to 0".
_IN_CONTAINER = re.compile(r"([\w ]+?) its bits (\d+) to (\d+)")
#: A block of threads whose sides all differ.
_BLOCK = {"x": 20, "y": 6, "z": 4}
#: Over which threads a sentence speaks: "all warps of the warpgroup".
_THREADS = re.compile(r"\b(warp|warpgroup)\b")


def contradiction(catalog: Catalog) -> str:
    """The first thing that is said twice and not the same, in words."""
    return next(_contradictions(catalog), "")


def examples(catalog: Catalog) -> str:
    """The first worked example of shared memory that the layouts do not reproduce, in words."""
    return next(_examples(catalog), "")


def _contradictions(catalog: Catalog) -> Iterator[str]:
    spec = catalog.database.spec
    for instruction in spec.instructions:
        writes = any(operand.access != "read" for operand in instruction.operand_kinds.values())
        if writes and instruction.asynchronous != ("async" in instruction.name):
            yield f"{instruction.name}: its name says whether it is asynchronous"
        yield from _names(instruction)
        yield from _order(instruction)
        yield from _uniformity(instruction)
    yield from _defaults(spec)
    yield from semantics.contradictions(catalog)
    yield from _lineage(spec)
    for found in catalog.all():
        if catalog.find(found.canonical) is not found:
            yield f"{found.canonical} is also the spelling of another instruction"
        if (first := requirements.floor(found.variant)) not in found.accepted_by().values():
            yield f"{found.canonical} comes with {first}, and no target accepts it then"
    for pattern in spec.granularities:
        yield from _fields(pattern)
    stypes = {str(value) for found in catalog.all() if (value := found.variant.facts.get("stype"))}
    for element in spec.types.elements:
        if element.form == "float" and element.sign == (element.name in stypes):
            yield f"{element.name}: scale factors have no sign, all other floating point has one"
    yield from _containers(spec)
    yield from _registers(spec.types.registers)
    yield from _throughput(spec)
    yield from _rates(catalog)
    yield from printed.contradictions(catalog)
    if spec.protocol is not None:
        yield from _definitions(spec.protocol)
        yield from _orderings(spec.protocol)
    if spec.shared_memory is not None:
        yield from _swizzles(spec.shared_memory)
        yield from _base_offset(spec.shared_memory)
        yield from _layouts(spec.shared_memory)
        yield from _majorness(catalog, spec.shared_memory)


def _names(instruction: InstructionSet) -> Iterator[str]:
    """Its name begins as its family's; qualifiers are named after what they are of, and what keeps its order stands side by side."""
    words = iter(instruction.name.split("."))
    if not all(word in words for word in instruction.family.split(".")):
        yield f"{instruction.name}: its name does not have the words of {instruction.family} in their order"
    for name, operand in instruction.operand_kinds.items():
        if operand.type and f"{name}type" in instruction.qualifiers and operand.type != f"{name}type":
            yield f"{instruction.name}: {name} has a type of its own, {name}type"
    places = [part for literal, name in syntax_parts(instruction.syntax) for part in (*literal.split("."), name) if part]
    types = {name for name in places if name.endswith("type")}
    for group in instruction.ordered:
        start = places.index(group[0])
        if len(group) < 2 or tuple(places[start : start + len(group)]) != group or (types & set(group) and not types <= set(group)):
            yield f"{instruction.name}: {', '.join(group)} are not neighbours in its syntax, or not all types"


def _order(instruction: InstructionSet) -> Iterator[str]:
    """The lists of an instruction have the operands that they share in one order."""
    lists = [operand_names(text) for texts in instruction.operands.values() for text in texts]
    for one, other in itertools.combinations(lists, 2):
        if [name for name in one if name in other] != [name for name in other if name in one]:
            yield f"{instruction.name}: {', '.join(one)} are in another order than {', '.join(other)}"


def _defaults(spec: Spec) -> Iterator[str]:
    """Wrappers assume the same for a constant that is left out, whichever instruction it belongs to."""
    known: dict[str, int | None] = {}
    for instruction in spec.instructions:
        for name, operand in instruction.operand_kinds.items():
            if known.setdefault(name, operand.default) != operand.default:
                yield f"{instruction.name}: the default of {name} is {operand.default}, elsewhere {known[name]}"


def _uniformity(instruction: InstructionSet) -> Iterator[str]:
    """What is uniform is so over the threads that its sentence names, and operands are as uniform as the sentence about them says."""
    if (instruction.scope == "thread") == ("sync" in re.findall(r"\w+", instruction.syntax)):
        yield f"{instruction.name}: whoever waits for others is more than a thread"
    about: dict[str, str] = {}
    for sentence in instruction.uniform:
        named = _THREADS.findall(sentence.text)
        said = max(named, key=len) if named else instruction.scope
        if sentence.over != said or (sentence.text.startswith(".aligned:") and said != instruction.scope):
            yield f"{instruction.name}: {sentence.text} That is not over a {sentence.over}"
        about |= {operand.kind: said for operand in instruction.operand_kinds.values() if f" {operand.kind} " in sentence.text}
    for name, operand in instruction.operand_kinds.items():
        if operand.kind != "selector" and operand.uniform != about.get(operand.kind, ""):  # a selector is a constant anyway
            yield f"{instruction.name}: a sentence says over which threads {name} is uniform"


def _lineage(spec: Spec) -> Iterator[str]:
    """Every target without a suffix but the last hands its features on: to a later one, or by its suffix f to a later family."""
    handed = {name for target in spec.targets for name in target.includes if _number(spec, name) < target.number}
    for target in [target for target in spec.targets if not target.suffix][:-1]:
        if not handed & {target.name, f"{target.name}f"}:
            yield f"no later target has the features of {target.name}"


def _number(spec: Spec, name: str) -> int:
    return next(target.number for target in spec.targets if target.name == name)


def _containers(spec: Spec) -> Iterator[str]:
    """Elements fill those bits of their container that a note says."""
    said: dict[str, tuple[int, int]] = {}
    for instruction in spec.instructions:
        for note in instruction.notes:
            for names, high, low in _IN_CONTAINER.findall(note.text):
                said |= {element.name: (int(high), int(low)) for element in spec.types.elements if element.name in names.split()}
    for container in spec.types.containers:
        for name in container.elements:
            low, bits = container.shift, layouts.element_type(spec, name).bits
            if name in said and said[name] != (low + bits - 1, low):
                yield f"a note says that {name} takes its bits {said[name][0]} to {said[name][1]}"


def _registers(registers: tuple[RegisterType, ...]) -> Iterator[str]:
    """A register type is as wide as its name says; a constraint is for registers of one width and sort.

    The one type without a width in its name is a truth value: wrappers pass it in a 32-bit integer.
    """
    kinds: dict[str, tuple[int, bool]] = {}
    for register in registers:
        match = published.REGISTER.fullmatch(register.name)
        width = int(match[2]) * int(match[3] or 1) if match else 1
        if register.bits != width or (match is None and register.c_type != "bool"):
            yield f"{register.name} has {width} bits{'' if match else ', in a bool'}"
        kind = (width, match[1] == "f" and not match[3]) if match else (32, False)
        if kinds.setdefault(register.constraint, kind) != kind:
            yield f"{register.name}: constraint {register.constraint!r} is for registers of other types"


def _throughput(spec: Spec) -> Iterator[str]:
    """An SM does a power of two of operations in a clock, twice as many sparse ones; published peaks are rounded, or twice such a peak."""
    known: dict[str, tuple[str, int]] = {}
    for chip in spec.throughput:
        if known.setdefault(chip.chip, (chip.target, chip.sms)) != (chip.target, chip.sms):
            yield f"{chip.chip} has another target or other SMs elsewhere"
        published = [peak for rate in chip.rates for peak in rate.published]
        doubled = {2 * float(peak) for peak in published}
        for rate in chip.rates:
            if rate.dense & (rate.dense - 1) or (rate.sparse and rate.sparse != 2 * rate.dense):
                yield f"{chip.chip}: {rate.dense} and {rate.sparse} operations in a clock"
            for operations, peak in zip((rate.dense, rate.sparse), rate.published, strict=False):
                digits = len(peak.partition(".")[2])
                if f"{operations * chip.sms * chip.clock / 1e6:.{digits}f}" != peak and float(peak) not in doubled:
                    yield f"{chip.chip}: {operations} operations x {chip.sms} SMs x {chip.clock} MHz are not {peak}"


#: Fewer chips do not tell what one lacks.
_FEW_CHIPS = 2


def _rates(catalog: Catalog) -> Iterator[str]:
    """An architecture multiplies the same matrices at one rate; no chip lacks a peak that all others, its neighbours or later ones have."""
    spec = catalog.database.spec
    chips: dict[str, list[Rate]] = {}
    for chip in spec.throughput:
        chips.setdefault(chip.target, []).extend(chip.rates)
    numbers = {target.name: target.number for target in spec.targets}
    everything = {layouts.key(found.variant): found for found in catalog.all()} if chips else {}
    for found in everything.values():
        facts, running = found.variant.facts, {numbers[name] for name in found.accepted_by()}
        fitting = {name: {rate.dense for rate in rates if matches(rate.of, facts)} for name, rates in chips.items()}
        for name, dense in fitting.items():
            if len(dense) > 1:
                yield f"{name} multiplies {facts.get('atype')} at {' and at '.join(map(str, dense))} operations in a clock"
        has = [bool(fitting[name]) for name in sorted(fitting, key=numbers.__getitem__) if numbers[name] in running]
        # Chips for graphics have no peak for f64, of which they do little, and later ones none for what has become slow there.
        around = zip(has, has[1:], has[2:], strict=False)
        if (any(has) and not has[0]) or (True, False, True) in around or (len(has) > _FEW_CHIPS and has.count(False) == 1):
            lacking = ", ".join(name for name in fitting if not fitting[name])
            yield f"{found.canonical}: other chips that have it have a peak for it, but not {lacking}"
    for one, other in sorted({pair for rates in chips.values() for rate in rates for pair in itertools.combinations(_factor(rate), 2)}):
        for name, rates in chips.items():
            lists = [_factor(rate) for rate in rates]
            if any(one in each or other in each for each in lists) and not any(one in each and other in each for each in lists):
                yield f"{name} has a peak for only one of {one} and {other}, others for both together"


def _factor(rate: Rate) -> tuple[str, ...]:
    """The types of A that have a rate."""
    return tuple(str(value) for case in rate.of for value in case.get("atype", ()))


def _definitions(protocol: Protocol) -> Iterator[str]:
    """A formula over a thread's place counts the warps of a block, one over anything else the warps of a warpgroup."""
    threads = np.arange(math.prod(_BLOCK.values()))
    sizes = {f"ntid_{axis}": np.full_like(threads, size) for axis, size in _BLOCK.items()}
    place = dict(zip(("tid_z", "tid_y", "tid_x"), np.unravel_index(threads, [*_BLOCK.values()][::-1]), strict=True))
    warp, warpgroup = layouts.THREADS["warp"], layouts.THREADS["warpgroup"]
    for definition in protocol.definitions:
        if definition.formula:
            tree = formula.parse(definition.formula.replace(".", "_"))  # names of PTX's registers have a dot
            others = formula.names(tree).keys() - sizes.keys() - place.keys()
            found = formula.evaluate(tree, sizes | place | dict.fromkeys(others, threads))
            if not np.array_equal(found, threads % (warpgroup // warp) if others else threads // warp):
                yield f"{definition.name} is not {definition.formula}"


def _orderings(protocol: Protocol) -> Iterator[str]:
    """What orders others is a step between the two, and what is about proxies has to do with one."""
    steps = [step.instruction for step in protocol.steps]
    issued = next((name for name in steps if "async" in name.split(".")[-1] and not name.endswith(".async")), "")
    if not issued:
        yield "no step of the protocol issues an asynchronous instruction"
    named = [name for name in steps if name]
    needed = {*named[: named.index(issued)], named[-1]} if issued else set()
    for name in sorted(needed - {ordering.needs for ordering in protocol.orderings}):
        yield f"{name} is a step, and nothing needs it"
    if steps and (steps[0] or steps[-1]):
        yield "the protocol neither starts nor ends with what an instruction of its own does"
    if len({access.proxy for access in protocol.proxies}) < 2:
        yield "a fence between proxies needs two of them"
    for ordering in protocol.orderings:
        if bool(ordering.needs) != bool(ordering.by):
            yield f"who executes what stands between {ordering.earlier} and {ordering.later}?"
    for ordering in protocol.orderings:
        if not ordering.needs:
            continue
        for text, early in ((ordering.earlier, False), (ordering.later, True)):
            if issued in text and (steps.index(ordering.needs) < steps.index(issued)) != early:
                yield f"{ordering.needs} is no step between {ordering.earlier} and {ordering.later}"
        if ("proxy" in ordering.needs) != ("proxy" in ordering.earlier):
            yield f"{ordering.needs} does not order {ordering.earlier}"


def _fields(pattern: Granularity) -> Iterator[str]:
    """Legal fields of several indices are all those with different ones, or all those with ascending ones."""
    if pattern.indices == 1:
        if len(pattern.legal) != pattern.units:
            yield f"{pattern.name}: one of {pattern.units} units is kept, and {len(pattern.legal)} fields are legal"
        return
    faults = pattern.faults(())
    different = {value for value in faults if faults[value] != "equal indices"}
    ascending = {value for value in different if _ascends(pattern, value)}
    legal, ordered = ({int(field, 2) for field in fields} for fields in (pattern.legal, pattern.ordered))
    if legal not in (different, ascending) or len(legal) != len(pattern.legal):
        yield f"{pattern.name}: neither all fields with different indices are legal nor all with ascending ones"
    if (legal == different) != bool(ordered) or (ordered and ordered != ascending) or len(ordered) != len(pattern.ordered):
        yield f"{pattern.name}: the ordered fields are not those with ascending indices"


def _ascends(pattern: Granularity, value: int) -> bool:
    mask = (1 << pattern.index_bits) - 1
    indices = [value >> pattern.index_bits * place & mask for place in range(pattern.indices)]
    return indices == sorted(indices)


def _swizzles(memory: SharedMemory) -> Iterator[str]:
    """CuTe's notation of a swizzle, its atoms and its formula are one permutation."""
    address = np.arange(0, 1 << 12, 16)
    tree = formula.parse(memory.swizzle_formula)
    for mode in memory.swizzles:
        ours = formula.evaluate(tree, {"address": address, "base_offset": 0, "span": mode.bytes})
        if not np.array_equal(ours, _swizzle(mode.cute)(address)):
            yield f"swizzle {mode.name}: {mode.cute} is another permutation than its formula"

    for mode in memory.swizzles:
        if mode.bytes != 16 * mode.atom_k[1] or mode.atom_mn != mode.atom_k[::-1]:
            yield f"swizzle {mode.name}: its atoms are not {mode.bytes} bytes wide"
        if not mode.tma.upper().endswith(f"_{mode.name.upper()}"):
            yield f"swizzle {mode.name}: {mode.tma} is another one"
        if mode.name.removesuffix("B").isdigit() and mode.name != f"{mode.bytes}B":
            yield f"swizzle {mode.name}: {mode.bytes} bytes"
        if mode.pattern not in (mode.bytes, 8 * mode.bytes) or (mode.pattern == mode.bytes) != np.array_equal(
            _swizzle(mode.cute)(address), address
        ):
            yield f"swizzle {mode.name}: its pattern is not {mode.pattern} bytes long"
    if memory.banks.count * memory.banks.bytes != max(mode.bytes for mode in memory.swizzles):
        yield "the widest swizzle is not as wide as the banks"


def _base_offset(memory: SharedMemory) -> Iterator[str]:
    """With its base offset, a pattern that starts anywhere lies from there on as one that starts at 0."""
    swizzle, base = formula.parse(memory.swizzle_formula), formula.parse(memory.base_offset)
    offset = np.arange(0, 1 << 12, 16)
    for mode in memory.swizzles:
        if mode.bytes == min(other.bytes for other in memory.swizzles):
            continue  # nothing is permuted
        wanted = formula.evaluate(swizzle, {"address": offset, "base_offset": 0, "span": mode.bytes})
        for start in range(0, 1 << 12, 128):
            found = formula.evaluate(base, {"start": start, "pattern": mode.pattern})
            moved = formula.evaluate(swizzle, {"address": offset + start, "base_offset": found, "span": mode.bytes})
            if not np.array_equal(moved, np.asarray(wanted) + start) or (start % mode.pattern == 0 and found):
                yield f"base offset {found} does not fit the {mode.name} swizzle of a pattern that starts at {start}"


def _layouts(memory: SharedMemory) -> Iterator[str]:
    """A layout says whether its offset reads the leading dimension byte offset; there is one for each majorness and swizzle."""
    for layout in memory.layouts:
        if layout.uses_lbo != ("lbo" in formula.names(formula.parse(layout.offset))):
            yield f"{layout.majorness}-major, {', '.join(layout.swizzles)}: uses_lbo does not say what its offset does"
    if any(memory.alignment != 1 << field.shift if field.unit else field.shift for field in memory.descriptor):
        yield f"the fields of a descriptor do not hold multiples of {memory.alignment} bytes"
    described = [(layout.majorness, name) for layout in memory.layouts for name in layout.swizzles]
    wanted = [(entry.majorness, mode.name) for entry in memory.majorness for mode in memory.swizzles]
    if sorted(described) != sorted(wanted):
        yield "not every majorness has one layout for each swizzle"


def _majorness(catalog: Catalog, memory: SharedMemory) -> Iterator[str]:
    """What an instruction can transpose, it can read with each majorness, and the rest with the first alone."""
    first, *others = memory.majorness
    for name, variant in {
        str(found.variant.facts.get("atype")): found.variant for found in catalog.all() if _reads_memory(found.variant)
    }.items():
        texts = variant.instruction.operands.get(variant.form.operands, ())
        transposable = any("-trans-" in text for text in texts)
        if not matches(first.of, variant.facts) or any(matches(other.of, variant.facts) != transposable for other in others):
            yield f"{name}: its operands say with which majorness it can be read"


def _reads_memory(variant: Variant) -> bool:
    kinds = variant.instruction.operand_kinds
    return any(entry.kind == "descriptor" for entry in kinds.values())


def _examples(catalog: Catalog) -> Iterator[str]:
    memory = catalog.database.spec.shared_memory
    if memory is None:
        return
    figures = [int(match[0]) for example in memory.examples if (match := re.search(r"\d+", example.name))]
    if figures != list(range(figures[0], figures[0] + len(figures)) if figures else ()):
        yield "the figures of the examples are not numbered one after the other"
    for example in memory.examples:
        element = layouts.element_type(catalog.database.spec, example.type)
        mode = next(entry for entry in memory.swizzles if entry.name == example.swizzle)
        sizes, strides = (
            [list(map(int, digits.split(","))) for digits in re.findall(r"\(([\d,]+)\)", half)] for half in example.cute.split(":")
        )
        along_x, along_k = (
            [sum(a * b for a, b in zip(digits[::-1], stride, strict=True)) for digits in itertools.product(*map(range, size[::-1]))]
            for size, stride in zip(sizes, strides, strict=True)
        )
        if not example.lbo:  # the figure gives several elements one address beyond the span
            along_k = along_k[: mode.bytes * 8 // element.bits]
        given = {"sbo": example.sbo * element.bits // 8} | ({"lbo": example.lbo * element.bits // 8} if example.lbo else {})
        canonical = next(entry for entry in memory.layouts if entry.majorness == example.majorness and example.swizzle in entry.swizzles)
        units = 128 // element.bits
        values = {"m": example.m, "k": example.k, "T": units, "span": mode.bytes, "LBO": example.lbo, "SBO": example.sbo}
        if _filled(canonical.cute, values) != example.cute:
            yield f"{example.name}: {canonical.cute} gives {_filled(canonical.cute, values)}"
        extent = len(along_x), len(along_k)
        try:
            layout = SharedLayout(element, example.majorness, example.swizzle, *extent, database=catalog.database, **given)
        except FormulaError:  # nothing about the example
            raise
        except ValueError as error:
            yield f"{example.name}: {error}"
            continue
        linear = (np.array(along_x)[:, np.newaxis] + np.array(along_k)) * element.bits // 8
        expected = _swizzle(mode.cute)(linear)
        if not np.array_equal(layout.address(np.arange(layout.x)[:, np.newaxis], np.arange(layout.k)), expected):
            yield f"{example.name}: the layout is another one"
        field = {entry.name: entry for entry in memory.descriptor}
        for name, bytes_, encoding in (("leading", example.lbo, example.lbo_encoding), ("stride", example.sbo, example.sbo_encoding)):
            wanted = (bytes_ * element.bits // 8 >> field[f"{name}_byte_offset"].shift) or _UNUSED
            if encoding != wanted:
                yield f"{example.name}: its {name} dimension byte offset is encoded as {wanted}"


def _swizzle(text: str) -> Swizzle:
    """CuTe's ``Swizzle<B,M,S>``."""
    return from_cute(f"{text} o 0 o 1:1").swizzle or Swizzle(0, 0, 0)


def _filled(template: str, values: dict[str, int]) -> str:
    """A layout text with numbers for its letters: in ``span/16 T`` the factors stand side by side."""

    def number(match: re.Match[str]) -> str:
        total = 1
        for part in match[0].split():
            over, _, below = part.partition("/")
            factors = [values[token] if token in values else int(token) for token in re.findall(r"\d+|[A-Za-z]+", over)]
            total, rest = divmod(math.prod([total, *factors]), int(below or 1))
            if rest:
                raise ArithmeticError(f"{part} is no whole number with {values}")
        return str(total)

    return re.sub(r"[\w/]+(?: [\w/]+)*", number, template)
