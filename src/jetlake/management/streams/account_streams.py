"""`AccountStreams`: the streams of one account, as decisions about another one need them.

A mapping of names to configurations that also keeps what would be slow to compute for every request: the names in
order, what the streams have reserved, and the subjects they take.

Invariant: `names` are the keys in order; `reserved_bytes` is the sum of what the streams of a kind may grow to; the
subjects taken are those of the configurations.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping

from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.dialect import OF_2019, dialect_of
from jetlake.management.subjects.taken import TakenSubjects


class AccountStreams(Mapping[str, StreamConfig]):
    """The streams of one account. One thread changes it; others may read names and configurations."""

    def __init__(self, configs: Iterable[StreamConfig] = ()) -> None:
        self._configs: dict[str, StreamConfig] = {}
        self._names: list[str] = []
        self._reserved = {"file": 0, "memory": 0}
        self._taken = TakenSubjects()
        for config in configs:
            self.put(config)

    def __getitem__(self, name: str) -> StreamConfig:
        return self._configs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._configs)

    def __len__(self) -> int:
        return len(self._configs)

    @property
    def names(self) -> list[str]:
        """The names in order. Not to be changed by the caller."""
        return self._names

    def reserved_bytes(self, storage: str) -> int:
        """Return what the streams of this kind may grow to; those without a bound do not count."""
        return self._reserved[storage]

    def put(self, config: StreamConfig) -> None:
        """Add a stream, or replace its configuration."""
        before = self._configs.get(config.name)
        if before is None:
            insort(self._names, config.name)
        else:
            self._release_subjects(before)
        self._configs[config.name] = config
        self._reserved[config.storage] += max(config.max_bytes, 0)
        self._taken.add(config.subjects or (), config.name)

    def remove(self, name: str) -> None:
        """Remove a stream, which must be there."""
        self._release_subjects(self._configs.pop(name))
        position = bisect_left(self._names, name)
        assert self._names[position] == name, "every stream has its name in the list"
        del self._names[position]

    def overlaps(self, config: StreamConfig) -> bool:
        """Return whether some message would be stored by another stream too. Raises `TooManyStepsError`.

        Message sets of 2019 may share subjects with each other, as they could then.
        """
        subjects = config.subjects or ()
        if not self._taken.is_met_by_others(subjects, config.name):
            return False
        if dialect_of(config.metadata) != OF_2019:
            return True
        others = {owner for subject in subjects for owner in self._taken.owners_meeting(subject)} - {config.name}
        return any(dialect_of(self._configs[other].metadata) != OF_2019 for other in others)

    def names_meeting(self, subject: str) -> list[str]:
        """Return, in order, the names of the streams that take some of what the subject matches."""
        return sorted(self._taken.owners_meeting(subject))

    def _release_subjects(self, config: StreamConfig) -> None:
        self._reserved[config.storage] -= max(config.max_bytes, 0)
        self._taken.remove(config.subjects or (), config.name)
