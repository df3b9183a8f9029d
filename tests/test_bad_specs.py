"""Bad specs: every error at once, each with its place, and no file touched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands import invoke
from ptxmma import paths

_TOY, _ODD = (Path(__file__).parent / name for name in ("toy", "odd"))


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A copy of the toy spec that a test may break."""
    return Path(shutil.copytree(_TOY, tmp_path / "toy"))


@pytest.fixture
def odd_spec(tmp_path: Path) -> Path:
    """A copy of the odd spec that a test may break."""
    return Path(shutil.copytree(_ODD, tmp_path / "odd"))


def _copied(folder: Path) -> Path:
    """A copy of the spec."""
    return Path(shutil.copytree(paths.SPEC, folder, ignore=shutil.ignore_patterns("evidence", "schema")))


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1, f"{old!r} is not in {path.name}: the test is stale"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def _refused(spec: Path, message: str) -> list[str]:
    """A spec is refused with a message that matches; all lines that are said."""
    result = invoke("validate", "--spec", spec)
    assert result.exit_code == 1, result.output
    assert re.search(message, result.stderr), result.stderr
    return result.stderr.splitlines()


# One row for each way to be wrong: the file, what is replaced by what, and the message that must come, with its place.
_CASES = {
    "malformed YAML": ("types.yaml", "carriers:", "carriers: [", r"types.yaml:\d+:\d+: not YAML: "),
    "duplicate key": ("spec.yaml", 'version: "0.0.1"', 'version: "0.0.1"\nversion: "0.0.2"', r"spec.yaml:4:1: duplicate key 'version'; line 3 has it too"),
    "unknown key": ("targets.yaml", '{name: "sm_80",', '{name: "sm_80", colour: "red",', r"targets.yaml:3:21: unknown key 'colour'; allowed here: name, ptx, includes, ptx_in, until, releases, source"),
    "a slip in a key": ("instructions/toy.yaml", 'family: "toy"', 'familly: "toy"', r"toy.yaml:3:1: unknown key 'familly' \(nearest: 'family'\); allowed here: kind, name, family, "),
    "unquoted version": ("targets.yaml", 'ptx: "7.0"', "ptx: 7.0", r'targets.yaml:3:26: 7.0 is a number with a fraction to YAML; write it in quotes: "7.0"'),
    "nothing": ("targets.yaml", 'ptx: "7.0"', "ptx: null", r"targets.yaml:3:26: null is nothing to YAML; give a value, or leave the key out"),
    "no value": ("instructions/toy.yaml", 'scope: "warp"', "memory:\nscope: \"warp\"", r"toy.yaml:6:8: an empty value is nothing to YAML; give a value, or leave the key out"),
    "an anchor": ("targets.yaml", 'ptx: "7.0"', 'ptx: &first "7.0"', r"targets.yaml:3:26: anchors are not allowed; leave &first out"),
    "unquoted truth": ("targets.yaml", 'ptx: "7.0"', "ptx: yes", r'targets.yaml:3:26: yes is a truth value to YAML; write it in quotes: "yes"'),
    "wrong type": ("types.yaml", "bits: 16,", 'bits: "16",', r"types.yaml:3:\d+: bits: '16' is not of type integer"),
    "missing key": ("targets.yaml", ', source: "2"}', "}", r"targets.yaml:3:5: missing key 'source'"),
    "not one of": ("types.yaml", 'form: "float"', 'form: "complex"', r"types.yaml:3:\d+: form: 'complex' is not allowed; one of float, unsigned, signed, sign-magnitude, bits"),
    "pattern": ("targets.yaml", 'name: "sm_80"', 'name: "gfx90"', r"targets.yaml:3:13: name: 'gfx90' does not match .*: a target, e.g. sm_90a"),
    "unknown kind": ("spec.yaml", "kind: spec", "kind: spex", r"spec.yaml:2:7: a document starts with kind: one of .*instruction"),
    "dangling target": ("targets.yaml", 'includes: ["sm_80"]', 'includes: ["sm_81"]', r"targets.yaml:4:33: unknown target 'sm_81'; known: sm_80, sm_90"),
    "dangling version": ("instructions/toy.yaml", 'ptx: "7.8"', 'ptx: "7.9"', r"toy.yaml:\d+:33: unknown PTX ISA version '7.9'; known: 7.0, 7.8"),
    "two capacities of a target": ("targets.yaml", "targets:\n", 'capacities:\n  - {targets: ["sm_80"], block: 1, sm: 1, source: "2"}\n  - {targets: ["sm_80"], block: 1, sm: 1, source: "2"}\ntargets:\n', r"targets.yaml:\d+:\d+: two entries of capacities are for sm_80; keep one"),
    "a block with more shared memory than its SM": ("targets.yaml", "targets:\n", 'capacities:\n  - {targets: ["sm_80"], block: 2, sm: 1, source: "2"}\ntargets:\n', r"targets.yaml:\d+:\d+: a block cannot have 2 of the 1 bytes of an SM"),
    "a CUDA release that never was": ("targets.yaml", '{name: "sm_80",', '{name: "sm_80", until: "99.9",', r"targets.yaml:3:\d+: unknown CUDA release '99.9'; isa_versions has 11.0 to 11.8"),
    "a release before the first": ("instructions/toy.yaml", '- {ptx: "7.0"', '- {since: "1.8", ptx: "7.0"', r"toy.yaml:\d+:\d+: unknown CUDA release '1.8'; isa_versions has 11.0 to 11.8"),
    "a release with a version that never was": ("targets.yaml", '{name: "sm_80",', '{name: "sm_80", ptx_in: [{cuda: "11.8", ptx: "7.9"}],', r"targets.yaml:3:\d+: unknown PTX ISA version '7.9'; known: 7.0, 7.8"),
    "dangling type": ("instructions/toy.yaml", 'atype: "f16"', 'atype: "f17"', r"toy.yaml:\d+:\d+: unknown element type 'f17'; known: f16, f32"),
    "dangling register": ("types.yaml", 'registers: ["b32"]', 'registers: ["b33"]', r"types.yaml:\d+:\d+: unknown register type 'b33'; known: b32, f32"),
    "dangling operand": ("instructions/toy.yaml", '"d, a, b, c, knob"', '"d, a, b, c, nob"', r"toy.yaml:\d+:12: unknown operand 'nob'; known: d, a, b, c, knob"),
    "operand lists of two forms under one name": ("instructions/toy.yaml", '"d, a, b, c, knob"', '{usual: ["d, a, b, c, knob", "d, a, b, knob"]}', r"toy.yaml:\d+:\d+: besides matrices and constants one list has d, another d, c: they are of two forms"),
    "dangling reference of a form": ("instructions/toy.yaml", 'ctype: "f32"', 'ctype: "=ctyp"', r"toy.yaml:\d+:\d+: '=ctyp' must name a qualifier of this form"),
    "undeclared qualifier": ("instructions/toy.yaml", "{.mood}", "{.mode}", r"toy.yaml:\d+:10: the syntax names 'mode', which is not a qualifier; known: dtype, atype"),
    "order of nothing": ("instructions/toy.yaml", '"ctype"]]', '"ctype"], ["sync", "alined"]]', r"toy.yaml:10:\d+: unknown qualifier or modifier 'alined'; known: dtype, .*, toy, sync, aligned"),
    "ignored behind nothing": ("instructions/toy.yaml", "qualifiers:", 'ignored:\n  - {modifiers: ["b1"], behind: "etype", source: "x"}\nqualifiers:', r"toy.yaml:\d+:\d+: unknown qualifier 'etype'; known: dtype"),
    "ignored on an unknown target": ("instructions/toy.yaml", "qualifiers:", 'ignored:\n  - {modifiers: ["b1"], targets: ["sm_70"], source: "x"}\nqualifiers:', r"toy.yaml:\d+:\d+: unknown target 'sm_70'; known: sm_80, sm_90"),
    "ignored on a condition on nothing": ("instructions/toy.yaml", "qualifiers:", 'ignored:\n  - {modifiers: ["b1"], when: {mood: "sadd"}, source: "x"}\nqualifiers:', r"toy.yaml:\d+:\d+: no form has mood 'sadd'; there are happy, sad"),
    "condition on nothing": ("instructions/toy.yaml", 'when: {mood: "sad"}', 'when: {humour: "sad"}', r"toy.yaml:\d+:6: the condition tests 'humour', which is not a fact here"),
    "condition on no value": ("instructions/toy.yaml", 'when: {mood: "sad"}', 'when: {mood: "sadd"}', r"toy.yaml:\d+:6: no form has mood 'sadd'; there are happy, sad"),
    "condition with a value that nothing has": ("layouts.yaml", 'of: {family: "toy"}', 'of: {family: ["toy", "mma"]}', r"layouts.yaml:4:\d+: unknown family 'mma'; known: toy"),
    "layout without a printed formula beside others": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: ["m16n8k16", "m16n8k32"]', r"layouts.yaml:3:5: no printed formula under stated is for operand 'a' of m16n8k32 with 16 bits, family toy"),
    "carrier of an operand that nothing has": ("types.yaml", 'operands: ["c", "d"]', 'operands: ["c", "d", "e"]', r"types.yaml:\d+:\d+: no variant that this entry is for has 'e'; leave it out"),
    "carrier of a type that nothing has": ("types.yaml", 'elements: ["f32"], when', 'elements: ["f32", "f16"], when', r"types.yaml:\d+:\d+: no variant that this entry is for has 'f16'; leave it out"),
    "releases in the wrong order": ("isa_versions.yaml", 'cuda: "11.8"', 'cuda: "10.8"', r"isa_versions.yaml:4:\d+: cuda 10.8 must be above 11.0: list the versions in their order"),
    "documented by an assembler": ("instructions/toy.yaml", '"sad"], source: "3.1"', '"sad"], source: "ptxas 13.5"', r"toy.yaml:\d+:\d+: 'ptxas 13.5' is not a source for a form that is documented: a section documents a form"),
    "an instruction that does nothing": ("instructions/toy.yaml", 'access: "write", ', "", r"toy.yaml:1:1: toy writes nothing, so it must order something: say memory: true"),
    "a GPU of no target": ("targets.yaml", "kind: targets\n", 'kind: targets\ngpus:\n  - {target: "sm_91", architecture: "X", names: ["X1"], source: "x"}\n', r"targets.yaml:3:15: unknown target 'sm_91'; known: sm_80, sm_90"),
    "a later target that includes nothing": ("targets.yaml", 'includes: ["sm_80"], ', "", r"targets.yaml:4:5: sm_90 includes nothing: say includes: and the earlier target without a suffix"),
    "an operand in no list": ("instructions/toy.yaml", '"d, a, b, c, knob"', '"d, a, b, c"', r"toy.yaml:23:3: no operand list has 'knob'; add it to one, or leave it out"),
    "sizes of a value that no form has": ("instructions/toy.yaml", 'extents: {shape: "m{m}n{n}k{k}"}', 'extents: {shape: "m{m}n{n}k{k}", mood: {"happy": 1, "sad": 2, "merry": 3}}', r"toy.yaml:\d+:\d+: no form has mood 'merry'; leave it out"),
    "a helper that no formula reads": ("layouts.yaml", 'let: {group: "lane // 4",', 'let: {half: "i // 4", group: "lane // 4",', r"layouts.yaml:6:18: no formula reads 'half'; leave it out"),
    "a stated helper that no formula reads": ("layouts.yaml", 'let: {group: "lane >> 2",', 'let: {half: "i // 4", group: "lane >> 2",', r"layouts.yaml:13:22: no formula reads 'half'; leave it out"),
    **{
        f"a size with the name of the variable {name}": ("instructions/toy.yaml", 'extents: {shape: "m{m}n{n}k{k}"}', f'extents: {{shape: "m{{m}}n{{n}}k{{{name}}}"}}', rf"toy.yaml:17:\d+: '{name}' is a variable of formulas already; choose another name")
        for name in ("lane", "i", "warp", "bits", "byte", "thread_bytes")
    },
    "a size with the name of a fact": ("instructions/toy.yaml", 'extents: {shape: "m{m}n{n}k{k}"}', 'extents: {shape: "m{m}n{n}k{family}"}', r"toy.yaml:17:\d+: a size cannot be called 'family': conditions have a fact of this name; choose another name"),
    **{
        f"a qualifier with the name of the fact {name}": ("instructions/toy.yaml", "qualifiers:\n", f'qualifiers:\n  {name}: {{title: "x"}}\n', rf"toy.yaml:\d+:3: a qualifier cannot be called '{name}': conditions have a fact of this name; choose another name")
        for name in ("name", "family", "operand", "bits", "ratio", "chunk_size")
    },
    "cyclic targets": ("targets.yaml", '{name: "sm_80", ptx', '{name: "sm_80", includes: ["sm_90"], ptx', r"targets.yaml:3:21: sm_80 includes itself"),
    "formula with an unknown name": ("layouts.yaml", 'col: "lane // 4"', 'col: "line // 4"', r"layouts.yaml:24:13: toy_m16n8k16_b_b16: unknown name 'line' \(known here: .*lane"),
    "formula with a syntax error": ("layouts.yaml", 'col: "lane // 4"', 'col: "lane // "', r"layouts.yaml:24:\d+: toy_m16n8k16_b_b16: syntax error in formula 'lane // '"),
    "coordinate outside the matrix": ("layouts.yaml", 'col: "lane // 4"', 'col: "lane // 2"', r"layouts.yaml:24:13: toy_m16n8k16_b_b16: col = 8 at i=0, lane=16 is outside 0..7"),
    "element owned twice": ("layouts.yaml", 'row: "2 * (lane % 4) + i % 2 + 8 * (i // 2)"', 'row: "2 * (lane % 4) + 8 * (i // 2)"', r"layouts.yaml:22:5: toy_m16n8k16_b_b16: row=0, col=0 is owned twice: by i=0, lane=0 and by i=1, lane=0"),
    "a bit map at single bits alone": ("layouts.yaml", 'col: "lane // 4"', 'col: "lane // 4 ^ (lane == 3)"', r"layouts.yaml:22:5: toy_m16n8k16_b_b16: row=6, col=1 is owned twice: by i=0, lane=3 and by i=0, lane=7"),
    "printed formula that differs": ("layouts.yaml", 'is: "thread * 2 + (i & 1) + 8"', 'is: "thread * 2 + (i & 1) + 4"', r"layouts.yaml:11:9: section 3.3 differs: col is 4 there and 8 in toy_m16n8k16_a_b16, at lane 0, i 4"),
    "printed formula for an unknown axis": ("layouts.yaml", 'row: [{when', 'line: [{when', r"layouts.yaml:15:9: unknown axis 'line'; known: row, col, first, last"),
    "printed formula for a layout of places": ("layouts.yaml", '      row: "group + 8 * (register % 2)"\n      col: "2 * thread + i % 2 + 8 * (register // 2)"', '      {lane: "4 * (row % 8) + col % 8 // 2", bit: "16 * (col % 2)"}', r"layouts.yaml:10:9: printed formulas are for axes, and this layout has formulas for lane, bit; leave stated out"),
    "printed register count that differs": ("layouts.yaml", "registers: 4", "registers: 2", r"layouts.yaml:11:9: section 3.3 differs: toy_m16n8k16_a_b16 has 4 registers, not 2"),
    "two layouts for one operand": ("layouts.yaml", 'operands: ["c", "d"]', 'operands: ["c", "d", "a"]', r"layouts.yaml:26:5: two entries of register_layouts cover operand 'a' of toy\S+; see also \S*layouts.yaml:3:5"),
    "no layout for an operand": ("layouts.yaml", 'operands: ["b"]', 'operands: ["bb"]', r"toy.yaml:\d+:5: no entry of register_layouts covers operand 'b' of toy"),
    "missing plain target": ("targets.yaml", '- {name: "sm_90"', '- {name: "sm_130a", ptx: "7.8", source: "2.1"}\n  - {name: "sm_90"', r"targets.yaml:4:5: sm_130a includes sm_130, which is missing: add it to the targets"),
    "rules that leave no target": ("targets.yaml", '- {name: "sm_80", ptx: "7.0", source: "2"}\n  - {name: "sm_90", ptx: "7.8", includes: ["sm_80"]', '- {name: "sm_70", ptx: "7.0", source: "2"}\n  - {name: "sm_80", ptx: "7.0", includes: ["sm_70"], source: "2"}\n  - {name: "sm_90", ptx: "7.8", includes: ["sm_70"]', r"toy.yaml:\d+:5: the rules leave no target to toy\S+sad: they ask for sm_80 and sm_90"),
    "two observations": ("instructions/toy.yaml", "requires:", 'observed:\n  - {ptx: "7.8", source: "x"}\n  - {when: {mood: "sad"}, ptx: "7.0", source: "x"}\nrequires:', r"toy.yaml:\d+:5: two observations are for toy\S+sad; see also \S*toy.yaml:\d+:5"),
    "one variant in two forms": ("instructions/toy.yaml", "requires:", '  - {shape: "m16n8k16", dtype: "f32", atype: "f16", btype: "f16", ctype: "f32", mood: "sad", source: "3"}\nrequires:', r"toy.yaml:\d+:5: another form has toy\S+sad too; see also \S*toy.yaml:\d+:5"),
    "a second spec document": ("types.yaml", "kind: types", 'kind: spec\nversion: "1.0.0"\ndocument: "x"\n---\nkind: types', r"types.yaml:1:1: a second document of kind spec; a spec has one"),
    "hexadecimal": ("types.yaml", "bits: 16,", "bits: 0x10,", r"types.yaml:3:\d+: 0x10: an integer must be written in decimal"),
    "a very long integer": ("types.yaml", "bits: 16,", f"bits: {'9' * 5000},", r"types.yaml:3:\d+: 9+: an integer must be written in decimal"),
    "name": ("types.yaml", 'name: "f16"', 'name: "16f"', r"types.yaml:3:13: name: '16f' does not match .*: letters, digits, '_', '.', ':' and '-', a letter first"),
    "an empty range": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n{n}k16", ranges: {n: {first: 16, last: 8, step: 8}}', r"toy.yaml:\d+:\d+: a range from 16 to 8 is empty"),
    "a range that misses its end": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n{n}k16", ranges: {n: {first: 8, last: 20, step: 8}}', r"toy.yaml:\d+:\d+: steps of 8 from 8 do not reach 20"),
    "a large limit": ("instructions/toy.yaml", "limit: 3", "limit: 4294967296", r"toy.yaml:\d+:53: limit: 4294967296 is greater than the maximum of 4294967295"),
    "a large size": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n8k{k}", ranges: {k: {first: 4097, last: 4097, step: 1}}', r"toy.yaml:\d+:\d+: first: 4097 is greater than the maximum of 4096"),
    "a large size in a token": ("instructions/toy.yaml", '- {shape: "m16n8k16"', '- {shape: "m16n8k4097"', r"toy.yaml:\d+:14: k = 4097 is out of range: 1..4096"),
    "a large matrix": ("instructions/toy.yaml", '- {shape: "m16n8k16"', '- {shape: "m4096n8k4096"', r"layouts.yaml:3:5: toy\S+ has 16777216 elements here; there must be 32 to 65536"),
    "a small matrix": ("instructions/toy.yaml", '- {shape: "m16n8k16"', '- {shape: "m16n1k16"', r"layouts.yaml:19:5: toy\S+ has 16 elements here; there must be 32 to 65536"),
    "an axis with an unknown name": ("layouts.yaml", 'row: "m"', 'row: "m + q"', r"layouts.yaml:5:22: toy\S+: unknown name 'q'"),
    "a type that is no type": ("instructions/toy.yaml", 'title: "multiplicand A", type: "atype"', 'title: "multiplicand A", type: "mood"', r"toy.yaml:\d+:57: the values of 'mood' are not element types: happy, sad; known: f16, f32"),
    "a type that may be absent": ("instructions/toy.yaml", 'title: "multiplicand A", type: "atype"', 'title: "multiplicand A", type: "mood"', r"toy.yaml:\d+:5: operand 'a' needs 'mood', which this form does not always give"),
    "a matrix without a shape": ("instructions/toy.yaml", '- {shape: "m16n8k16", ', "- {", r"toy.yaml:\d+:5: the syntax needs 'shape', which this form does not give"),
    "too many variants": ("instructions/toy.yaml", 'shape: "m16n8k16"', f'shape: "m16n8k{{k}}", ranges: {{k: {{first: 1, last: 4000, step: 1}}}}, colour: [{", ".join(f"c{number}" for number in range(26))}]', r"toy.yaml:\d+:5: this form has 312000 variants; at most 100000 are allowed"),
    "a family with the name of another file": ("instructions/toy.yaml", 'family: "toy"', 'family: "types"', r"toy.yaml:3:10: a family cannot be called 'types': other files have this name"),
    "a family with the name of a keyword": ("instructions/toy.yaml", 'family: "toy"', 'family: "class"', r"toy.yaml:3:10: a family cannot be called 'class'"),
    "sums of a type that there is not": ("instructions/toy.yaml", "requires:", 'semantics:\n  - {multiply: "exact", accumulate: "f32", sums: "f33", text: "x", source: "3"}\nrequires:', r"toy.yaml:\d+:\d+: unknown element type 'f33'"),
    "two semantics": ("instructions/toy.yaml", "requires:", 'semantics:\n  - {multiply: "exact", accumulate: "f32", sums: "f32", text: "x", source: "3"}\n  - {when: {mood: "sad"}, multiply: "exact", accumulate: "f32", sums: "f32", text: "x", source: "3"}\nrequires:', r"toy.yaml:\d+:5: two entries say what toy\S+sad computes; see also \S*toy.yaml:\d+:5"),
    "two rules that disagree": ("instructions/toy.yaml", "requires:", 'requires:\n  - {when: [{mood: ["sad"]}], ptx: "7.0", source: "3.2"}', r"toy.yaml:\d+:5: another rule has the same condition and asks for something else; see also \S*toy.yaml:\d+:5"),
    "a default that is no value": ("instructions/toy.yaml", "default: 0", "default: 4", r"toy.yaml:\d+:3: 'knob' is of the kind immediate: its default, 4, must be one of 0..3"),
    "a helper that hides a variable": ("layouts.yaml", 'let: {group: "lane // 4",', 'let: {n: "1", group: "lane // 4",', r"layouts.yaml:6:15: 'n' is a variable of formulas already; choose another name"),
    "a stated helper that hides a variable": ("layouts.yaml", 'let: {group: "lane >> 2",', 'let: {i: "1", group: "lane >> 2",', r"layouts.yaml:13:19: 'i' is a variable of formulas already"),
    "a selector without sparsity": ("instructions/toy.yaml", 'knob: {kind: "immediate", title: "a knob", limit: 3, default: 0', 'knob: {kind: "selector", of: "a", title: "a knob"', r"toy.yaml:\d+:3: 'knob' is for a sparse matrix; no operand of this instruction says sparse: true"),
    "a usual value that no form has": ("instructions/toy.yaml", 'mood: {title: "mood"', 'mood: {title: "mood", usual: "merry"', r"toy.yaml:\d+:33: unknown value of mood 'merry'; known: happy, sad"),
    "a condition on a qualifier without values": ("instructions/toy.yaml", ', mood: ["", "happy", "sad"]', "", r"toy.yaml:\d+:6: no form has mood 'sad'; there are none"),
    "a value that gives no sizes": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n8"', r"toy.yaml:\d+:14: 'm16n8' gives no sizes: it must look like m{m}n{n}k{k}"),
    "a value that is in no table of sizes": ("instructions/toy.yaml", 'extents: {shape: "m{m}n{n}k{k}"}', 'extents: {shape: "m{m}n{n}k{k}", mood: {"happy": 1}}', r"toy.yaml:\d+:\d+: 'sad' gives no sizes: extents has happy"),
    "sizes of what the syntax does not name": ("instructions/toy.yaml", 'extents: {shape: "m{m}n{n}k{k}"}', 'extents: {shape: "m{m}n{n}k{k}", num: {"x1": 1}}', r"toy.yaml:\d+:34: the syntax does not name qualifier 'num'"),
    "two extents that range": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m{m}n{n}k16", ranges: {m: {first: 16, last: 32, step: 16}, n: {first: 8, last: 16, step: 8}}', r"toy.yaml:\d+:\d+: m and n range; one extent of a form may: list the values of the others"),
    "a name in braces at another size's place": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n{k}k16", ranges: {k: {first: 8, last: 16, step: 8}}', r"toy.yaml:\d+:14: 'm16n{k}k16' has {k}, which the sizes of shape do not have there: m{m}n{n}k{k}"),
    "a name in braces that is not a size": ("instructions/toy.yaml", 'mood: ["", "happy", "sad"]', 'mood: "sad{n}", ranges: {n: {first: 8, last: 16, step: 8}}', r"toy.yaml:\d+:\d+: 'sad{n}' has {n}, which the sizes of mood do not have in extents: give mood a pattern, or write each value out"),
    "a size that two qualifiers give": ("instructions/toy.yaml", 'extents: {shape: "m{m}n{n}k{k}"}', 'extents: {shape: "m{m}n{n}k{k}", mood: {"happy": {m: 16}, "sad": {m: 32}}}', r"toy.yaml:\d+:\d+: 'shape' and 'mood' both give the size 'm'; rename it in the extents of one of them"),
    "an operand list twice": ("instructions/toy.yaml", '"d, a, b, c, knob"', '{usual: ["d, a, b, c{, knob}", "d, a, b, c, knob"]}', r"toy.yaml:\d+:12: the operand list 'd, a, b, c, knob' is there twice"),
    "an optional operand that makes another form": ("instructions/toy.yaml", '"d, a, b, c, knob"', '"d, a, b{, c}, knob"', r"toy.yaml:\d+:\d+: besides matrices and constants one list has d, c, another d"),
    "an optional operand without its end": ("instructions/toy.yaml", '"d, a, b, c, knob"', '"d, a, b, c{, knob"', r"toy.yaml:\d+:12: operands: 'd, a, b, c\{, knob' does not match .*\{, z\} one that may be left out"),
    "an operand list that no form takes": ("instructions/toy.yaml", '"d, a, b, c, knob"', '{usual: "d, a, b, c, knob", other: "d, a, b, c, knob"}', r"toy.yaml:\d+:\d+: no form takes the operand list 'other': say operands: other in a form, or leave the list out"),
    "a name in braces without numbers": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n{n}k16"', r"toy.yaml:\d+:14: m16n{n}k16 needs ranges: {n: ...}, the numbers of n"),
    "a range that nothing uses": ("instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n8k16", ranges: {n: {first: 8, last: 16, step: 8}}', r"toy.yaml:\d+:\d+: no value of this form contains {n}"),
    "two maps under one name": ("layouts.yaml", 'operands: ["c", "d"]', 'operands: ["c", "d"]\n    name: "a_b16"', r"layouts.yaml:3:5: two different layouts are called toy_m16n8k16_a_b16; name: must tell them apart; see also \S*layouts.yaml:26:5"),
    "one axis without a formula": ("layouts.yaml", '      row: "2 * (lane % 4) + i % 2 + 8 * (i // 2)"\n', "", r"layouts.yaml:22:5: at: has formulas for col; give a formula for each axis \(row, col\), or for lane and bit, or for lane and byte"),
    "a bit of no thread": ("layouts.yaml", '      row: "2 * (lane % 4) + i % 2 + 8 * (i // 2)"\n      col: "lane // 4"', '      bit: "row + col"', r"layouts.yaml:22:5: at: has formulas for bit; give a formula for each axis"),
    "bits and bytes": ("layouts.yaml", '      row: "2 * (lane % 4) + i % 2 + 8 * (i // 2)"\n      col: "lane // 4"', '      {lane: "row", bit: "col", byte: "col"}', r"layouts.yaml:22:5: at: has formulas for lane, bit, byte; give a formula for each axis"),
    "an axis with the name of a variable": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {lane: "k", col: "n"}', r"layouts.yaml:21:\d+: 'lane' is a variable of formulas already; choose another name"),
    "an axis with the name of an extent": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {row: "k", n: "n"}', r"layouts.yaml:21:\d+: 'n' is a variable of formulas already; choose another name"),
    "an axis with the name of a word of C": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {int: "k", col: "n"}', r"layouts.yaml:21:\d+: an axis cannot be called 'int': a language of the generated code reserves it; choose another name"),
    "an axis with the name of a word of Python": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {pass: "k", col: "n"}', r"layouts.yaml:21:\d+: an axis cannot be called 'pass': a language"),
    "an axis with the name of a word of JavaScript": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {function: "k", col: "n"}', r"layouts.yaml:21:\d+: an axis cannot be called 'function': a language"),
    "an axis with the name of a function": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {element: "k", col: "n"}', r"layouts.yaml:21:\d+: an axis cannot be called 'element': another function or parameter of the generated code has this name"),
    "a size with the name of a word of C++": ("instructions/toy.yaml", 'extents: {shape: "m{m}n{n}k{k}"}', 'extents: {shape: "m{m}n{n}k{new}"}', r"toy.yaml:\d+:\d+: a size cannot be called 'new': a language of the generated code reserves it; choose another name"),
    "a stem that is a word of C++": ("instructions/toy.yaml", 'stem: "toy"', 'stem: "int"', r"toy.yaml:5:8: the stem gives the template 'int' of the typed front, which C\+\+ or the headers have; change it"),
    "a stem that is a template of the headers": ("instructions/toy.yaml", 'stem: "toy"', 'stem: "shape"', r"toy.yaml:5:8: the stem gives the template 'shape' of the typed front"),
    "a stem that is a modifier": ("instructions/toy.yaml", 'stem: "toy"', 'stem: "sad"', r"toy.yaml:5:8: the stem gives the template 'sad' of the typed front, which is a modifier as well; change the stem; see also \S*toy.yaml:\d+:5"),
    "a modifier that is a template of the headers": ("instructions/toy.yaml", 'mood: ["", "happy", "sad"]', 'mood: ["", "happy", "sad", "shape"]', r"toy.yaml:\d+:5: the modifier 'shape' has the name of a template of the headers"),
    "a layout with the name of another's inverse": ("layouts.yaml", 'operands: ["c", "d"]', 'operands: ["c", "d"]\n    name: "b_b16_inverse"', r"layouts.yaml:\d+:5: toy_m16n8k16_b_b16 and toy_m16n8k16_b_b16_inverse would both have a function toy_m16n8k16_b_b16_inverse in Python; name: must tell them apart; see also \S*layouts.yaml:\d+:5"),
    "an unknown axis apart": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {row: "k", col: "n"}\n    apart: ["copy"]', r"layouts.yaml:22:\d+: unknown axis 'copy'; known: row, col"),
    "an axis of no size": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {row: "k", col: "n - 8"}', r"layouts.yaml:19:5: toy\S+ has 0 elements here; there must be 32 to 65536"),
    "a size that is not a power of two": ("layouts.yaml", 'axes: {row: "k", col: "n"}', 'axes: {row: "k", col: "n + 16"}', r"layouts.yaml:21:\d+: toy_m16n8k16_b_b16: sizes must be powers of two: col = 24"),
    "a layout of an operand that nothing has": ("layouts.yaml", 'register_layouts:\n', 'register_layouts:\n  - {operands: ["q"], of: {family: "toy"}, axes: {row: "m", col: "n"}, at: {row: "999 * lane + i", col: "i"}, source: "1"}\n', r"layouts.yaml:3:\d+: no variant that this entry is for has 'q'; leave it out"),
    "a layout of an operand that has none": ("layouts.yaml", 'register_layouts:\n', 'register_layouts:\n  - {operands: ["knob"], of: {family: "toy"}, axes: {row: "m", col: "n"}, at: {row: "999 * lane + i", col: "i"}, source: "1"}\n', r"layouts.yaml:3:\d+: no variant that this entry is for has 'knob'; leave it out"),
    "a layout that no variant reaches": ("layouts.yaml", 'register_layouts:\n', 'register_layouts:\n  - {operands: ["a"], of: {family: "toy", bits: 8}, axes: {row: "m", col: "n"}, at: {row: "999 * lane + i", col: "i"}, source: "1"}\n', r"layouts.yaml:3:\d+: nothing that this condition admits has bits 8; leave it out"),
    "a layout of nobody's operands": ("layouts.yaml", 'register_layouts:\n', 'register_layouts:\n  - {operands: ["a"], of: {bits: 8}, axes: {row: "m", col: "n"}, at: {row: "999 * lane + i", col: "i"}, source: "1"}\n', r"layouts.yaml:3:\d+: each condition must have family: or name:, to say for whose operands the entry is"),
    "an unknown scope": ("instructions/toy.yaml", 'scope: "warp"', 'scope: "warpgroup"', r"toy.yaml:6:9: unknown scope 'warpgroup'; known: warp"),
    "an unknown scope of an operand": ("instructions/toy.yaml", 'title: "a knob",', 'title: "a knob", uniform: "warpgroup",', r"toy.yaml:\d+:\d+: unknown scope 'warpgroup'; known: warp"),
    "an unknown scope of a statement": ("instructions/toy.yaml", "operand_kinds:", 'uniform:\n  - {text: "Calm.", over: "warpgroup", source: "3.1"}\noperand_kinds:', r"toy.yaml:\d+:28: unknown scope 'warpgroup'; known: warp"),
    "half a register": ("types.yaml", 'form: "float", bits: 16, exponent: 5, mantissa: 10, bias: 15, infinity: true, nan: true', 'form: "bits", bits: 4, sign: false', r"toy.yaml:\d+:\d+: operand 'b' of toy\S+ has 16 bits"),
    "no warp": ("spaces.yaml", "lane: 32", "lane: 16", r"spaces.yaml:8:35: 16 lanes are not the threads of any scope; scopes have 32"),
    "no lanes": ("spaces.yaml", "lane: 32", "thread: 32", r"spaces.yaml:5:5: no scopes, or no space 'registers' with one size of the coordinates lane and bit, which layouts in registers count"),
    "lanes of no number": ("spaces.yaml", "lane: 32", "lane: []", r"spaces.yaml:5:5: no scopes, or no space 'registers' with one size of the coordinates lane and bit"),
    "a scope that is not a power of two": ("spaces.yaml", '{"warp": 32}', '{"warp": 32, "most": 48}', r"spaces.yaml:3:\d+: a scope has a power of two of threads, not 48"),
    "a name twice in a list": ("types.yaml", 'registers: ["b32"]', 'registers: ["b32", "b32"]', r"types.yaml:9:90: registers: 'b32' is there twice; leave one out"),
    "a type wider than its bits": ("types.yaml", "mantissa: 10", "mantissa: 11", r"types.yaml:3:5: sign, exponent and mantissa take 17 bits, and the type has 16"),
    "a bias beyond the exponent": ("types.yaml", "bias: 15", "bias: 32", r"types.yaml:3:5: a bias of 32 does not go with 5 exponent bits: 0..31"),
    "integers with an exponent": ("types.yaml", 'form: "float", bits: 16', 'form: "signed", bits: 16', r"types.yaml:3:5: only floating point has exponent, bias, infinity and nan; leave them out"),
    "an unsigned type with a sign": ("types.yaml", 'form: "float", bits: 16, exponent: 5, mantissa: 10, bias: 15, infinity: true, nan: true', 'form: "unsigned", bits: 16', r"types.yaml:3:5: a type of the form unsigned has no sign: say sign: false"),
    "a register of another C type": ("types.yaml", 'bits: 32, c_type: "uint32_t"', 'bits: 32, c_type: "uint64_t"', r"types.yaml:6:5: uint64_t has 64 bits and the constraint l, not 32 bits and r"),
    "immediates said twice": ("instructions/toy.yaml", "limit: 3, default: 0", "limit: 3, values: [0, 1], default: 0", r"toy.yaml:23:\d+: values and limit both say the legal immediates; leave one of them out"),
    "other immediates than none": ("instructions/toy.yaml", "limit: 3, default: 0", 'limit: 3, default: 0, other_values: [{when: {mood: "sad"}, values: [1], source: "1"}]', r"toy.yaml:23:\d+: other_values replace values for some forms: give values, too"),
    "an observation of nothing": ("instructions/toy.yaml", "requires:\n", 'observed:\n  - {when: {mood: "sad"}, source: "ptxas 11.8"}\nrequires:\n', r"toy.yaml:28:5: an observation replaces the version or the targets that are required: give ptx, targets or both"),
    "no scope": ("spaces.yaml", '{"warp": 32}', "{}", r"spaces.yaml:3:\d+: scopes: .*non-empty"),
    "two scopes of one name": ("spaces.yaml", "scopes:", 'scopes: {"warp": 64}\n---\nkind: spaces\nscopes:', r"spaces.yaml:6:\d+: a second scope 'warp'; see also \S*spaces.yaml:3:\d+"),
    "a layout's name with an unknown fact": ("layouts.yaml", 'operands: ["c", "d"]', 'operands: ["c", "d"]\n    name: "c_{colour}"', r"layouts.yaml:27:12: toy\S+ has no 'colour' for the name c_{colour}; it has m, n, k, shape, dtype"),
    "a layout's name without an end": ("layouts.yaml", 'operands: ["c", "d"]', 'operands: ["c", "d"]\n    name: "c_{"', r"layouts.yaml:27:12: name: 'c_{' does not match"),
    "a pattern of sizes that ends early": ("instructions/toy.yaml", '"m{m}n{n}k{k}"', '"m{m}n{n}k{"', r"toy.yaml:\d+:19: shape: 'm{m}n{n}k{' does not match"),
    "one size by two numbers": ("instructions/toy.yaml", '"m{m}n{n}k{k}"', '"m{m}n{n}k{n}"', r"toy.yaml:\d+:14: 'm16n8k16' gives no sizes: it must look like m{m}n{n}k{n}"),
    "a space that no variable has": ("types.yaml", 'elements: ["f32"], when', 'elements: [], spaces: ["sharde"], when', r"types.yaml:\d+:\d+: 'sharde' is not allowed; one of const, global, local, param, shared"),
    "spaces of an operand that is not an address": ("types.yaml", 'elements: ["f32"], when', 'elements: ["f32"], spaces: ["shared"], when', r"types.yaml:\d+:\d+: spaces is for addresses, which have no elements; leave one of them out"),
    "elements beyond their container": ("types.yaml", "registers:\n", 'containers:\n  - {elements: ["f16"], bits: 16, shift: 1, source: "1.1"}\nregisters:\n', r"types.yaml:6:\d+: elements of 16 bits from bit 1 on do not fit into 16 bits; allowed: 0 to 0"),
    "a carrier of two widths": ("types.yaml", 'carriers:\n  - {operands: ["a", "b"], elements: ["f16"], when: {family: "toy"}, registers: ["b32"]', '  - {name: "p", title: "predicate", bits: 1, c_type: "bool", constraint: "r", source: "1.2"}\ncarriers:\n  - {operands: ["a", "b"], elements: ["f16"], when: {family: "toy"}, registers: ["b32", "p"]', r"types.yaml:\d+:\d+: 'a' of toy is of the kind fragment, which a register p of 1 bits cannot carry; allowed: b32, f32"),
    "a predicate as a carrier": ("types.yaml", 'carriers:\n  - {operands: ["a", "b"], elements: ["f16"], when: {family: "toy"}, registers: ["b32"]', '  - {name: "p", title: "predicate", bits: 1, c_type: "bool", constraint: "r", source: "1.2"}\ncarriers:\n  - {operands: ["a", "b"], elements: ["f16"], when: {family: "toy"}, registers: ["p"]', r"types.yaml:\d+:\d+: 'a' of toy is of the kind fragment, which a register p of 1 bits cannot carry"),
    "a hint with the name of a qualifier": ("instructions/toy.yaml", "qualifiers:\n", 'hints:\n  - {name: "mood", title: "x", values: {"calm": {text: "x"}}, source: "x"}\nqualifiers:\n', r"toy.yaml:12:13: 'mood' is a qualifier already; choose another name"),
    "an ignored modifier of its own": ("instructions/toy.yaml", "qualifiers:\n", 'ignored:\n  - {modifiers: ["aligned", "happy"], when: {mood: "sad"}, source: "x"}\nqualifiers:\n', r"toy.yaml:12:\d+: 'aligned' is a modifier of toy itself where this entry applies; leave it out, or say when: it is ignored"),
    "an ignored value of its own": ("instructions/toy.yaml", "qualifiers:\n", 'ignored:\n  - {modifiers: ["happy"], source: "x"}\nqualifiers:\n', r"toy.yaml:12:\d+: 'happy' is a modifier of toy itself"),
    "an order against the syntax": ("instructions/toy.yaml", '"dtype", "atype"', '"atype", "dtype"', r"toy.yaml:10:\d+: the syntax has another order: dtype, atype, btype, ctype"),
    "an opcode that spellings lack": ("instructions/toy.yaml", "ordered:", 'opcode: "toy.aligned"\nordered:', r"toy.yaml:10:10: toy.sync\S+ does not start with 'toy.aligned'; give the start of every spelling"),
    "sums that overflow without integers": ("instructions/toy.yaml", "requires:", 'semantics:\n  - {multiply: "exact", accumulate: "f32", sums: "f32", overflow: "wrap", text: "x", source: "3"}\nrequires:', r"toy.yaml:\d+:\d+: overflow is for sums of the forms unsigned, signed; f32 is of the form float: leave overflow out"),
    "half a matrix": ("layouts.yaml", 'axes: {row: "k", col: "n"}\n    at:\n      row: "2 * (lane % 4) + i % 2 + 8 * (i // 2)"', 'axes: {row: "k // 2", col: "n"}\n    at:\n      row: "2 * (lane % 4) + i % 2"', r"layouts.yaml:21:\d+: 'b' of toy\S+ has 128 elements; this layout has 64: k // 2, n"),
    "an erratum of no variant": ("spec.yaml", "kind: spec", 'kind: errata\nerrata:\n  - {id: "x", section: "1", says: "a", holds: "b", known: "c", family: "toy", when: {mood: "sad", k: 32}, bites: "misprint", textual: true}\n---\nkind: spec', r"spec.yaml:\d+:\d+: nothing that this condition admits has k 32; leave it out"),
    "injected name": ("types.yaml", 'name: "f16"', r'name: "f16\"); system(\"x"', r"types.yaml:3:13: name: .* does not match"),
    "injected comment": ("types.yaml", 'title: "half precision"', 'title: "half */ precision"', r"types.yaml:3:\d+: title: 'half \*/ precision' does not match"),
}  # fmt: skip


@pytest.mark.parametrize("name", _CASES)
def test_the_error_says_where_and_what(toy: Path, name: str) -> None:
    file, old, new, message = _CASES[name]
    _edit(toy / file, old, new)
    out = toy.parent / "out"
    result = invoke("generate", "--spec", toy, "--out", out)
    assert result.exit_code == 1, result.output
    assert re.search(message, result.stderr), result.stderr
    assert not out.exists()


def test_validate_says_what_generate_says(toy: Path) -> None:
    _edit(toy / "targets.yaml", 'ptx: "7.0"', "ptx: 7.0")
    generated, validated = invoke("generate", "--spec", toy, "--out", toy.parent / "out"), invoke("validate", "--spec", toy)
    assert validated.exit_code == 1
    assert validated.stderr == generated.stderr


_SPARSITY = """\
kind: sparsity
granularities:
  - {name: "1:2", of: {family: "toy", mood: "happy"}, chunk: 2, kept: 1, unit: 1, index_bits: 4, indices: 1, legal: ["0b0100", "0b1110"], text: "x", source: "3"}
  - {name: "2:4", of: {family: "toy", mood: "sad"}, chunk: 4, kept: 2, unit: 1, index_bits: 2, indices: 2, legal: ["0b0001", "0b0100", "0b1000", "0b1001", "0b1100", "0b1101", "0b1110"], ordered: ["0b0100", "0b1000", "0b1001", "0b1100", "0b1101", "0b1110"], ordered_when: {mood: "sad"}, text: "x", source: "3"}
  - {name: "2:4", of: {family: "toy", mood: ""}, chunk: 4, kept: 2, unit: 1, index_bits: 2, indices: 2, legal: ["0b0100", "0b1000", "0b1001", "0b1100", "0b1101", "0b1110"], text: "x", source: "3"}
choices:
  - units: 2
    fields: {"0b00": "0b1110", "0b01": "0b0100", "0b10": "0b1110"}
    text: "x"
    source: "3"
  - units: 4
    fields: {"0b0000": "0b1110", "0b0001": "0b1000", "0b0010": "0b1001", "0b0011": "0b0100", "0b0100": "0b1110", "0b0101": "0b1000", "0b0110": "0b1001", "0b1000": "0b1110", "0b1001": "0b1100", "0b1010": "0b1101", "0b1100": "0b1110"}
    text: "x"
    source: "3"
"""

# As above, for a spec with sparsity: what is replaced by what, and the message.
_SPARSITY_CASES = {
    "a chosen field that is illegal": ('"0b10": "0b1110"', '"0b10": "0b1111"', r"sparsity.yaml:8:\d+: 0b1111 is not a legal field of 1:2 in order; there are 0b0100, 0b1110"),
    "a chosen field out of order": ('"0b0011": "0b0100"', '"0b0011": "0b0001"', r"sparsity.yaml:12:\d+: 0b0001 is not a legal field of 2:4 in order; there are 0b0100, 0b1000"),
    "a chosen field that drops a unit": ('"0b0011": "0b0100"', '"0b0011": "0b1000"', r"sparsity.yaml:12:\d+: 0b1000 keeps the units 0, 2 of 2:4, not all of 0b0011"),
    "a set without a field": ('"0b0001": "0b1000", ', "", r"sparsity.yaml:12:5: 0b0001 has no field, and 2:4 keeps 2 units"),
    "a set with too many units": ('"0b00": "0b1110"', '"0b00": "0b1110", "0b11": "0b1110"', r"sparsity.yaml:8:\d+: 0b11 has more units than the 1 that 1:2 keeps"),
    "a set with a digit too many": ('"0b00": "0b1110"', '"0b00": "0b1110", "0b000": "0b1110"', r"sparsity.yaml:8:\d+: 0b000 must have a digit for each of the 2 units"),
    "two choices": ("units: 4", "units: 2", r"sparsity.yaml:11:5: another entry chooses fields for 2 units; see also \S*sparsity.yaml:7:5"),
    "no choice": ("units: 2", "units: 3", r"sparsity.yaml:3:5: no entry of choices says which field 1:2 compresses to: it has 2 units"),
    "a pattern of another name": ('name: "1:2"', 'name: "2:4"', r"sparsity.yaml:3:5: a pattern that keeps 1 of 2 is 1:2, not 2:4"),
    "two patterns of one name": ("unit: 1, index_bits: 2, indices: 2", "unit: 1, index_bits: 4, indices: 1", r"sparsity.yaml:5:5: another pattern '2:4' has other sizes"),
    "equal indices": ('"0b0001", "0b0100"', '"0b0000", "0b0001", "0b0100"', r"sparsity.yaml:4:5: 0b0000 is not legal here: its indices are 0, 0, the lowest bits first"),
    "descending indices in order": ('ordered: ["0b0100"', 'ordered: ["0b0001", "0b0100"', r"sparsity.yaml:4:5: 0b0001 is not legal here: its indices are 1, 0, the lowest bits first"),
    "an ordered field that is illegal": ('ordered: ["0b0100"', 'ordered: ["0b1011", "0b0100"', r"sparsity.yaml:4:5: ordered are some of the legal fields; 0b1011 is not legal"),
    "a chunk of broken units": ("chunk: 2, kept: 1, unit: 1", "chunk: 2, kept: 1, unit: 2", r"sparsity.yaml:3:5: chunk 2 and kept 1 must be whole units of 2, chunk a power of two of them"),
}  # fmt: skip


@pytest.mark.parametrize("name", [None, *_SPARSITY_CASES])
def test_bad_sparsity(toy: Path, name: str | None) -> None:
    path = toy / "sparsity.yaml"
    path.write_text(_SPARSITY, encoding="utf-8")
    if name is None:  # the unbroken spec is sound
        assert invoke("validate", "--spec", toy).exit_code == 0
        return
    old, new, message = _SPARSITY_CASES[name]
    _edit(path, old, new)
    _refused(toy, message)


def test_all_errors_come_at_once(toy: Path) -> None:
    _edit(toy / "types.yaml", "bits: 16,", 'bits: "16",')
    _edit(toy / "targets.yaml", 'ptx: "7.0"', "ptx: 7.0")
    _edit(toy / "spec.yaml", "kind: spec", "kind: spex")
    result = invoke("validate", "--spec", toy)
    assert [line.split(":")[0].rpartition("/")[2] for line in result.stderr.splitlines()[:-1]] == [
        "spec.yaml",
        "targets.yaml",
        "types.yaml",
    ]
    assert result.stderr.splitlines()[-1] == "3 problems in the spec"


def test_many_errors_are_counted(toy: Path) -> None:
    entries = "".join(f'  - {{name: "t{number}"}}\n' for number in range(1000))
    (toy / "more.yaml").write_text(f"kind: types\nelements:\n{entries}", encoding="utf-8")
    _edit(toy / "targets.yaml", 'name: "sm_80"', 'name: "gfx90"')
    lines = invoke("validate", "--spec", toy).stderr.splitlines()
    assert len(lines) == 100 + 1 + 1 + 1
    assert lines[100].endswith("more.yaml: and 900 more problems")
    assert "targets.yaml:3:13" in lines[101]
    assert lines[102] == "1001 problems in the spec"


# Kinds of documents that are missing together: the only errors.
_MISSING = [
    {
        "spec": "spec; a spec has one",
        "targets": "targets; a spec has one",
        "isa_versions": "isa_versions; a spec has one",
        "spaces": "spaces; a spec has one",
        "types": "types; a spec has one",
        "instruction": "instruction; a spec has one",
    },
    {
        "register_layouts": "register_layouts; operand '.*' of .* needs one",
        "sparsity": "sparsity has granularities; mma.sp.* needs one",
    },
    {"errata": "errata; section [0-9.]+ needs one"},
]


def _without(folder: Path, *kinds: str) -> Path:
    """A copy of the spec without the documents of some kinds."""
    spec = _copied(folder / "spec")
    absent = re.compile(rf"^kind: ({'|'.join(kinds)})$", re.M)
    for path in spec.rglob("*.yaml"):
        documents = path.read_text(encoding="utf-8").split("\n---\n")
        path.write_text("\n---\n".join(each for each in documents if not absent.search(each)), encoding="utf-8")
        if not path.read_text(encoding="utf-8").strip():
            path.unlink()
    return spec


@pytest.mark.parametrize("kinds", _MISSING)
def test_each_missing_kind_of_document_is_one_error(tmp_path: Path, kinds: dict[str, str]) -> None:
    done = invoke("validate", "--spec", _without(tmp_path, *kinds))
    assert done.exit_code == 1
    lines = done.stderr.splitlines()
    assert len(lines) == len(kinds) + 1
    for said in kinds.values():
        assert [line for line in lines if re.fullmatch(rf"\S+yaml:\d+:1: no document of kind {said}", line)], done.stderr
    assert re.search(rf"^{len(kinds)} problems? in the spec$", done.stderr, re.M)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("layouts.yaml", 'slab: "i // each"', 'slab: "i // each + 64"', "slab = 64 at i=0, lane=0 is outside"),
        ("layouts.yaml", 'slab: "i // each"', 'slab: "i //"', "syntax error in formula"),
        ("instructions/rack.yaml", 'operands: ["cells"]', 'operands: ["cell"]', "no entry of register_layouts covers operand 'cells'"),
        ("instructions/scoop.yaml", '- {ptx: "7.0"', '- {when: {count: "x1"}, ptx: "7.0"', "a PTX ISA version"),
    ],
)
def test_a_slip_that_many_variants_meet_is_one_error_a_place(odd_spec: Path, file: str, old: str, new: str, message: str) -> None:
    _edit(odd_spec / file, old, new)
    *lines, _ = _refused(odd_spec, message)
    places = [line.partition(" ")[0] for line in lines if message in line]
    assert places, lines
    assert len(places) == len(set(places)), lines


def test_two_families_with_one_template(toy: Path) -> None:
    text = (toy / "instructions/toy.yaml").read_text(encoding="utf-8")
    other = text.replace('name: "toy"', 'name: "other"').replace('family: "toy"', 'family: "other"').replace('"toy.sync', '"other.sync')
    (toy / "instructions/twin.yaml").write_text(other.replace("m16n8k16", "m16n8k32"), encoding="utf-8")
    for file in ("layouts.yaml", "types.yaml"):
        path = toy / file
        path.write_text(path.read_text(encoding="utf-8").replace('family: "toy"', 'family: ["toy", "other"]'), encoding="utf-8")
    _refused(
        toy,
        r"twin.yaml:5:8: the stem 'toy' gives the families 'toy' and 'other' one template, 'toy'; change a stem; see also .*toy.yaml:5:8",
    )


def test_two_families_with_one_file(toy: Path) -> None:
    text = (toy / "instructions/toy.yaml").read_text(encoding="utf-8")
    for name, family in (("dotted", "to.y"), ("flat", "to_y")):
        changed = text.replace('family: "toy"', f'family: "{family}"').replace('name: "toy"', f'name: "{name}"')
        (toy / f"instructions/{name}.yaml").write_text(changed, encoding="utf-8")
    _refused(toy, r"flat.yaml:3:10: the families 'to.y' and 'to_y' would share their files")


@pytest.mark.parametrize("kind", ["loop", "fifo", "directory", "dangling"])
def test_files_that_are_not_regular(toy: Path, kind: str) -> None:
    path = toy / "x.yaml"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("x.yaml" if kind == "loop" else "nowhere.yaml")
    _refused(toy, "x.yaml:1:1: not a regular file")


def test_a_file_with_the_other_suffix(toy: Path) -> None:
    (toy / "types.yaml").rename(toy / "types.yml")
    _refused(toy, r"types.yml:1:1: only \*.yaml files are read; name it types.yaml")


def test_a_directory_without_a_spec(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    _refused(tmp_path / "empty", r"no YAML document here; a spec directory holds \*.yaml files")
    _refused(tmp_path / "none", "not a directory")


_ALIASES = "".join(f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]\n" for below, name in zip("abcdefgh", "bcdefghi", strict=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"types.yaml:1:1: no document here; write one, or delete the file\n"),
        (b"# later\n", r"types.yaml:1:1: no document here; write one, or delete the file\n"),
        (b"kind: types\n# caf\xe9\n", r"types.yaml:2:1: not UTF-8: .*; save the file as UTF-8"),
        (f"kind: types\na: &a [{'x, ' * 9}x]\n{_ALIASES}".encode(), r"types.yaml:3:\d+: aliases are not allowed; write the value out"),
        (f"kind: types\nelements: {'[' * 900}{']' * 900}".encode(), r"types.yaml:\d+:\d+: (nested deeper than \d+ levels|not YAML)"),
    ],
    ids=["empty", "comment", "no UTF-8", "aliases that explode", "deep"],
)
def test_a_file_that_is_no_yaml_of_ours(toy: Path, text: bytes, message: str) -> None:
    (toy / "types.yaml").write_bytes(text)
    _refused(toy, message)


@pytest.mark.skipif(os.geteuid() != 0 and shutil.which("chattr") is None, reason="cannot make a directory unwritable here")
def test_an_unwritable_output_directory(toy: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "out"
    blocked.mkdir()
    (blocked / "generated").write_text("a file where a directory should be", encoding="utf-8")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    result = invoke("generate", "--spec", toy, "--out", blocked)
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr
    assert "nothing was changed" in result.stderr
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


def test_a_kill_in_the_middle_of_writing(toy: Path, tmp_path: Path) -> None:
    """Killed at every few renames, each file is either the old or the new one; a later run completes the set."""
    out = tmp_path / "out"
    assert invoke("generate", "--spec", toy, "--out", out).exit_code == 0
    old = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    _edit(toy / "spec.yaml", "0.0.1", "0.0.2")
    script = (
        "import os, sys\n"
        "from ptxmma.cli import main\n"
        "replace, left = os.replace, [int(sys.argv.pop(1))]\n"
        "def counted(*names):\n"
        "    left[0] -= 1\n"
        "    if left[0] < 0: os._exit(9)\n"
        "    replace(*names)\n"
        "os.replace = counted\n"
        "main()\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, "3", "generate", "--spec", toy, "--out", out], check=False, capture_output=True)
    assert killed.returncode == 9, killed.stderr
    now = {path: path.read_bytes() for path in old}
    changed = [path for path in old if now[path] != old[path]]
    assert len(changed) == 3
    assert all(b"0.0.2" in now[path] for path in changed)
    assert invoke("generate", "--spec", toy, "--out", out).exit_code == 0
    assert invoke("generate", "--spec", toy, "--out", out, "--check").exit_code == 0


def test_a_type_with_two_containers(tmp_path: Path) -> None:
    spec = _copied(tmp_path / "spec")
    _edit(spec / "types.yaml", 'elements: ["e3m2", "e2m3"], when', 'elements: ["e3m2", "e2m3", "e2m1"], when')
    lines = (spec / "types.yaml").read_text(encoding="utf-8").splitlines()
    first, last = (
        next(number for number, line in enumerate(lines, 1) if text in line) for text in ('elements: ["e2m1"]', '"e2m3", "e2m1"], when')
    )
    twice = "e2m1 has a container already where family is mma and k is 32 and kind is kind::f8f6f4"
    _refused(spec, rf"types.yaml:{last}:\d+: {twice}; see also .*types.yaml:{first}:\d+")


def test_one_entry_with_two_maps_under_one_name(toy: Path) -> None:
    """A formula that reads a qualifier's number gives layouts that need different names."""
    instruction, layouts = toy / "instructions/toy.yaml", toy / "layouts.yaml"
    _edit(instruction, 'extents: {shape: "m{m}n{n}k{k}"}', 'extents: {shape: "m{m}n{n}k{k}", mood: {"happy": 1, "sad": 2}}')
    _edit(instruction, 'mood: ["", "happy", "sad"]', 'mood: ["happy", "sad"]')
    _edit(layouts, '      col: "2 * (lane % 4) + i % 2"', '      col: "(3 - mood) * (lane % 4) + (3 * mood - 2) * (i % 2)"')
    called = "two different layouts are called toy_m16n8k16_cd_b32; name: must tell them apart"
    _refused(toy, rf"layouts.yaml:26:5: {called}; see also \S*layouts.yaml:26:5")
    _edit(layouts, 'operands: ["c", "d"]', 'operands: ["c", "d"]\n    name: "cd_{mood}"')
    assert invoke("validate", "--spec", toy).exit_code == 0, "with the number in the name they are two"


def test_a_formula_that_reads_what_ranges(toy: Path) -> None:
    """One layout, evaluated at the largest size, serves them all."""
    _edit(toy / "instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n{n}k16", ranges: {n: {first: 8, last: 16, step: 8}}')
    _edit(toy / "layouts.yaml", 'of: {shape: "m16n8k16"}', "of: {k: 16}")
    for old, new in {
        'i % 2 + 8 * (i // 2)"\n      col: "lane // 4"': 'i % 2 + 8 * (i // 2 % 2)"\n      col: "lane // 4 + 8 * (i // 4)"',
        'lane // 4 + 8 * (i // 2)"\n      col: "2 * (lane % 4) + i % 2"': (
            'lane // 4 + 8 * (i // 2 % 2)"\n      col: "2 * (lane % 4) + i % 2 + 8 * (i // 4)"'
        ),
    }.items():
        _edit(toy / "layouts.yaml", old, new)
    result = invoke("validate", "--spec", toy)
    assert result.exit_code == 0, result.stderr
    _edit(toy / "layouts.yaml", 'col: "lane // 4 +', 'col: "n // 16 * (lane // 4) +')
    _refused(toy, r"layouts.yaml:24:13: the formula reads 'n', which ranges in toy\S+: one layout serves all its numbers")


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (
            {'col: "lane // 4"': 'col: "2 * (lane // 4) + i // 4"'},
            r"layouts.yaml:11:5: toy_m16nNk16_b_b16: col = 8 is not a multiple of 16, which the highest bits of i count; the elements of a",
        ),
        (
            {'col: "lane // 4"': 'col: "lane // 4 + 8 * (i // 4)"', 'row: "m", col: "n"': 'row: "n", col: "n"'},
            r"layouts.yaml:18:5: toy_m16nNk16_cd_b32: row and col both depend on sizes that range; one layout serves them all only where one",
        ),
    ],
)
def test_a_smaller_fragment_is_the_beginning_of_the_largest(toy: Path, edits: dict[str, str], message: str) -> None:
    """One layout, of the largest size, serves every size."""
    _edit(toy / "instructions/toy.yaml", 'shape: "m16n8k16"', 'shape: "m16n{n}k16", ranges: {n: {first: 8, last: 16, step: 8}}')
    text = (toy / "layouts.yaml").read_text(encoding="utf-8")
    start, end = text.index("    stated:"), text.index('    source: "3.3"')
    (toy / "layouts.yaml").write_text(text[:start] + text[end:], encoding="utf-8")
    _edit(toy / "layouts.yaml", 'i % 2 + 8 * (register // 2)"', 'i % 2 + 8 * (register // 2 % 2)"')
    _edit(toy / "layouts.yaml", 'i % 2 + 8 * (i // 2)"', 'i % 2 + 8 * (i // 2 % 2)"')
    for old, new in edits.items():
        _edit(toy / "layouts.yaml", old, new)
    _edit(toy / "layouts.yaml", 'lane // 4 + 8 * (i // 2)"', 'lane // 4 + 8 * (i // 2 % 2)"')
    _edit(toy / "layouts.yaml", 'col: "2 * (lane % 4) + i % 2"', 'col: "2 * (lane % 4) + i % 2 + 8 * (i // 4 % 2)"')
    assert len(_refused(toy, message)) == 2


def test_a_printed_formula_is_compared_on_the_axes_of_its_layout(odd_spec: Path) -> None:
    """Axes of any name are compared; a window of columns needs the axis along which a product adds, which this layout lacks."""
    old = '      col: "lane + 32 * (i // 4 % 2)"\n'
    stated = '    stated:\n      - {section: "3.3", of: {tile: "r4c64"}, at: {row: "i & 3", slab: "i >> 3"}}\n'
    _edit(odd_spec / "layouts.yaml", old, old + stated)
    assert invoke("validate", "--spec", odd_spec).exit_code == 0
    _edit(odd_spec / "layouts.yaml", 'slab: "i >> 3"}}', 'slab: "i >> 2"}}')
    _refused(odd_spec, r"layouts.yaml:22:9: section 3.3 differs: slab is 1 there and 0 in scoop_r4c64_x2_trans_out, at lane 0, i 4")
    _edit(odd_spec / "layouts.yaml", 'slab: "i >> 2"}}', 'first: "i >> 2"}}')
    _refused(odd_spec, r"layouts.yaml:22:\d+: section 3.3: first counts along the axis whose size reads 'k'; no axis of this layout")


def test_two_addresses_of_one_fragment(odd_spec: Path) -> None:
    scoop = odd_spec / "instructions/scoop.yaml"
    second = '  also: {kind: "address", title: "another", of: "out", alignment: "16", row_bytes: "16", source: "3.1"}\n'
    _edit(scoop, "operands: ", f"{second}operands: ")
    _edit(scoop, '"out, [from]"', '"out, [from], [also]"')
    one = "an instruction that loads has one address with access: read; one operand list has from .*, also"
    _refused(odd_spec, rf"scoop.yaml:\d+:13: {one}")


def test_a_layout_lacks_the_axes_of_an_operand(toy: Path) -> None:
    knob = 'knob: {kind: "immediate", title: "a knob", limit: 3, default: 0'
    _edit(toy / "instructions/toy.yaml", knob, 'knob: {kind: "scale-data", of: "a", title: "a knob"')
    _edit(toy / "layouts.yaml", 'operands: ["b"]', 'operands: ["b", "knob"]')
    _refused(toy, "layouts.yaml:21:5: the layout of 'knob', an operand of the kind scale-data, lacks the axes block")


#: Slips in families unlike the toy, as an edit of the odd spec: the file, old text, new text, message.
_ODD_CASES = {
    "an alignment with an unknown name": ("instructions/scoop.yaml", 'alignment: "cols * bits // 8"', 'alignment: "foo * 2"', r"scoop.yaml:\d+:\d+: unknown name 'foo'; known here: bits, "),
    "bytes of a row with a syntax error": ("instructions/scoop.yaml", 'row_bytes: "cols * bits // 8"', 'row_bytes: "cols *"', r"scoop.yaml:\d+:\d+: syntax error in formula 'cols \*'"),
    "a store that multiplies": ("instructions/stash.yaml", 'operation: "store"', 'operation: "multiply"', r"stash.yaml:\d+:\d+: an instruction that multiplies has two multiplicands, of the kinds fragment or descriptor; it has in"),
    "an address of no operand": ("instructions/scoop.yaml", 'of: "out"', 'of: "oot"', r"scoop.yaml:\d+:\d+: unknown operand 'oot'; known: out, from"),
    "an address of nothing": ("instructions/scoop.yaml", ' of: "out",', "", r"scoop.yaml:\d+:3: 'from' is of the kind address: say of: and the operand or matrix that it describes"),
    "an address without an alignment": ("instructions/scoop.yaml", 'alignment: "cols * bits // 8", ', "", r"scoop.yaml:\d+:3: 'from' is of the kind address: say alignment: the bytes to"),
    "a stride without an order": ("instructions/scoop.yaml", 'kind: "address"', 'kind: "stride"', r"scoop.yaml:\d+:3: 'from' is of the kind stride: say order: the qualifier that"),
    "a thread id without scale factors": ("instructions/scoop.yaml", 'kind: "address"', 'kind: "thread-id"', r"'from' is of the kind thread-id: no operand of the kind scale-data is of 'out'"),
    "an address of a row without its bytes": ("instructions/scoop.yaml", ', row_bytes: "cols * bits // 8"', "", r"scoop.yaml:\d+:3: 'from' is the address of a row of 'out': say row_bytes: the bytes of the row that begins there"),
    "bytes of another row": ("instructions/scoop.yaml", 'row_bytes: "cols * bits // 8"', 'row_bytes: "rows"', r"scoop.yaml:\d+:\d+: a row of scoop\S+ has \d+ bytes here; its \d+ elements"),
    "bytes of wider elements": ("instructions/scoop.yaml", 'row_bytes: "cols * bits // 8"', 'row_bytes: "cols * bits // 8", memory_bits: "2 * bits"', r"scoop.yaml:\d+:\d+: a row of scoop\S+ has \d+ bytes here; its \d+ elements fill \d+"),
    "elements of no bits": ("instructions/scoop.yaml", 'row_bytes: "cols * bits // 8"', 'row_bytes: "cols * bits // 8", memory_bits: "0 * bits"', r"scoop.yaml:\d+:\d+: memory_bits is 0 for scoop\S+; it must be at least 1"),
    "bytes divided by zero": ("instructions/scoop.yaml", 'row_bytes: "cols * bits // 8"', 'row_bytes: "cols // 0"', r"scoop.yaml:\d+:\d+: scoop\S+: division by zero"),
    "an alignment of 0": ("instructions/scoop.yaml", 'alignment: "cols * bits // 8"', 'alignment: "0"', r"scoop.yaml:\d+:\d+: alignment is 0 for scoop\S+; it must be at least 1"),
    "an alignment of 12": ("instructions/stash.yaml", 'alignment: "16"', 'alignment: "12"', r"stash.yaml:\d+:\d+: the alignment of stash\S+ is 12 bytes; it must be a power of"),
    "a load that stores": ("instructions/scoop.yaml", 'operation: "load"', 'operation: "store"', r"scoop.yaml:\d+:13: an instruction that stores has one fragment with access: read; one operand list has out with access: write"),
    "a load that transposes": ("instructions/scoop.yaml", 'operation: "load"', 'operation: "transpose"', r"scoop.yaml:\d+:13: an instruction that transposes has one fragment with access: write and one fragment with access: read; one"),
    "a load that synchronises": ("instructions/scoop.yaml", 'operation: "load"', 'operation: "synchronise"', r"scoop.yaml:\d+:13: an instruction that orders other instructions has no matrix; it has out\n"),
    "a store that loads": ("instructions/stash.yaml", 'operation: "store"', 'operation: "load"', r"stash.yaml:\d+:13: an instruction that loads has one fragment with access: write; one operand list has in with access: read"),
    "a load without an address": ("instructions/scoop.yaml", 'operands: "out, [from]"', 'operands: "out"', r"scoop.yaml:\d+:13: an instruction that loads has one address with access: read; one operand list has none"),
    "kinds without a qualifier": ("instructions/press.yaml", '    spare: "zero"', '    kinds: ["sour", "sweet"]\n    spare: "zero"', r"press.yaml:\d+:\d+: .*kinds are values of a qualifier; give both qualifier and kinds, or leave both out"),
    "a kind that no format has": ("instructions/press.yaml", '    spare: "zero"', '    qualifier: "taste"\n    kinds: ["sweet"]\n    spare: "zero"', r"press.yaml:\d+:\d+: no instruction descriptor of the family 'press' is for 'sour'"),
    "an unknown fact of a layout": ("instructions/press.yaml", "m: 32}", "mm: 32}", r"press.yaml:\d+:\d+: the condition tests 'mm', which is not a fact here; known: "),
    "an unknown family of a layout": ("instructions/press.yaml", '{family: "press", m: 32}', '{family: "dress", m: 32}', r"press.yaml:21:\d+: unknown family 'dress'"),
    "a layout that nothing has": ("instructions/press.yaml", "m: 32}", "m: 48}", r"press.yaml:21:\d+: no operand of a legal product has the layout wide; mend"),
    "an unknown coordinate": ("instructions/press.yaml", 'at: {lane: "row", column: "col"}', 'at: {row: "row", column: "col"}', r"press.yaml:23:\d+: unknown coordinate 'row'"),
    "an unknown axis": ("instructions/press.yaml", 'at: {lane: "row", column: "col"}', 'at: {lane: "line", column: "col"}', r"press.yaml:23:\d+: unknown name 'line'; known: "),
    "other axes of a matrix": ("instructions/press.yaml", 'axes: {row: "m", col: "n"}', 'axes: {line: "m", col: "n"}', r"press.yaml:22:\d+: the axes of a matrix are row and col, and what apart: lists; here are line, col"),
    "an unknown size": ("instructions/press.yaml", 'axes: {row: "m", col: "n"}', 'axes: {row: "mm", col: "n"}', r"press.yaml:22:\d+: unknown name 'mm'; known: "),
    "a formula that ends early": ("instructions/press.yaml", 'lane: "row", column: "col"}', 'lane: "row", column: "col // (2"}', r"press.yaml:23:\d+: syntax error in formula"),
    "a layout that is a word of a language": ("instructions/press.yaml", 'name: "wide"', 'name: "int"', r"press.yaml:18:12: a layout cannot be called 'int': a language of the generated code reserves it"),
    "a layout that is a function": ("instructions/press.yaml", 'name: "wide"', 'name: "lane_of"', r"press.yaml:18:12: a layout cannot be called 'lane_of': another function or parameter"),
    "an axis that is a coordinate": ("instructions/press.yaml", 'axes: {row: "m", col: "n"}', 'axes: {row: "m", col: "n", lane: "1"}', r"press.yaml:22:39: an axis cannot be called 'lane': another function or parameter"),
    "a field that is a word of a language": ("instructions/press.yaml", 'name: "salt"', 'name: "class"', r"press.yaml:106:17: a field cannot be called 'class': a language"),
    "a field that is a parameter": ("instructions/press.yaml", 'name: "salt"', 'name: "target"', r"press.yaml:106:17: a field cannot be called 'target': another function or parameter"),
    "a fixed field with a default": ("instructions/press.yaml", "fixed: 9", "fixed: 9, default: 3", r"press.yaml:105:9: the field always holds 9: leave default and cases out"),
    "two values of one number": ("instructions/press.yaml", '{"i8": 5, "n8": 2}', '{"i8": 5, "n8": 5}', r"press.yaml:103:9: two values of one case have the same number: a descriptor could not tell them apart"),
    "a number of columns in letters": ("instructions/press.yaml", 'width: 2, default: 0, cases: [{values: {"0": 0, "10": 2', 'width: 2, unit: "columns", default: 0, cases: [{values: {"0": 0, "ten": 2', r"press.yaml:106:9: the field counts columns, and 'ten' is not a number"),
    "a layout for no M": ("instructions/press.yaml", ', m: 16}', ', m: 48}', r"press.yaml:49:1: no layout in vat memory is for the tensor-accumulator of d of press.sour with .* m = 16, n = 64; add one, or say under unknown"),
    "two layouts for one product": ("instructions/press.yaml", ', m: 16}', "}", r"press.yaml:28:5: two entries are for the tensor-accumulator of d of press.sour with .* m = 32, n = 64; see also \S+press.yaml:21:5"),
    "a place that is known and unknown": ("instructions/press.yaml", "layouts:\n", 'unknown: [{operand: "tensor-matrix", of: {family: "press"}, text: "x"}]\nlayouts:\n', r"press.yaml:17:\d+: two entries are for the tensor-matrix of a of press.sour"),
    "a unit of no bits": ("instructions/press.yaml", 'matrix: "a"', 'matrix: "a"\n    unit: "0"', r"press.yaml:36:12: left: unit is 0, which must be at least 8, for the tensor-matrix of a"),
    "elements that overlap": ("instructions/press.yaml", 'bit: "bits * (col', 'bit: "bits // 2 * (col', r"press.yaml:3\d:\d+: left: 8 bits at each place overlap: the next place is 4 bits further"),
    "a place for a part of a matrix": ("instructions/press.yaml", 'axes: {row: "m", col: "k"}', 'axes: {row: "m", col: "k // 2"}', r"press.yaml:37:28: left: col is 16, where the matrix has 32, for"),
    "an axis of no places": ("instructions/press.yaml", 'axes: {row: "m", col: "k"}', 'axes: {row: "m", col: "k - 64"}', r"press.yaml:37:28: left: col is -32, which must be at least 1, for"),
    "a size that divides by zero": ("instructions/press.yaml", 'axes: {row: "m", col: "k"}', 'axes: {row: "m", col: "k // (m - 16)"}', r"press.yaml:37:5: left: division by zero, for the tensor-matrix of a"),
    "a start between the parts of a warp": ("instructions/press.yaml", 'axes: {row: "m", col: "k"}', 'axes: {row: "m", col: "k"}\n    align: [0, 7]', r"press.yaml:38:5: left: it cannot start at the lanes 0, 7; allowed: 0, and the multiples of one divisor of 32, the lanes that a warp reaches"),
    "a selection that no formula reads": ("instructions/press.yaml", 'axes: {row: "m", col: "k"}', 'axes: {row: "m", col: "k"}\n    selections: [{name: "drawer", values: [0, 1], source: "8.4"}]', r"press.yaml:38:26: no formula reads 'drawer'; leave it out"),
    "a field that no product says": ("instructions/press.yaml", "width: 2, default: 0, cases", "width: 2, cases", r"press.yaml:106:9: press.sour does not say this field: the recipe of a product needs salt; allowed: 0, 10, 100; give it a default"),
    "a default that is not legal": ("instructions/press.yaml", "width: 2, default: 0, cases", "width: 2, default: 1, cases", r"press.yaml:106:77: 'salt' never holds 1; its values hold 0, 2, 3"),
    "a range that ends between steps": ("instructions/press.yaml", "last: 512, step: 64", "last: 500, step: 64", r"press.yaml:87:42: steps of 64 from 64 do not reach 500"),
    "an opcode without types": ("instructions/press.yaml", '{of: {family: "press"}, dtype', '{of: {family: "press", taste: "sour"}, dtype', r"press.yaml:49:1: no entry of tensor_products.types covers press.sweet; add one"),
    "an opcode without a depth": ("instructions/press.yaml", '  - {of: {taste: "sweet"}, k: 64, source: "8.3"}\n', "", r"press.yaml:49:1: no entry of tensor_products.depths covers press.sweet with dtype = i32, atype = i8, btype = i8; add one"),
    "types without a shape": ("instructions/press.yaml", '{of: {family: "press"}, m:', '{of: {family: "press", atype: "i8"}, m:', r"press.yaml:49:1: no entry of tensor_products.shapes covers press.sour with dtype = i32, atype = n8, btype = i8, k = 32; add one"),
    "a depth twice": ("instructions/press.yaml", "depths:\n", 'depths:\n  - {of: {family: "press"}, k: 32, source: "8.3"}\n', r"press.yaml:8\d:5: two entries of tensor_products.depths allow 32 of press.sour"),
    "a shape twice": ("instructions/press.yaml", "shapes:\n", 'shapes:\n  - {of: {taste: "sour"}, m: [32], n: {first: 128, last: 128, step: 8}, source: "8.3"}\n', r"press.yaml:8\d:5: two entries of tensor_products.shapes allow 32, 128 of press.sour"),
    "a depth that no type has": ("instructions/press.yaml", '{taste: "sour"}, k: 32', '{taste: "sour", atype: ["i8", "n8", "i32"]}, k: 32', r"press.yaml:84:6: nothing that this condition admits has atype 'i32'; leave it out"),
    "limits that leave nothing": ("instructions/press.yaml", "shapes:\n", 'limits:\n  - {of: {taste: "sour"}, m: [8], source: "8.3"}\nshapes:\n', r"press.yaml:49:1: the limits in tensor_products leave press.sour with .* no M and N"),
    "a limit of nothing": ("instructions/press.yaml", "shapes:\n", 'limits:\n  - {of: {taste: "sour"}, source: "8.3"}\nshapes:\n', r"press.yaml:87:5: a limit leaves some M, some N or some values of a field: give m, n or fields"),
    "a limit that leaves no types": ("instructions/press.yaml", "shapes:\n", 'limits:\n  - {of: {taste: "sour"}, fields: {btype: "i32"}, source: "8.3"}\nshapes:\n', r"press.yaml:49:1: the limits in tensor_products leave press.sour no types of D, A and B"),
    "a limit of a field that there is not": ("instructions/press.yaml", "shapes:\n", 'limits:\n  - {of: {taste: "sour"}, fields: {pepper: "i8"}, source: "8.3"}\nshapes:\n', r"press.yaml:87:\d+: unknown field 'pepper'; known: .*btype"),
    "a limit of a value that a field lacks": ("instructions/press.yaml", "shapes:\n", 'limits:\n  - {of: {taste: "sour"}, fields: {salt: 11}, source: "8.3"}\nshapes:\n', r"press.yaml:87:\d+: unknown value of salt '11'; known: 0, 10, 100"),
    "a limit for a value that a field lacks": ("instructions/press.yaml", "shapes:\n", 'limits:\n  - {of: {salt: 11}, m: [16], source: "8.3"}\nshapes:\n', r"press.yaml:87:6: unknown value of salt '11'; known: 0, 10, 100"),
    "scale factors of nothing": ("instructions/press.yaml", "shapes:\n", 'scales:\n  - {of: {taste: "sour"}, stype: ["n8"], block: 32, source: "8.3"}\nshapes:\n', r"press.yaml:87:6: press.sour with .* has no operand for scale factors"),
    "a target without a size": ("instructions/press.yaml", '{ptx: "7.8", targets: ["sm_90"], source: "8.2"}', '{ptx: "7.8", targets: ["sm_80"], source: "8.2"}', r"press.yaml:9:29: the column of vat memory has no size on sm_80, where press reaches it; sizes are for sm_90"),
    "a size for no target": ("instructions/press.yaml", 'column: [{targets', 'column: [{size: 512}, {targets', r"press.yaml:9:51: the rows before have a size of the column for each of these targets; put this row before them"),
    "two sizes for a target": ("instructions/press.yaml", 'column: [{targets', 'column: [{targets: ["sm_90"], size: 512}, {targets', r"press.yaml:9:71: sm_90 has another size of the column already; see also"),
    "an unknown type": ("instructions/press.yaml", 'atype: ["i8", "n8"]', 'atype: ["i8", "n9"]', r"press.yaml:\d+:\d+: unknown element type 'n9'; known: "),
    "an unknown fact of a product": ("instructions/press.yaml", '{of: {taste: "sour"}', '{of: {tast: "sour"}', r"press.yaml:\d+:\d+: the condition tests 'tast', which is not a fact here"),
    "a value that no product has": ("instructions/press.yaml", '{of: {taste: "sour"}', '{of: {taste: "bitter"}', r"press.yaml:\d+:\d+: no form has taste 'bitter'; there are sour, sweet"),
    "no B": ("instructions/press.yaml", '"[sums], [left], [right], recipe, adds"', '"[sums], [left], recipe, adds"', r"one operand list lacks b"),
}  # fmt: skip


@pytest.mark.parametrize("name", _ODD_CASES)
def test_a_slip_in_another_family_is_an_error_with_a_place(odd_spec: Path, name: str) -> None:
    file, old, new, message = _ODD_CASES[name]
    _edit(odd_spec / file, old, new)
    _refused(odd_spec, message)


def test_a_function_that_is_a_type(odd_spec: Path) -> None:
    _edit(odd_spec / "instructions/press.yaml", '"press.{taste}"', '"press{.taste}"')
    _edit(odd_spec / "instructions/press.yaml", 'taste: ["sour", "sweet"]', 'taste: ["", "sour", "sweet"]')
    _refused(odd_spec, r"press.yaml:\d+:\d+: press would have a function press, which is the name of a type")


def test_fields_of_a_descriptor_that_depend_on_each_other(tmp_path: Path) -> None:
    spec = _copied(tmp_path / "spec")
    place = spec / "descriptors.yaml"
    text = place.read_text(encoding="utf-8")
    here = text.index('name: "tcgen05_instruction_mxf4"')
    old, new = "low: 2, width: 1, default: 0, source", "low: 2, width: 1, default: 0, cases: [{when: {k: 96}}], source"
    place.write_text(text[:here] + text[here:].replace(old, new, 1), encoding="utf-8")
    _refused(spec, "'sparse' depends on itself: 'k' depends on it")


#: A second memory that is wrong, as an edit of the odd one: old text, new text, message.
_MEMORIES = {
    "two for what no other names": ('    of: {family: "rack"}\n', "", "a second tensor memory without `of`"),
    "one name twice": ('name: "rest"', 'name: "rack"', "'rack' is there twice"),
    "a name of other files": ('name: "rest"', 'name: "shared"', "a tensor memory cannot be called 'shared': other files have this name"),
    "a name that is a word of a language": ('name: "rest"', 'name: "int"', "a space cannot be called 'int': a language of the generated code reserves it"),
    "an address without room": ("column: 8}", "column: 5}", "addresses have 5 bits for the lane, which reach 32 of them; there are 64"),
    "a part that is no coordinate": ("partition: {lane: 16}", "partition: {row: 16}", "unknown coordinate 'row'; known: lane, column, bit"),
    "a part that does not divide": ("partition: {lane: 16}", "partition: {lane: 48}", "the size of lane, 64, is not a multiple of 48; give a divisor of 64"),
    "no partition": ("    partition: {lane: 16}\n", "", "partition of the on-chip memory 'rack' lacks lane; it needs lane"),
    "no lane in addresses": ("address: {lane: 0, column: 8}", "address: {column: 8}", "address of the on-chip memory 'rack' lacks lane; it needs lane, column"),
    "no bits of addresses": ("    address_bits: 32\n", "", "bit 8 is outside an address of 0 bits; address_bits: gives their number"),
    "two parts at one bit": ("address: {lane: 0, column: 8}", "address: {lane: 8, column: 8}", "the column begins at bit 8, as the lane does; see also"),
    "no cells": (", bit: 16}", "}", "coordinates of the on-chip memory 'rack' lacks bit; it needs lane, column, bit"),
    "an unknown target": ('targets: ["sm_90"], size', 'targets: ["sm_99"], size', "unknown target 'sm_99'; known: sm_80, sm_90"),
    "an allocation of no power of two": ("allocation: {column: 8}", "allocation: {column: 12}", "a unit of allocation is a power of two up to 96, not 12"),
}  # fmt: skip


@pytest.mark.parametrize("name", _MEMORIES)
def test_a_wrong_memory(odd_spec: Path, name: str) -> None:
    rack = odd_spec / "instructions/rack.yaml"
    rest = rack.read_text(encoding="utf-8").partition("---\n")[0].replace('"rack"', '"rest"', 1).replace('    of: {family: "rack"}\n', "")
    (odd_spec / "rest.yaml").write_text(rest, encoding="utf-8")
    old, new, message = _MEMORIES[name]
    for path in (rack, odd_spec / "rest.yaml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(old, new), encoding="utf-8")
    _refused(odd_spec, message)


#: Slips in the spec itself, in what the odd one lacks: the file, old text, new text, message.
_SPEC = {
    "blocks that do not fill K": ("tensor_products.yaml", "block: 32,", "block: 24,", r"tensor_products.yaml:\d+:\d+: blocks of 24 do not fill the 32 elements along K that tcgen05.mma\S+ with .* k = 32 has"),
    "scaled products without a row": ("tensor_products.yaml", '{kind: "kind::mxf4"}, stype', '{kind: "kind::mxf8f6f4", cta_group: "cta_group::1"}, stype', r"tcgen05_mma.yaml:\d+:\d+: no entry of tensor_products.scales covers tcgen05.mma\S+mxf4\S* with"),
    "issuers twice": ("protocol.yaml", "issuers:\n", 'issuers:\n      - {instructions: ["tcgen05.mma"], alone: "one warp", text: "x", source: "1"}\n', r"protocol.yaml:\d+:\d+: tcgen05.mma has other issuers already; see also"),
    "a role twice": ("protocol.yaml", 'role: "commit"', 'role: "issue"', r"protocol.yaml:\d+:\d+: 'issue' is there twice; see also"),
    "a section that no release has": ("descriptors.yaml", 'source: "9.7.16.4.3, Example 1"', 'source: "9.7.16.4.4, Example 1"', r"descriptors.yaml:\d+:\d+: PTX ISA 9.1 has no section 9.7.16.4.4; sections.yaml lists those of 9.7.16"),
    "a section that a later release lacks": ("descriptors.yaml", 'source: "PTX ISA 9.4, 9.7.18.4.2.1"', 'source: "PTX ISA 9.4, 9.7.18.4.2.2"', r"descriptors.yaml:\d+:\d+: PTX ISA 9.4 has no section 9.7.18.4.2.2; sections.yaml lists those of 9.7.18"),
    "a section twice": ("sections.yaml", '"9.4": "9.7.18.3.3"', '"9.4": "9.7.18.3.2"', r"sections.yaml:\d+:\d+: a second section 9.7.18.3.2 of PTX ISA 9.4"),
    "a word of PTX that means another": ("words.yaml", '"nvf4"', '"tf32"', r"words.yaml:\d+:\d+: the word 'tf32' is a word of PTX: leave it out"),
    "a word twice": ("words.yaml", '"nvf4"', '"mxfp4"', r"words.yaml:\d+:\d+: the word 'mxfp4' means something already: leave it out"),
    "a word that means nothing": ("words.yaml", 'means: ["kind::mxf4 e2m1"', 'means: ["kind::mxf5 e2m1"', r"words.yaml:\d+:\d+: no instruction has kind::mxf5"),
    "words that no instruction has together": ("words.yaml", 'means: ["wgmma mma_async"]', 'means: ["wgmma ldmatrix"]', r"words.yaml:\d+:\d+: each word of 'wgmma ldmatrix' is one of PTX, but no instruction has them all: leave one out, or list them"),
    "a preference for no fact": ("words.yaml", 'fact: "dtype"', 'fact: "dtypes"', r"words.yaml:\d+:\d+: unknown fact 'dtypes'; known: "),
    "a preference for a value that nothing has": ("words.yaml", 'first: ["cta_group::1"]', 'first: ["cta_group::3"]', r"words.yaml:\d+:\d+: unknown cta_group 'cta_group::3'; known: cta_group::1, cta_group::2"),
    "a preference for no number": ("words.yaml", 'fact: "sparse", first: ["no"]', 'fact: "sparse"', r"words.yaml:\d+:\d+: sparse is no number: say first:"),
    "a selection without values": ("tensor_memory.yaml", '      - {name: "scale_id", when: {blocks: 4}, values: [0], source: "9.7.16.10.7.2.3"}\n', "", r"tensor_memory.yaml:\d+:5: no entry gives the values of scale_id for the tensor-scales of a of"),
    "two selections": ("tensor_memory.yaml", "when: {blocks: [2, 6]}", "when: {blocks: [1, 2, 6]}", r"tensor_memory.yaml:\d+:9: two entries give the values of scale_id for the tensor-scales of a of"),
    "a mask that reads nothing": ("descriptors.yaml", "(use_span + skip_span)", "(use_span + skip_spam)", r"descriptors.yaml:\d+:\d+: unknown name 'skip_spam'"),
    "a mask of an unknown field": ("descriptors.yaml", "fields: {skip_span: 5", "fields: {skip_spam: 5", r"descriptors.yaml:\d+:\d+: the zero-column mask descriptor has no field 'skip_spam'"),
    "a mask of an M without parts": ("descriptors.yaml", "{m: 128, fields: {skip_span: 5", "{m: 99, fields: {skip_span: 5", r"descriptors.yaml:\d+:\d+: 1 parts do not go with M = 99"),
    "a swizzle without a layout": ("shared_memory.yaml", 'majorness: "K"\n    swizzles: ["32B", "64B", "128B"]', 'majorness: "K"\n    swizzles: ["32B", "64B"]', r"shared_memory.yaml:\d+:\d+: no canonical layout is K-major with swizzle '128B'"),
    "a swizzle with two layouts": ("shared_memory.yaml", 'majorness: "K"\n    swizzles: ["32B"', 'majorness: "K"\n    swizzles: ["none", "32B"', r"shared_memory.yaml:\d+:\d+: two canonical layouts are K-major with swizzle 'none'; see also"),
    "a majorness of nobody": ("shared_memory.yaml", '{majorness: "MN", family: "wgmma"', '{majorness: "MN", family: "wgmmma"', r"shared_memory.yaml:\d+:\d+: unknown family 'wgmmma'; known: "),
    "an atom of another span": ("shared_memory.yaml", "atom_k: [8, 4]", "atom_k: [8, 8]", r"shared_memory.yaml:\d+:\d+: swizzle 64B: an atom has 4 units of 16 bytes along its span, not 8"),
    "CuTe's text of another swizzle": ("shared_memory.yaml", "Swizzle<2,4,3>", "Swizzle<2,4,2>", r"shared_memory.yaml:\d+:\d+: swizzle 64B: Swizzle<2,4,2> moves other bytes than"),
    "another base offset": ("shared_memory.yaml", "((start >> 7) & 7)", "((start >> 7) & 1)", r"shared_memory.yaml:\d+:\d+: swizzle 64B: with 0, a pattern that starts at 256 lies otherwise than one at 0"),
    "a format without a swizzle": ("descriptors.yaml", 'name: "swizzle", title: "swizzle mode", low: 62', 'name: "mode", title: "swizzle mode", low: 62', r"descriptors.yaml:\d+:\d+: a descriptor of a matrix has the fields start_address, swizzle; this one lacks swizzle"),
    "a kind of nothing": ("descriptors.yaml", 'kinds: ["kind::mxf8f6f4"]', 'kinds: ["kind::mxf8f6f5"]', r"descriptors.yaml:\d+:\d+: unknown kind 'kind::mxf8f6f5'; known: kind::f16"),
    "a descriptor in half a register": ("types.yaml", 'operands: ["s-desc"], elements: [], when: {family: "tcgen05.cp"}, registers: ["b64"', 'operands: ["s-desc"], elements: [], when: {family: "tcgen05.cp"}, registers: ["b32"', r"types.yaml:\d+:\d+: 's-desc' of tcgen05.cp is of the kind shared-descriptor, which a register b32 of 32 bits cannot carry; allowed: b64, u64"),
    "a load beyond a warp's lanes": ("layouts/tcgen05.yaml", 'span: 32}\n    axes: {row: "lanes"', 'span: 32}\n    axes: {row: "2 * lanes"', r"tcgen05.yaml:\d+:\d+: 'r' of tcgen05.ld\S+ lies in 64 lanes; a warp reaches 32 lanes of tensor memory"),
    "asynchronous without a wait": ("protocol.yaml", 'families: ["cp.async"]', 'families: ["mbarrier"]', r"cp_async.yaml:\d+:\d+: no protocol says how to wait for cp.async; add 'cp.async' to the families of one"),
    "a modifier that a transition's instruction lacks": ("protocol.yaml", 'modifiers: ["relaxed"], rule: "unpublished-barrier"', 'modifiers: ["relaxd"], rule: "unpublished-barrier"', r"protocol.yaml:\d+:\d+: unknown modifier of barrier.cluster.arrive 'relaxd'; known: .*relaxed"),
    "a modifier that a pairing's instruction lacks": ("protocol.yaml", 'modifiers: ["mbarrier"], needs: ["mbarrier.test_wait"', 'modifiers: ["mbarier"], needs: ["mbarrier.test_wait"', r"protocol.yaml:\d+:\d+: unknown modifier of cp.async.bulk 'mbarier'; known: .*mbarrier"),
    "a fault that check has no rule for": ("protocol.yaml", 'rule: "relinquished-permit"', 'rule: "relinquished-permits"', r"protocol.yaml:\d+:\d+: ptxmma check has no rule 'relinquished-permits' about lifecycles; allowed: .*relinquished-permit"),
    "a fault of a lifecycle that check finds without one": ("protocol.yaml", 'rule: "tensor-memory-exhausted"', 'rule: "bank-conflict"', r"protocol.yaml:\d+:\d+: ptxmma check has no rule 'bank-conflict' about lifecycles; allowed: .*freed-in-use, .*unwaited-copy"),
    "a fault without its repair": ("protocol.yaml", ', mend: "write bar.sync 0 after the wait"', "", r"protocol.yaml:\d+:\d+: what breaks a rule needs mend, its repair"),
    "a modifier of another object that nothing has": ("protocol.yaml", 'without: ["bulk_group", "prefetch"]', 'without: ["bulk_groups"]', r"protocol.yaml:\d+:\d+: unknown modifier 'bulk_groups'"),
    "a fault of a pairing that is one of lifecycles": ("protocol.yaml", 'rule: "wrong-byte-count"', 'rule: "freed-in-use"', r"protocol.yaml:\d+:\d+: ptxmma check has no rule 'freed-in-use' about pairings; allowed: .*unmatched-mbarrier"),
    "two states after one": ("protocol.yaml", '{states: ["changed"], on: ["tensormap.cp_fenceproxy"]', '{states: ["changed"], on: ["fence.proxy.tensormap::generic.release"]', r"protocol.yaml:\d+:\d+: fence.proxy.tensormap::generic.release leads from changed to two states; see also"),
    "full of nothing": ("protocol.yaml", '{states: ["relinquished"], on: ["tcgen05.alloc"], rule', '{states: ["relinquished"], on: ["tcgen05.alloc"], full: true, rule', r"protocol.yaml:\d+:\d+: full is for a fault in a lifecycle in which a transition adds objects"),
    "a transition of all objects of which none has a state": ("protocol.yaml", '{states: ["relinquished"], on: ["tcgen05.alloc"], rule', '{states: ["relinquished"], on: ["tcgen05.alloc"], of_all: true, rule', r"protocol.yaml:\d+:\d+: of_all is for a lifecycle in which each object has a state"),
    "always of nothing": ("protocol.yaml", 'on: ["tensormap.cp_fenceproxy"], to', 'on: ["tensormap.cp_fenceproxy"], always: true, to', r"protocol.yaml:\d+:\d+: always is for a fault: leave it out"),
    "a pool of another instruction": ("protocol.yaml", 'takes: "setmaxnreg.inc"', 'takes: "setmaxnreg.more"', r"protocol.yaml:\d+:\d+: unknown modifier of setmaxnreg 'more'"),
    "a pair of no instruction": ("protocol.yaml", 'both: ["cta_group::2"]', 'both: ["cta_group::3"]', r"protocol.yaml:\d+:\d+: unknown modifier of tcgen05.alloc 'cta_group::3'"),
    "a modifier that no fence has": ("protocol.yaml", 'without: ["global"]', 'without: ["globe"]', r"protocol.yaml:\d+:\d+: unknown modifier of fence.proxy.async 'globe'"),
    "phases without arrivals": ("protocol.yaml", '        arrives: ["mbarrier.arrive", "mbarrier.arrive_drop", "cp.async.mbarrier.arrive", "tcgen05.commit"]\n', "", r"protocol.yaml:\d+:\d+: faults of phases need instructions: say arrives"),
    "counted of nothing": ("protocol.yaml", '{states: ["published"], on: ["fence.proxy.tensormap::generic.acquire"], to', '{states: ["published"], on: ["fence.proxy.tensormap::generic.acquire"], counted: true, to', r"protocol.yaml:\d+:\d+: counted is for a change in a lifecycle in which a transition adds objects"),
    "an instruction of transitions that is in none": ("protocol.yaml", 'others: ["bar", "barrier", "atom"', 'others: ["bar", "barrier", "membar", "atom"', r"protocol.yaml:\d+:\d+: 'membar' is needless here, no transition names it: leave it out"),
    "bytes that nothing brings": ("protocol.yaml", 'brings: ["cp.async.bulk"], stores', 'brings: ["cp.bulk"], stores', r"protocol.yaml:\d+:\d+: unknown instruction 'cp.bulk'"),
    "a message without its rule": ("messages.yaml", 'rules: ["fence-outside-loop"]', 'rules: ["fence-outside-loops"]', r"messages.yaml:\d+:\d+: unknown rule of ptxmma check 'fence-outside-loops'; known: "),
    "a number that is not the code": ("dequantisation.yaml", '"mov.b32 minus, 0xc308c308;"', '"mov.b32 minus, 0xc309c309;"', r"dequantisation.yaml:\d+:\d+: s4 to bf16: code 0x\w becomes -?\d+, not -?\d+"),
    "a number that is rounded": ("dequantisation.yaml", '"mov.b32 sixteenth, 0x2c002c00;"', '"mov.b32 sixteenth, 0x2c012c01;"', r"dequantisation.yaml:\d+:\d+: u4 to f16: 'fma.\S+ out1.*': a number is rounded"),
    "a number of two codes": ("dequantisation.yaml", '"lop3.b32 t0, codes, 0x000f000f, 0x43004300, 0xea;"', '"lop3.b32 t0, codes, 0x001f000f, 0x43004300, 0xea;"', r"dequantisation.yaml:\d+:\d+: u4 to bf16: 8 codes must give as many numbers"),
    "codes in another order on a newer target": ("dequantisation.yaml", '"prmt.b32 out1, p0, p2, 0x7632;"', '"prmt.b32 out1, p0, p2, 0x3276;"', r"dequantisation.yaml:\d+:\d+: the other conversion from e2m1 to f16 wants its codes in another order, .* see also"),
    "a scale of no target": ("dequantisation.yaml", 'steps: ["mul.rn.f16x2 out0, value, scale;"]\n    ptx: "6.0"\n    targets: ["sm_70"]', 'steps: ["mul.rn.f16x2 out0, value, scale;"]\n    ptx: "6.0"\n    targets: ["sm_71"]', r"dequantisation.yaml:\d+:\d+: unknown target 'sm_71'"),
    "a value of two types": ("tensor_maps.yaml", 'TYPE_UINT16", value: 1', 'TYPE_UINT16", value: 0', r"tensor_maps.yaml:\d+:\d+: the value 0 is there twice; see also"),
    "an element of another width": ("tensor_maps.yaml", 'elements: ["e2m1", "u4", "s4"]', 'elements: ["e2m1", "u4", "s8"]', r"tensor_maps.yaml:\d+:\d+: s8 has 8 bits, and CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B has elements of 4"),
    "a swizzle that loses bytes": ("tensor_maps.yaml", '(address >> 7) % 2 << 6)"', '(address >> 6) % 2 << 6)"', r"tensor_maps.yaml:\d+:\d+: swizzle 128B_ATOM_64B: .* does not lead back when it is applied twice"),
    "a rule of tensor maps about nothing": ("tensor_maps.yaml", 'need: "1 <= rank <= 5"', 'need: "1 <= 5"', r"tensor_maps.yaml:\d+:\d+: '1 <= 5' reads no number of a tensor map; known: rank"),
    "a rule of tensor maps that divides by 0": ("tensor_maps.yaml", 'need: "shape % 128 == 0"', 'need: "shape % (128 - 128) == 0"', r"tensor_maps.yaml:62:\d+: 128 - 128 may be 0, and divides here; allowed: a number from 1 on, bits, largest_box, padded_box, alignment"),
    "a rule of tensor maps that divides by what may be 0": ("tensor_maps.yaml", 'need: "stride % 32 == 0"', 'need: "stride % unit == 0"', r"tensor_maps.yaml:65:\d+: unit may be 0, and divides here; allowed: a number from 1 on, bits"),
    "a sparse product without a pattern": ("sparsity.yaml", '"tcgen05.mma.ws.sp"], kind: "kind::tf32"}', '"tcgen05.mma.sp"], kind: "kind::tf32"}', r"tcgen05_mma_ws.yaml:\d+:\d+: no entry of granularities covers tcgen05.mma.ws.sp\S+tf32 with"),
    "a mask of columns without the parts of an M": ("descriptors.yaml", '"128": 1, "64": 2, "32": 4}', '"128": 1, "64": 2}', r"products.yaml:\d+:\d+: a mask of columns .* it has parts for M of 128, 64, not of 32; see also .*descriptors.yaml:\d+"),
    "a swizzle that no descriptor can say": ("descriptors.yaml", '"128B_ATOM_32B": 1, ', "", r"shared_memory.yaml:\d+:\d+: matrix descriptors of 'tcgen05' cannot say swizzle '128B_ATOM_32B'; .*descriptors.yaml:\d+"),
    "a majorness that no descriptor can say": ("descriptors.yaml", 'values: {"MN": 1}, source: "9.7.16.10.1, Table 51"}', 'values: {"K": 0}, source: "9.7.16.10.1, Table 51"}', r"shared_memory.yaml:\d+:\d+: an instruction descriptor cannot say .*: a_majorness = MN is not legal.*descriptors.yaml:\d+"),
    "an ID of scale factors that no descriptor can say": ("descriptors.yaml", '{values: {"0": 0, "2": 2}}', '{values: {"0": 0}}', r"tensor_memory.yaml:\d+:\d+: an instruction descriptor cannot say .*: scale_b_id = 2 is not legal.*descriptors.yaml:\d+"),
    "a version of sparsity that no descriptor can say": ("descriptors.yaml", '"sm_100a", "sm_101a", "sm_103a", "sm_110a"', '"sm_100a", "sm_103a", "sm_110a"', r"tensor_products.yaml:\d+:\d+: an instruction descriptor cannot say .*: sparsity_version .*; see also .*descriptors.yaml:\d+"),
    "a descriptor without the type of B": ("descriptors.yaml", 'name: "btype"', 'name: "other"', r"tensor_products.yaml:\d+:\d+: an instruction descriptor has no field that says btype, of which tcgen05.*descriptors.yaml:\d+"),
    "a mask of lanes that is too short": ("instructions/tcgen05_mma.yaml", 'count: "4 * ctas"', 'count: "2 * ctas"', r"tcgen05_mma.yaml:\d+:\d+: 'disable-output-lane' of tcgen05.mma.* has 64 bits; D lies in 128 lanes"),
    "addresses that do not reach all columns": ("spaces.yaml", "address: {column: 0, lane: 16}", "address: {column: 0, lane: 9}", r"spaces.yaml:\d+:\d+: addresses have 9 bits for the column, which reach 512 of them; there are 576"),
    "a suspicion that reads an unknown name": ("shared_memory.yaml", 'when: "by_all and value == 0"', 'when: "by_all and length == 0"', r"shared_memory.yaml:\d+:\d+: unknown name 'length' \(known here: alignment, along_k, base_offset, by_all, end"),
    "a text of a suspicion that reads an unknown name": ("shared_memory.yaml", "a base offset of {base_offset}, but nothing", "{name}: a base offset of {base_offset}, but nothing", r"shared_memory.yaml:\d+:\d+: unknown name 'name'"),
    "a canonical layout that puts two elements in one place": ("shared_memory.yaml", "(x // 8) * sbo + (x % 8) * 16 + (k // 16) * lbo", "(x // 8) * sbo + (x % 8) * 8 + (k // 16) * lbo", r"shared_memory.yaml:\d+:\d+: K-major: swizzle none: two places of the operand share one: x moves byte by 8"),
}  # fmt: skip


def test_slips_in_the_spec(tmp_path: Path) -> None:
    """All at once, as an author meets them: what is reported is mended, and the next run reports what could not be judged before."""
    assert not [name for name, (file, old, _, _) in _SPEC.items() if old not in (paths.SPEC / file).read_text(encoding="utf-8")], "stale"
    left = dict(_SPEC)
    while left:
        spec = _copied(tmp_path / str(len(left)))
        made = {}
        for name, (file, old, new, message) in left.items():
            text = (spec / file).read_text(encoding="utf-8")
            if old in text:  # no other slip has changed it
                (spec / file).write_text(text.replace(old, new, 1), encoding="utf-8")
                made[name] = message
        stderr = invoke("validate", "--spec", spec).stderr
        found = {name for name, message in made.items() if re.search(message, stderr)}
        assert found, f"{', '.join(left)}: {stderr}"
        left = {name: slip for name, slip in left.items() if name not in found}
