"""A sender inside another program's process: `python -m jetlake.submission.hosted`, as `jetlake server` starts it.

The first line of standard input has the options, as one JSON object; when standard input closes, the sender ends. So it
ends however its host does, and no password stands in an argument or a variable. The log goes to standard error, each
line with its level.

Exit codes: 0 = it was to end, 1 = it could not start.
"""

import asyncio
import logging
import signal
import sys
from pathlib import Path

import msgspec

from jetlake.client.access import Access
from jetlake.errors import JetlakeError
from jetlake.submission.sender import SenderOptions, run_sender

FIRST_LINE_BYTES_MAX = 1 << 20
"""Options are a few hundred bytes."""

_log = logging.getLogger("jetlake.submission")

LABELS = {logging.INFO: "[INF]", logging.WARNING: "[WRN]", logging.ERROR: "[ERR]", logging.CRITICAL: "[ERR]"}
"""By which the host knows the level of a line."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class HostedOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON object; an empty text is "not given"."""

    spool: str
    url: str
    collective: str = "mcollective"
    messages_max: int = 500
    user: str = ""
    password: str = ""
    token: str = ""
    credentials_file: str = ""
    nkey_file: str = ""
    authority_file: str = ""
    metrics_port: int | None = None
    seed_file: str = ""
    token_file: str = ""

    def for_sender(self) -> SenderOptions:
        """Return the options of a sender. Raises `ConfigurationError`."""
        access = Access(
            url=self.url,
            user=self.user or None,
            password=self.password or None,
            token=self.token or None,
            credentials=_path(self.credentials_file),
            nkey=_path(self.nkey_file),
            tls_ca=_path(self.authority_file),
            name="jetlake submission",
        )
        return SenderOptions(
            spool=self.spool,
            access=access,
            collective=self.collective,
            messages_max=self.messages_max,
            seed_file=_path(self.seed_file),
            token_file=_path(self.token_file),
            metrics_port=self.metrics_port,
        )


def main() -> int:
    """Run the sender and return the exit code."""
    for level, label in LABELS.items():
        logging.addLevelName(level, label)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    # The host may block signals in the thread that starts us, and a mask is inherited.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        # Without a buffer, so that what is left to come is left for the event loop to see.
        with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as source:
            options = msgspec.json.decode(source.readline(FIRST_LINE_BYTES_MAX), type=HostedOptions)
    except (msgspec.DecodeError, OSError) as error:
        _log.error("the options are not readable: %s", error)
        return 1
    try:
        asyncio.run(_run(options.for_sender()))
    except JetlakeError as error:
        _log.error("%s", error)
        return 1
    return 0


async def _run(options: SenderOptions) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    # Nothing more is written there: it can be read once the other end has closed.
    loop.add_reader(sys.stdin.fileno(), stop.set)
    await run_sender(options, stop=stop)


def _path(text: str) -> Path | None:
    return Path(text) if text else None


if __name__ == "__main__":
    sys.exit(main())
