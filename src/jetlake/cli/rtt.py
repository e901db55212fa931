"""`jetlake rtt`: how long a server takes to answer."""

import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.output import JsonOption, print_facts, print_json
from jetlake.cli.run import run
from jetlake.errors import ClientError
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
        times_ns = [await round_trip_ns(api) for _ in range(iterations)]
        url = api.connection.connected_url
        return {"url": url.netloc.rpartition("@")[2] if url is not None else api.access.shown, "times_ns": times_ns}

    measured = run(work, while_read=True)
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


async def round_trip_ns(api: "Api") -> int:
    """Return how long a server takes to answer a PING. Raises `ClientError` if it does not answer in time."""
    from nats.errors import Error

    begin_ns = time.perf_counter_ns()
    try:
        await api.connection.flush(timeout=math.ceil(api.access.timeout_s))
    except (Error, TimeoutError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise ClientError(f"{api.access.shown} does not answer a PING: {reason}") from error
    return time.perf_counter_ns() - begin_ns
