"""Options that verbs share, and reading a spec."""

from __future__ import annotations

import contextlib
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxmma import paths
from ptxmma.cli.render import FORMATS, emit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ptxmma.catalog.instructions import Catalog, Instruction
    from ptxmma.catalog.operands import Operand
    from ptxmma.catalog.operands.tensor_places import TensorPlaces
    from ptxmma.catalog.products.resolution import Product
    from ptxmma.model import Spec

#: So many other instructions are named.
_SHOWN = 3


class SectionOption(click.Option):
    """An option in a section of ``--help``, after the other options."""

    def __init__(self, *arguments: Any, section: str, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.section = section


DIRECTORY = click.Path(file_okay=False, path_type=Path)


def spec_options(command: click.decorators.FC) -> click.decorators.FC:
    """``--spec`` and ``--overlay``: the YAML that a verb works on."""
    overlay = click.option("--overlay", type=DIRECTORY, help="More YAML: its files join those of the spec, or replace them by name.")
    spec = click.option("--spec", type=DIRECTORY, default=paths.SPEC, show_default="the packaged spec", help="Directory of YAML files.")
    return spec(overlay(command))


def read(spec: Path, overlay: Path | None) -> Catalog:
    """Read a spec, or print everything that is wrong with it and exit with 1."""
    from ptxmma.generator import pipeline

    progress(f"reading {spec}")
    with refused():
        return pipeline.read(spec, overlay)


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Print everything that is wrong with a spec that is refused, and exit with 1."""
    from ptxmma.generator.problems import SpecError

    try:
        yield
    except SpecError as error:
        click.echo(error, err=True)
        click.echo(f"{len(error.problems)} problem{'s' if len(error.problems) > 1 else ''} in the spec", err=True)
        sys.exit(1)


@contextlib.contextmanager
def usage_errors(kinds: tuple[type[Exception], ...] = (ValueError,)) -> Iterator[None]:
    """Print the message of an error of these kinds as one of usage, and exit with 2."""
    try:
        yield
    except kinds as error:
        raise click.UsageError(str(error)) from None


def progress(doing: str) -> None:
    """Say what a slow verb is doing, on a terminal only."""
    if sys.stderr is not None and sys.stderr.isatty():
        click.echo(f"{doing} ...", err=True)


def instruction_argument(command: click.decorators.FC) -> click.decorators.FC:
    """``INSTRUCTION`` and ``--database``: what :func:`find` looks up; the argument may be several words."""
    argument = click.argument("spelling", metavar="INSTRUCTION", nargs=-1, required=True, callback=joined, shell_complete=spellings)
    return argument(database_option(command))


def joined(_context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> str:
    """The words of an argument as one text."""
    return " ".join(words)


def database_option(command: click.decorators.FC) -> click.decorators.FC:
    """``--database``: the database that answers."""
    file = click.Path(exists=True, dir_okay=False)
    return click.option("--database", type=file, help="Another ptxmma.json than the packaged one.")(command)


def catalog_of(database: str | None) -> Catalog:
    """The catalog that ``--database`` names, or the packaged one; exits with 2 if the file is not a database."""
    from ptxmma.catalog.instructions import catalog

    try:
        return catalog(database)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--database") from None


def find(spelling: str, database: str | None) -> Instruction:
    """The instruction that a text means: its spelling, words, a line of PTX, an asm string, a function of the headers, an atom of CuTe.

    Says which instruction it takes where others match, too.  For a text that means none, prints the closest and exits with 2; for one that
    means several of equal rank, prints what separates them.
    """
    from ptxmma.catalog.instructions import UnknownInstruction
    from ptxmma.catalog.instructions.user_names import is_target
    from ptxmma.catalog.lookup import AmbiguousInstruction, resolve

    if not spelling.strip():
        raise click.UsageError("INSTRUCTION is empty; `ptxmma list` has all instructions")
    try:
        with usage_errors():
            found = resolve(catalog_of(database), spelling)
    except UnknownInstruction as error:
        if is_target(catalog_of(database).database.spec, spelling):
            raise click.UsageError(f"{spelling} is a target: `ptxmma targets {spelling}` shows it") from None
        click.echo(f"{error}{'' if error.close else '; `ptxmma list` has them all'}", err=True)
        if isinstance(error, AmbiguousInstruction):
            click.echo(_common_targets(error.instructions), err=True, nl=False)
        sys.exit(2)
    meta = click.get_current_context().meta
    meta[_SAID] = dict(found.product)
    if product := found.arguments(meta.get(_KEY, {})):
        meta[_KEY] = product
    if found.others:
        others = [each.canonical for each in found.others[:_SHOWN]] + ["..."] * (len(found.others) > _SHOWN)
        reasons = f" ({', '.join(found.reasons)})" if found.reasons else ""
        click.echo(f"{found.instruction.canonical} is taken{reasons}; also: {', '.join(others)}", err=True)
    return found.instruction


def _common_targets(instructions: Sequence[Instruction]) -> str:
    """A line with the targets and sizes of several instructions, where all have the same targets; empty otherwise."""
    from ptxmma.catalog.summaries.listing import first_version, least_targets, sizes, spans

    first, *others = (each.accepted_by() for each in instructions)
    if not first or any(each != first for each in others):
        return ""
    targets = " ".join(least_targets(instructions[0].database.spec, first))
    numbers = "".join(f"; {name.upper()} {spans(each)}" for name, each in sizes(instructions).items())
    return f"all are accepted by {targets}, from PTX ISA {first_version(first)} on{numbers}\n"


def spellings(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Canonical spellings up to the next dot at which they differ, so that a shell shows a few words and not thousands."""
    known = [
        instruction.canonical for instruction in catalog_of(context.params.get("database")).all() if instruction.canonical.startswith(begun)
    ]
    dots = begun.count(".")
    parts: dict[str, None] = {}
    while len(parts) < 2 and list(parts) != known:  # a single part is neither a choice nor an instruction
        dots += 1
        parts = dict.fromkeys(".".join(spelling.split(".")[:dots]) for spelling in known)
    return list(parts)


def _shapes(catalog: Catalog) -> Iterable[str]:
    every = (name for each in catalog.all() if each.shape for name in (each.variant.shape, each.variant.shape_label))
    return dict.fromkeys(every)


def swizzles(context: click.Context) -> Iterable[str]:
    """The swizzle modes that descriptors of ``--family`` have, as users write them."""
    from ptxmma.catalog.descriptors.shared_formats import matrix_format, read_by

    spec = catalog_of(context.params.get("database")).database.spec
    try:
        family = matrix_format(spec, context.params.get("family") or "").family
    except ValueError:  # no such family
        return []
    known = read_by(spec, spec.shared_memory, family).swizzles if spec.shared_memory else ()
    return [mode.name.removesuffix("B") if mode.name[:-1].isdigit() else mode.name for mode in known]


def _values_of_field(field: str, context: click.Context) -> Iterable[str]:
    """The values of a further field that some product has."""
    products = catalog_of(context.params.get("database")).database.spec.tensor_products
    return dict.fromkeys(str(option.value) for option in products.options if option.field == field) if products else ()


def matrix_families(context: click.Context) -> Iterable[str]:
    """The families that have matrix descriptors."""
    from ptxmma.catalog.descriptors.shared_formats import matrix_formats

    return [each.family for each in matrix_formats(catalog_of(context.params.get("database")).database.spec)]


#: The names in a database that options accept.  GPUs have only their names of one word, which need no quotes.
_NAMES: dict[str, Callable[[Catalog], Iterable[str]]] = {
    "family": lambda catalog: dict.fromkeys(entry.family for entry in catalog.database.spec.instructions),
    "target": lambda catalog: [
        *(entry.name for entry in catalog.database.spec.targets),
        *(name for gpu in catalog.database.spec.gpus for name in gpu.names if " " not in name),
    ],
    "ptx": lambda catalog: [entry.version for entry in catalog.database.spec.isa_versions],
    "element": lambda catalog: [entry.name for entry in catalog.database.spec.types.elements],
    "shape": _shapes,
    "kind": lambda catalog: [kind for format in catalog.database.spec.descriptors for kind in format.short_kinds],
}


def known_names(what: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """The completion of an option that takes a name of the kind ``what``, a key of :data:`_NAMES`."""
    return completed(lambda context: _NAMES[what](catalog_of(context.params.get("database"))))


def named_option(flag: str, what: str, text: str, *declared: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """An option that takes a name of the kind ``what`` and completes it; ``declared`` is the name of its parameter, if it is another."""
    shown = {"target": "TARGET", "ptx": "VERSION", "shape": "SHAPE"}.get(what, "NAME")
    return click.option(flag, *declared, metavar=shown, shell_complete=known_names(what), help=text)


def completed(names: Callable[[click.Context], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """The completion of an option that takes one of some names, or several with commas between them."""

    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        before, comma, last = begun.rpartition(",")
        return [f"{before}{comma}{name}" for name in names(context) if name.lower().startswith(last.lower())]

    return complete


def named_target(spec: Spec, name: str | None) -> str | None:
    """The target of ``--target``: its own name, a number, a product or an architecture; exits with 2 for an unknown or ambiguous one."""
    from ptxmma.catalog.instructions.user_names import target_named

    with usage_errors():
        return None if name is None else target_named(spec, name)


def json_option(command: click.decorators.FC) -> click.decorators.FC:
    """``--json`` of a verb whose answer is not a table, and ``--json-schema``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(schema_option(command))


def schema_option(command: click.decorators.FC) -> click.decorators.FC:
    """``--json-schema`` of a verb with JSON: prints its schema and nothing else."""
    text = "Print the JSON Schema of the JSON."
    return click.option("--json-schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema, help=text)(command)


def _print_schema(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from ptxmma.cli.answers import schema

        emit(schema(context.command_path.removeprefix(context.find_root().command_path).strip()))
        context.exit()


def table_options(*more: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """``--format`` with :data:`ptxmma.cli.render.FORMATS` and ``more``, as ``form``; ``--json`` is short for ``--format json``."""

    def add(command: click.decorators.FC) -> click.decorators.FC:
        short = click.option("--json", "form", flag_value="json", help="Short for --format json.")
        form = click.option(
            "--format", "form", type=click.Choice([*FORMATS, *more]), default="grid", show_default=True, help="How to print it."
        )
        return form(short(schema_option(command)))

    return add


_KEY = "ptxmma.product"
#: Of these, what the words for the instruction say.
_SAID = "ptxmma.said"
_UNSTATED = "What the opcode of tcgen05.mma does not state"
_SIZES = {"m": "rows of D, in a pair of CTAs those of both", "n": "columns of D", "k": "depth"}
_TYPES = {"dtype": "type of D", "atype": "type of A", "btype": "type of B", "stype": "type of scale factors"}
_FIELDS = {
    "sparsity_version": "version of sparsity: v0, or v1 on sm_107a",
    "scale_a_lanes": "lanes over which scale factors of A lie: 32, or 128 on sm_107f",
}


def product_options(command: click.decorators.FC) -> click.decorators.FC:
    """``--m``, ``--n``, ``--k``, the types ``--dtype`` to ``--stype``, and further fields: what :func:`resolved` reads."""
    typed: Any = {"metavar": "TYPE", "shell_complete": known_names("element")}
    for name, text in reversed({**_SIZES, **_TYPES, **_FIELDS}.items()):
        field: Any = {"metavar": "VALUE", "shell_complete": completed(functools.partial(_values_of_field, name))}
        kind = {"type": int} if name in _SIZES else typed if name in _TYPES else field
        more: Any = {"cls": SectionOption, "section": _UNSTATED, "help": f"{text[0].upper()}{text[1:]}.", **kind}
        command = click.option(f"--{name.replace('_', '-')}", expose_value=False, callback=_keep, **more)(command)
    return command


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None:
        context.meta.setdefault(_KEY, {})[parameter.name] = value


def resolved(instruction: Instruction) -> Instruction:
    """The instruction with what the options say; exits with 2 where no rule allows it."""
    arguments = click.get_current_context().meta.get(_KEY)
    with usage_errors():
        return instruction.resolved(**arguments) if arguments else instruction


def resolved_for(instruction: Instruction, operand: Operand | None, answer: Callable[[TensorPlaces], object] | None) -> Instruction:
    """The instruction with what the options say, as far as the place of an operand in tensor memory depends on it.

    ``answer`` is the answer about its layout, which raises an error of usage where it has none; without it the whole operand is.
    """
    from ptxmma.catalog.instructions.user_names import types_in_ptx
    from ptxmma.catalog.products import resolution
    from ptxmma.catalog.products.product_rules import IllegalProductError
    from ptxmma.catalog.summaries.listing import spans

    meta = click.get_current_context().meta
    given = {**meta.get(_SAID, {}), **meta.get(_KEY, {})}
    if operand is None or instruction.operation != resolution.OPERATION:
        return resolved(instruction)
    spec, kind, matrix = instruction.database.spec, operand.kind, operand.of

    def answered(product: Product) -> object:
        placed = resolution.places(spec, product, kind, matrix) if answer else None
        if placed is None or answer is None:
            return resolution.placement(spec, product, kind, matrix)
        with contextlib.suppress(click.UsageError):
            return answer(placed)
        return None

    try:
        return instruction.resolved(**given)
    except IllegalProductError as error:
        largest, depends = resolution.completed(spec, instruction.variant, types_in_ptx(spec, given), answered)
        if largest is None:
            raise click.UsageError(str(error)) from None
    if depends:
        legal = {name: [value for value in values if isinstance(value, int)] for name, values in depends.items()}
        said = ", ".join(f"--{name} ({spans(legal[name]) if legal[name] else ', '.join(map(str, depends[name]))})" for name in depends)
        raise click.UsageError(f"the place of {operand.name} depends on {', '.join(depends)}: give {said}")
    return instruction.resolved(**dict(largest.chosen))


def resolved_as(instruction: Instruction, text: str | None) -> Instruction:
    """Return the instruction of ``--as`` with what ``--as-product`` says, ``"m=128,n=64"``; the rest is as the options say of the source.

    Exits with 2 where the text names nothing of a product, or no rule allows it.
    """
    from ptxmma.catalog.products import resolution

    named = {**_SIZES, **_TYPES, **_FIELDS}
    said: dict[str, Any] = {}
    for part in filter(None, (text or "").split(",")):
        name, _, value = part.partition("=")
        key = name.strip().replace("-", "_")
        if key not in named or (key in _SIZES and not value.strip().isdecimal()):
            raise click.UsageError(f"--as-product {part}: write NAME=VALUE, separated by commas; the names are {', '.join(named)}")
        said[key] = int(value) if key in _SIZES else value.strip()
    known: dict[str, Any] = {}
    if instruction.operation == resolution.OPERATION and not instruction.shape_sizes:
        given = click.get_current_context().meta.get(_KEY, {})
        known = {name: given[name] for name in resolution.unstated(instruction.database.spec, instruction.variant) if name in given}
    arguments = {**known, **said}
    with usage_errors():
        return instruction.resolved(**arguments) if arguments else instruction


def refuse_product(subject: str) -> None:
    """Exit with 2 where the options are for one instruction and ``subject`` is several."""
    given = click.get_current_context().meta.get(_KEY)
    if given:
        options = ", ".join(f"--{name}" for name in given)
        raise click.UsageError(f"{options} {'is' if len(given) == 1 else 'are'} for one instruction: leave out {options}, or {subject}")


def require_product(instruction: Instruction, subject: str = "") -> None:
    """Exit with 2 for an opcode that does not state its shape, where an answer about ``subject`` depends on it."""
    from ptxmma.catalog.products import resolution

    if instruction.operation == resolution.OPERATION and not instruction.shape_sizes:
        missing = resolution.unstated(instruction.database.spec, instruction.variant)
        options = ", ".join(f"--{name}" for name in missing)
        about = subject or instruction.canonical
        raise click.UsageError(f"{about}: the opcode does not state {', '.join(missing)}; give {options}")
