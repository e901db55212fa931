"""How long a server takes from being called to answering its first PING.

Method: start the process, connect as soon as the port answers, send CONNECT and PING, stop the clock at PONG. The
port is chosen beforehand, so that nothing needs to be parsed. `python -m benchmarks.cold_start` shows which imports
the start of our server waits for.
"""

import subprocess
import sys
import time

from benchmarks.servers import START_S_MAX, connected, free_port

SHOWN_IMPORTS = 20


def start_once_ms(command: list[str]) -> float:
    """Start a server, and return the milliseconds to its first PONG."""
    port = free_port()
    begun_at = time.perf_counter()
    process = subprocess.Popen(
        [*command, "-a", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with connected(port, begun_at + START_S_MAX):
            return (time.perf_counter() - begun_at) * 1_000
    finally:
        process.terminate()
        process.wait()


def show_imports() -> None:
    """Print the imports of a server's start that take longest, with what they import."""
    answer = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import jetlake.server.process"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.removeprefix("import time:").split("|") for line in answer.stderr.splitlines() if "|" in line]
    timed = [(int(total), name.strip()) for _, total, name in rows if total.strip().isdigit()]
    for total_us, name in sorted(timed, reverse=True)[:SHOWN_IMPORTS]:
        print(f"{total_us / 1000:8.1f} ms  {name}")


if __name__ == "__main__":
    show_imports()
