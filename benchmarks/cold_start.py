"""How long a server takes from being called to answering its first PING.

Method: start the process, connect as soon as the port answers, send CONNECT and PING, stop the clock at PONG;
repeat, and report the median and the slowest. The goal for `jetlake server` is 150 ms. The port is chosen
beforehand, so that nothing needs to be parsed; `--importtime` shows where the time of the Python side goes.

Run `python -m benchmarks.cold_start`, on a release build.
"""

import argparse
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import time

from jetlake.client.load import build_profile, engine_version

GOAL_MS = 150

GIVE_UP_S = 10.0


def main() -> int:
    options = read_options()
    if options.importtime:
        return show_imports()
    if build_profile != "release":
        print("cold_start: the engine is a debug build; run `make engine-release` first", file=sys.stderr)
        return 1
    script_folder = os.path.dirname(sys.executable)
    commands = {"jetlake server": [os.path.join(script_folder, "jetlake"), "server"]}
    reference = shutil.which("nats-server", path=f"{script_folder}{os.pathsep}{os.environ.get('PATH', '')}")
    if reference:
        commands["nats-server"] = [reference]
    report = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "engine": f"{engine_version} {build_profile}",
        "runs": options.runs,
        "milliseconds": {name: measure(command, options.runs) for name, command in commands.items()},
    }
    print(json.dumps(report, indent=2))
    return 0 if report["milliseconds"]["jetlake server"]["median"] <= GOAL_MS else 1


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="how often to start each server")
    parser.add_argument("--importtime", action="store_true", help="show the slowest imports of a start instead")
    return parser.parse_args()


def measure(command: list[str], runs: int) -> dict[str, float]:
    # The first start reads everything from disk; that is another measurement.
    start_once(command)
    times_ms = [start_once(command) * 1000 for _ in range(runs)]
    return {"median": round(statistics.median(times_ms), 1), "slowest": round(max(times_ms), 1)}


def start_once(command: list[str]) -> float:
    """Return the seconds from the start of a process to its first PONG."""
    port = free_port()
    begun_at = time.perf_counter()
    process = subprocess.Popen(
        [*command, "-a", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with connect(port, begun_at + GIVE_UP_S) as client:
            client.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
            received = b""
            while b"PONG\r\n" not in received:
                received += client.recv(4096)
        return time.perf_counter() - begun_at
    finally:
        process.terminate()
        process.wait()


def connect(port: int, deadline: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=GIVE_UP_S)
        except ConnectionRefusedError:
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.0005)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def show_imports() -> int:
    """Print the twenty imports of a server's start that take longest, with what they import."""
    answer = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import jetlake.server.process"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.removeprefix("import time:").split("|") for line in answer.stderr.splitlines() if "|" in line]
    timed = [(int(total), name.strip()) for _, total, name in rows if total.strip().isdigit()]
    for total_us, name in sorted(timed, reverse=True)[:20]:
        print(f"{total_us / 1000:8.1f} ms  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
