"""Options that verbs share, and reading a spec."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxmma import paths
from ptxmma.cli.render import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ptxmma.catalog.instructions import Catalog, Instruction
    from ptxmma.model import ProductSparsity, Spec

#: So many instructions of one name are shown.
_SHOWN = 8

DIRECTORY = click.Path(file_okay=False, path_type=Path)


def spec_options(command: click.decorators.FC) -> click.decorators.FC:
    """``--spec`` and ``--overlay``: the YAML that a verb works on."""
    overlay = click.option("--overlay", type=DIRECTORY, help="More YAML: its files join those of the spec, or replace them by name.")
    spec = click.option("--spec", type=DIRECTORY, default=paths.SPEC, show_default="the packaged spec", help="Directory of YAML files.")
    return spec(overlay(command))


def read(spec: Path, overlay: Path | None) -> Catalog:
    """Read a spec, or print everything that is wrong with it and exit with 1."""
    from ptxmma.generator import pipeline
    from ptxmma.generator.problems import SpecError

    progress(f"reading {spec}")
    try:
        return pipeline.read(spec, overlay)
    except SpecError as error:
        click.echo(error, err=True)
        click.echo(f"{len(error.problems)} problem{'s' if len(error.problems) > 1 else ''} in the spec", err=True)
        sys.exit(1)


def progress(doing: str) -> None:
    """Say what a slow verb is doing, on a terminal only."""
    if sys.stderr is not None and sys.stderr.isatty():
        click.echo(f"{doing} ...", err=True)


def instruction_argument(command: click.decorators.FC) -> click.decorators.FC:
    """``INSTRUCTION`` and ``--database``: what :func:`find` looks up."""
    argument = click.argument("spelling", metavar="INSTRUCTION", shell_complete=spellings)
    return argument(database_option(command))


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
    """The instruction that a text names: its spelling, a line of PTX, an asm string, a function of the headers, an atom of CuTe.

    For a text that names none, prints the closest and exits with 2; for one that names several, prints them.
    """
    from ptxmma.catalog.instructions import UnknownInstruction

    if not spelling.strip():
        raise click.UsageError("INSTRUCTION is empty; `ptxmma list` has all instructions")
    known = catalog_of(database)
    if instruction := known.meaning(spelling.strip()):
        return instruction
    from ptxmma.catalog.names import mentions
    from ptxmma.catalog.products.product_rules import IllegalProductError

    try:
        several = mentions.named(known, spelling)
    except IllegalProductError as error:
        raise click.UsageError(str(error)) from None
    if len(several) > 1:
        shown = [instruction.canonical for instruction in several[:_SHOWN]] + ["..."] * (len(several) > _SHOWN)
        raise click.UsageError(f"{len(several)} instructions have this name; name one:\n  " + "\n  ".join(shown))
    try:
        return several[0] if several else known.find(mentions.spelling_in(known, spelling))
    except UnknownInstruction as error:
        click.echo(f"{error}{'' if 'closest' in str(error) else '; `ptxmma list` has them all'}", err=True)
        sys.exit(2)


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


def _sparsities(spec: Spec) -> tuple[ProductSparsity, ...]:
    return spec.tensor_products.sparsities if spec.tensor_products else ()


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
    "sparsity": lambda catalog: dict.fromkeys(entry.version for entry in _sparsities(catalog.database.spec)),
    "kind": lambda catalog: [kind.removeprefix("kind::") for format in catalog.database.spec.descriptors for kind in format.kinds],
}


def known_names(what: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """The completion of an option that takes a name of the kind ``what``, a key of :data:`_NAMES`."""
    return completed(lambda context: _NAMES[what](catalog_of(context.params.get("database"))))


def completed(names: Callable[[click.Context], Iterable[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """The completion of an option that takes one of some names, or several with commas between them."""

    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        before, comma, last = begun.rpartition(",")
        return [f"{before}{comma}{name}" for name in names(context) if name.lower().startswith(last.lower())]

    return complete


def named_target(spec: Spec, name: str | None) -> str | None:
    """The target of ``--target``: its own name, a number, a product or an architecture; exits with 2 for an unknown or ambiguous one."""
    from ptxmma.catalog.instructions.user_names import target_named

    try:
        return None if name is None else target_named(spec, name)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def json_option(command: click.decorators.FC) -> click.decorators.FC:
    """``--json`` of a verb whose answer is not a table."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


def table_options(*more: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """``--format`` with :data:`ptxmma.cli.render.FORMATS` and ``more``, as ``form``; ``--json`` is short for ``--format json``."""

    def add(command: click.decorators.FC) -> click.decorators.FC:
        short = click.option("--json", "form", flag_value="json", help="Short for --format json.")
        form = click.option(
            "--format", "form", type=click.Choice([*FORMATS, *more]), default="grid", show_default=True, help="How to print it."
        )
        return form(short(command))

    return add
