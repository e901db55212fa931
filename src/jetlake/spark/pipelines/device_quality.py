"""How well the bus has delivered the events of one aggregate: missing, duplicate, reordered, late and undecodable ones.

No Spark here: a `Quality` takes the messages of an aggregate in the order of the stream.

- a version is *missing* if the stream has a lower and a higher one, and not this one. Versions below the lowest one may
  have been removed from the stream, or lie before the first message that the pipeline has read
- a message is a *duplicate* if its version was there before
- a message is *reordered* if it is not a duplicate and a higher version was there before
- its *lateness* is the time at which it was stored less the time that its event says

Versions start again at 0 when a device is deleted and onboarded again. Such an epoch begins with a version that was
there before, or with version 0, at a time later than that of all events before it.

Invariant: the result depends on the messages and their order in the stream only, not on how they are cut into batches.
"""

from bisect import bisect_right
from typing import Any

import msgspec

RANGES_KEPT = 64
"""Of an epoch: with more gaps than this, the lowest one counts as missing for good."""

EPOCHS_KEPT = 2
"""Of an aggregate: an event of a device that was deleted may still come after the first ones of its next life."""


class Epoch(msgspec.Struct, array_like=True):
    """The versions of one life of an aggregate that are on the stream, as ranges in ascending order."""

    firsts: list[int]
    lasts: list[int]
    newest_ns: int = 0

    def has(self, version: int) -> bool:
        place = bisect_right(self.firsts, version) - 1
        return place >= 0 and version <= self.lasts[place]

    def add(self, version: int) -> None:
        """Note a version that is not there."""
        place = bisect_right(self.firsts, version)
        extends_lower = place > 0 and self.lasts[place - 1] == version - 1
        extends_higher = place < len(self.firsts) and self.firsts[place] == version + 1
        if extends_lower and extends_higher:
            self.lasts[place - 1] = self.lasts[place]
            del self.firsts[place], self.lasts[place]
        elif extends_lower:
            self.lasts[place - 1] = version
        elif extends_higher:
            self.firsts[place] = version
        else:
            self.firsts.insert(place, version)
            self.lasts.insert(place, version)

    def missing(self) -> int:
        """Return how many versions between the lowest and the highest are not there."""
        return sum(first - last - 1 for first, last in zip(self.firsts[1:], self.lasts[:-1], strict=True))


class Quality(msgspec.Struct, array_like=True):
    """What is known of one aggregate."""

    device_id: str
    href: str
    epochs: list[Epoch] = []
    epoch_count: int = 0
    events: int = 0
    duplicates: int = 0
    reordered: int = 0
    undecodable: int = 0
    # In epochs and gaps that are not kept any more.
    missing_for_good: int = 0
    timed_events: int = 0
    lateness_ms_sum: int = 0
    lateness_ms_max: int | None = None
    first_stored_us: int = 0
    last_stored_us: int = 0
    last_sequence: int = 0

    def add_message(self, version: int, made_ns: int) -> None:
        """Take the next message of the stream."""
        self.events += 1
        epoch = self._epoch_of(version, made_ns)
        if epoch.has(version):
            self.duplicates += 1
        else:
            self.reordered += bool(epoch.lasts) and version < epoch.lasts[-1]
            epoch.add(version)
            self._forget_gaps(epoch)
        epoch.newest_ns = max(epoch.newest_ns, made_ns)

    def take_run(self, first: int, last: int, oldest_ns: int, newest_ns: int) -> bool:
        """Take messages whose versions go up by one, if they follow those that are there; return whether they do.

        This is what `take` would do with one after the other, and mostly all that there is to do.
        """
        if not self.epochs:
            self._begin_epoch()
        elif self.epochs[-1].lasts[-1] + 1 != first or self._is_of_older_epoch(oldest_ns):
            return False
        epoch = self.epochs[-1]
        if epoch.lasts:
            epoch.lasts[-1] = last
        else:
            epoch.firsts.append(first)
            epoch.lasts.append(last)
        epoch.newest_ns = max(epoch.newest_ns, newest_ns)
        self.events += last - first + 1
        return True

    def add_lateness(self, count: int, sum_ms: int, max_ms: int) -> None:
        """Add how late messages were that say when their events were made."""
        self.timed_events += count
        self.lateness_ms_sum += sum_ms
        self.lateness_ms_max = max_ms if self.lateness_ms_max is None else max(self.lateness_ms_max, max_ms)

    def add_stored(self, first_us: int, last_us: int, last_sequence: int) -> None:
        """Note when messages were stored, and the last one of them."""
        self.first_stored_us = min(self.first_stored_us or first_us, first_us)
        self.last_stored_us = max(self.last_stored_us, last_us)
        self.last_sequence = max(self.last_sequence, last_sequence)

    def row(self, aggregate_id: str) -> dict[str, Any]:
        """Return the row of the table; times are in microseconds."""
        return {
            "device_id": self.device_id,
            "aggregate_id": aggregate_id,
            "href": self.href,
            "epochs": self.epoch_count,
            "events": self.events,
            "last_version": self.epochs[-1].lasts[-1] if self.epochs else None,
            "missing": self.missing_for_good + sum(epoch.missing() for epoch in self.epochs),
            "duplicates": self.duplicates,
            "reordered": self.reordered,
            "undecodable": self.undecodable,
            "lateness_ms_mean": self.lateness_ms_sum / self.timed_events if self.timed_events else None,
            "lateness_ms_max": self.lateness_ms_max,
            "first_stored_at": self.first_stored_us,
            "last_stored_at": self.last_stored_us,
            "last_sequence": self.last_sequence,
        }

    def _epoch_of(self, version: int, made_ns: int) -> Epoch:
        """Return the epoch of an event, a new one if it begins one."""
        if not self.epochs:
            return self._begin_epoch()
        if self._is_of_older_epoch(made_ns):
            return self.epochs[-2]
        newest = self.epochs[-1]
        if made_ns > newest.newest_ns > 0 and (version == 0 or newest.has(version)):
            return self._begin_epoch()
        return newest

    def _is_of_older_epoch(self, made_ns: int) -> bool:
        return len(self.epochs) > 1 and 0 < made_ns <= self.epochs[-2].newest_ns

    def _begin_epoch(self) -> Epoch:
        self.epoch_count += 1
        self.epochs.append(Epoch([], []))
        if len(self.epochs) > EPOCHS_KEPT:
            self.missing_for_good += self.epochs.pop(0).missing()
        return self.epochs[-1]

    def _forget_gaps(self, epoch: Epoch) -> None:
        if len(epoch.firsts) > RANGES_KEPT:
            self.missing_for_good += epoch.firsts[1] - epoch.lasts[0] - 1
            del epoch.firsts[1], epoch.lasts[0]
