"""A conversion between fragments as a CUDA function."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmma.catalog.conversion.exchanges import Arrange, Shuffle, Step, expression, word_size
from ptxmma.catalog.conversion.sides import Side

#: The bytes that ``__byte_perm`` gives.
_PERMUTED = 4
_BYTE = 8
_FULL_WARP = "0xffffffffu"


def function(header: Sequence[str], names: tuple[str, str], source: Side, target: Side, steps: Sequence[Step]) -> str:
    """Return the function that executes the steps; see :meth:`ptxmma.Conversion.to_cuda`.

    Args:
        header: the lines of the comment before it.
        names: the names of its parameters, the array of the source and the array of the target.
        source: the side that the registers come from.
        target: the side that they become.
        steps: its steps.
    """
    old, new = names
    packs = source.bits != target.bits
    per, word = 1 << source.inside, word_size(steps, 1 << source.inside)
    count = (1 << source.numbers) // (1 if packs else per)
    last, shuffles = steps[-1], [step for step in steps if isinstance(step, Shuffle)]
    registers = len(last.registers) if isinstance(last, Arrange) else len(shuffles)
    kinds = ["class Register", *(["class Element", "class Pack"] if packs else [])]
    parameters = [f"Register (&{new})[{registers}]", f"const {'Element' if packs else 'Register'} (&{old})[{count}]"]
    parameters += ["Pack pack"] if packs else []
    parameters += ["uint32_t lane"] if shuffles else []
    lines = [f"// {line}" for line in header]
    if packs:
        listed = ", ".join(f"{old}[{each}]" for each in range(word))
        lines.append(f"// pack({listed}) makes a register of elements of {target.bits} bits, the first in the lowest bits.")
    lines += [f"template <{', '.join(kinds)}>", f"__device__ __forceinline__ void convert({', '.join(parameters)}) {{"]
    words = [f"{old}[{number}]" for number in range(count)]
    for number, step in enumerate(steps):
        if isinstance(step, Arrange):
            final = number == len(steps) - 1
            size = word if number else per
            made = [
                f"pack({', '.join(words[each] for each in elements)})"
                if packs and not number
                else _joined(elements, size, words, target.bits)
                for elements in step.registers
            ]
            lines += [f"  {new}[{each}] = {text};" if final else f"  const Register w{each} = {text};" for each, text in enumerate(made)]
            words = [f"w{each}" for each in range(len(made))]
        elif not isinstance(steps[number - 1], Shuffle) or not number:
            lines += [f"  const Register t{turn} = {_sent(each, words)};" for turn, each in enumerate(shuffles)]
            landed = [_taken(shuffles, word) for word in range(len(shuffles))]
            final = not isinstance(last, Arrange)
            lines += [f"  {new}[{each}] = {text};" if final else f"  const Register v{each} = {text};" for each, text in enumerate(landed)]
            words = [f"v{each}" for each in range(len(landed))]
    return "\n".join([*lines, "}"])


def _sent(step: Shuffle, words: Sequence[str]) -> str:
    """The register that a thread has after a round."""
    word = _chosen([words[number] for number in step.sends])
    if step.mask == 0:
        return word
    if step.mask is not None:
        return f"__shfl_xor_sync({_FULL_WARP}, {word}, {step.mask})"
    return f"__shfl_sync({_FULL_WARP}, {word}, static_cast<int>({expression(step.lanes)}))"


def _taken(shuffles: Sequence[Shuffle], word: int) -> str:
    """The round of which a register is, by the lane."""
    lanes = range(len(shuffles[0].takes))
    return _chosen([next(f"t{turn}" for turn, step in enumerate(shuffles) if step.takes[lane] == word) for lane in lanes])


def _chosen(each: Sequence[str]) -> str:
    """A choice by the lane, as few selections deep as possible: ``lane & 1 ? w1 : w0``."""
    if len(set(each)) == 1:
        return each[0]
    bit = 1
    while all(each[lane] == each[lane ^ bit] for lane in range(len(each))):
        bit *= 2
    low, high = ([each[lane & ~bit | half] for lane in range(len(each))] for half in (0, bit))
    return f"(lane & {bit} ? {_chosen(high)} : {_chosen(low)})"


def _joined(elements: Sequence[int], size: int, words: Sequence[str], bits: int) -> str:
    """A register of elements that other registers have, ``size`` each; of whole bytes by ``__byte_perm``."""
    places = [divmod(each, size) for each in elements]
    used = list(dict.fromkeys(word for word, _ in places))
    if len(used) == 1 and [part for _, part in places] == list(range(len(places))):
        return words[used[0]]
    if bits % _BYTE:
        mask = (1 << bits) - 1
        parts = [f"({words[word]} >> {part * bits} & {mask}u) << {place * bits}" for place, (word, part) in enumerate(places)]
        return " | ".join(parts)
    wide = bits // _BYTE
    sources = [(word, part * wide + byte) for word, part in places for byte in range(wide)]
    sources += sources[:1] * (_PERMUTED - len(sources))
    if len(used) <= 2:
        return _permuted(sources, words)
    half = len(sources) // 2
    return f"__byte_perm({_permuted(sources[:half], words)}, {_permuted(sources[half:], words)}, 0x5410)"


def _permuted(sources: Sequence[tuple[int, int]], words: Sequence[str]) -> str:
    """The bytes of at most two registers in one."""
    used = list(dict.fromkeys(word for word, _ in sources))
    selector = sum((4 * used.index(word) + byte) << 4 * place for place, (word, byte) in enumerate(sources))
    return f"__byte_perm({words[used[0]]}, {words[used[-1]]}, {selector:#06x})"
