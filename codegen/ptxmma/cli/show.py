"""``ptxmma show``."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import click

from ptxmma.catalog.citations import cited, elsewhere
from ptxmma.cli import Failure
from ptxmma.cli.command import Command
from ptxmma.cli.options import (
    catalog_of,
    find,
    instruction_argument,
    json_option,
    named_option,
    named_target,
    product_options,
    refuse_product,
    resolved,
)
from ptxmma.cli.render import aligned, blocks, emit, heading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ptxmma.catalog.instructions import Catalog, Instruction
    from ptxmma.catalog.summaries.description import ComparedLayout, CplusplusFacts, OperandFacts
    from ptxmma.catalog.summaries.listing import FamilySummary
    from ptxmma.cli.answers import OnTarget, Shown, ShownFamily

#: So many of the facts about the legal products of an opcode are shown in short, of the lines of a block of a family.
_PRODUCTS = 5
_SOME = 3


@click.command("show", cls=Command)
@instruction_argument
@product_options
@click.option("--all", "every", is_flag=True, help="Print everything that is known about the instruction.")
@click.option("--evidence", "proof", is_flag=True, help="Print the evidence of the instruction, and the errata of its family.")
@named_option("--target", "target", "Say whether this target accepts it: sm_90a, 90, H100.")
@json_option
def command(spelling: str, database: str | None, every: bool, proof: bool, target: str | None, as_json: bool) -> None:
    """Print what is needed to use one instruction, or a family in short.

    Takes any spelling that assemblers accept, or words: modifiers, shapes, types, nvfp4.  Of several instructions that match it takes the
    usual one, and says so.  For a wrong spelling it lists the closest.  Also takes a line of PTX, an asm string, a function or a type of
    the C++ headers, an atom of CuTe, a machine instruction, and the name of a family or an opcode.

    \b
    Examples:
      ptxmma show mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
      ptxmma show m16n8k16 f16
      ptxmma show SM80_16x8x16_F32F16F16F32_TN
      ptxmma show wgmma
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.catalog.summaries import listing
    from ptxmma.catalog.summaries.description import describe
    from ptxmma.matrices.operations import operation

    asked = named_target(catalog_of(database).database.spec, target)
    if _family(spelling, database, asked, every=every, proof=proof, as_json=as_json):
        return
    instruction = resolved(find(spelling, database))
    try:
        answer = cast("Shown", {**describe(instruction), "computes": operation(instruction).statement(instruction)})
    except ValueError as error:  # the evidence beside the database
        raise Failure(str(error)) from None
    if asked:
        answer["on_target"] = _on_target(instruction, asked)
    if as_json:
        emit(answer)
        return
    status = "documented" if answer["documented"] else "not documented: assemblers accept it, the manual does not have it"
    numbered = elsewhere(catalog_of(database).database.spec)
    click.echo(f"{heading(answer['instruction'])}\n{answer['title']}\n{status} ({cited(answer['source'], numbered)})")
    if asked:
        _blocks({f"on {asked}": [answer["on_target"]["text"]]}, numbered)
    evidence = {"evidence": _evidence(answer), f"errata of {answer['family']}": _errata(answer)}
    if every:
        _blocks(_everything(answer) | evidence | {"more": _questions(instruction, answer)}, numbered)
    elif proof:
        _blocks(evidence, numbered)
    else:
        threads = listing.executed_by(instruction.database.spec.scopes[answer["scope"]])
        click.echo(f"accepted by {_least(instruction)}; executed by {threads}")
        examples = [] if answer["product"] else _questions(instruction, answer)
        more = [f"ptxmma show {_subject(instruction, answer['product'] or {})} --all", *examples]
        _blocks(_in_short(instruction, answer) | {"more": more}, numbered)


def _on_target(instruction: Instruction, target: str) -> OnTarget:
    """The first version in which a target accepts an instruction, or what it has instead."""
    if first := instruction.accepted_by().get(target):
        return {"target": target, "ptx": first, "text": f"accepted from PTX ISA {first} on"}
    from ptxmma.catalog.instructions import catalog
    from ptxmma.check.diagnosis import Diagnoses

    return {"target": target, "ptx": "", "text": Diagnoses(catalog(instruction.database)).unsupported(instruction, target, "").message}


def _in_short(instruction: Instruction, answer: Shown) -> dict[str, Sequence[str]]:
    """The blocks that a user needs first: the first form, and in C++ the typed front of a product in tensor memory, else the function."""
    said, first = answer["cplusplus"], {operand.name for form in instruction.forms[:1] for operand in form.operands}
    if said["front_header"] not in ("", said["header"]):
        said = {**said, "header": "", "functions": []} if answer["product"] else {**said, "front_header": "", "front": ""}
    product = answer["product"]
    return {
        "syntax": _cut(_syntax(answer), 1),
        "computes": [answer["computes"]],
        "product" if product else "products": [": ".join(_choice(answer))]
        if product
        else ["; ".join(_cut(_choice(answer), _PRODUCTS))] * bool(_choice(answer)),
        "operands": _operands([operand for operand in answer["operands"] if operand["name"] in first], joined=True),
        "C++": _cplusplus({**said, "functions": said["functions"][:1], "statements": []}, answer["operation"]),
    }


def _least(instruction: Instruction) -> str:
    """The minimum targets of an instruction, and its first version."""
    from ptxmma.catalog.summaries import listing

    accepted = instruction.accepted_by()
    targets = " ".join(listing.least_targets(instruction.database.spec, accepted))
    return f"{targets}, from PTX ISA {listing.first_version(accepted)} on"


def _cut(lines: Sequence[str], most: int) -> list[str]:
    """The first lines of a block, and the number of the others."""
    return [*lines[:most], *([f"... and {len(lines) - most} more"] if len(lines) > most else [])]


def _syntax(answer: Shown) -> list[str]:
    return [f"{answer['instruction']} {form['operands']}".rstrip() for form in answer["forms"]]


def _everything(answer: Shown) -> dict[str, Sequence[str]]:
    """Every block but the evidence."""
    return {
        "syntax": _syntax(answer),
        "computes": [answer["computes"], *([f"{answer['operations']} operations"] if answer["operations"] else [])],
        "product" if answer["product"] else "products": _choice(answer),
        "hints": _hints(answer),
        "operands": _operands(answer["operands"]),
        "registers of a thread": _registers(answer),
        "C++": _cplusplus(answer["cplusplus"], answer["operation"]),
        "formulas": _formulas(answer),
        "in tensor memory": _places(answer),
        "CuTe and Triton": _notations(answer),
        "metadata": _metadata(answer),
        "requirements": _requirements(answer),
        "accepted by": _targets(answer),
        "semantics": _statements(answer["semantics"]),
        "undefined where": _statements(answer["undefined"]),
        "the same for all threads": _statements(answer["uniform"]),
        "notes": _statements(answer["notes"]),
        "throughput": _throughput(answer),
    }


def _blocks(titled: Mapping[str, Sequence[str]], numbered: Mapping[str, str]) -> None:
    """Print lines under titles, and every section that they cite with its numbers in other releases of the manual."""
    blocks({title: [cited(line, numbered) for line in lines] for title, lines in titled.items()})


def _family(text: str, database: str | None, target: str | None, *, every: bool, proof: bool, as_json: bool) -> bool:
    """Print a family or an opcode in short, if the text is its name and no instruction, or a list of families that begin so; if it is."""
    known = catalog_of(database)
    name = text.strip().lower()
    if not name or known.meaning(text.strip()):
        return False
    families = list(dict.fromkeys(entry.family for entry in known.database.spec.instructions))
    from ptxmma.catalog.summaries import listing

    if name not in families and not _is_opcode(known, name):
        beginning = [listing.summary(known, family) for family in families if family.startswith(name)]
        if beginning:
            refuse_product(f"name one of those that begin with {name}")
        _families(name, beginning, as_json=as_json)
        return bool(beginning)
    listed = f"ptxmma list --family {name}" if name in families else f"ptxmma list {name}"
    refuse_product(f"name one of the family {name}: {listed}")
    answer = cast("ShownFamily", listing.summary(known, name))
    if target:
        answer["on_target"] = {
            "target": target,
            "accepted": sum(target in member.accepted_by() for member in listing.members_of(known, name)),
        }
    if as_json:
        emit(answer)
        return True
    undocumented = answer["instructions"] - answer["documented"]
    counted = f"{answer['instructions']} instructions" + (f", {undocumented} of them not documented" if undocumented else "")
    sources = cited(", ".join(answer["sources"]), elsewhere(known.database.spec))
    click.echo(f"{heading(name)}\n{chr(10).join(answer['titles']) if every else _title(answer)}\n{counted} ({sources})")
    if target:
        blocks({f"on {target}": [f"{answer['on_target']['accepted']} of {answer['instructions']} instructions accepted"]})
    rows = [
        (" ".join(group["types"]), " ".join(group["shapes"]), f"PTX ISA {group['ptx']}", " ".join(group["targets"]))
        for group in answer["types"]
        if group["shapes"]
    ]
    headers = [f"#include <{header}>" for header in answer["headers"]]
    errata = [f"{entry['id']} ({entry['bites']}): {entry['holds']}" for entry in answer["errata"]]
    facts = {"syntax": answer["syntax"], "types and shapes": aligned(rows) if rows else []}
    limits = {"threads, sizes and limits": aligned(listing.facts(answer))}
    if every:
        blocks(facts | limits | {"C++": headers, "errata": errata, "every instruction": [listed]})
    elif proof:
        blocks({"errata": errata})
    else:
        more = [f"ptxmma show {name} --all", *([f"ptxmma show {name} --evidence"] if errata else []), listed]
        blocks({title: _cut(lines, _SOME) for title, lines in facts.items()} | limits | {"more": more})
    return True


def _is_opcode(known: Catalog, name: str) -> bool:
    """Return whether a text is the opcode of several instructions of which none is preferred."""
    from ptxmma.catalog.lookup import AmbiguousInstruction, resolve

    if all(entry.name != name for entry in known.database.spec.instructions):
        return False
    try:
        resolve(known, name)
    except AmbiguousInstruction:
        return True
    return False


def _families(name: str, answers: list[FamilySummary], *, as_json: bool) -> None:
    """Print the families that begin with a name, if any."""
    if as_json and answers:
        emit(answers)
    elif answers:
        rows = [(answer["family"], str(answer["instructions"]), _title(answer)) for answer in answers]
        click.echo(f"{heading(name)} begins the names of these families")
        blocks({"family, instructions, title": aligned(rows), "one of them": [f"ptxmma show {answers[0]['family']}"]})


def _title(answer: FamilySummary) -> str:
    """The first title of a family, and the number of the others."""
    first, *others = answer["titles"]
    return first + f"; {len(others)} more" * bool(others)


def _hints(answer: Shown) -> list[str]:
    """A row for each value of each hint."""
    rows = []
    for hint in answer["hints"]:
        needs = "".join(f"; {_demands(rule)}" for rule in hint["requirements"])
        for value, text in hint["values"].items():
            default = "; left out, it is this" if value == hint["default"] else ""
            rows.append((f".{value}", f"{text}{default}{needs} ({hint['source']})"))
    return aligned(rows)


def _operands(operands: Sequence[OperandFacts], *, joined: bool = False) -> list[str]:
    """A row for each operand: name, kind, element type, registers, constraint, elements, matrix, memory, legal immediates.

    Neighbours of which all but the names is the same may be ``joined``.
    """
    rows = []
    for operand in operands:
        registers = f"{operand['registers']} x {operand['register_types'][0]}" if operand["registers"] else ""
        elements = f"{operand['elements']} elements" if operand["elements"] else ""
        matrix = f"of {operand['rows']}x{operand['cols']}" if operand["elements"] or operand["rows"] * operand["cols"] else ""
        constraint = f'"{operand["constraint"]}"'
        named = operand["name"], operand["kind"], operand["type"] or ""
        rows.append((*named, registers, constraint, elements, matrix, _memory(operand), _immediates(operand["immediates"])))
    if joined:
        alike = groupby(rows, key=lambda row: row[1:])
        rows = [(", ".join(name for name, *_ in each), *facts) for facts, each in alike]
    return aligned(rows)


def _memory(operand: OperandFacts) -> str:
    """The alignment of an address and the bytes that begin there; what a number counts, and what leaving it out means."""
    facts = []
    if operand["alignment"]:
        facts.append(f"multiple of {operand['alignment']} bytes")
    if operand["row_bytes"]:
        facts.append(f"rows of {operand['row_bytes']} bytes")
    if operand["unit"]:
        facts.append(f"in {operand['unit']}")
    if operand["unit"] and operand["default"] is not None:  # without a unit it is the default of a wrapper, not of PTX
        facts.append(f"default {operand['default']}")
    return ", ".join(facts)


def _cplusplus(said: CplusplusFacts, operation: str) -> list[str]:
    """The header, the functions, the typed front named for the operation, and asm statements over the parameters of the functions."""
    includes = dict.fromkeys(path for path in (said["header"], said["front_header"]) if path)
    lines = [*(f"#include <{path}>" for path in includes), *(f"{signature};" for signature in said["functions"])]
    lines += [f"using {operation.title().replace('-', '')} = {said['front']};"] if said["front"] else []
    return [*lines, *(line for statement in said["statements"] for line in statement.splitlines())]


def _immediates(legal: list[int] | dict[str, int] | None) -> str:
    if legal is None:
        return ""
    if isinstance(legal, dict):
        return f"immediate {legal['first']}..{legal['last']}" + (f" by {legal['step']}" if "step" in legal else "")
    return f"immediate {_either(legal)}"


def _either(values: list[Any]) -> str:
    return " or ".join(map(str, values))


def _demands(rule: dict[str, Any]) -> str:
    """The version and the targets of a rule, as far as it has them."""
    ptx = f"PTX ISA {rule['ptx']}" if "ptx" in rule else ""
    return ", ".join(filter(None, (ptx, _either(rule.get("targets", [])))))


def _formulas(answer: Shown) -> list[str]:
    """Each layout with the expressions of both directions, a line for each value."""
    lines = []
    for layout in answer["layouts"]:
        lines.append(f"{', '.join(layout['operands'])}: {layout['name']}")
        for way in (layout["forward"], layout["back"]):
            lines += [f"  {name} = {expression}" for name, expression in way.items()]
    return lines


def _registers(answer: Shown) -> list[str]:
    """The number of registers in each form, operand by operand; the result may be in the registers of the addend."""
    access = {operand["name"]: operand["access"] for operand in answer["operands"] if operand["kind"] == "accumulator"}
    lines = []
    for form in answer["forms"]:
        each = form["registers"]
        total, written = sum(each.values()), [name for name in each if access.get(name) == "write"]
        shared = "".join(f"; {total - each[name]} where {name} is the addend" for name in written if "read" in access.values())
        parts = ", ".join(f"{name} {count}" for name, count in each.items())
        if each:
            lines.append(f"{form['name'] + ': ' if form['name'] else ''}{total} of 32 bits ({parts}){shared}")
    return list(dict.fromkeys(lines))


def _notations(answer: Shown) -> list[str]:
    """Each layout as CuTe and Triton write it."""
    lines = []
    for layout in answer["layouts"]:
        names = ", ".join(layout["operands"])
        lines += [f"{names}: {layout['cute']}"] if layout["cute"] else []
        bases = layout["triton"]
        lines += [f"{names}: {{{', '.join(f'{name}: {json.dumps(bases[name])}' for name in bases)}}}"] if bases else []
    return lines


def _metadata(answer: Shown) -> list[str]:
    metadata = answer["metadata"]
    if metadata is None:
        return []
    return [
        f"pattern {metadata['pattern']}, fields of {metadata['width']} bits: {' '.join(metadata['legal'])}",
        f"selectors 0..{metadata['selectors'] - 1}: {metadata['contributors']}",
    ]


def _requirements(answer: Shown) -> list[str]:
    """The manual's rules, and the differing behaviour of assemblers, each with its source."""

    def line(rule: dict[str, Any], more: str) -> str:
        return f"{', '.join(filter(None, (_demands(rule), rule.get(more, ''))))} ({rule['source']})"

    stated = [line(rule, "note") for rule in answer["requirements"]]
    return stated + [f"assemblers: {line(seen, 'releases')}" for seen in answer["observed"]]


def _targets(answer: Shown) -> list[str]:
    """The accepting targets by the first PTX ISA version, and where releases of the assembler differ."""
    accepted = answer["accepted_by"]
    lines = []
    for version in sorted(set(accepted.values())):
        lines.append(f"PTX ISA {version}: {' '.join(target for target, first in accepted.items() if first == version)}")
    return lines + [f"{subject}: {text}" for subject, text in answer["releases"].items()]


def _statements(entries: list[dict[str, Any]]) -> list[str]:
    return [f"{entry['text']} ({entry['source']})" for entry in entries]


def _throughput(answer: Shown) -> list[str]:
    """The peaks, which are published for the chip's tensor cores and not for the instruction."""
    lines = []
    for peak in answer["throughput"]:
        most = f"at most {peak['operations']} operations in each SM and clock"
        total = f"{peak['published']} * 10^12 a second with {peak['sms']} SMs at {peak['clock']} MHz"
        lines.append(f"{peak['target']}, {peak['chip']}: {most}, {total} ({peak['source']})")
    return lines


def _errata(answer: Shown) -> list[str]:
    """Each with its section, and what becomes of code that follows the manual."""
    return [
        f"{entry['id']} ({entry['section']}, {entry['bites']}). It says: {entry['says']} What holds: {entry['holds']}"
        for entry in answer["errata"]
    ]


def _evidence(answer: Shown) -> list[str]:
    """The evidence, witness by witness."""
    proof = answer["evidence"]
    lines = []
    for names, releases in groupby(proof["assembled"].items(), key=lambda pair: pair[1]):
        lines.append(f"assembled by ptxas of CUDA {_span([release for release, _ in releases])}: {' '.join(names)}")
    for ran in proof["executed"]:
        wrong = f", {ran['wrong']} of them wrong" if ran["wrong"] else ""
        machine = f" ({_either(ran['machine'])})" if ran["machine"] else ""
        lines.append(f"run on {ran['chip']}, {ran['how']}{machine}: {ran['launches']} launches{wrong}")
    if not proof["executed"]:
        lines.append("not executed: no recorded run on a chip has it")
    lines += [f"the same layouts in CuTe: {atom}" for atom in proof["peers"]]
    lines += [f"other layouts in CuTe: {atom}" for atom in proof["differing"]]
    lines += [f"in CuTe: {', '.join(proof['atoms'])}"] if proof["atoms"] else []
    lines += [f"in LLVM: {', '.join(proof['intrinsics'])}"] if proof["intrinsics"] else []
    lines += [line for layout in proof["layouts"] for line in _compared(layout)]
    if not proof["assembled"]:
        lines.append("not assembled: no recorded answer of an assembler accepts it")
    return lines + [f"outdated: a fact has changed since the answer of {witness}" for witness in proof["stale"]]


def _compared(said: ComparedLayout) -> list[str]:
    """The definitions of other projects that lay operands out in the same way, and the ones that do not."""
    subject = f"{', '.join(said['operands'])} in {said['space']} ({said['name']})"
    agreeing = ", ".join(f"{count} definition{'s' * (count > 1)} of {peer}" for peer, count in said["agreeing"].items())
    lines = [f"{subject}: the same layout in {agreeing}" if agreeing else f"{subject}: not compared with another project"]
    lines += [f"{subject}: another layout in {definition}" for definition in said["differing"]]
    return lines + [f"outdated: a fact has changed since the answer about {subject}"] * bool(said["stale"])


def _span(releases: list[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _choice(answer: Shown) -> list[str]:
    """The product and its instruction descriptor, or of an opcode alone the products that are legal."""
    descriptor = answer["instruction_descriptor"]
    if descriptor is None:
        return answer["legal_products"]
    said = ", ".join(f"{name} = {value}" for name, value in answer["product"].items())
    return [said, f"instruction descriptor {descriptor['bits']}, with 0 for what the product leaves open"]


def _places(answer: Shown) -> list[str]:
    """The layouts in tensor memory, each with its formulas in both directions."""
    lines = []
    for layout in answer["tensor_layouts"]:
        lines.append(f"{', '.join(layout['operands'])}: {layout['name']}, {layout['title']}")
        for way in (layout["at"], layout["back"]):
            lines += [f"  {name} = {text}" for name, text in way.items()]
        lines += [f"  {name}: {' or '.join(map(str, values))}" for name, values in layout["selections"].items()]
    return lines


def _questions(instruction: Instruction, answer: Shown) -> list[str]:
    """Commands that answer more about a product, or about one that an opcode has."""
    from ptxmma.catalog.products import resolution

    if instruction.operation != resolution.OPERATION:
        return []
    descriptor = answer["instruction_descriptor"]
    if descriptor is None:
        first = next(resolution.every(instruction.database.spec, instruction.variant), None)
        return [f"ptxmma show {_subject(instruction, dict(first.chosen))}"] if first else []
    subject = _subject(instruction, answer["product"])
    result = next(operand["name"] for operand in answer["operands"] if operand["kind"] == "tensor-accumulator")
    return [
        f"ptxmma layout {subject} --operand {result} --row 0 --col 0",
        f"ptxmma trace {subject} --row 0 --col 0",
        f"ptxmma descriptor instruction {descriptor['kind']} {descriptor['bits']}",
    ]


def _subject(instruction: Instruction, product: Mapping[str, str | int]) -> str:
    return " ".join([instruction.canonical, *(f"--{name.replace('_', '-')} {value}" for name, value in product.items())])
