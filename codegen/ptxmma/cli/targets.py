"""``ptxmma targets``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import catalog_of, database_option, joined, json_option, known_names, named_target
from ptxmma.cli.render import aligned, blocks, emit, heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ptxmma.catalog.summaries.target_summary import TargetComparison, TargetFacts, TargetFamily
    from ptxmma.cli.answers import ListedTarget
    from ptxmma.model import Spec

#: So many products of a target are named.
_SHOWN = 6


@click.command("targets", cls=Command)
@click.argument("name", metavar="[TARGET]", nargs=-1, callback=joined, shell_complete=known_names("target"))
@json_option
@database_option
def command(name: str, as_json: bool, database: str | None) -> None:
    """Show what a target can do, or list all targets.

    TARGET is its name, a number, a GPU or an architecture.  For each family of instructions that it accepts, prints how many there are, the
    first PTX ISA version that accepts one of them, and the types of A of its products; then the families that it lacks, each with the ones
    that do the same there.  Of two targets, prints what only one of them has.

    \b
    Examples:
      ptxmma targets sm_120a
      ptxmma targets rtx4090
      ptxmma targets H100 vs B200
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.catalog.instructions.user_names import compared_targets
    from ptxmma.catalog.summaries.target_summary import comparison, summary

    known = catalog_of(database)
    spec = known.database.spec
    targets = dict.fromkeys(target for each in compared_targets(spec, name) or [name] if (target := named_target(spec, each or None)))
    if not targets:
        _listed(spec, as_json=as_json)
        return
    if len(targets) > 1:
        _compared(comparison(known, *targets), as_json=as_json)
        return
    (target,) = targets
    answer = summary(known, target)
    if as_json:
        emit(answer)
        return
    click.echo(heading(target))
    blocks(
        {
            "target": _facts(answer),
            "families: instructions, first PTX ISA version, types of A": _families(answer["families"]),
            "lacks": [each["family"] + (f"; has {', '.join(each['instead'])}" if each["instead"] else "") for each in answer["lacks"]],
            "every instruction": [f"ptxmma list --target {target}"],
        }
    )


def _compared(answer: TargetComparison, *, as_json: bool) -> None:
    """The facts of two targets, and the instructions that only one of them has."""
    if as_json:
        emit(answer)
        return
    names = [each["target"] for each in answer["targets"]]
    click.echo(f"{heading(' and '.join(names))}: {answer['both']} instructions in common")
    blocks({each["target"]: _facts(each) for each in answer["targets"]})
    title = "{} alone: instructions, first PTX ISA version, types of A"
    blocks({title.format(name): _families(only) or ["nothing"] for name, only in answer["only"].items()})


def _families(families: Sequence[TargetFamily]) -> list[str]:
    return aligned([(each["family"], str(each["instructions"]), f"PTX ISA {each['ptx']}", " ".join(each["types"])) for each in families])


def _facts(answer: TargetFacts) -> list[str]:
    """The products, the first versions and the shared memory of a target."""
    from ptxmma.catalog.summaries.listing import few

    gpus = answer["gpus"]
    facts = [f"PTX ISA {answer['ptx']}, CUDA {answer['cuda']}" + (f" to {answer['until']}" if answer["until"] else "")]
    facts[0] += f", driver {answer['driver']} for Linux" if answer["driver"] else ""
    facts += [few(gpus, _SHOWN)] if gpus else []
    facts += [f"features of {' and '.join(answer['features_of'])}"] if answer["features_of"] else []
    facts += [f"{answer['shared_memory']} bytes of shared memory in a thread block"] if answer["shared_memory"] else []
    return facts


def _listed(spec: Spec, *, as_json: bool) -> None:
    """Every target with its first version and its products."""
    products: dict[str, list[str]] = {}
    for gpu in spec.gpus:
        products.setdefault(gpu.target, []).extend(gpu.names)
    rows = [(each.name, each.ptx, products.get(each.name, [])) for each in spec.targets]
    if as_json:
        answer: list[ListedTarget] = [{"target": name, "ptx": ptx, "gpus": gpus} for name, ptx, gpus in rows]
        emit(answer)
        return
    for line in aligned([(name, f"PTX ISA {ptx}", ", ".join(gpus[:_SHOWN])) for name, ptx, gpus in rows]):
        click.echo(line)
