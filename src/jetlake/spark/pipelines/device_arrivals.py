"""Messages of a batch as they lie in the stream, by aggregate: what `Quality` takes.

Most aggregates send one version after the other. Whether they do is found for all aggregates of a batch at once; only
where a version is out of turn, messages are taken one by one.

Invariant: `Arrivals.add_to` gives the same as taking the messages one by one in the order of the stream.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jetlake.spark.pipelines.device_quality import Quality

if TYPE_CHECKING:
    import pyarrow as pa

    Numbers = np.ndarray[Any, np.dtype[Any]]

COLUMNS = ["subject", "aggregate_id", "device_id", "href", "own_version", "own_ns", "timestamp", "sequence"]
"""What it takes of a message."""

NEVER = np.iinfo(np.int64).max
"""The time of an event that says none, where the oldest is looked for."""


@dataclass(frozen=True)
class Arrivals:
    """The messages of one aggregate in a batch, in the order of the stream."""

    aggregate_id: str
    device_id: str
    href: str
    versions: "Numbers"
    """-1 for a message that cannot be decoded."""

    made_ns: "Numbers"
    """0 where an event does not say when it was made."""

    is_run: bool
    """Each version is one more than the one before, and there is no message that cannot be decoded."""

    oldest_ns: int
    newest_ns: int
    timed_events: int
    lateness_ms_sum: int
    lateness_ms_max: int
    first_stored_us: int
    last_stored_us: int
    last_sequence: int

    @classmethod
    def of_tables(cls, parts: "list[pa.Table]", aggregate_of: Callable[[str], str]) -> "Iterator[Arrivals]":
        """Yield the messages of each aggregate, as packs have them.

        One that cannot be read belongs to the aggregate that `aggregate_of` knows by its subject.
        """
        import pyarrow as pa
        from pyarrow import compute

        rows = pa.concat_tables([part.select(COLUMNS) for part in parts]).combine_chunks()
        aggregates = rows.column("aggregate_id").combine_chunks()
        is_bad = compute.is_valid(rows.column("subject"))
        if compute.any(is_bad).as_py():
            subjects = rows.column("subject").to_pylist()
            of_subjects = [None if subject is None else aggregate_of(subject) for subject in subjects]
            aggregates = compute.coalesce(pa.array(of_subjects, pa.string()), aggregates)
        encoded = aggregates.dictionary_encode()
        names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)
        sequences = rows.column("sequence").to_numpy()
        order = np.lexsort((sequences, codes))
        codes, sequences = codes[order], sequences[order]
        versions = rows.column("own_version").to_numpy()[order]
        made_ns = rows.column("own_ns").to_numpy()[order]
        stored_us = rows.column("timestamp").cast(pa.int64()).to_numpy()[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        ends = np.append(starts[1:], len(codes))

        follows = np.diff(versions, prepend=versions[:1]) == 1
        follows[starts] = True
        is_run = np.logical_and.reduceat(follows & (versions >= 0), starts)
        is_timed = (made_ns > 0) & (versions >= 0)
        lateness_ms = np.where(is_timed, (stored_us - made_ns // 1000) // 1000, 0)
        late_max = np.maximum.reduceat(np.where(is_timed, lateness_ms, -NEVER), starts)
        firsts = rows.take(pa.array(order[starts]))
        columns = zip(
            [names[code] for code in codes[starts].tolist()],
            firsts.column("device_id").to_pylist(),
            firsts.column("href").to_pylist(),
            starts.tolist(),
            ends.tolist(),
            is_run.tolist(),
            np.minimum.reduceat(np.where(is_timed, made_ns, NEVER), starts).tolist(),
            np.maximum.reduceat(made_ns, starts).tolist(),
            np.add.reduceat(is_timed.astype(np.int64), starts).tolist(),
            np.add.reduceat(lateness_ms, starts).tolist(),
            late_max.tolist(),
            np.minimum.reduceat(stored_us, starts).tolist(),
            np.maximum.reduceat(stored_us, starts).tolist(),
            sequences[ends - 1].tolist(),
            strict=True,
        )
        for name, device, href, start, end, *figures in columns:
            yield cls(name, device, href or "", versions[start:end], made_ns[start:end], *figures)

    def new_quality(self) -> Quality:
        """Return what is known of an aggregate before its first message."""
        return Quality(self.device_id, self.href)

    def add_to(self, quality: Quality) -> None:
        """Have an aggregate take its messages."""
        oldest_ns = 0 if self.oldest_ns == NEVER else self.oldest_ns
        first, last = int(self.versions[0]), int(self.versions[-1])
        if not self.is_run or not quality.take_run(first, last, oldest_ns, self.newest_ns):
            for version, made_ns in zip(self.versions.tolist(), self.made_ns.tolist(), strict=True):
                if version < 0:
                    quality.undecodable += 1
                else:
                    quality.add_message(version, made_ns)
        if self.timed_events:
            quality.add_lateness(self.timed_events, self.lateness_ms_sum, self.lateness_ms_max)
        quality.add_stored(self.first_stored_us, self.last_stored_us, self.last_sequence)
        quality.href = quality.href or self.href
