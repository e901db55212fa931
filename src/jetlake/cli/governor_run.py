"""`jetlake governor run`: get a slot, run a command, give the slot back, and end as the command did.

| what happens                          | what `run` does                                                        |
|---------------------------------------|------------------------------------------------------------------------|
| the command ends                      | gives the slot back, ends with its exit code                           |
| a signal comes while it waits         | leaves no lease behind, ends with 128 plus the signal's number         |
| a signal comes while the command runs | passes it on; the command decides, and the slot is given back after it |
| no slot within `--max-wait`           | ends with 1; with `--max-per-period` with 0: that is not a failure     |
"""

import asyncio
import shlex
import signal
import sys
import time
from contextlib import suppress
from typing import Annotated

import msgspec
import typer

from jetlake.cli.choria_settings import CollectiveOption, ConfigOption, IdentityOption, choria_settings
from jetlake.cli.invocation import current
from jetlake.cli.option_values import parse_duration
from jetlake.cli.run import REFUSED, fail, refusals
from jetlake.client.access import Access
from jetlake.client.backoff import steady
from jetlake.errors import ConfigurationError
from jetlake.governor import Governor, Lease, NoSlotError
from jetlake.governor.events import COMMAND_LINE
from jetlake.governor.layout import check_holder
from jetlake.presentation.quantities import SECOND
from jetlake.shared.cancellation import end

MAX_WAIT_NS = 300 * SECOND
INTERVAL_NS = 5 * SECOND

SIGNALLED = 128
"""Added to the number of a signal that ended a command, as shells do."""

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""A terminal sends these to the command by itself, because both are in its foreground."""

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""Those that end a campaign."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a line asks for."""

    access: Access
    name: str
    command: list[str]
    holder: str
    collective: str
    max_wait_s: float
    interval_s: float
    max_per_period: bool
    renew: bool
    stop_when_lost: bool


def run(
    name: Annotated[str, typer.Argument(help="The governor.", metavar="NAME")],
    command: Annotated[
        list[str], typer.Argument(help="The command: one quoted text, or its words behind --.", metavar="COMMAND…")
    ],
    max_wait: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="How long to wait for a slot.", show_default="5m")
    ] = MAX_WAIT_NS,
    interval: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="Time between two tries.", show_default="5s")
    ] = INTERVAL_NS,
    max_per_period: Annotated[
        bool, typer.Option("--max-per-period", help="Keep the slot until the lease expires: N runs in that time.")
    ] = False,
    renew: Annotated[bool, typer.Option("--renew", help="Renew the lease while the command runs.")] = False,
    stop_when_lost: Annotated[
        bool, typer.Option("--stop-when-lost", help="Send the command SIGTERM when its lease is lost; needs --renew.")
    ] = False,
    identity: IdentityOption = "",
    collective: CollectiveOption = "",
    config: ConfigOption = None,
) -> None:
    """Run a command once there is a slot.

    The exit code is that of the command. Signals are passed on to it. No shell is involved: for one write
    'sh -c "…"'.
    """
    with refusals():
        settings = choria_settings(config, collective=collective, identity=identity)
        if interval < SECOND:
            raise ConfigurationError("interval should be >=1s")
        if stop_when_lost and not renew:
            raise ConfigurationError("--stop-when-lost needs --renew: without it nobody looks at the lease")
        if renew and max_per_period:
            raise ConfigurationError("--renew and --max-per-period exclude each other: the one keeps a slot, the other "
                                     "lets it expire")  # fmt: skip
        options = RunOptions(
            access=current().access(),
            name=name,
            command=words_of(command),
            holder=check_holder(settings.identity),
            collective=settings.collective,
            max_wait_s=max(max_wait, 0) / SECOND,
            interval_s=interval / SECOND,
            max_per_period=max_per_period,
            renew=renew,
            stop_when_lost=stop_when_lost,
        )
        code = asyncio.run(CommandRunner(options).run())
    raise typer.Exit(code)


def words_of(command: list[str]) -> list[str]:
    """Return the words of a command; one text is split as a shell would. Raises `ConfigurationError`."""
    try:
        words = shlex.split(command[0]) if len(command) == 1 else list(command)
    except ValueError as error:
        raise ConfigurationError(f"the command {command[0]!r} cannot be split into words: {error}") from error
    if not words:
        raise ConfigurationError("the command is empty: name a program")
    return words


class CommandRunner:
    """One command under one governor."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._child: asyncio.subprocess.Process | None = None
        self._ended_by: signal.Signals | None = None
        self._task: asyncio.Task[int] | None = None

    async def run(self) -> int:
        """Return the exit code."""
        loop = asyncio.get_running_loop()
        for number in PASSED_ON:
            loop.add_signal_handler(number, self._obey, number)
        self._task = asyncio.ensure_future(self._work())
        try:
            return await self._task
        except asyncio.CancelledError:
            if self._ended_by is None:
                raise
            return SIGNALLED + self._ended_by
        except NoSlotError as error:
            if self._options.max_per_period:
                return 0
            fail(str(error), error)

    async def _work(self) -> int:
        options, begin_s = self._options, time.monotonic()
        async with Governor(
            options.access, options.name, collective=options.collective, connect_wait_s=options.max_wait_s
        ) as governor:
            left_s = max(options.max_wait_s - (time.monotonic() - begin_s), 0.0)
            async with governor.slot(
                holder=options.holder,
                max_wait_s=left_s,
                back_off=steady(options.interval_s),
                renew=options.renew,
                keep_until_expiry=options.max_per_period,
                component=COMMAND_LINE,
                end_on_sigterm=False,
            ) as lease:
                return await self._run_command(lease)

    async def _run_command(self, lease: Lease) -> int:
        try:
            self._child = await asyncio.create_subprocess_exec(*self._options.command)
        except OSError as error:
            typer.echo(f"execution failed: {self._options.command[0]}: {error.strerror}", err=True)
            return REFUSED
        watching = asyncio.ensure_future(self._watch(lease, self._child))
        try:
            code = await self._child.wait()
        finally:
            self._child = None
            await end(watching)
        return code if code >= 0 else SIGNALLED - code

    async def _watch(self, lease: Lease, child: asyncio.subprocess.Process) -> None:
        timeout_s = None if self._options.renew else lease.expires_in_s
        try:
            await asyncio.wait_for(lease.lost.wait(), timeout_s)
        except TimeoutError:
            typer.echo(
                f"warning: the lease {lease.sequence} on {lease.governor} has expired and the command still runs: "
                "give --renew, or leases more time with `jetlake governor add`",
                err=True,
            )
            return
        typer.echo(f"warning: the lease {lease.sequence} on {lease.governor} is lost", err=True)
        if self._options.stop_when_lost:
            with suppress(ProcessLookupError):
                child.terminate()

    def _obey(self, number: signal.Signals) -> None:
        child = self._child
        if child is not None:
            if number not in OF_THE_TERMINAL or not sys.stdin.isatty():
                with suppress(ProcessLookupError):
                    child.send_signal(number)
        elif number in ENDING and self._task is not None and self._ended_by is None:
            self._ended_by = number
            self._task.cancel()
