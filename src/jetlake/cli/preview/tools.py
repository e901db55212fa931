"""`nats-pub`, `nats-sub`, `nats-req` and `nats-bench`: the small tools beside the first releases, with their output.

They are installed by `jetlake shims`. The first argument is which one is meant.
"""

import argparse
import asyncio
import os
import sys
from urllib.parse import unquote, urlsplit

from jetlake.cli.preview.listening import listen
from jetlake.client import load
from jetlake.client.connection import DEFAULT_URL
from jetlake.client.preview import PreviewClient, PreviewTimeoutError
from jetlake.errors import JetlakeError

TOOLS = ("nats-pub", "nats-sub", "nats-req", "nats-bench")

PORT_DEFAULT = 4222


def main(argv: list[str] | None = None) -> int:
    """Run one command line, of which the first word is the tool, and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in TOOLS:
        print(f"name one of {', '.join(TOOLS)}", file=sys.stderr)
        return 2
    tool = words.pop(0)
    options = _parser(tool).parse_args(words)
    try:
        if tool == "nats-bench":
            _bench(options)
        else:
            asyncio.run(_connected(tool, options))
    except PreviewTimeoutError:
        print("nats: timeout for request", file=sys.stderr)
        return 1
    except JetlakeError as error:
        print(f"{tool}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    return 0


def _parser(tool: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=tool)
    parser.add_argument("-s", "--s", dest="url", default=os.environ.get("NATS_URL") or DEFAULT_URL, help="address")
    parser.add_argument("-creds", "--creds", default="", help="file with credentials")
    if tool == "nats-bench":
        parser.add_argument("-np", "--np", type=int, default=1, help="connections that send")
        parser.add_argument("-ns", "--ns", type=int, default=0, help="connections that listen")
        parser.add_argument("-n", "--n", type=int, default=100_000, help="messages of all together")
        parser.add_argument("-ms", "--ms", type=int, default=128, help="bytes of each")
    parser.add_argument("subject")
    if tool in ("nats-pub", "nats-req"):
        parser.add_argument("message")
    return parser


async def _connected(tool: str, options: argparse.Namespace) -> None:
    async with PreviewClient(options.url, options.creds) as client:
        if tool == "nats-sub":
            print(f"Listening on [{options.subject}]", flush=True)
            await listen(client, options.subject, "", _print)
            return
        if tool == "nats-pub":
            await client.publish(options.subject, options.message.encode())
            print(f"Published [{options.subject}] : '{options.message}'")
            return
        print(f"Published [{options.subject}] : '{options.message}'", flush=True)
        reply = await client.request(options.subject, options.message.encode())
        print(f"Received  [{reply.subject}] : '{reply.data.decode(errors='replace')}'")


def _bench(options: argparse.Namespace) -> None:
    address = urlsplit(options.url if "://" in options.url else f"nats://{options.url}")
    host = address.hostname or "127.0.0.1"
    user, password = address.username, address.password
    plan = load.LoadPlan(
        url=f"{f'[{host}]' if ':' in host else host}:{address.port or PORT_DEFAULT}",
        workload="pubsub" if options.ns else "publish",
        publishers=options.np,
        subscribers=options.ns,
        payload_bytes=options.ms,
        messages=max(options.n // max(options.np, 1), 1),
        subject=options.subject,
        # A URL with one name before the @ carries a token, as in every client library.
        user=unquote(user) if user and password else None,
        password=unquote(password) if password else None,
        token=unquote(user) if user and not password else None,
    )
    print(f"Starting benchmark [msgs={options.n}, msgsize={options.ms}, pubs={options.np}, subs={options.ns}]")
    figures = load.run(plan)
    print(f"Pub stats: {figures.publish_rate:,.0f} msgs/sec")
    if options.ns:
        print(f"Sub stats: {figures.deliver_rate:,.0f} msgs/sec")


def _print(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
