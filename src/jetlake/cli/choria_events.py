"""`choria tool event`, `choria machine watch` and `choria scout watch`: events as they happen, in the original's words.

`jetlake events --lifecycle`, `--machines` and `--checks` show the same.
"""

import argparse
import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jetlake.choria.events import LIFECYCLE_KINDS, decode, describe
from jetlake.cli.choria import DONE, CommandLine, use_servers
from jetlake.cli.invocation import current, enter

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jetlake.client.api import Api

QUEUED_MAX = 10_000
"""Events that wait to be printed; the original has room for a hundred."""

Show = Callable[["Msg", dict[str, Any]], str]
"""Returns the line for an event; empty = it is not wanted."""


def tool_event(words: list[str], line: CommandLine) -> int:
    """Show lifecycle events."""
    parser = argparse.ArgumentParser(prog="choria tool event", description="View Choria lifecycle events.")
    parser.add_argument("--component", default="", help="limit events to a named component")
    parser.add_argument("--type", default="", choices=["", *LIFECYCLE_KINDS], help="limit events to one type")
    parser.add_argument("--debug", action="store_true", help="print events as they are sent")
    options = parser.parse_args(words)
    subject = f"choria.lifecycle.event.{options.type or '*'}.{options.component or '*'}"

    def show(message: "Msg", body: dict[str, Any]) -> str:
        return message.data.decode(errors="replace") if options.debug else f"{_clock()} {describe(body)}"

    return _watch(line, [subject], show, "Waiting for events from topic choria.lifecycle.event.> on {}")


def machine_watch(words: list[str], line: CommandLine) -> int:
    """Show transitions and watcher states."""
    parser = argparse.ArgumentParser(
        prog="choria machine watch", description="Real time view of machine transitions and watcher states."
    )
    parser.add_argument("--transitions", action="store_true", help="view only transitions")
    parser.add_argument("--watchers", action="store_true", help="view only watcher states")
    parser.add_argument("--type", action="append", default=[], help="limit watcher events to certain types")
    parser.add_argument("--identity", default="", help="a part of the identity")
    parser.add_argument("--machine", default="", help="a part of the name of the machine")
    options = parser.parse_args(words)
    subjects = machine_subjects(transitions=options.transitions, watchers=options.watchers, kinds=options.type)

    def show(_: "Msg", body: dict[str, Any]) -> str:
        wanted = options.identity in str(body.get("identity", "")) and options.machine in str(body.get("machine", ""))
        return f"[{_clock()}] {describe(body)}" if wanted else ""

    return _watch(line, subjects, show)


def machine_subjects(*, transitions: bool, watchers: bool, kinds: list[str]) -> list[str]:
    """Return where machines tell what is asked for; neither asks for both."""
    both = transitions == watchers
    subjects = ["choria.machine.transition"] if transitions or both else []
    if watchers or both:
        subjects += [f"choria.machine.watcher.{kind}.state" for kind in kinds or ["*"]]
    return subjects


def scout_watch(words: list[str], line: CommandLine) -> int:
    """Show the states of checks."""
    parser = argparse.ArgumentParser(prog="choria scout watch", description="Watch events produced by Scout.")
    parser.add_argument("--identity", default="", help="a part of the identity")
    parser.add_argument("--check", default="", help="a part of the name of the check")
    parser.add_argument("--perf", action="store_true", help="show performance data")
    parser.add_argument("--ok", action=argparse.BooleanOptionalAction, default=True, help="include OK states")
    parser.add_argument("--ignore-machine-transition", action="append", default=[], metavar="MACHINE")
    options = parser.parse_args(words)

    def show(_: "Msg", body: dict[str, Any]) -> str:
        if options.identity not in str(body.get("identity", "")):
            return ""
        if "transition" in body:
            ignored = body.get("machine") in options.ignore_machine_transition or options.check
            return "" if ignored else f"[{_clock()}] {describe(body)}"
        if options.check not in str(body.get("name", "")) or (body.get("status") == "OK" and not options.ok):
            return ""
        return f"[{_clock()}] {describe(body)}{_performance(body) if options.perf else ''}"

    return _watch(line, ["choria.machine.watcher.nagios.state", "choria.machine.transition"], show)


def _performance(body: dict[str, Any]) -> str:
    values = body.get("perfdata")
    listed = [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
    shown = " ".join(f"{each.get('label')}={each.get('value')}{each.get('unit', '')}" for each in listed)
    return f" | {shown}" if shown else ""


def _watch(line: CommandLine, subjects: list[str], show: Show, greeting: str = "") -> int:
    enter(use_servers(current(), line.settings()))

    async def work(api: "Api") -> None:
        arrived: asyncio.Queue[Msg] = asyncio.Queue(QUEUED_MAX)
        for subject in subjects:
            await api.connection.subscribe(subject, cb=arrived.put)
        await api.flush()
        if greeting:
            print(greeting.format(api.access.shown), flush=True)
        while True:
            message = await arrived.get()
            body = decode(message.data)
            text = "" if body is None else show(message, body)
            if text:
                print(text, flush=True)

    async def connected() -> None:
        from jetlake.client.api import open_api

        async with open_api(current().access(), reconnect=True) as api:
            await work(api)

    asyncio.run(connected())
    return DONE


def _clock() -> str:
    return time.strftime("%H:%M:%S")
