"""`SignsOfLife`: tells the server that a task still works on its batch, while the task sends no rows.

```python
with SignsOfLife(values, f"{upload}/0/{query}/{run}") as signs:
    for batch in batches:        # may take minutes
        ...                      # sent by the task itself
        signs.note(subject)
```

A server gives uploads up when nothing of their query has come for 30 seconds. A task that computes for longer between
two rows, or before its first one, would cost all tasks of its batch what they have uploaded. So a thread sends an empty
message now and then, over a connection of its own: the task's one is in the middle of something.

Invariant: nothing is stored, and nothing fails, by a sign of life. If none gets through, the server may give the
uploads up, and says so when the task goes on or when the batch is committed; then the task or the batch is repeated.
"""

import logging
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Self

from jetlake.client.raw_connection import RawConnection
from jetlake.errors import ClientError
from jetlake.spark.connecting import settings_of

__all__ = ["SignsOfLife"]

LOG = logging.getLogger("jetlake.spark")

INTERVAL_S = 10.0
"""A third of what the server waits for, so that one may come late."""

STOP_S_MAX = 5.0
"""How long the end of a task waits for a sign that is being sent."""


class SignsOfLife:
    """The thread of one task, and the connection it opens when it is first needed.

    `sign` is the value of the header. It goes to a subject of the rows, because a user who may publish them may publish
    it; a task whose rows name their subjects has none before its first row, and sends no sign until then.
    """

    def __init__(self, values: dict[str, Any], sign: str) -> None:
        self._values = values
        self._header = f"NATS/1.0\r\nJetlake-Upload: {sign}\r\n\r\n".encode()
        self._subject: str = values["subject"]
        self._has_sent = False
        self._is_over = Event()
        self._connection: RawConnection | None = None
        self._thread = Thread(target=self._run, name="jetlake-signs-of-life", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(STOP_S_MAX)

    def note(self, subject: str) -> None:
        """Take notice that the task has sent rows itself, the last one to this subject."""
        self._subject = subject or self._subject
        self._has_sent = True

    def _run(self) -> None:
        try:
            while not self._is_over.wait(INTERVAL_S):
                if self._has_sent:
                    self._has_sent = False
                elif self._subject:
                    self._send()
        finally:
            if self._connection is not None:
                self._connection.close()

    def _send(self) -> None:
        try:
            if self._connection is None:
                self._connection = RawConnection(settings_of(self._values, executor=True))
            # The answer shows that the connection still works.
            self._connection.request(self._subject, headers=self._header, timeout_s=INTERVAL_S)
        except ClientError as error:
            LOG.info("the server could not be told that a task still works: %s", error)
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.close()
                self._connection = None
