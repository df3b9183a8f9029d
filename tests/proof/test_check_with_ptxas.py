"""`ptxmma check` agrees with ptxas on lines with every kind of operand, and with the errata."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from installed_headers import cutlass

from ptxmma.catalog import evidence
from ptxmma.catalog.instructions import Catalog, Instruction, OperandForm
from ptxmma.catalog.operands import Operand
from ptxmma.catalog.roles import register, vector
from ptxmma.check import Checker, Finding, check
from ptxmma.check.legality import Legality, Quirks
from ptxmma.model import Quirk, Version
from ptxmma.ptx import lines as ptx
from ptxmma.ptx.operand_values import of_compact
from ptxmma_proof import assemblers, errata, matrix, questions
from ptxmma_proof.questions import Lines
from test_check import MMA, SOUND, SP, SPARSE, WGMMA, A, B, C, D, module
from test_check_sources import Sources


def test_the_errata_are_judged_as_assemblers_answer_them(catalog: Catalog) -> None:
    """Few are not: lists that the manual does not have, instructions that assemblers take but make no code of, or that of another one,
    spellings that are not ours, and versions that decide.
    """
    checker = Checker(follow=False)
    left = []
    for seen, _ in errata.misjudged(catalog, evidence.of(catalog.database).sightings):
        line = errata.line(seen)
        registers = dict.fromkeys(re.findall(r"%(\w+)_\d+", line))
        text = ".entry k() {" + "".join(f".reg .{bank} %{bank}_<512>; " for bank in registers) + f"{line}\n}}"
        errors = {each.rule for each in checker.check(text) if each.severity == "error"}
        if errors != {"list"} or seen.answer != errata.ACCEPTED:
            left.append(seen.asked.split(" ")[0])
    without_code = {
        "mma.sync.aligned.m8n8k4.row.col.f32.bf16.bf16.f32",
        "mma.sync.aligned.m8n8k4.row.row.f32.bf16.bf16.f32",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f64.f64.f64.f64",
        "wmma.mma.sync.aligned.col.row.m16n16k16.rn.f64.f64.f64.f64",
        "wmma.mma.sync.aligned.col.row.m16n16k8.rn.f64.f64.f64.f64",
        "wmma.mma.sync.aligned.row.col.m16n16k8.f64.f64.f64.f64",
    }
    of_one_matrix = {
        "ldmatrix.sync.aligned.m8n8.x128.b16",
        *(f"{name}.sync.aligned.m8n8.x{num}.b16" for name in ("ldmatrix", "stmatrix") for num in (8, 16, 32, 64)),
    }
    other = "membar.proxy.async"
    restricted = {
        f"tcgen05.commit.cta_group::1.mbarrier::arrive::one.{rest}"
        for space in ("shared::cta", "shared::cluster")
        for rest in (f"sync_restrict::{space}.b64", f"multicast::cluster.b64.sync_restrict::{space}")
    }
    with_input_scale = {f"tcgen05.mma{sp}.cta_group::1.kind::{kind}" for sp in ("", ".sp") for kind in ("f16", "i8", "ti16")}
    # CUDA 12.9, the last release that knows sm_101a, wants a later version of PTX; no rule of an erratum speaks of versions.
    later = {f"tcgen05.mma{sp}.cta_group::1.kind::mxf8f6f4.block_scale" for sp in ("", ".sp")}
    # They take .satfinite without integers up to PTX 6.4.
    earlier = {f"wmma.mma.sync.aligned.row.col.{form}.satfinite" for form in ("m32n8k16.f16.f32", "m16n16k16.f16.f16")}
    errata_of_spellings = (
        "st-async-loose-modifiers",
        "bulk-copy-scope-alone",
        "cluster-signed-types",
        "elect-any-number",
        "setmaxnreg-loose-modifiers",
        "fence-proxy-tensormap-loose",
        "mbarrier-loose-operands",
        "vector-modifier",
    )
    known = evidence.of(catalog.database)
    loose = {seen.asked.split(" ")[0] for erratum in errata_of_spellings for seen in known.of_erratum(erratum)}
    assert set(left) - loose == without_code | of_one_matrix | {other} | restricted | with_input_scale | later | earlier
    assert check(f".version 9.4\n.target sm_90a\n{other};\n").findings == ()


# --- ptxas -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ptxas() -> assemblers.Assembler:
    fetched = assemblers.fetched()
    if not fetched:
        pytest.skip("no ptxas is fetched: run `make assemblers`")
    return fetched[-1]


def refused(assembler: assemblers.Assembler, lines: list[str], target: str, scratch: Path) -> dict[str, str]:
    """The lines that an assembler refuses, each with its error.

    It checks in two rounds, the second only without errors in the first; a syntax error hides everything after it, but not what is before.
    """
    errors: dict[str, str] = {}
    left: list[str] = []
    unread = list(lines)
    while unread:
        said = _said(assembler, unread, target, scratch)
        errors |= {unread[index]: text for index, (_, text) in said.items()}
        last = next((index for index, (kind, _) in said.items() if kind == "fatal"), len(unread))
        left += [line for line in unread[:last] if line not in errors]
        unread = unread[last + 1 :]
    while left and (said := _said(assembler, left, target, scratch)):
        errors |= {left[index]: text for index, (_, text) in said.items()}
        left = [line for line in left if line not in errors]
    return errors


def _said(assembler: assemblers.Assembler, lines: list[str], target: str, scratch: Path) -> dict[int, tuple[str, str]]:
    """The errors of one run by the indices of their lines, each with its kind; "fatal" ends the run."""
    path = scratch / "module.ptx"
    command = [assembler.path, "--gpu-name", target.replace("sm_", "compute_"), "--output-file", str(scratch / "out"), str(path)]
    text = module("\n".join(lines), version=assembler.ptx, target=target)
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    first = text.splitlines().index(lines[0]) + 1
    wrong = re.findall(r"line (\d+); (error|fatal)\s*: (.*)", done.stderr + done.stdout)
    said = {int(number) - first: (kind, text) for number, kind, text in wrong if 0 <= int(number) - first < len(lines)}
    assert bool(said) == (done.returncode != 0), done.stderr + done.stdout
    return said


def disagreements(assembler: assemblers.Assembler, lines: Iterable[str], target: str, scratch: Path) -> list[str]:
    asked = list(dict.fromkeys(lines))
    said = refused(assembler, asked, target, scratch)
    assert 0 < len(said) < len(asked)
    checker = Checker(target=target, ptx=assembler.ptx, follow=False)
    ours = {line: [each for each in checker.check(module(line)) if each.severity == "error"] for line in asked}
    # Lists that the manual does not allow may be errors of the checker alone.
    differing = []
    for line in asked:
        only_lists = line not in said and {each.rule for each in ours[line]} == {"list"}
        if (line in said) != bool(ours[line]) and not only_lists:
            differing.append(line)
    return [f"{line}\n  ptxas: {said.get(line, 'accepted')}\n  check: {ours[line]}" for line in differing]


_ITEMS = [
    "%r0",
    "%u0",
    "%s0",
    "%f0",
    "%h0",
    "%p0",
    "%rd0",
    "%rs0",
    "%fd0",
    "%ud0",
    "%us0",
    "%hh0",
    "0",
    "1",
    "0x7",
    "-1",
    "0f00000000",
    "nosuch",
]
_ITEMS += [
    "0d0000000000000000",
    "_",
    "%v.x",
    "1U",
    "(1)",
    "",
    "%r40",
    "%r039",
    "%f40",
    "{%r0}",
    "%r0 %r1",
    "[%r0]",
    "!%p0",
    "-%r0",
    "1u",
    "%v2.z",
    "%laneid",
    "%tid.y",
    "%tid",
    "%clock64",
    "%is_explicit_cluster",
    "%laneid.x",
    "vb",
    "vg",
    "vu",
    "vd",
    "va",
    "vv",
    "vv.x",
]
_IMMEDIATES = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "-1",
    "0x1",
    "0X0",
    "01",
    "08",
    "0b1",
    "1U",
    "1u",
    "1.0",
    "0f3f800000",
    "(1)",
    "1-1",
    "!0",
    "~0",
    "-0",
    "WARP_SZ",
]
_IMMEDIATES += [
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "%r0",
    "%p0",
    "%rs0",
    "nosuch",
    "1<<0",
    "3>>1",
    "1?0:1",
    "{1}",
    "",
]


def _dense() -> Iterator[str]:
    yield SOUND
    for item in _ITEMS:
        yield SOUND.replace("%f0", item, 1)
        yield SOUND.replace("%f2", item, 1)
        yield SOUND.replace("%r0", item, 1)
        yield SOUND.replace("%r3", item, 1)
        yield SOUND.replace("%r4", item, 1)
        yield SOUND.replace("%f4", item, 1)
        yield SOUND.replace("%f7", item, 1)
        for other in (
            ()
            if item.startswith(("%v", "%tid.")) or item == "0d0000000000000000"
            else ("%r1", "%u1", "%s1", "%f1", "%h1", "%rd1", "1", "0f00000000", "_")
        ):
            yield SOUND.replace(B, f"{{{item},{other}}}")
            yield f"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {{%s0,%s1}}, {{%r0}}, {{%r1}}, {{{other},{item}}};"
            if item not in ("0", "1", "0x7", "-1", "1U", "(1)", "0f00000000", "0d0000000000000000"):
                yield f"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%fd0,%fd1}}, {{%fd0}}, {{%fd1}}, {{{item},{other}}};"
    for operand in (
        "%r0",
        "{%r0}",
        "{%r0,%r1}",
        "{%r0,%r1,%r2}",
        "{%r0,%r1,%r2,%r3,%r4}",
        "{}",
        "%v",
        "%vf",
        "%v2",
        "{%v}",
        "%r0,%r1",
        "{{%r0}}",
    ):
        yield SOUND.replace(A, operand)
        yield SOUND.replace(D, operand)
    for kind in ("%u", "%s", "%f", "%h", "%p", "%rd"):
        yield SOUND.replace(A, A.replace("%r", kind))
        yield SOUND.replace(D, D.replace("%f", kind))
    yield SOUND.replace(f", {C}", "")
    yield SOUND.replace(";", f", {C};")
    for predicate in (
        "@%p0 @%p1",
        "@!%p0\t@ !%p1 @%p2",
        "@%p0",
        "@!%p0",
        "@%r0",
        "@%p9",
        "@nosuch",
        "@%is_explicit_cluster",
        "@!%is_explicit_cluster",
        "@%laneid",
        "@vb",
    ):
        yield f"{predicate} {SOUND}"


def _special() -> Iterator[str]:
    """Every special register, and names like those, in lists of untyped registers, of integers and of 64 bits."""
    vectors = [f"{name}.{field}" for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid") for field in "xyzw"]
    vectors += ["cluster_ctaid.x", "cluster_nctaid.y", "tid.r", "ctaid.a"]
    plain = ["laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid", "cluster_ctarank", "cluster_nctarank", "is_explicit_cluster"]
    plain += ["clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi", "current_graph_exec"]
    plain += ["total_smem_size", "aggr_smem_size", "dynamic_smem_size"]
    numbered = [f"{name}{number}" for name in ("envreg", "reserved_smem_offset_") for number in range(34)]
    numbered += [f"pm{number}{size}" for number in range(9) for size in ("", "_64")]
    named = [f"lanemask_{name}" for name in ("eq", "le", "lt", "ge", "gt", "ne")]
    named += [f"reserved_smem_offset_{name}" for name in ("begin", "end", "cap", "size")]
    for name in (*vectors, *plain, *numbered, *named, "tid", "envreg01", "laneid.x", "warp", "LANEID"):
        yield SOUND.replace("%r4", f"%{name}")
        yield SOUND.replace(B, f"{{%{name},%u1}}")
        yield f"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%fd0,%fd1}}, {{%fd0}}, {{%fd1}}, {{%{name},%fd0}};"


def _plain() -> Iterator[str]:
    """Without the shapes that some targets replace by others, whose registers then count."""
    yield from (line for line in _dense() if MMA in line)


def _spellings() -> Iterator[str]:
    tokens = MMA.split(".")
    for place in range(1, len(tokens)):
        yield SOUND.replace(MMA, ".".join([*tokens[:place], *tokens[place + 1 :]]))
        for other in (
            tokens[place] * 2,
            f"{tokens[place]}.{tokens[place]}",
            "sycn",
            "f16",
            "bf16",
            "f32",
            "row",
            "satfinite",
            "M16N8K16",
            "m16n8k8",
        ):
            yield SOUND.replace(MMA, ".".join([*tokens[:place], other, *tokens[place + 1 :]]))
    for other in ("m16n8k32.col.row", "row.m16n8k32.col", "col.m16n8k32.row", "row.m16n8k32.f16.col"):
        yield SPARSE.replace("m16n8k32.row.col", other)
    for other in ("s32.s4.u4.s4.s32", "s32.bf16.s4.u4.s32", "s4.s32.s4.u4.s32"):
        yield f"mma.sync.aligned.m16n8k64.row.col.{other} {{%s0,%s1,%s2,%s3}}, {A}, {B}, {{%s0,%s1,%s2,%s3}};"
    yield from (
        SOUND.replace(".sync", " .sync"),
        SOUND.replace(".sync", ". sync"),
        SOUND.replace(".sync", "..sync"),
        SOUND.replace(".f32 {", ".f32. {"),
    )
    yield from (
        "wgmma;",
        "wgmma.fence;",
        "wgmma.mma_asnyc.sync.aligned;",
        "mma;",
        "mma %r0;",
        "wgmma.fence.sync.aligned 0;",
        "fence.proxy.async 0;",
    )
    yield from ("%p0 wgmma.fence.sync.aligned;", "@!!%p0 wgmma.fence.sync.aligned;", "@ wgmma.fence.sync.aligned;")
    yield from ("wgmma .fence.sync.aligned;", "wgmma.fence .sync.aligned;", "wgmma.row.fence.sync.aligned;")
    yield from ("wgmma.fence.sync;", "fence.proxy.async.shared;", "fence.proxy.async.global;", "@%p0 wgmma.fence.sync.aligned;")


def _sparse() -> Iterator[str]:
    for item in _ITEMS:
        yield SPARSE.replace(" %r0, 0;", f" {item}, 0;")
    integers = SP.replace("f32.f16.f16.f32", "s32.s8.s8.s32")
    for e in ("%r0", "%f0", "%rd0"):
        yield f"{integers} {{%s0,%s1,%s2,%s3}}, {{%r0,%r1}}, {{%r0,%r1}}, {{%s0,%s1,%s2,%s3}}, {e}, 0;"
    for value in _IMMEDIATES:
        yield SPARSE.replace(" 0;", f" {value};")
        yield f"mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {D}, {A}, {A}, {C}, %r0, {value};"


def _wgmma() -> Iterator[str]:
    for value in _IMMEDIATES:
        yield f"{WGMMA} {D}, %rd0, %rd1, {value}, 1, 1, 0, 0;"
        yield f"{WGMMA} {D}, %rd0, %rd1, %p0, {value}, 1, 0, 0;"
        yield f"{WGMMA} {D}, %rd0, %rd1, %p0, 1, 1, 0, {value};"
        yield f"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {D}, %rd0, %rd1, %r0, {value}, %p0, 1, 1, 0, 0;"
        if value not in ("4294967296", "18446744073709551616"):  # an erratum: assemblers take N of 63 bits
            yield f"wgmma.wait_group.sync.aligned {value};"
    for item in _ITEMS:
        yield f"{WGMMA} {D}, {item}, %rd1, %p0, 1, 1, 0, 0;"
        yield f"{WGMMA} {D}, %rd0, {item}, %p0, 1, 1, 0, 0;"
        yield f"{WGMMA} {D}, %rd0, %rd1, {item}, 1, 1, 0, 0;"
        yield f"{WGMMA} {D}, {A.replace('%r0', item)}, %rd1, %p0, 1, 1, 0;"
        yield f"{WGMMA} {D.replace('%f0', item)}, {A}, %rd1, %p0, 1, 1, 0;"
        yield f"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {D}, %rd0, %rd1, {item}, 0, %p0, 1, 1, 0, 0;"


def _scaled() -> Iterator[str]:
    opcode = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
    for item in [*_ITEMS, *_IMMEDIATES]:
        if item not in ("%hh0", "%v.x", "%v2.z", "%tid.y"):
            yield f"{opcode} {D}, {A}, {B}, {C}, %r0, {{{item},0}}, %r1, {{0,0}};"
            yield f"{opcode} {D}, {A}, {B}, {C}, %r0, {{0,{item}}}, %r1, {{0,0}};"
            yield f"{opcode} {D}, {A}, {B}, {C}, %r0, {{0,0}}, %r1, {{0,{item}}};"
        yield f"{opcode} {D}, {A}, {B}, {C}, {item}, {{0,0}}, %r1, {{0,0}};"
    fp8 = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.{}f32.e4m3.e4m3.f32"
    for e in ("%r0", "{%r0}", "%f0", "%rd0"):
        yield f"{fp8.format('')} {D}, {A}, {A}, {C}, {e}, 0;"
        scaled = fp8.format("kind::mxf8f6f4.block_scale.scale_vec::1X.")
        yield f"{scaled}.ue8m0 {D}, {A}, {A}, {C}, {e}, 0, %r0, {{0,0}}, %r1, {{0,0}};"
    for group in ("0", "0,0", "{0}", "{0,0,0}", "{%rs0,%us0}", "{%r0,%r1}"):
        yield f"{opcode} {D}, {A}, {B}, {C}, %r0, {group}, %r1, {{0,0}};"


_OFFSETS = [
    "",
    "+16",
    " + -16",
    "+(.s64)16",
    "+2*8",
    "+18446744073709551616",
    "-16",
    "+1.0",
    "+",
    "+nosuch",
    "+%r0",
    "+08",
    "+vb",
    "+4?1:0",
]


def _addresses() -> Iterator[str]:
    """Addresses and strides of instructions with and without a state space."""
    bases = [*_ITEMS, "vl", "vc", "%laneid", "%r0.x", "checked", "(%r0)", "vs"]
    texts = [f"[{base}{offset}]" for base in bases for offset in (_OFFSETS if base in ("%r0", "%rd0", "vs") else ("", "+16"))]
    texts += [*bases, "[ %rd0 ]", "[[%rd0]]", "[%rd0][0]", "[%rd0]+16", "[{%rd0}]", "[]"]
    registers = "{%s0,%s1,%s2,%s3,%s4,%s5,%s6,%s7}"
    for text in texts:
        for space in ("", ".shared", ".shared::cta"):
            yield f"ldmatrix.sync.aligned.m8n8.x1{space}.b16 {{%r0}}, {text};"
            yield f"stmatrix.sync.aligned.m8n8.x1{space}.b16 {text}, {{%r0}};"
        for space in ("", ".global", ".shared"):
            yield f"wmma.load.a.sync.aligned.row.m16n16k16{space}.s8 {{%r0,%r1}}, {text};"
            yield f"wmma.store.d.sync.aligned.row.m16n16k16{space}.s32 {text}, {registers};"
        yield f"wmma.load.a.sync.aligned.row.m16n16k16.s8 {{%r0,%r1}}, [%rd0], {text};"


@pytest.mark.parametrize(
    ("lines", "target"),
    [
        (_dense, "sm_90a"),
        (_addresses, "sm_90a"),
        (_special, "sm_90a"),
        (_spellings, "sm_90a"),
        (_sparse, "sm_90a"),
        (_wgmma, "sm_90a"),
        (_scaled, "sm_120a"),
        (_plain, "sm_120a"),
    ],
)
def test_ptxas_says_the_same(ptxas: assemblers.Assembler, lines: object, target: str, tmp_path: Path) -> None:
    assert callable(lines)
    differing = disagreements(ptxas, lines(), target, tmp_path)
    assert not differing, "\n".join(differing[:20]) + f"\n{len(differing)} in all"


class Place(NamedTuple):
    """An operand of an instruction in one of its forms."""

    instruction: Instruction
    form: OperandForm
    number: int
    operand: Operand

    def line(self, text: str) -> str:
        """The instruction with a text for this operand."""
        names = ptx.items(self.form.syntax)
        texts = [ptx.item(self.form, name) for name in names]
        if len(ptx.named(names[self.number])) > 1:
            text = ptx.item(self.form, names[self.number], {self.operand.name: text.strip("[]")})
        return ptx.line(self.instruction.canonical, [*texts[: self.number], text, *texts[self.number + 1 :]])


@pytest.fixture(scope="module")
def places(catalog: Catalog) -> list[Place]:
    """One for each operand and each property that rules ask about."""
    by_shape: dict[object, Place] = {}
    for instruction in catalog.all():
        of_numbers = ("name", "spvariant", "m", "k", "atype", "dtype", "bitop", "type", "space", "exclusive")
        of_copies = ("dst", "src", "policy", "multicast", "ignore_oob", "load_mode", "attribute", "field")
        facts = [instruction.variant.facts.get(name) for name in (*of_numbers, *of_copies)]
        for form in instruction.forms:
            for number, name in enumerate(ptx.items(form.syntax)):
                parts = ptx.named(name)
                for part in parts if name.startswith("[") or len(parts) == 1 else ():
                    by_shape.setdefault((*facts, name, part), Place(instruction, form, number, form.operand(part)))
    return list(by_shape.values())


def _of_rule(places: list[Place], rule: Quirk) -> Iterator[tuple[str, dict[str, Version]]]:
    """The lines to which a rule of the errata applies, with the targets of their instructions.

    One for each instruction, its types, and what the rule asks about.
    """
    asked = sorted({"name", "atype", "dtype", "type"}.union(*rule.when))
    seen = set()
    for place in places:
        facts = tuple(place.instruction.variant.facts.get(name) for name in asked)
        if (facts, place.operand.name) not in seen and Quirks.applies(rule, place.instruction, place.operand):
            seen.add((facts, place.operand.name))
            for text in _given(rule, place.operand):
                yield place.line(text), place.instruction.accepted_by()


#: Register types that carry no operand.
_BYTES = {"b8", "u8", "s8"}


def _given(rule: Quirk, operand: Operand) -> Iterator[str]:
    if rule.constants:
        yield from dict.fromkeys(str(end) for end in (rule.least, rule.most, 0 if rule.least is None else rule.least) if end is not None)
    elif rule.registers == ("_",):
        yield vector(operand.register_types[0], operand.registers).replace(register(operand.register_types[0]), "_")
    else:
        if "{}" in rule.registers and not operand.elements:
            yield vector(operand.register_types[0], 1)
        for bank in [each for each in rule.registers if each != "{}"] or operand.register_types:
            text = vector(bank, rule.count or operand.registers) if operand.elements else register(bank)
            yield f"[{text}]" if operand.alignment else text


def test_every_rule_of_the_errata_applies_somewhere(catalog: Catalog, places: list[Place]) -> None:
    spec = catalog.database.spec
    targets, banks = {target.name for target in spec.targets}, {entry.name for entry in spec.types.registers}
    for erratum in spec.errata:
        for rule in erratum.rules:
            assert {rule.lowest, rule.highest} <= targets | {""}, erratum.id
            assert set(rule.registers) <= banks | _BYTES | {"_", "{}"}, erratum.id
            assert next(_of_rule(places, rule), None), erratum.id


def test_ptxas_answers_as_the_rules_of_the_errata_say(
    catalog: Catalog, places: list[Place], ptxas: assemblers.Assembler, tmp_path: Path
) -> None:
    judges = dict.fromkeys(("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_110", "sm_120a"), ptxas)
    for older in assemblers.fetched():
        if older.cuda == "12.9":
            judges["sm_101a"] = older  # the last release that knows it
    rules = [rule for erratum in catalog.database.spec.errata for rule in erratum.rules]
    lines = {line: accepts for rule in rules for line, accepts in _of_rule(places, rule)}
    legality = Legality(catalog)
    wrong = []
    for target, assembler in judges.items():
        asked = Lines.of((line for line, accepts in lines.items() if target in accepts), [*matrix.banks(catalog), *sorted(_BYTES)])
        (answer,) = questions.ask([matrix.question(assembler, target, assembler.ptx, asked)], tmp_path, 1)
        refusals = questions.by_line(answer)
        assert target == "sm_101a" or 0 < len(refusals) < len(asked.texts)
        for number, line in enumerate(asked.texts):
            spelling, *operands = ptx.compact(line).split(" ")
            instruction, _ = legality.find(spelling) or pytest.fail(spelling)
            if legality.accepts(instruction, list(map(of_compact, operands)), target) == (number in refusals):
                wrong.append(f"{target}: {refusals.get(number, 'accepted')}: {line}")
    assert not wrong, "\n".join(wrong)


def test_ptxas_knows_the_same_versions(ptxas: assemblers.Assembler, tmp_path: Path) -> None:
    path = tmp_path / "module.ptx"
    for version in ("6.9", "7.0", "7.9", "8.0", "8.8", "8.9", "9.5", "9.9"):
        text = f".version {version}\n.target sm_80\n.address_size 64\n.entry k() {{ .reg .f32 %f<8>; .reg .b32 %r<8>; {SOUND} }}\n"
        path.write_text(text, encoding="utf-8")
        command = [ptxas.path, "--gpu-name", "sm_80", "--output-file", str(tmp_path / "out"), str(path)]
        done = subprocess.run(command, check=False, capture_output=True)
        assert (done.returncode == 0) == check(text).clean == (version in ("7.0", "8.0", "8.8", "9.5")), version


@pytest.mark.parametrize("family", ["mma_sm80", "mma_sm90_gmma", "mma_sm90_gmma_sparse", "mma_sm120", "mma_sm120_sparse"])
def test_headers_of_cute_have_no_errors(catalog: Catalog, family: str) -> None:
    """Assemblers take each of these statements."""
    sources = Sources(catalog)
    count = 0
    findings: list[Finding] = []
    for path in sorted((cutlass().folder / "cute" / "arch").glob(f"{family}.hpp")):
        count, findings = sources.check(path.read_text(encoding="utf-8"))
    assert count > 30
    assert not [finding for finding in findings if finding.severity == "error"]
