"""`jetlake rtt`: how long a server takes to answer."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.output import JsonOption, print_facts, print_json
from jetlake.cli.run import run
from jetlake.presentation.cells import Nanoseconds

if TYPE_CHECKING:
    from jetlake.client.api import Api

ITERATIONS = 5


def rtt(
    iterations: Annotated[int, typer.Argument(min=1, help="Number of round trips.")] = ITERATIONS,
    as_json: JsonOption = False,
) -> None:
    """Measure round trips to the server: one PING and its PONG each."""

    async def work(api: "Api") -> dict[str, Any]:
        times_ns = []
        for _ in range(iterations):
            begin_ns = time.perf_counter_ns()
            await api.connection.flush()
            times_ns.append(time.perf_counter_ns() - begin_ns)
        url = api.connection.connected_url
        return {"url": url.netloc.rpartition("@")[2] if url is not None else api.access.shown, "times_ns": times_ns}

    measured = run(work)
    times_ns = sorted(measured["times_ns"])
    figures = {
        "fastest": times_ns[0],
        "median": times_ns[len(times_ns) // 2],
        "mean": sum(times_ns) // len(times_ns),
        "slowest": times_ns[-1],
    }
    if as_json:
        print_json(measured | {f"{name}_ns": value for name, value in figures.items()})
        return
    facts = {name: Nanoseconds(value) for name, value in figures.items()}
    print_facts("", {"": {"server": measured["url"], "round trips": iterations, **facts}})
