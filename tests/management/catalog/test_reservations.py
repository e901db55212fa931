"""What all streams together may grow to, however many accounts ask at once."""

import threading

import pytest

from jetlake.management.catalog.reservations import Reservations
from jetlake.management.streams.config import STREAM_CONFIG
from jetlake.management.streams.context import ServerLimits
from jetlake.management.wire.error_codes import RequestError as ApiError


def config(max_bytes: int, storage: str = "file"):
    import msgspec

    return msgspec.structs.replace(STREAM_CONFIG.make(), name="S", max_bytes=max_bytes, storage=storage)


def test_never_more_is_reserved_than_there_is():
    reservations = Reservations()
    reservations.limit(ServerLimits(max_memory=10, max_storage=1_000))
    granted = []

    def ask() -> None:
        for _ in range(100):
            try:
                reservations.reserve(config(3))
            except ApiError:
                continue
            granted.append(3)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(granted) == reservations["file"] == 999


def test_a_change_counts_by_its_difference_and_can_be_undone():
    reservations = Reservations()
    reservations.limit(ServerLimits(max_memory=10, max_storage=100))
    reservations.reserve(config(60))

    with pytest.raises(ApiError, match="insufficient storage resources"):
        reservations.reserve(config(101), before=config(60))
    reservations.reserve(config(100), before=config(60))
    assert reservations["file"] == 100
    reservations.release(config(100), before=config(60))
    assert reservations["file"] == 60
    reservations.release(config(60))
    assert reservations["file"] == 0
    # A stream without a bound reserves nothing.
    reservations.reserve(config(-1))
    assert reservations["file"] == 0
