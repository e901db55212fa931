"""What Jetlake can do today, shown: a few scenes against a real server, as tables and as one page.

Each scene is a function that gets a running server and returns a `Scene`; the terminal and the page show the same
scenes. A new feature adds a scene to `SCENES`.

Run `make demo`, or `python examples/demo.py [folder for the page]`.
"""

import asyncio
import html
import platform
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js.api import AckPolicy, ConsumerConfig
from rich.console import Console
from rich.table import Table

import jetlake
from jetlake.client import load, streams
from jetlake.client.dead_letters import DeadLetters

DEFAULT_FOLDER = Path("build/demo")


@dataclass
class Scene:
    """One thing shown. `bars` adds a column of bars for the last column of numbers."""

    title: str
    explanation: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    bars: bool = False


async def publish_and_subscribe(server: jetlake.Server) -> Scene:
    scene = Scene(
        "Publish and subscribe",
        "Three subscriptions, two of them with wildcards; each message goes to all that match its subject.",
        ["subscription", "messages received"],
        bars=True,
    )
    connection = await jetlake.connect(server)
    received: Counter[str] = Counter()
    patterns = ["sensors.kitchen.temperature", "sensors.*.temperature", "sensors.>"]
    for pattern in patterns:
        await connection.subscribe(pattern, cb=counting(received, pattern))
    for room in ("kitchen", "bath", "attic"):
        for quantity in ("temperature", "humidity"):
            for reading in range(10):
                await connection.publish(f"sensors.{room}.{quantity}", str(reading).encode())
    await settle(connection, received, 10 + 30 + 60)
    scene.rows = [[pattern, str(received[pattern])] for pattern in patterns]
    await connection.close()
    return scene


async def queue_group(server: jetlake.Server) -> Scene:
    scene = Scene(
        "Queue group",
        "Three workers share one subject: each of 300 jobs goes to exactly one of them.",
        ["worker", "jobs done"],
        bars=True,
    )
    received: Counter[str] = Counter()
    workers = {name: await jetlake.connect(server, name=name) for name in ("ada", "grace", "edsger")}
    for name, connection in workers.items():
        await connection.subscribe("jobs", queue="workers", cb=counting(received, name))
        await connection.flush()
    client = await jetlake.connect(server)
    for number in range(300):
        await client.publish("jobs", str(number).encode())
    await settle(client, received, 300)
    scene.rows = [[name, str(received[name])] for name in workers]
    for connection in (*workers.values(), client):
        await connection.close()
    return scene


async def request_and_reply(server: jetlake.Server) -> Scene:
    scene = Scene(
        "Request and reply",
        "A service answers questions; where nobody listens, the server says so at once.",
        ["question", "answer", "took"],
    )
    service, client = await jetlake.connect(server), await jetlake.connect(server)

    async def answer(message: Msg) -> None:
        await message.respond(message.data.upper())

    await service.subscribe("shout", cb=answer)
    await service.flush()
    for subject, question in (("shout", "hello"), ("shout", "is anybody there?"), ("whisper", "hello?")):
        begun_at = time.perf_counter()
        try:
            shown = (await client.request(subject, question.encode(), timeout=2)).data.decode()
        except NoRespondersError:
            shown = "nobody listens (503)"
        took_ms = (time.perf_counter() - begun_at) * 1000
        scene.rows.append([f"{subject}: {question}", shown, f"{took_ms:.2f} ms"])
    await service.close()
    await client.close()
    return scene


async def streams_that_stay(_: jetlake.Server) -> Scene:
    scene = Scene(
        "Streams that stay",
        "Orders are stored by a server, which is stopped and started again; then it is copied as it was at order 600.",
        ["what", "stream", "messages", "last sequence"],
    )

    def show(what: str, description: dict[str, Any]) -> None:
        name, state = description["config"]["name"], description["state"]
        scene.rows.append([what, name, f"{state['messages']:,}", f"{state['last_seq']:,}"])

    with TemporaryDirectory(prefix="jetlake-demo-") as folder:
        async with jetlake.Server(jetstream=True, store_directory=folder) as server:
            config = {"name": "ORDERS", "subjects": ["orders.>"]}
            show("created", await streams.ask(server, "STREAM.CREATE.ORDERS", config))
            connection = await jetlake.connect(server)
            # Each answer means: on disk.
            await asyncio.gather(*(connection.request(f"orders.{n % 7}", b"%d" % n, timeout=10) for n in range(1000)))
            await connection.close()
            show("1,000 acknowledged", await streams.ask(server, "STREAM.INFO.ORDERS", {}))
        async with jetlake.Server(jetstream=True, store_directory=folder) as server:
            show("after a restart", await streams.ask(server, "STREAM.INFO.ORDERS", {}))
            show("forked", await streams.fork(server, "ORDERS", "TRIAL", last_sequence=600))
    return scene


async def workers(_: jetlake.Server) -> Scene:
    scene = Scene(
        "Workers that share a queue",
        "Three plain clients pull from one consumer: of each customer one message at a time, in order. "
        "What cannot be done goes to a stream of dead letters, with the reason.",
        ["worker", "jobs done", "given up"],
    )
    done: Counter[str] = Counter()
    given_up: Counter[str] = Counter()
    async with jetlake.Server(jetstream=True) as server:
        connection = await jetlake.connect(server)
        js = connection.jetstream()
        await js.add_stream(name="DEAD", subjects=["dead.>"])
        await js.add_stream(name="JOBS", subjects=["jobs.>"], metadata={"jetlake.dead_letters": "DEAD"})
        config = ConsumerConfig(
            durable_name="workers", ack_policy=AckPolicy.EXPLICIT, metadata={"jetlake.key": "subject.2"}
        )
        await js.add_consumer("JOBS", config)
        for number in range(90):
            await js.publish(f"jobs.customer-{number % 9}", b"%d" % number)

        async def work(name: str) -> None:
            client = await jetlake.connect(server)
            subscription = await client.jetstream().pull_subscribe_bind("workers", "JOBS")
            while done.total() + given_up.total() < 90:
                with suppress(TimeoutError):
                    for message in await subscription.fetch(3, timeout=0.2):
                        if int(message.data) % 30 == 29:
                            await client.request(message.reply, b"+TERM no such article", timeout=10)
                            given_up[name] += 1
                        else:
                            await message.ack_sync()
                            done[name] += 1
            await client.close()

        names = ("ada", "grace", "barbara")
        await asyncio.gather(*(work(name) for name in names))
        scene.rows += [[name, f"{done[name]}", f"{given_up[name]}"] for name in names]
        async with DeadLetters(server, "DEAD") as dead:
            # An acknowledgement that is answered is on disk, and so is the letter.
            letters = await dead.all()
        scene.rows.append([f"dead letters: {letters[0].reason}", "", f"{len(letters)}"])
        await connection.close()
    return scene


async def passwords(_: jetlake.Server) -> Scene:
    scene = Scene(
        "Who may come in",
        "A second server in this same process, with a user and a password.",
        ["presented", "result"],
    )
    async with jetlake.Server(user="ada", password="lovelace") as guarded:
        for shown, credentials in (
            ("ada and the right password", {"user": "ada", "password": "lovelace"}),
            ("ada and a wrong password", {"user": "ada", "password": "byron"}),
            ("nothing", {}),
        ):
            try:
                connection = await jetlake.connect(guarded, allow_reconnect=False, error_cb=ignore, **credentials)
            except jetlake.ClientError:
                scene.rows.append([shown, "Authorization Violation"])
            else:
                scene.rows.append([shown, "admitted"])
                await connection.close()
    return scene


async def speed(server: jetlake.Server) -> Scene:
    scene = Scene(
        "Speed",
        "The native load generator, 128 bytes per message; `jetlake bench` measures any server like this.",
        ["workload", "messages delivered", "per second"],
    )
    url = server.url.removeprefix("nats://")
    for shown, publishers, subscribers in (("1 → 1", 1, 1), ("1 → 4", 1, 4), ("4 → 1", 4, 1)):
        plan = load.Plan(
            url=url, workload="pubsub", publishers=publishers, subscribers=subscribers, messages=400_000 // publishers
        )
        figures = await asyncio.to_thread(load.run, plan)
        scene.rows.append([shown, f"{figures.delivered:,}", f"{figures.deliver_rate:,.0f}"])
    return scene


SCENES: list[Callable[[jetlake.Server], Awaitable[Scene]]] = [
    publish_and_subscribe,
    queue_group,
    request_and_reply,
    streams_that_stay,
    workers,
    passwords,
    speed,
]


def counting(received: Counter[str], name: str) -> Callable[[Msg], Awaitable[None]]:
    """Return a callback that counts messages under a name."""

    async def count(_message: Msg) -> None:
        received[name] += 1

    return count


async def settle(connection: Client, received: Counter[str], expected: int) -> None:
    """Wait until as many messages have come as must come."""
    await connection.flush()
    for _ in range(500):
        if received.total() >= expected:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{expected} messages expected, {received.total()} came")


async def ignore(_error: Exception) -> None:
    """Refused logins are what one of the scenes is about."""


def show(console: Console, scene: Scene) -> None:
    console.print(f"[bold]{scene.title}[/bold]\n{scene.explanation}")
    table = Table()
    for column in scene.columns:
        table.add_column(column)
    for row in scene.rows:
        table.add_row(*row)
    console.print(table, "")


def page(server_line: str, scenes: list[Scene]) -> str:
    """Return one HTML page that needs nothing from elsewhere."""
    sections = "\n".join(section(scene) for scene in scenes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Jetlake: what it can do</title>
<style>
  :root {{ color-scheme: light dark; --ink: light-dark(#12263a, #e6edf3); --paper: light-dark(#f4f8fb, #0d1620);
          --card: light-dark(#ffffff, #15222f); --line: light-dark(#d9e4ec, #25384a); --water: #2b8fc9; }}
  body {{ margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }}
  header {{ background: linear-gradient(120deg, #0b3a5b, #2b8fc9); color: #fff; padding: 3rem 1.5rem 2.5rem; }}
  header > *, main {{ max-width: 60rem; margin-inline: auto; }}
  h1 {{ margin-block: 0; font-size: 2.4rem; letter-spacing: -.02em; }}
  header p {{ margin-block: .4rem 0; opacity: .9; }}
  main {{ padding: 1.5rem; display: grid; gap: 1.25rem; }}
  section {{ background: var(--card); border: 1px solid var(--line); border-radius: 14px;
            padding: 1.25rem 1.5rem; overflow-x: auto; }}
  h2 {{ margin: 0 0 .25rem; font-size: 1.15rem; }}
  section p {{ margin: 0 0 .9rem; opacity: .8; }}
  table {{ border-collapse: collapse; width: 100%; }}
  th, td {{ text-align: left; padding: .4rem .75rem .4rem 0; border-top: 1px solid var(--line); white-space: nowrap; }}
  th {{ font-weight: 600; opacity: .65; border-top: 0; }}
  td {{ font-variant-numeric: tabular-nums; }}
  .bar {{ width: 45%; }} .bar i {{ display: block; height: .8rem; border-radius: .4rem; background: var(--water); }}
</style></head><body>
<header><h1>Jetlake</h1><p>{html.escape(server_line)}</p></header>
<main>
{sections}
</main></body></html>
"""


def section(scene: Scene) -> str:
    heads = "".join(f"<th>{html.escape(column)}</th>" for column in scene.columns)
    largest = max((float(row[-1]) for row in scene.rows), default=1) if scene.bars else 1
    rows = []
    for row in scene.rows:
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
        if scene.bars:
            cells += f'<td class="bar"><i style="width:{100 * float(row[-1]) / largest:.0f}%"></i></td>'
        rows.append(f"<tr>{cells}</tr>")
    return (
        f"<section><h2>{html.escape(scene.title)}</h2><p>{prose(scene.explanation)}</p>"
        f"<table><tr>{heads}{'<th></th>' if scene.bars else ''}</tr>{''.join(rows)}</table></section>"
    )


def prose(text: str) -> str:
    """Text for the page; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


async def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER
    console = Console()
    scenes = []
    async with jetlake.Server(name="demo") as server:
        server_line = (
            f"Version {jetlake.__version__}, a server inside this program at {server.url}; "
            f"{load.build_profile} build, Python {platform.python_version()}, {platform.machine()}"
        )
        console.print(server_line, "")
        for play in SCENES:
            scene = await play(server)
            scenes.append(scene)
            show(console, scene)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(page(server_line, scenes), encoding="utf-8")
    console.print(f"The same as a page: {path}", soft_wrap=True)


if __name__ == "__main__":
    asyncio.run(main())
