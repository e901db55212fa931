"""What became of the acknowledged messages: counted, and put together.

Invariant: a message counts once: it is there unchanged, lost, or wrong.
"""

import msgspec

from jetlake.crashtest.load import payload_of

__all__ = ["CrashVerdict", "compare"]


class CrashVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one test of one server."""

    rounds: int = 0
    acknowledged: int = 0
    # Acknowledged messages that are not served any more.
    lost: int = 0
    # Messages that are served with other bytes than were published.
    wrong: int = 0
    # Sequences that were given to a second message.
    reused: int = 0
    # Rounds after which the whole stream was gone, and those after which the server did not start.
    streams_gone: int = 0
    failed_starts: int = 0
    # Rounds with a loss or a wrong message of which the log says nothing.
    silent: int = 0

    def __add__(self, other: "CrashVerdict") -> "CrashVerdict":
        return CrashVerdict(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, changed or given twice."""
        return not (self.lost or self.wrong or self.reused or self.streams_gone or self.failed_starts)


def compare(
    acknowledged: dict[int, int], found: dict[int, bytes] | None, following: int, *, complaints: int
) -> CrashVerdict:
    """Compare what was acknowledged, sequence by number, with what is served, payload by sequence.

    `following` is the sequence that the next message was given.
    """
    if found is None:
        return CrashVerdict(rounds=1, acknowledged=len(acknowledged), lost=len(acknowledged), streams_gone=1)
    lost = sum(found.get(sequence) is None for sequence in acknowledged.values())
    wrong = sum(payload != _expected(payload) for payload in found.values())
    # One that is served whole, and is another than was acknowledged under this sequence.
    wrong += sum(
        payload != payload_of(number)
        for number, sequence in acknowledged.items()
        if (payload := found.get(sequence)) is not None and payload == _expected(payload)
    )
    reused = int(following in set(acknowledged.values()))
    is_silent = bool(lost or wrong) and not complaints
    return CrashVerdict(
        rounds=1, acknowledged=len(acknowledged), lost=lost, wrong=wrong, reused=reused, silent=int(is_silent)
    )


def _expected(payload: bytes) -> bytes:
    number = payload.partition(b":")[0]
    return payload_of(int(number)) if number.isdigit() else b""
