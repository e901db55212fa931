"""`jetlake bench`: how fast a server is, ours or another one, measured by the native load generator."""

from enum import StrEnum
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

import msgspec
import typer

from jetlake.cli.invocation import current
from jetlake.cli.output import JsonOption, print_facts, print_json
from jetlake.cli.run import refusals
from jetlake.client import load
from jetlake.client.access import Access
from jetlake.errors import ConfigurationError
from jetlake.presentation.cells import Cell


class Workload(StrEnum):
    """The shapes of load there are."""

    PUBLISH = "publish"
    PUBSUB = "pubsub"
    FANOUT = "fanout"
    FANIN = "fanin"
    REQUEST = "request"
    STORE = "store"


NATIVE: dict[Workload, Literal["publish", "pubsub", "request", "store"]] = {
    Workload.PUBLISH: "publish",
    Workload.PUBSUB: "pubsub",
    Workload.FANOUT: "pubsub",
    Workload.FANIN: "pubsub",
    Workload.REQUEST: "request",
    Workload.STORE: "store",
}
"""What the load generator calls them: the rest is a matter of numbers."""

DEFAULT_CLIENTS = 4
"""For the side of a workload that is many: receivers of fanout, senders of fanin."""


def bench(
    workload: Annotated[
        Workload,
        typer.Option(
            help="publish: nobody listens. pubsub: publishers to subscribers. fanout: one to many. "
            "fanin: many to one. request: request and reply. store: to an existing stream, acknowledged."
        ),
    ] = Workload.PUBSUB,
    publishers: Annotated[int | None, typer.Option(help="Number of publishing connections.")] = None,
    subscribers: Annotated[int | None, typer.Option(help="Number of subscribing or replying connections.")] = None,
    clients: Annotated[int, typer.Option(help="Connections on the many side of fanout and fanin.")] = DEFAULT_CLIENTS,
    size: Annotated[int, typer.Option(help="Payload size in bytes.")] = 128,
    messages: Annotated[int, typer.Option(help="Messages per publisher.")] = 1_000_000,
    rate: Annotated[int, typer.Option(help="Messages per second of each publisher (0: no limit).")] = 0,
    in_flight: Annotated[int, typer.Option(help="Unacknowledged messages per publisher.")] = 1_000,
    subject: Annotated[str, typer.Option(help="Subject to publish to.")] = "bench",
    as_json: JsonOption = False,
) -> None:
    """Measure a server with the native load generator."""
    with refusals():
        plan = make_plan(current().access(), workload, publishers, subscribers, clients, size, messages, subject)
        plan = msgspec.structs.replace(plan, rate=rate, in_flight=in_flight)
        figures = load.run(plan)
    if as_json:
        print_json(figures)
    else:
        show(plan, figures)


def make_plan(
    access: Access,
    workload: Workload,
    publishers: int | None,
    subscribers: int | None,
    clients: int,
    size: int,
    messages: int,
    subject: str,
) -> load.LoadPlan:
    """Return the plan of a command line: the named shapes become numbers of publishers and subscribers."""
    default_publishers, default_subscribers = {
        Workload.PUBLISH: (1, 0),
        Workload.PUBSUB: (1, 1),
        Workload.FANOUT: (1, clients),
        Workload.FANIN: (clients, 1),
        Workload.REQUEST: (1, 1),
        Workload.STORE: (1, 0),
    }[workload]
    if access.credentials or access.nkey or access.tls_ca or access.tls_certificate or access.tls_first:
        raise ConfigurationError(
            "the load generator speaks neither TLS nor keys: measure on a port without TLS, with a password or a token"
        )
    address = urlsplit(access.urls[0])
    host = address.hostname or "127.0.0.1"
    user = access.user or (None if address.username is None else unquote(address.username))
    password = access.password or (None if address.password is None else unquote(address.password))
    return load.LoadPlan(
        url=f"{f'[{host}]' if ':' in host else host}:{address.port or 4222}",
        workload=NATIVE[workload],
        publishers=default_publishers if publishers is None else publishers,
        subscribers=default_subscribers if subscribers is None else subscribers,
        payload_bytes=size,
        messages=messages,
        subject=subject,
        # A URL with one name before the @ carries a token, as in every client library.
        user=None if password is None else user,
        password=password,
        token=access.token or (user if password is None else None),
    )


def show(plan: load.LoadPlan, figures: load.Figures) -> None:
    """Print what was measured."""
    facts: dict[str, Cell] = {
        "published": figures.published,
        "delivered": figures.delivered,
        "seconds": f"{figures.seconds:.3f}",
        "published per second": round(figures.publish_rate),
        "delivered per second": round(figures.deliver_rate),
    }
    if figures.latency_us is not None:
        facts["latency p50"] = f"{figures.latency_us.p50:,.1f} µs"
        facts["latency p99"] = f"{figures.latency_us.p99:,.1f} µs"
        facts["latency max"] = f"{figures.latency_us.max:,.1f} µs"
    shape = f"{plan.publishers} → {plan.subscribers}, {plan.payload_bytes} bytes"
    print_facts(f"{plan.workload} at {plan.url}: {shape}", {"": facts})
