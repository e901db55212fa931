"""`Adapter`: one adapter from its start to its end.

Invariant: nothing of one adapter is shared with another: queue, threads and connections are its own. `stop` returns
when everything that was received is acknowledged, or `drain_s` is over; then it returns how much was not.
"""

import time
from pathlib import Path
from threading import Event

from jetlake.adapters.conversion import Converter
from jetlake.adapters.ingest import IngestWorker
from jetlake.adapters.metrics import Counters
from jetlake.adapters.options import AdapterOptions
from jetlake.adapters.output import StreamWorker
from jetlake.adapters.queue import PublicationQueue
from jetlake.adapters.worker import Connect, Report, WorkerContext
from jetlake.choria.signatures import Verifier
from jetlake.errors import ConfigurationError, reason_of

__all__ = ["Adapter"]

END_S_MAX = 1.0
"""For stream workers to notice that their time is over."""


class Adapter:
    """One adapter. Raises `ConfigurationError` when the files it needs cannot be read."""

    def __init__(self, options: AdapterOptions, connect: Connect, report: Report) -> None:
        self.options = options
        self._report = report
        self.queue = PublicationQueue(options.queue_messages_max, options.queue_bytes_max)
        context = WorkerContext(
            options=options,
            converter=Converter(options, _verifier(options)),
            queue=self.queue,
            connect=connect,
            ready=Event(),
            report=report,
        )
        self._outputs = [StreamWorker(context, number) for number in range(options.stream.workers)]
        self._ingests = [IngestWorker(context, number) for number in range(options.ingest.workers)]

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def counters(self) -> list[Counters]:
        """The counters of all workers."""
        return [worker.counters for worker in (*self._ingests, *self._outputs)]

    @property
    def in_flight(self) -> int:
        """Published, and not acknowledged yet."""
        return sum(worker.in_flight for worker in self._outputs)

    def total(self, field: str, role: str = "") -> int:
        """Return the sum of a counter over all workers of a role."""
        return sum(getattr(each, field) for each in self.counters if role in ("", each.role))

    def start(self) -> None:
        """Start the workers, those for the stream first. Returns at once; what cannot connect tries again."""
        ingest, stream = self.options.ingest, self.options.stream
        self._report(
            "info",
            f"adapter {self.name}: {ingest.topic} ({ingest.protocol}, {ingest.workers} workers) -> {stream.topic} "
            f"({stream.workers} workers), queue of {self.queue.messages_max:,} messages",
        )
        for worker in (*self._outputs, *self._ingests):
            worker.start()

    def stop(self) -> int:
        """Stop receiving, deliver what was received, and return how many messages could not be."""
        deadline = time.monotonic() + self.options.drain_s
        for ingest in self._ingests:
            ingest.stopping.set()
        for ingest in self._ingests:
            ingest.join(deadline - time.monotonic())
        self.queue.close()
        for output in self._outputs:
            output.join(deadline - time.monotonic())
        for output in self._outputs:
            output.abandoning.set()
        for output in self._outputs:
            output.join(END_S_MAX)
        lost = len(self.queue) + self.in_flight
        if lost:
            self._report(
                "error",
                f"adapter {self.name}: {lost:,} messages were not delivered within {self.options.drain_s:g} s and are "
                "lost: check that the stream's server runs, or raise drain",
            )
        self._report(
            "info",
            f"adapter {self.name}: stopped; received {self.total('messages', 'input'):,}, "
            f"published {self.total('messages', 'output'):,}, dropped {self.total('dropped'):,}, "
            f"dead letters {self.total('dead_letters'):,}, failed {self.total('failed'):,}",
        )
        return lost


def _verifier(options: AdapterOptions) -> Verifier | None:
    verify = options.ingest.verify
    if verify is None:
        return None
    authorities = b""
    if verify.ca:
        try:
            authorities = Path(verify.ca).read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"adapter {options.name}: ingest: verify: ca: cannot read {verify.ca}: {reason_of(error)}"
            ) from error
    return Verifier(authority_pem=authorities, issuers=verify.issuers)
