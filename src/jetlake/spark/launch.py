"""Starts Spark's Java for a session on this machine: at once, quietly, and with its classes at hand.

What Spark's own script does takes seconds: a shell and a Java of its own work out the command, and then all classes are
read from two hundred jars. Here the command is worked out once and remembered; Java starts while Python still imports;
and it finds its classes in an archive that the first start wrote when it ended. What Java prints goes to a
file instead of the terminal.

Invariant: the command is the one that Spark's script would run, with `JAVA_OPTIONS` added; if anything about it is
unusual, `start` returns None and Spark's own script is used.
"""

import atexit
import hashlib
import json
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from jetlake.errors import MissingDependencyError
from jetlake.spark.home import make_home
from jetlake.spark.java import cache_folder

__all__ = ["JavaGateway", "start"]

START_S_MAX = 120.0
"""A busy machine may take a minute; longer than that, something is wrong."""

POLL_S = 0.02
SUBMIT = "org.apache.spark.deploy.SparkSubmit"
LAUNCHER = "org.apache.spark.launcher.Main"

VARIABLES = ("JAVA_HOME", "SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS", "SPARK_LAUNCHER_OPTS", "JDK_JAVA_OPTIONS")
"""Variables that change the command."""

OWN_SETTINGS = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_TESTING")
"""Variables of a user's own Spark: it is started by its own script."""

SMALL_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""For work of seconds: compiling well costs more than it saves, and so do threads that collect garbage."""

QUIET_OPTIONS = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java tells every class that it cannot keep in an archive."""

ARCHIVER_NICENESS = 19
"""The archive is written when nobody waits: it may take as long as it likes."""

LOG_LINES_SHOWN = 5


class JavaGateway:
    """A Java that is starting."""

    def __init__(self, process: "subprocess.Popen[bytes]", information: Path, log: Path) -> None:
        self._process = process
        self._information = information
        self._log = log
        # Java ends when this end of its standard input is closed, which the end of this process does.
        atexit.register(self._be_nice)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Have PySpark take this Java instead of starting one, within the block. Raises `MissingDependencyError`."""
        port, secret = self._wait()
        os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        try:
            yield
        finally:
            for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
                os.environ.pop(name, None)

    def _wait(self) -> tuple[int, str]:
        deadline = time.monotonic() + START_S_MAX
        while True:
            content = self._information.read_bytes() if self._information.exists() else b""
            if len(content) > 8 and len(content) >= 8 + struct.unpack(">i", content[4:8])[0]:
                break
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise MissingDependencyError(f"Java did not start: {self._last_lines()}; see {self._log}")
            time.sleep(POLL_S)
        port, length = struct.unpack(">ii", content[:8])
        self._information.unlink()
        self._information.parent.rmdir()
        return port, content[8 : 8 + length].decode()

    def _last_lines(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return " / ".join(lines[-LOG_LINES_SHOWN:]) or f"exit code {self._process.returncode}"

    def _be_nice(self) -> None:
        """Leave the machine to others while Java ends, which may write its archive then."""
        if self._process.poll() is None:
            try:
                os.setpriority(os.PRIO_PROCESS, self._process.pid, ARCHIVER_NICENESS)
            except OSError:
                return


def start(settings: Mapping[str, str], java_home: Path, *, small: bool, log: Path | None = None) -> JavaGateway | None:
    """Start a Java for these settings of Spark; None when that is better left to Spark's script.

    Needs `JAVA_HOME` and the other environment variables to be set.
    """
    home = make_home()
    if home is None or os.name != "posix" or any(os.environ.get(name) for name in OWN_SETTINGS):
        return None
    if (home / "conf").exists():
        return None
    command = remembered_command(settings, home, java_home)
    if command is None:
        return None
    place = command.index(SUBMIT)
    options = [*(SMALL_OPTIONS if small else ()), *archive_options(home, java_home)]
    information = Path(tempfile.mkdtemp(prefix="jetlake-java-")) / "gateway"
    path = log or cache_folder() / "spark.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as output:
        process = subprocess.Popen(
            [*command[:place], *options, *command[place:]],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            # Without SPARK_HOME: with it, every Python process would read PySpark from a zip and compile it again.
            env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(information), "SPARK_CONNECT_MODE": "0"},
            # Ctrl-C is for this process; Java and what it starts end after it.
            start_new_session=True,
        )
    return JavaGateway(process, information, path)


def environment(home: Path) -> dict[str, str]:
    """Return the variables that Spark's script would set."""
    scala = next(iter((home / "jars").glob("spark-core_*.jar")), None)
    version = scala.name.split("_")[1].split("-")[0] if scala is not None else ""
    return {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": version}


def remembered_command(settings: Mapping[str, str], home: Path, java_home: Path) -> list[str] | None:
    """Return the command that Spark's launcher makes of these settings; it is asked once for each of them."""
    arguments = [word for name, value in sorted(settings.items()) for word in ("--conf", f"{name}={value}")]
    facts = [*arguments, _identity(home, java_home), *(os.environ.get(name, "") for name in VARIABLES)]
    path = cache_folder() / f"command-{_digest(facts)}.json"
    try:
        command: list[str] = json.loads(path.read_bytes())
        if SUBMIT in command and Path(command[0]).is_file():
            return command
    except (OSError, ValueError):
        pass
    found = ask_launcher(arguments, home, java_home)
    if found is not None:
        _replace(path, json.dumps(found))
    return found


def ask_launcher(arguments: list[str], home: Path, java_home: Path) -> list[str] | None:
    """Return the command that Spark's launcher prints: parts with a NUL after each, after an empty one."""
    asked = [str(java_home / "bin" / "java"), "-Xmx128m", "-cp", f"{home}/jars/*", LAUNCHER, SUBMIT]
    try:
        answer = subprocess.run(
            [*asked, *arguments, "pyspark-shell"],
            capture_output=True,
            env=environment(home),
            timeout=START_S_MAX,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    command = [part for part in answer.stdout.decode().partition("\0\n")[2].split("\0") if part]
    return command if SUBMIT in command else None


def archive_options(home: Path, java_home: Path) -> list[str]:
    """Return the options by which Java takes its classes from an archive, or writes one when it ends."""
    folder = cache_folder()
    archive = folder / f"classes-{_digest([_identity(home, java_home)])}.jsa"
    if not archive.exists():
        _adopt(archive)
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}", *QUIET_OPTIONS]
    if list(folder.glob(f"{archive.stem}.*.unfinished")):
        # Another process is about to write one.
        return []
    return [f"-XX:ArchiveClassesAtExit={archive.with_suffix('')}.{os.getpid()}.unfinished", *QUIET_OPTIONS]


def _adopt(archive: Path) -> None:
    """Give an archive its name when the process that wrote it is done."""
    for path in archive.parent.glob(f"{archive.stem}.*.unfinished"):
        if not _is_open(path):
            try:
                path.replace(archive)
            except OSError:
                return


def _is_open(path: Path) -> bool:
    """Tell whether a process of this user has a file open, or names it on its command line."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(path).encode() in (process / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def _identity(home: Path, java_home: Path) -> str:
    """Return what a command and an archive depend on: this Spark and this Java."""
    java = (java_home / "bin" / "java").resolve()
    jars = (home / "jars").stat()
    return f"{home} {jars.st_mtime_ns} {java} {java.stat().st_mtime_ns} {java.stat().st_size}"


def _digest(facts: list[str]) -> str:
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


def _replace(path: Path, text: str) -> None:
    """Write a file of the cache; without one the next start takes longer, and that is all."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text)
        unfinished.replace(path)
    except OSError:
        return
