"""Whether a report can be what a run made: its numbers add up, and what it names is in the database.

Each function takes a report that fits its schema, and yields what is wrong with it.  What a changed database makes stale is no fault:
digests tell that (:mod:`ptxmma.evidence.facts`).
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ptxmma import ptx, requirements
from ptxmma.evidence import claims, facts
from ptxmma.evidence.assembler import Asked, Assembler, Space, unpacked
from ptxmma.evidence.corpus import Corpus
from ptxmma.evidence.peers import UNBOUND
from ptxmma.evidence.peers import Report as Peers
from ptxmma.evidence.silicon import Execution, Launch, Silicon
from ptxmma.instructions import Catalog, Instruction, OperandForm, UnknownInstruction
from ptxmma.requirements import version_key

#: A report as plain data.
Plain = Mapping[str, Any]


class Fault(NamedTuple):
    """What is wrong, and where: ``"instructions/12/launches"``."""

    place: str
    what: str


# --- a chip -----------------------------------------------------------------------------------------------------------------


def silicon(report: Silicon, catalog: Catalog) -> Iterator[Fault]:
    """What a chip cannot have done."""
    yield from _dated(report.date)
    own = {found.canonical: found for found in catalog.all()}
    spec = catalog.database.spec
    targets = {target.name: target.number for target in spec.targets}
    yield from _named("target", [report.target], targets, "target")
    number = targets.get(report.target)
    capability = report.chip.compute_capability
    if number is not None and capability.replace(".", "") != str(number):
        yield Fault("chip/compute_capability", f"a chip of compute capability {capability} does not run {report.target}")
    yield from _once("instructions", [row.instruction for row in report.instructions])
    yield from _once("beside", [row.instruction for row in report.beside])
    for table in ("instructions", "beside", "observations", "failures"):
        names = [row.instruction for row in getattr(report, table)]
        yield from _named(f"{table}/{{}}/instruction", names, own, "instruction by its canonical spelling")
    yield from _wrong("instructions", report.instructions)
    yield from _wrong("beside", report.beside)
    yield from _wrong("layouts", report.layouts)
    yield from _wrong("shared_memory", report.shared_memory)
    yield from _wrong("failures", report.failures)
    failed: Counter[str] = Counter()
    for failure in report.failures:
        failed[failure.instruction] += failure.wrong
    current = {
        row.instruction for row in report.instructions if row.instruction in own and row.facts == facts.executed(own[row.instruction])
    }
    for index, row in enumerate(report.instructions):
        if failed[row.instruction] != row.wrong:
            what = f"{row.wrong} launches of {row.instruction} are wrong, but failures has {failed[row.instruction]} of it"
            yield Fault(f"instructions/{index}/wrong", f"{what}; they must be equal")
        if len(row.replays) > row.launches:
            yield Fault(
                f"instructions/{index}/replays", f"there are {len(row.replays)} replays of {row.launches} launches; at most one each"
            )
        if row.instruction in current:  # else it is about other operands
            for place, what in _replays(row, own[row.instruction]):
                yield Fault(f"instructions/{index}/replays/{place}".rstrip("/"), what)
    names = [row.layout for row in report.layouts]
    yield from _once("layouts", names)
    yield from _named("layouts/{}/layout", names, catalog.database.layout, "layout")
    if len(current) == len(report.instructions):  # else the layouts may be those of other operands
        yield from _held(report, own)
        yield from _read(report, own)
        yield from _beside(report, own, catalog)
    if memory := spec.shared_memory:
        modes = {mode.name for mode in memory.swizzles}
        yield from _named("shared_memory/{}/swizzle", [row.swizzle for row in report.shared_memory], modes, "swizzle")
        orders = {layout.majorness for layout in memory.layouts}
        yield from _named("shared_memory/{}/majorness", [row.majorness for row in report.shared_memory], orders, "majorness")
    types = {element.name for element in spec.types.elements}
    yield from _named("shared_memory/{}/type", [row.type for row in report.shared_memory], types, "element type")


def _replays(row: Execution, instruction: Instruction) -> Iterator[Fault]:
    """Launches that the instruction's operands do not admit; each kernel has one, and was launched as often before."""
    from ptxmma.verify.silicon.kernels import of_instruction  # what asks a chip stands above what reads its answers

    if row.launches % len(row.replays):
        yield Fault("", f"{row.launches} launches are no multiple of {len(row.replays)}, the kernels of {row.instruction}")
    made = Counter((launch.form, *sorted(launch.constants.items())) for launch in row.replays)
    wanted = Counter((kernel.form.name, *sorted(kernel.immediates.items())) for kernel in of_instruction(instruction))
    if made != wanted:
        few = sorted((wanted - made) + (made - wanted))[:1]
        yield Fault("", f"{len(row.replays)} replays; {row.instruction} has {wanted.total()} kernels, each is launched again once: {few}")
    for index, launch in enumerate(row.replays):
        form = next((form for form in instruction.forms if form.name == launch.form), None)
        if form is None:
            known = ", ".join(repr(form.name) for form in instruction.forms)
            yield Fault(f"{index}/form", f"{instruction.canonical} has no operand form {launch.form!r}; it has {known}")
            continue
        yield from (Fault(f"{index}/{place}", what) for place, what in _constants(launch, form))


def _constants(launch: Launch, form: OperandForm) -> Iterator[Fault]:
    known = {operand.name: operand for operand in form.operands}
    for name, value in launch.constants.items():
        legal = known[name].immediates if name in known else None
        if legal is None or value not in legal:
            yield Fault(f"constants/{name}", f"{value} is no constant that {name!r} can have" + (f"; legal: {legal}" if legal else ""))
    described = [name for name, operand in known.items() if operand.kind == "descriptor"]
    if sorted(launch.descriptors) != sorted(described):
        yield Fault("descriptors", f"there are those of {sorted(launch.descriptors)}; the form has {sorted(described)}")


def _held(report: Silicon, own: Mapping[str, Instruction]) -> Iterator[Fault]:
    """A layout was held as often as forms were launched that use it."""
    wanted: Counter[str] = Counter()
    for _, form, launches in _launched(report, own):
        wanted.update(dict.fromkeys({operand.layout.name for operand in form.operands if operand.layout is not None}, launches))
    for index, held in enumerate(report.layouts):
        if held.launches != wanted[held.layout]:
            what = f"{held.launches} launches of {held.layout}; by its instructions there were {wanted[held.layout]}"
            yield Fault(f"layouts/{index}/launches", what)
    for name in sorted(set(wanted) - {held.layout for held in report.layouts}):
        yield Fault("layouts", f"{name} is missing, though instructions that use it were launched {wanted[name]} times")


def _beside(report: Silicon, own: Mapping[str, Instruction], catalog: Catalog) -> Iterator[Fault]:
    """An instruction without matrices was executed by all launches of kernels that call it."""
    from ptxmma.verify.silicon.kernels import Kernel  # what asks a chip stands above what reads its answers

    wanted: Counter[str] = Counter()
    called: dict[tuple[str, str], list[str]] = {}  # whatever the shape, types and constants are
    for instruction, form, launches in _launched(report, own):
        key = instruction.variant.instruction.name, form.name
        if key not in called:
            called[key] = [found.canonical for found in Kernel(instruction, form).beside(catalog)]
        wanted.update(dict.fromkeys(called[key], launches))
    for index, beside in enumerate(report.beside):
        if beside.launches != wanted[beside.instruction]:
            what = (
                f"{beside.launches} launches of {beside.instruction}; by the instructions beside it there were {wanted[beside.instruction]}"
            )
            yield Fault(f"beside/{index}/launches", what)
    for name in sorted(set(wanted) - {row.instruction for row in report.beside}):
        yield Fault("beside", f"{name} is missing, though kernels that call it were launched {wanted[name]} times")


def _read(report: Silicon, own: Mapping[str, Instruction]) -> Iterator[Fault]:
    """An operand of a type was read from shared memory as often as forms were launched that do."""
    wanted: Counter[tuple[str, str]] = Counter()
    for instruction, form, launches in _launched(report, own):
        described = [operand.name.partition("-")[0] for operand in form.operands if operand.kind == "descriptor"]
        wanted.update({(name, instruction.qualifiers[f"{name}type"]): launches for name in described})
    held: Counter[tuple[str, str]] = Counter()
    for row in report.shared_memory:
        held[row.operand, row.type] += row.launches
    for operand, kind in sorted({*wanted, *held}):
        if held[operand, kind] != wanted[operand, kind]:
            what = f"{held[operand, kind]} launches read {operand} of {kind}; by the instructions there were {wanted[operand, kind]}"
            yield Fault("shared_memory", what)


def _launched(report: Silicon, own: Mapping[str, Instruction]) -> Iterator[tuple[Instruction, OperandForm, int]]:
    """The forms that were launched, with the number of launches: all kernels of an instruction were launched equally often."""
    for row in report.instructions:
        kernels = Counter(launch.form for launch in row.replays)
        instruction = own[row.instruction]
        for form in instruction.forms:
            yield instruction, form, kernels[form.name] * row.launches // len(row.replays)


def _wrong(table: str, rows: Sequence[Any]) -> Iterator[Fault]:
    for index, row in enumerate(rows):
        if row.wrong > row.launches:
            yield Fault(f"{table}/{index}/wrong", f"{row.wrong} of {row.launches} launches are wrong; at most all can be")


# --- peers ------------------------------------------------------------------------------------------------------------------


def peers(report: Peers, catalog: Catalog) -> Iterator[Fault]:
    """What a comparison cannot have found."""
    yield from _dated(report.date)
    own = {found.canonical: found for found in catalog.all()}
    yield from _once("atoms", [atom.atom for atom in report.atoms])
    yield from _named("atoms/{}/instruction", [atom.instruction for atom in report.atoms], own, "instruction by its canonical spelling")
    asserted = sum(len(atom.layouts) for atom in report.atoms)
    shapes = sum(len(atom.shapes) for atom in report.atoms)
    compared = asserted + len(report.shared) + len(report.descriptor_fields)
    compared += len(report.pytorch.conversions) if report.pytorch else 0
    if report.failures != len(report.differences):
        yield Fault("failures", f"there are {report.failures}, but {len(report.differences)} differences; they must be as many")
    if report.passes > compared or report.passes + report.failures < compared:
        yield Fault("passes", f"{report.passes} agree and {report.failures} differ, which does not add up to {compared} comparisons")
    if report.shapes > shapes:
        yield Fault("shapes", f"{report.shapes} agree of {shapes} that were compared; at most all can")
    if not asserted - report.failures <= report.asserted <= asserted:
        yield Fault("asserted", f"{report.asserted} of {asserted} operands; all that have a layout are asserted, those that differ perhaps")
    for index, atom in enumerate(report.atoms):
        for name, number in [*atom.layouts.items(), *atom.shapes.items(), ("threads", atom.threads)]:
            if number >= len(report.layouts):
                yield Fault(f"atoms/{index}/{name}", f"there is no layout {number}; there are {len(report.layouts)}, from 0")
        if atom.instruction in own:
            yield from _operands(index, atom.form, {**atom.layouts, **atom.shapes}, own[atom.instruction])
    for index, entry in enumerate(report.differences):
        if entry.places > entry.of:
            yield Fault(f"differences/{index}/places", f"{entry.places} of {entry.of} places differ; at most all can")
    yield from _once("assembled", [entry.target for entry in report.assembled])
    targets = {target.name for target in catalog.database.spec.targets}
    yield from _named("assembled/{}/target", [entry.target for entry in report.assembled], targets, "target")
    texts = sum(entry.accepted + len(entry.refused) for entry in report.assembled)
    if report.assembled and texts < len({atom.instruction for atom in report.atoms}):
        yield Fault("assembled", f"{texts} texts; there are at least as many as instructions of the atoms")


def peers_again(report: Peers, catalog: Catalog) -> Iterator[Fault]:
    """What of a comparison is not found again in the layouts that it recorded: for a report about this very database."""
    from ptxmma.verify.peers.comparison import compare  # what asks the peers stands above what reads their answers

    try:
        found = compare(report.layouts, report.atoms, report.shared, report.descriptor_fields, catalog)
    except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
        yield Fault("layouts", f"they cannot be compared: {error}")
        return
    said = [entry for entry in report.differences if entry.peer == "CuTe" and entry.ours != UNBOUND]
    if {*said} != {*found.differences}:
        what = f"{len(said)} of CuTe's; in the layouts of the report there are {len(found.differences)}, and not the same"
        yield Fault("differences", what)
    again = {"places": found.places, "shapes": found.shapes}
    again["passes"] = found.passes + sum(one.agrees for one in (report.pytorch.conversions if report.pytorch else ()))
    for name, count in again.items():
        if getattr(report, name) != count:
            yield Fault(name, f"{getattr(report, name)}; by the layouts of the report it is {count}")


def _operands(index: int, name: str, named: Iterable[str], instruction: Instruction) -> Iterator[Fault]:
    form = next((form for form in instruction.forms if form.name == name), None)
    if form is None:
        yield Fault(f"atoms/{index}/form", f"{instruction.canonical} has no operand form {name!r}")
    else:
        yield from _named(
            f"atoms/{index}/layouts", named, [operand.name for operand in form.operands], f"operand of {instruction.canonical}"
        )


# --- assemblers -------------------------------------------------------------------------------------------------------------


def assembler(report: Assembler, catalog: Catalog) -> Iterator[Fault]:
    """What assemblers cannot have answered."""
    yield from _dated(report.date)
    tools = {tool.cuda: tool for tool in report.assemblers}
    yield from _once("assemblers", [tool.cuda for tool in report.assemblers])
    lines = [line for entry in report.answers for line in entry.lines]
    yield from _once("answers", lines)
    for name in dict.fromkeys(line.partition(" ")[0] for line in lines):
        try:
            catalog.find(name)
        except UnknownInstruction:
            yield Fault("answers", f"{name!r} is no instruction of the database")
    families = list(dict.fromkeys(entry.family for entry in catalog.database.spec.instructions))
    yield from _named("facts", report.facts, families, "family")
    yield from _named("asked", report.asked, tools, "release of the report")
    for cuda, tool in tools.items():
        versions = [version for version in report.versions if version_key(version) <= version_key(tool.ptx)]
        asked, most = report.asked.get(cuda, 0), len(lines) * len(tool.targets) * len(versions)
        if not 0 < asked <= most or asked % len(lines):
            what = f"{asked} answers about {len(lines)} lines, {len(tool.targets)} targets and {len(versions)} versions"
            yield Fault(f"asked/{cuda}", f"{what}; it must be a multiple of the lines, above 0 and at most {most}")
    for index, entry in enumerate(report.answers):
        for cuda, accepted in entry.accepted.items():
            place = f"answers/{index}/accepted/{cuda}"
            if cuda not in tools:
                yield Fault(place, f"CUDA {cuda} is none of the assemblers of the report: {', '.join(tools)}")
                continue
            yield from _named(place, accepted, tools[cuda].targets, f"target that CUDA {cuda} was asked about")
            for version in dict.fromkeys(version for each in accepted.values() for version in each.split()):
                if version not in report.versions or version_key(version) > version_key(tools[cuda].ptx):
                    yield Fault(place, f"it was not asked about version {version}; its newest is {tools[cuda].ptx}")
    yield from _once("negative", [space.family for space in report.negative])
    yield from _named("negative/{}/family", [space.family for space in report.negative], families, "family")
    for family in report.facts:
        if family not in {space.family for space in report.negative}:
            yield Fault("negative", f"{family} is missing, though its instructions were asked about")
    speaking = {(bits.target, bits.cuda) for space in report.negative for bits in space.answers}
    for index, space in enumerate(report.negative):
        yield from _bits(f"negative/{index}", space, tools)
        if lacking := speaking - {(bits.target, bits.cuda) for bits in space.answers}:
            yield Fault(f"negative/{index}/answers", f"CUDA {min(lacking)[1]} on {min(lacking)[0]} is missing; other families have it")
    yield from _disputed(report)
    yield from _claimed(report, catalog)
    errata = {erratum.id for erratum in catalog.database.spec.errata}
    yield from _named("disagreements/{}/erratum", [entry.erratum for entry in report.disagreements], {*errata, ""}, "erratum")


def _disputed(report: Assembler) -> Iterator[Fault]:
    """As many lines stand among the disagreements as there are answers that are not what the database says."""
    answers: Counter[str] = Counter()
    for space in report.negative:
        for bits in space.answers:
            answers[bits.target] += bits.disputed
    told = Counter(target for entry in report.disagreements for target in entry.targets for _ in entry.lines)
    for target in sorted({*answers, *told}):
        if answers[target] != told[target]:
            yield Fault("disagreements", f"{told[target]} lines on {target}; by negative there are {answers[target]}")


def _claimed(report: Assembler, catalog: Catalog) -> Iterator[Fault]:
    """What was said of instructions is what the database says, or stands among the differences; of families with today's facts."""
    stale = set(facts.stale(report.facts, catalog))
    differing = {(entry.cuda, entry.target, line) for entry in report.differences for line in entry.lines}
    classes = {line: index for index, entry in enumerate(report.answers) for line in entry.lines}
    alike: dict[tuple[object, ...], list[tuple[str, str]]] = {}
    for instruction in catalog.all():
        if instruction.family in stale or instruction.family not in report.facts:
            continue
        required = requirements.floor(instruction.variant), *instruction.accepted_by().items()
        for line in map(ptx.compact, ptx.lines(instruction)):
            if line not in classes:
                yield Fault("answers", f"{line} is missing, though {instruction.family} was asked about")
                continue
            key = classes[line], *required
            if key not in alike:
                alike[key] = list(_otherwise(report, classes[line], instruction))
            for cuda, target in alike[key]:
                if (cuda, target, line) not in differing:
                    what = f"not what the database says of {line} on {target}, and no difference tells of it"
                    yield Fault(f"answers/{classes[line]}/accepted/{cuda}", what)


def _otherwise(report: Assembler, index: int, instruction: Instruction) -> Iterator[tuple[str, str]]:
    """The releases and targets of which a class of answers says something else than the database."""
    for tool in report.assemblers:
        accepted, claimed = report.answers[index].accepted.get(tool.cuda, {}), claims.first_by(instruction, tool.cuda)
        for target in tool.targets:
            first = claimed.get(target)
            if accepted.get(target) != (first if first and version_key(first) <= version_key(tool.ptx) else None):
                yield tool.cuda, target


def _bits(place: str, space: Space, tools: Mapping[str, Asked]) -> Iterator[Fault]:
    """Each target is asked once, of an assembler that knows it, about every line."""
    yield from _once(f"{place}/answers", [bits.target for bits in space.answers])
    for number, bits in enumerate(space.answers):
        if bits.cuda not in tools or bits.target not in tools[bits.cuda].targets:
            yield Fault(f"{place}/answers/{number}", f"CUDA {bits.cuda} is no assembler of the report that knows {bits.target}")
        try:
            unpacked(bits.accepted, space.lines)
        except ValueError as error:
            yield Fault(f"{place}/answers/{number}/accepted", str(error))


# --- the manual's examples --------------------------------------------------------------------------------------------------


def examples(report: Plain, catalog: Catalog) -> Iterator[Fault]:
    """What cannot have become of examples."""
    yield from _dated(report["date"])
    records = report["examples"]
    spec = catalog.database.spec
    yield from _once("examples", [f"example {record['ordinal']} of section {record['section']}" for record in records])
    yield from _named("examples/{}/target", [one["target"] for one in records], [target.name for target in spec.targets], "target")
    programs = [program["cuda"] for program in report["assemblers"]]
    yield from _named("examples/{}/cuda", [one["cuda"] for one in records], programs, "assembler of the report")
    errata = {erratum.id for erratum in spec.errata}
    names = ("literal", "declared", "redeclared")
    ended: Counter[str] = Counter()
    for index, record in enumerate(records):
        yield from _named(f"examples/{index}/errata", record["errata"], errata, "erratum")
        for name in record["instructions"]:
            try:
                catalog.find(name)
            except UnknownInstruction:
                if name not in record["library"]:
                    yield Fault(
                        f"examples/{index}/instructions", f"{name!r} is no instruction of the database, and library does not say so"
                    )
        attempts = {name: record[name] for name in names if record[name] is not None}
        accepted = [name for name, attempt in attempts.items() if attempt["accepted"]]
        ended[accepted[0] if accepted else "refused"] += 1
        if (
            list(attempts) != list(names[: len(attempts)])
            or accepted not in ([], list(attempts)[-1:])
            or (not accepted and len(attempts) < 3)
        ):
            yield Fault(f"examples/{index}", "attempts are made in order, until one is accepted; these were not")
        for name, attempt in attempts.items():
            if attempt["accepted"] == bool(attempt.get("said")):
                yield Fault(f"examples/{index}/{name}/said", "an attempt is accepted, or something is said of it; never both or neither")
        if record["agrees"] != (bool(accepted) == (not record["library"])):
            yield Fault(f"examples/{index}/agrees", f"{record['agrees']} is not what the attempts and the library say")
    found = {"examples": len(records)} | {name: ended[name] for name in (*names, "refused")}
    found["disagreements"] = sum(not record["agrees"] for record in records)
    for name, count in found.items():
        if report["counts"][name] != count:
            yield Fault(f"counts/{name}", f"{report['counts'][name]}; by the examples it is {count}")


# --- mutants ----------------------------------------------------------------------------------------------------------------


def mutation(report: Plain, catalog: Catalog) -> Iterator[Fault]:  # noqa: ARG001 - all reports are checked alike
    """What cannot have become of mutants."""
    yield from _dated(report["date"])
    tried = report["tried"]
    printed = report["printed"]
    if _fates(printed) != printed["tried"]:
        yield Fault("printed/killed", f"{_fates(printed)} mutants; {printed['tried']} were tried")
    if printed["tried"] > printed["all"]:
        yield Fault("printed/tried", f"{printed['tried']} of {printed['all']} mutants; at most all can be tried")
    counts = {"killed": _fates(report)} | {name: sum(sum(row.values()) for row in report[name].values()) for name in ("by_file", "by_kind")}
    for name, count in counts.items():
        if count != tried:
            yield Fault(name, f"{count} mutants; {tried} were tried")
    told: Counter[str] = Counter()
    for witness in report["witnesses"]:
        told.update(witness["killed"])
    if told != Counter(report["killed"]):
        yield Fault("witnesses", "what they contradict is not what killed says, check by check")
    ended = dict(report["killed"]) | {name: len(report[key]) for name, key in _FATES.items() if report[key]}
    for table in ("by_file", "by_kind"):
        found: Counter[str] = Counter()
        for row in report[table].values():
            found.update(row)
        for name in sorted({*ended, *found}):
            if found[name] != ended.get(name, 0):
                yield Fault(table, f"{found[name]} mutants of which {name} is told; the report has {ended.get(name, 0)}")
    if tried > report["all"]:
        yield Fault("tried", f"{tried} of {report['all']} mutants; at most all can be tried")


def _fates(table: Plain) -> int:
    """How many mutants something is told of."""
    told: int = sum(table["killed"].values()) + sum(len(table[name]) for name in ("unchanged", "reworded", "survivors"))
    return told


# --- the corpus -------------------------------------------------------------------------------------------------------------


def corpus(report: Corpus, catalog: Catalog) -> Iterator[Fault]:  # noqa: ARG001 - all reports are checked alike
    """What a checker and an assembler cannot have said of a corpus."""
    yield from _dated(report.date)
    instructions = sum(source.instructions for source in report.sources)
    if report.instructions != instructions:
        yield Fault("instructions", f"{report.instructions}; by the sources it is {instructions}")
    mutants = sum(source.mutants for source in report.sources)
    if report.mutants < mutants:
        yield Fault("mutants", f"{report.mutants}; by the sources there are {mutants} and more")
    for index, source in enumerate(report.sources):
        for name, count in {"distinct": source.distinct, "refused": source.refused}.items():
            if count > source.instructions:
                yield Fault(f"sources/{index}/{name}", f"{count} of {source.instructions} instructions; at most all can be")
    for index, change in enumerate(report.changes):
        if change.refused > change.mutants:
            yield Fault(f"changes/{index}", f"{change.refused} of {change.mutants} mutants were refused; at most all can be")


# --- shared -----------------------------------------------------------------------------------------------------------------


def _dated(date: str) -> Iterator[Fault]:
    """The day of a run is one, written as in ISO 8601."""
    try:
        right = datetime.date.fromisoformat(date).isoformat() == date
    except ValueError:
        right = False
    if not right:
        yield Fault("date", f"{date!r} is no day; it must be one such as '2026-11-21'")


def _once(place: str, names: Iterable[str]) -> Iterator[Fault]:
    return (Fault(place, f"{name} stands there {count} times; once is allowed") for name, count in Counter(names).items() if count > 1)


def _named(place: str, names: Iterable[str], known: Iterable[str], what: str) -> Iterator[Fault]:
    """Names that are not known; ``{}`` in the place is the number of the row."""
    held = set(known)
    for index, name in enumerate(names):
        if name not in held:
            few = f"; there are {', '.join(sorted(held))}" if len(held) < _FEW else ""
            yield Fault(place.format(index), f"{name!r} is no {what}{few}")


#: What became of mutants that nothing contradicts, as the tables call it, and the list that names them.
_FATES = {"survived": "survivors", "changed nothing": "unchanged", "only reworded": "reworded"}
#: Names that a message lists.
_FEW = 40
