"""`StreamConsumers`: the consumers of one stream, as decisions about another one need them.

A mapping of names to consumers that also keeps what would be slow to compute for every request: the names in order,
how many consumers count, and the subjects they take.

Invariant: `names` are the keys in order; `counted` is how many are not internal, `public` how many are not direct; the
subjects taken are those of the counted ones.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping

import msgspec

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.subjects.taken import TakenSubjects
from jetlake.management.wire.json_dialect import write_json


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """One consumer as it is kept. Its name need not stand in its configuration."""

    name: str
    config: ConsumerConfig
    # As it stands in answers.
    created: str

    @property
    def definition(self) -> bytes:
        """What the engine keeps."""
        return write_json({"name": self.name, "config": self.config.to_json(), "created": self.created})


class StreamConsumers(Mapping[str, Consumer]):
    """The consumers of one stream. One thread changes it; others may read names and consumers."""

    def __init__(self) -> None:
        self._consumers: dict[str, Consumer] = {}
        # Direct ones are not listed.
        self._public_names: list[str] = []
        self._counted = 0
        # Made when first asked for, which is only of work queues.
        self._taken: TakenSubjects | None = None
        self._unfiltered: set[str] = set()

    def __getitem__(self, name: str) -> Consumer:
        return self._consumers[name]

    def __iter__(self) -> Iterator[str]:
        # Of a copy, because another thread may look while one is added.
        return iter(tuple(self._consumers))

    def __len__(self) -> int:
        return len(self._consumers)

    @property
    def public_names(self) -> list[str]:
        """The names of those that are listed, in order. Not to be changed by the caller."""
        return self._public_names

    @property
    def counted(self) -> int:
        """How many there are by the limits, which do not count what copies of the stream have made."""
        return self._counted

    def put(self, consumer: Consumer) -> None:
        """Add a consumer, or replace it."""
        before = self._consumers.get(consumer.name)
        if before is not None:
            self._release_subjects(before)
        self._consumers[consumer.name] = consumer
        if not consumer.config.direct:
            insort(self._public_names, consumer.name)
        if not consumer.config.is_internal:
            self._counted += 1
            self._claim_subjects(consumer)

    def remove(self, name: str) -> None:
        """Remove a consumer, which must be there."""
        self._release_subjects(self._consumers.pop(name))

    def are_taken(self, filters: tuple[str, ...], name: str) -> bool:
        """Return whether another consumer takes some of these subjects. Raises `TooManyStepsError`."""
        if not filters:
            return False
        if self._taken is None:
            self._taken = TakenSubjects()
            for consumer in self._consumers.values():
                if not consumer.config.is_internal:
                    self._claim_subjects(consumer)
        return bool(self._unfiltered - {name}) or self._taken.is_met_by_others(filters, name)

    def _claim_subjects(self, consumer: Consumer) -> None:
        if self._taken is None:
            return
        if consumer.config.filters:
            self._taken.add(consumer.config.filters, consumer.name)
        else:
            self._unfiltered.add(consumer.name)

    def _release_subjects(self, consumer: Consumer) -> None:
        if not consumer.config.direct:
            position = bisect_left(self._public_names, consumer.name)
            assert self._public_names[position] == consumer.name, "every public consumer has its name in the list"
            del self._public_names[position]
        if consumer.config.is_internal:
            return
        self._counted -= 1
        self._unfiltered.discard(consumer.name)
        if self._taken is not None and consumer.config.filters:
            self._taken.remove(consumer.config.filters, consumer.name)
