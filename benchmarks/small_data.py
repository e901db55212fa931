"""What small data costs: `jetlake sql`, `pipeline run logs --once` and `pipeline validate` on a thousand messages.

    python -m benchmarks.small_data [messages]

Each command is a process of its own, as a user starts it, run three times; the second and third start of Java find its
archive of classes. Printed are the time on the clock and the processor time of all processes a command started, which
says more on a machine that others use too. The targets are for an idle machine of two cores: 1 s, 12 s and 5 s.
"""

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jetlake
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams

RUNS = 3
MESSAGES = 1_000
ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER: what a command leaves behind, such as Java, becomes a child of this process and counts."""

LEVELS = ("INFO", "INFO", "INFO", "WARN", "ERROR")


def fill(url: str, count: int) -> None:
    """Store log lines of five sources."""
    connection = RawConnection(ConnectionSettings(url=url, name="benchmark"))
    streams = Streams(connection)
    streams.ask("STREAM.CREATE.LOGS", {"name": "LOGS", "subjects": ["logs.>"]})
    pieces = []
    for number in range(count):
        line = b"%s request %d took %d ms" % (LEVELS[number % 5].encode(), number, number % 500)
        pieces.append(b"PUB logs.web%d %d\r\n%s\r\n" % (number % 7, len(line), line))
    connection.send(b"".join(pieces))
    while streams.state("LOGS").messages < count:
        time.sleep(0.01)
    connection.close()


def measured(words: list[str], url: str, folder: Path) -> tuple[float, float]:
    """Run a command and return the seconds on the clock and of processors."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "jetlake", *words, "--server", url]
    answer = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if answer.returncode != 0:
        sys.exit(f"{' '.join(words)} failed: {answer.stderr}")
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, processor


def main() -> None:
    """Print a row for each command and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("messages", type=int, nargs="?", default=MESSAGES, help="log lines in the stream")
    count = parser.parse_args().messages
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
    print(f"{count:,} messages; jetlake {jetlake.__version__}; {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
    print(f"{'command':<34}{'run':>4}{'seconds':>10}{'processor s':>14}")
    with (
        tempfile.TemporaryDirectory() as name,
        jetlake.Server(jetstream=True, store_directory=f"{name}/store") as server,
    ):
        folder = Path(name)
        fill(server.url, count)
        commands = {
            "sql": ["sql", "SELECT source, count(*) FROM (SELECT subject AS source FROM streams.logs) GROUP BY source"],
            "pipeline validate logs": ["pipeline", "validate", "logs"],
            "pipeline run logs --once": ["pipeline", "run", "logs", "--once", "--lake"],
        }
        for title, words in commands.items():
            for run in range(1, RUNS + 1):
                given = [*words, f"lake{run}"] if words[-1] == "--lake" else words
                seconds, processor = measured(given, server.url, folder)
                print(f"{title:<34}{run:>4}{seconds:>10.2f}{processor:>14.2f}", flush=True)


if __name__ == "__main__":
    main()
