"""`jetlake doctor`: is this machine fit, and what to do where it is not.

Invariant: every check ends by itself, and a check that fails unexpectedly is a finding, not an end.
"""

import importlib.util
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile, gettempdir
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
import typer

from jetlake.cli.invocation import current
from jetlake.cli.output import JsonOption, console, is_terminal, print_json
from jetlake.errors import JetlakeError, MissingDependencyError, reason_of

FREE_BYTES_LOW = 1 << 30
FREE_BYTES_BAD = 64 << 20
"""A server refuses messages when its disk is full; below this it soon is."""

SYNCS = 20
SYNC_MS_SLOW = 20.0
"""Every acknowledgement waits for a sync: slower than this is felt."""

OPEN_FILES_LOW = 4096
"""Each connection and each stream takes some."""

CLOCK_S_WRONG = 2.0
EARLIEST_YEAR = 2025

STYLES = {"ok": "green", "warn": "yellow", "bad": "bold red"}


class DoctorFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What one check found."""

    check: str
    state: Literal["ok", "warn", "bad"]
    text: str
    # What to do; empty when all is well.
    advice: str = ""


def doctor(
    store: Annotated[Path, typer.Option(help="Store folder of a server.", metavar="FOLDER")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Check this machine: engine, port, disk, clock, limits, Java and Spark. Ends with 1 when something is bad."""
    folder = store if store != Path() else Path(gettempdir())
    checks: tuple[tuple[str, Callable[[], DoctorFinding]], ...] = (
        ("python", check_python),
        ("engine", check_engine),
        ("server", check_server),
        ("store", lambda: check_space(folder)),
        ("sync", lambda: check_sync(folder)),
        ("clock", lambda: check_clock(folder)),
        ("open files", check_open_files),
        ("spark", check_spark),
        ("java", check_java),
    )
    findings = [carried_out(name, check) for name, check in checks]
    if as_json:
        print_json(findings)
    else:
        for finding in findings:
            show(finding)
    if any(finding.state == "bad" for finding in findings):
        raise typer.Exit(1)


def carried_out(name: str, check: Callable[[], DoctorFinding]) -> DoctorFinding:
    """Return what a check finds; what it raises is a finding too."""
    try:
        return check()
    except OSError as error:
        return DoctorFinding(check=name, state="bad", text=f"could not be checked: {reason_of(error)}", advice=_ADVICE)
    except JetlakeError as error:
        return DoctorFinding(check=name, state="bad", text=str(error), advice=_ADVICE)


_ADVICE = "look at the reason, and run `jetlake doctor` again"


def show(finding: DoctorFinding) -> None:
    """Print one line, and below it what to do."""
    if not is_terminal():
        typer.echo(f"{finding.state}\t{finding.check}\t{finding.text}\t{finding.advice}".rstrip())
        return
    screen = console()
    screen.print(f"{finding.state:5}", style=STYLES[finding.state], end="")
    screen.print(f" {finding.check:10} {finding.text}", markup=False)
    if finding.advice:
        screen.print(f"{'':17}→ {finding.advice}", style="cyan", markup=False)


def check_python() -> DoctorFinding:
    text = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.maxsize < 1 << 32:
        advice = "use a Python for 64 bits: streams are larger than 32 bits can count"
        return DoctorFinding(check="python", state="bad", text=text, advice=advice)
    return DoctorFinding(check="python", state="ok", text=text)


def check_engine() -> DoctorFinding:
    try:
        from jetlake.client.load import build_profile, engine_version
    except ImportError as error:
        advice = "install Jetlake again: `pip install --force-reinstall jetlake`"
        return DoctorFinding(check="engine", state="bad", text=f"the engine cannot be loaded: {error}", advice=advice)
    text = f"Jetlake {engine_version}, {build_profile} build"
    if build_profile != "release":
        return DoctorFinding(
            check="engine",
            state="warn",
            text=text,
            advice="a debug build is slow: `make engine-release` builds a fast one",
        )
    return DoctorFinding(check="engine", state="ok", text=text)


def check_server() -> DoctorFinding:
    """Is there a server where commands look for one, and if not, is the port free?"""
    access = current().access()
    address = urlsplit(access.urls[0])
    host, port = address.hostname or "127.0.0.1", address.port or 4222
    try:
        with socket.create_connection((host, port), timeout=2.0) as connection:
            greeting = connection.recv(4)
    except TimeoutError:
        advice = "check the address, the network and the firewall"
        return DoctorFinding(check="server", state="warn", text=f"{host}:{port} does not answer", advice=advice)
    except OSError:
        return DoctorFinding(
            check="server", state="ok", text=f"no server at {host}:{port}, the port is free", advice=""
        )
    if greeting != b"INFO":
        advice = "stop that program, or give a server another port with -p"
        return DoctorFinding(
            check="server", state="warn", text=f"{host}:{port} is used by something else", advice=advice
        )
    return DoctorFinding(check="server", state="ok", text=f"a server answers at {host}:{port}")


def check_space(folder: Path) -> DoctorFinding:
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / (1 << 30):,.1f} GiB free in {folder}"
    if not os.access(existing, os.W_OK | os.X_OK):
        advice = "choose another folder with --store, or change its owner"
        return DoctorFinding(check="store", state="bad", text=f"{existing} cannot be written", advice=advice)
    if free < FREE_BYTES_BAD:
        return DoctorFinding(
            check="store", state="bad", text=text, advice="free some space: a full disk refuses messages"
        )
    if free < FREE_BYTES_LOW:
        return DoctorFinding(
            check="store", state="warn", text=text, advice="free some space, or limit streams with --max-bytes"
        )
    return DoctorFinding(check="store", state="ok", text=text)


def check_sync(folder: Path) -> DoctorFinding:
    """How long until what is written is on the disk."""
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    times_ms = []
    with NamedTemporaryFile(dir=existing, prefix=".jetlake-doctor-") as file:
        for _ in range(SYNCS):
            begin_ns = time.perf_counter_ns()
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            times_ms.append((time.perf_counter_ns() - begin_ns) / 1_000_000)
    median_ms = sorted(times_ms)[SYNCS // 2]
    text = f"{median_ms:.2f} ms until 4 KiB are on the disk of {existing}"
    if median_ms > SYNC_MS_SLOW:
        advice = "acknowledgements wait for this: use a faster disk, or publish with many in flight"
        return DoctorFinding(check="sync", state="warn", text=text, advice=advice)
    return DoctorFinding(check="sync", state="ok", text=text)


def check_clock(folder: Path) -> DoctorFinding:
    """Is the clock near the one of the disk, and of this time?"""
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    with NamedTemporaryFile(dir=existing, prefix=".jetlake-doctor-") as file:
        file.write(b"1")
        file.flush()
        apart_s = abs(os.fstat(file.fileno()).st_mtime - time.time())
    now = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    advice = "set the clock, and keep it right with NTP: ages of messages and certificates depend on it"
    if time.localtime().tm_year < EARLIEST_YEAR:
        return DoctorFinding(check="clock", state="bad", text=f"it says {now}", advice=advice)
    if apart_s > CLOCK_S_WRONG:
        return DoctorFinding(
            check="clock", state="warn", text=f"it is {apart_s:.1f} s apart from the disk's", advice=advice
        )
    return DoctorFinding(check="clock", state="ok", text=now)


def check_open_files() -> DoctorFinding:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = f"{soft:,} files may be open, {hard:,} if asked for"
    if soft < OPEN_FILES_LOW:
        advice = f"`ulimit -n {hard}` before the server starts, or LimitNOFILE= in its unit"
        return DoctorFinding(check="open files", state="warn", text=text, advice=advice)
    return DoctorFinding(check="open files", state="ok", text=text)


def check_spark() -> DoctorFinding:
    if importlib.util.find_spec("pyspark") is None:
        advice = "only for tables and pipelines: `pip install 'jetlake[spark]'`"
        return DoctorFinding(check="spark", state="warn", text="not installed", advice=advice)
    from importlib.metadata import version

    return DoctorFinding(check="spark", state="ok", text=f"Spark {version('pyspark')}")


def check_java() -> DoctorFinding:
    from jetlake.spark.java import find_java, java_version

    try:
        home = find_java()
    except MissingDependencyError as error:
        return DoctorFinding(check="java", state="warn", text="none that Spark can use", advice=str(error))
    return DoctorFinding(check="java", state="ok", text=f"Java {java_version(home)} in {home}")
