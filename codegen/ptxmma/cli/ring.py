"""``ptxmma ring``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ptxmma.cli.command import Command
from ptxmma.cli.options import database_option, json_option, named_option, usage_errors
from ptxmma.cli.tiles import integer, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ptxmma.cli import answers
    from ptxmma.matrices.shared.ring import Ring

#: So many turns of a ring show that the parities repeat.
_TURNS = 3


def _counts(value: object) -> tuple[int, ...]:
    """The type of an option that takes a number for each copy."""
    if "x" in (text := str(value)):  # which joins sizes elsewhere: 2x16384 is neither their product nor their sum
        raise click.BadParameter(f"{text!r} has an x; write a number for each copy, with commas between them: 16384,22528")
    return numbers(text)


@click.command("ring", cls=Command)
@click.option("--stages", type=integer, metavar="NUMBER", help="Stages of shared memory, filled and read in turn.")
@click.option("--bytes", "copies", type=_counts, metavar="BYTES", help="Bytes that each copy into a stage counts: 16384,22528.")
@named_option("--target", "target", "A target whose thread blocks must have room for the ring; without --stages as many as fit.")
@click.option("--reserve", type=integer, metavar="BYTES", help="Shared memory for other data, such as a tile of the epilogue.")
@click.option("--round", "number", type=integer, metavar="NUMBER", help="Only this use of the ring, counted from 0 on.")
@json_option
@database_option
def command(
    stages: int | None,
    copies: tuple[int, ...] | None,
    target: str | None,
    reserve: int | None,
    number: int | None,
    as_json: bool,
    database: str | None,
) -> None:
    """Show the stage of each round of a pipeline, the parities for which its threads wait, and the bytes of a phase.

    Each stage has an mbarrier "full", which completes a phase when the copies have filled the stage, and one "empty", which does when it
    is read.  "ptxmma tma" says how many bytes a copy counts.  With --target it says how many stages fit.

    \b
    Example:
      ptxmma ring --stages 4 --bytes 16384,22528
      ptxmma ring --target H100 --bytes 16384,22528 --reserve 32768
      ptxmma ring --stages 4 --round 9
    """  # noqa: D301  # click's mark for lines that stay as they are
    from ptxmma.cli.render import emit
    from ptxmma.matrices.shared.ring import Ring

    if target is not None and not copies:
        raise click.UsageError("--target asks how many stages fit, and --bytes says how large one is: give both")
    if reserve is not None and target is None:
        raise click.UsageError("--reserve takes shared memory from the stages: give --target, too")
    with usage_errors():
        if target is not None:
            most = Ring.fitting(target, copies or (), reserve or 0, database=database).stages
            stages = most if stages is None else stages
            if stages > most:
                raise ValueError(f"stages = {stages}: a thread block of {target} has room for {most}")
        elif stages is None:
            raise click.UsageError("give --stages, or --target and --bytes for as many stages as fit")
        ring = Ring(stages, copies or (), database=database)
        shown = range(_TURNS * ring.stages) if number is None else [number]
        rounds = {each: ring.round(each) for each in shown}
    room = _room(ring, target, reserve or 0, database) if target else None
    if as_json:
        answer: answers.Ring = {
            "stages": ring.stages,
            "transaction_bytes": ring.transaction_bytes,
            "shared_memory": room,
            "rounds": [
                {"round": each, "stage": place.stage, "phase": place.phase, "empty": place.empty, "full": place.full}
                for each, place in rounds.items()
            ],
        }
        emit(answer)
    else:
        _print(ring, room, [number] if number is not None else range(0, _TURNS * ring.stages, ring.stages))


def _room(ring: Ring, target: str, reserved: int, database: str | None) -> answers.Room:
    """The shared memory of a thread block that holds the ring."""
    from ptxmma.matrices.shared.readable_types import capacity

    used = ring.stages * ring.stage_bytes + reserved
    return {
        "target": target,
        "stage": ring.stage_bytes,
        "reserved": reserved,
        "used": used,
        "block": capacity(target, database=database).block,
    }


def _print(ring: Ring, room: answers.Room | None, starts: Iterable[int]) -> None:
    """Print one line for a round, or for each turn of the ring."""
    from ptxmma.cli.render import aligned, blocks, heading

    single = not isinstance(starts, range)
    rows: list[tuple[Any, ...]] = [("round", "stage", "phase", "wait at empty", "wait at full")]
    for first in starts:
        stage, phase, empty, full = ring.round(first)
        last, end = (first, stage) if single else (first + ring.stages - 1, ring.stages - 1)
        rows.append(
            (_span(first, last), _span(stage, end), str(phase), f"parity {empty}" + ("" if phase else ": at once"), f"parity {full}")
        )
    click.echo(heading(f"ring of {ring.stages} stage{'s' * (ring.stages > 1)}"))
    blocks(
        {
            "bytes": [f"{ring.transaction_bytes} count on full in each phase"] if ring.transaction_bytes else [],
            "shared memory": [
                f"{room['stage']} bytes in each stage, with its two mbarriers",
                f"{room['used']} of the {room['block']} bytes of a thread block of {room['target']}, with {room['reserved']} reserved",
            ]
            if room
            else [],
            "rounds": aligned(rows),
        }
    )


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"
