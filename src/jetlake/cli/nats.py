"""`jetlake nats`: the commands of the tool of March 2020, with its output, in the dialect of that time.

Streams that it makes answer publishers with `+OK`, as then; `jetlake stream` makes those of today. Exit codes: 0 =
done, 1 = refused, misused, or nobody answered.
"""

import argparse
import asyncio
import sys
import time

from jetlake.cli.preview import consumers, streams
from jetlake.cli.preview.listening import listen
from jetlake.cli.preview.options import NatsError, parser
from jetlake.client.preview import PreviewClient, PreviewTimeoutError
from jetlake.errors import JetlakeError

DONE, FAILED = 0, 1

PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
"""What is read from the input at most: no server takes more in one message."""


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    try:
        options = parser().parse_args(sys.argv[1:] if argv is None else argv)
        asyncio.run(_run(options))
    except NatsError as error:
        return _failed(str(error))
    except PreviewTimeoutError:
        return _failed("nats: timeout, try --help")
    except JetlakeError as error:
        return _failed(str(error))
    except SystemExit as end:
        # Help was asked for.
        return DONE if not end.code else FAILED
    except KeyboardInterrupt:
        return FAILED
    return DONE


async def _run(options: argparse.Namespace) -> None:
    async with PreviewClient(options.server, options.creds) as client:
        if options.command in ("request", "req"):
            await _request(client, options)
        elif options.command == "pub":
            body = _body(options)
            await client.publish(options.subject, body)
            _log(f"Published {len(body)} bytes to {options.subject}")
        elif options.command == "sub":
            _log(f"Listening on [{options.subject}]")
            await listen(client, options.subject, options.queue, _log)
        elif options.command in ("stream", "str", "st"):
            await streams.run(client, options)
        else:
            await consumers.run(client, options)


async def _request(client: PreviewClient, options: argparse.Namespace) -> None:
    body = _body(options)
    _log(f"Sending request on [{options.subject}]")
    reply = await client.request(options.subject, body, timeout_s=options.timeout)
    _log(f"Received on [{reply.subject}]: '{reply.data.decode(errors='replace')}'")


def _body(options: argparse.Namespace) -> bytes:
    if options.body is not None:
        return str(options.body).encode()
    if sys.stdin.isatty():
        return b""
    _log("Reading payload from STDIN")
    return sys.stdin.buffer.read(PAYLOAD_BYTES_MAX)


def _log(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def _failed(reason: str) -> int:
    print(f"nats: error: {reason}", file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
