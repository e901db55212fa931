"""`session`: a Spark session with defaults for one machine, many queries and small batches.

What a Spark out of the box does for a cluster is slow on one machine: two hundred shuffle partitions, a process per
checkpoint file, a web page. Each default below says what it is for; whatever the caller gives goes before it.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jetlake.errors import MissingDependencyError
from jetlake.spark.home import spark_home
from jetlake.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jetlake.spark.launch import JavaGateway

__all__ = ["new_session", "prepare_environment", "session"]

DRIVER_MEMORY = "2g"
"""Enough for several queries; a first one takes about 1.3 GB with its Python processes."""

COMPILER_OPTIONS = (
    "-XX:Tier4InvocationThreshold=25000",
    "-XX:Tier4MinInvocationThreshold=3000",
    "-XX:Tier4CompileThreshold=75000",
    "-XX:Tier4BackEdgeThreshold=200000",
)
"""Five times what Java has: each plan of Spark is code of its own, and optimising it took a third of the processor time
of a pipeline that reads half a million events. What is really hot reaches these numbers, too."""

CHECKPOINT_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(
    name: str = "jetlake",
    *,
    master: str = "local[*]",
    config: Mapping[str, str] | None = None,
    driver_memory: str = DRIVER_MEMORY,
    small: bool = False,
    log: Path | None = None,
) -> "SparkSession":
    """Return the session of this process, made with these settings if there is none yet.

    `master` is where it runs: `local[*]` in this process, `spark://host:7077` on a cluster. `small` is for work of
    seconds: Java then starts faster and computes slower. With `log`, what Java prints goes there instead of standard
    error. Raises `MissingDependencyError` when PySpark or a Java is missing.
    """
    settings = {**defaults(master, driver_memory, small=small), **(config or {})}
    gateway = _started(master, settings, small=small, log=log) if small or log is not None else None
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingDependencyError(
            f"PySpark cannot be imported ({error}): run `pip install 'jetlake[spark]'`"
        ) from error
    prepare_environment()
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with gateway.connected() if gateway is not None else spark_home():
        return builder.getOrCreate()


def _started(master: str, settings: Mapping[str, str], *, small: bool, log: Path | None) -> "JavaGateway | None":
    """Start Java before PySpark is imported, which takes as long; None where that is not ours to do."""
    from importlib.util import find_spec

    context = sys.modules.get("pyspark.core.context")
    if context is not None and context.SparkContext._gateway is not None:  # noqa: SLF001
        return None
    if not is_local(master) or find_spec("pyspark") is None:
        return None
    from jetlake.spark.launch import start

    prepare_environment()
    return start(settings, Path(os.environ["JAVA_HOME"]), small=small, log=log)


@contextmanager
def new_session(spark: "SparkSession", settings: Mapping[str, str]) -> "Iterator[SparkSession]":
    """Yield a session beside `spark`, with its own settings and views; it may be used afterwards, too.

    Creating a frame from rows makes its session the active one of the thread, and Spark looks up the sources of
    `toTable` in the active session: unless that is reset, the caller's next query would not find its streams.
    """
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield session
    finally:
        spark.createDataFrame([], "nothing INT")


def prepare_environment() -> None:
    """Have Spark find a Java and this Python. Raises `MissingDependencyError`."""
    os.environ["JAVA_HOME"] = str(find_java())
    # Spark starts Python processes of its own; they must have this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def defaults(master: str, driver_memory: str = DRIVER_MEMORY, *, small: bool = False) -> dict[str, str]:
    """Return the settings of a session on this master."""
    settings = {
        # Everything that is stored is in UTC; a zone of the machine would show in dates and windows.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": driver_memory,
        # State beyond memory, and snapshots that do not grow with it.
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
        # Sent as it is: bytes of a payload are bytes in Python.
        "spark.sql.execution.pyspark.binaryAsBytes": "true",
    }
    if is_local(master):
        settings |= {
            # 200, the default, is for a cluster.
            "spark.sql.shuffle.partitions": str(cores(master)),
            # A checkpoint on a local disk needs no process per file: this halves the time of a small batch.
            "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_MANAGER,
            "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
            # Java and Python are on one machine: no network between them.
            "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
            # Nobody connects to this session from elsewhere.
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
        if not small:
            # Rows go between Java and Python in large pieces and are garbage at once: a collector for throughput, not
            # for short pauses, saves a third of Java's work.
            settings["spark.driver.extraJavaOptions"] = " ".join(("-XX:+UseParallelGC", *COMPILER_OPTIONS))
    return settings


def is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def cores(master: str) -> int:
    """Return how many tasks a local master runs at a time."""
    inside = master.removeprefix("local").strip("[]").split(",")[0]
    if inside.isdigit():
        return int(inside)
    return (os.cpu_count() or 1) if inside == "*" else 1
