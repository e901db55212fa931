"""What a pipeline is: where rows come from, what is done to them, where they go.

Invariant, checked by `Pipeline.check`: every name is used once, every output names a frame that exists or could exist,
and everything that can be known without Spark, a server or a table is known to be right.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetlake.errors import ConfigurationError
from jetlake.shared.durations import UNITS_NS, DurationUnits
from jetlake.spark.lake.folder import check_name
from jetlake.spark.options import parse

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

Frames = Mapping[str, "DataFrame"]
Transform = Callable[[Frames], Frames]
"""From the inputs, by name, to the outputs and whatever is on the way, by name."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DURATION_UNITS = DurationUnits(
    {
        word: UNITS_NS[unit]
        for unit, words in {
            "ms": ("ms", "millisecond", "milliseconds"),
            "s": ("s", "second", "seconds"),
            "m": ("m", "min", "minute", "minutes"),
            "h": ("h", "hour", "hours"),
            "d": ("d", "day", "days"),
        }.items()
        for word in words
    }
)

DEFAULT_TRIGGER = "5 seconds"
"""Often enough to watch, rarely enough that tables do not fill with tiny files."""

ONCE = "once"
BAD_SUFFIX = "_bad"


@dataclass(frozen=True)
class StreamInput:
    """Messages of a stream, of several (`pattern`, a regular expression), or of some subjects only."""

    stream: str = ""
    pattern: str = ""
    subjects: tuple[str, ...] = ()
    columns: str = ""
    """Fields of the payload, which is then JSON: `id BIGINT, total DOUBLE`. They become columns."""

    expect: Mapping[str, str] = field(default_factory=dict)
    """What must be true of a row, by the reason that is noted when it is not."""

    start: str = "earliest"
    watermark: str = ""
    """How late a row may come, such as `1 minute`: needed where steps group rows by time."""

    watermark_column: str = "timestamp"
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of the format `jetlake`."""

    schema: str = ""
    """The columns to read, as Spark spells them: some of a message's, and `value` if something decodes payloads."""

    prepare: "Callable[[DataFrame], DataFrame] | None" = None
    """Messages → rows; a column `_bad` with a reason sets a row aside."""

    @property
    def may_have_bad_rows(self) -> bool:
        return bool(self.columns or self.expect or self.prepare)

    def read_options(self, url: str) -> dict[str, str]:
        """Return the options of the format `jetlake` for this input."""
        given = {
            "url": url,
            "stream": self.stream,
            "streamsPattern": self.pattern,
            "subjects": ",".join(self.subjects),
            "startingSequence": self.start if "startingTimestamp" not in self.options else "",
        }
        return {name: value for name, value in given.items() if value} | dict(self.options)


@dataclass(frozen=True)
class TableInput:
    """A table of the lake, as it is when a batch begins."""

    table: str


@dataclass(frozen=True)
class Derived:
    """A table that follows another: what `function` makes of the rows just added and of all rows of the table.

    It may be called again for the same rows and must then give the same.
    """

    table: str
    function: "Callable[[DataFrame, DataFrame], DataFrame]"
    partition_by: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    """With it a row replaces the one of its key; without it rows are added."""


@dataclass(frozen=True)
class Ordered:
    """How rows that mostly come in order are added to a table, each with something of the one before it.

    The state gives those that are newer than anything it knows with what is before them. The others are put in their
    places here.
    """

    key: tuple[str, ...]
    """The columns by which a row of the table is found again."""

    late: "Callable[[pyarrow.Table], pyarrow.Table]"
    """The rows of a batch that are not newer; mostly there are none."""

    reconciled: "Callable[[DataFrame, DataFrame], DataFrame]"
    """From late rows and the whole table to those of its rows that are new or change: they are upserted by the key."""


@dataclass(frozen=True)
class TableOutput:
    """Rows of a frame into a table of the lake: added, or with a `key` one row per key, of which the newest wins.

    Outputs that keep state and take the same frame (`of`) share one query.
    """

    table: str
    of: str = ""
    """The frame; the last step, or the only one, unless given."""

    partition_by: tuple[str, ...] = ()
    derived: tuple[Derived, ...] = ()
    key: tuple[str, ...] = ()
    """The columns by which a row is found again. Where rows are grouped, they are then written as they fill."""

    order_by: tuple[str, ...] = ()
    """What is newest, by these columns one after the other; without them that is what comes last, by its `sequence`."""

    reduced: bool = False
    """A batch has every key once already: nobody need look for the newest of its rows."""

    ordered: Ordered | None = None
    """Rows are added where they are newer than what is known, and upserted by its key where they are late. Needs
    `rows_of`."""

    sums: tuple[str, ...] = ()
    """Columns that are added to what the table has for the key; `pick` then gives every key of a batch once."""

    pick: "Callable[[DataFrame], DataFrame] | None" = None
    """From the rows of the frame to those of this table, batch by batch; it may do whatever a batch can."""

    rows_of: "Callable[[pyarrow.Table], pyarrow.Table] | None" = None
    """The same with Arrow. Where all outputs of a frame that keeps state have it, the rows of a batch come to this
    process once, instead of a job of Spark per table: right for rows that are few beside the events they come from."""

    @property
    def name(self) -> str:
        return self.table


@dataclass(frozen=True)
class StreamOutput:
    """Rows of a frame as messages; `{column}` in the subject stands for the value of a row."""

    stream: str
    subject: str = ""
    of: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.stream


Input = StreamInput | TableInput
Output = TableOutput | StreamOutput


@dataclass(frozen=True)
class Pipeline:
    """See the module."""

    name: str
    inputs: Mapping[str, Input]
    transform: Transform
    outputs: tuple[Output, ...]
    about: str = ""
    trigger: str = DEFAULT_TRIGGER
    sample: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    """A few rows per input, for `validate`."""

    expected: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What the sample must give, by output; columns that are not named may be anything."""

    origin: Path | None = None
    shipped: str = ""
    """Which of the pipelines that ship it is; it brings a report of its own."""

    steps: tuple[str, ...] = ()
    """Names of the frames that `transform` is known to return; empty when only running it tells."""

    @property
    def streams(self) -> dict[str, StreamInput]:
        return {name: value for name, value in self.inputs.items() if isinstance(value, StreamInput)}

    @property
    def tables(self) -> dict[str, TableInput]:
        return {name: value for name, value in self.inputs.items() if isinstance(value, TableInput)}

    @property
    def bad_table(self) -> str:
        return f"{self.name}{BAD_SUFFIX}"

    def table_names(self) -> list[str]:
        """Return the tables this pipeline writes, in the order of its outputs."""
        names = []
        for output in self.outputs:
            if isinstance(output, TableOutput):
                names += [output.table, *(derived.table for derived in output.derived)]
        # Each query may set rows aside.
        return [*(name for name in dict.fromkeys(names) if name != self.bad_table), self.bad_table]

    def frame_of(self, output: Output, frames: Frames) -> "DataFrame":
        """Return the frame of an output among those that the transformation returned."""
        wanted = output.of or output.name
        if wanted in frames:
            return frames[wanted]
        if not output.of and frames:
            return list(frames.values())[-1]
        raise ConfigurationError(
            f"pipeline {self.name}: output {output.name} takes {wanted}, which the transformation does not return; "
            f"it returns {', '.join(frames) or 'nothing'}"
        )

    def rows_of(self, output: Output, frames: Frames) -> "DataFrame":
        """Return the rows of an output among those that the transformation returned for one batch."""
        return picked(output, self.frame_of(output, frames))

    def check(self) -> None:
        """Refuse what cannot work. Raises `ConfigurationError`."""
        where = f"pipeline {self.name}"
        check_name(self.name)
        if not self.inputs:
            raise ConfigurationError(f"{where} has no input: name a stream or a table under `from`")
        if not self.outputs:
            raise ConfigurationError(f"{where} has no output: name a table or a stream under `to`")
        for name, given in self.inputs.items():
            if not IDENTIFIER.fullmatch(name):
                raise ConfigurationError(f"{where}: input {name!r} is not a name: use letters, digits and _")
            if isinstance(given, StreamInput):
                check_stream(f"{where}, input {name}", given)
            else:
                check_name(given.table)
        for output in self.outputs:
            if isinstance(output, TableOutput):
                check_table(where, output)
            elif not output.stream:
                raise ConfigurationError(f"{where}: an output needs the name of a table or of a stream")
        check_unique(where, self.outputs, adds=bool(self.streams))
        trigger_s(self.trigger, where)


def check_stream(where: str, given: StreamInput) -> None:
    """Refuse what cannot be read."""
    if bool(given.stream) == bool(given.pattern):
        raise ConfigurationError(f"{where}: give either `stream`, a name, or `pattern`, a regular expression")
    if given.pattern:
        try:
            re.compile(given.pattern)
        except re.error as error:
            raise ConfigurationError(
                f"{where}: {given.pattern!r} is not a regular expression ({error}); for all streams write .*"
            ) from error
    if given.watermark:
        duration_s(given.watermark, f"{where}, watermark")
    try:
        parse(given.read_options(""), "read")
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error


def check_table(where: str, output: TableOutput) -> None:
    """Refuse a table that cannot be made."""
    for name in (output.table, *(derived.table for derived in output.derived)):
        try:
            check_name(name)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error
    if output.order_by and not output.key:
        raise ConfigurationError(
            f"{where}, table {output.table}: order_by says which row of a key is the newest; give a `key`, or leave it "
            "out"
        )
    if output.sums and not output.key:
        raise ConfigurationError(f"{where}, table {output.table}: sums are kept by key; give a `key`")
    if output.key and any(not derived.key for derived in output.derived):
        raise ConfigurationError(f"{where}, table {output.table}: what follows a table with a key needs a key too")


def picked(output: Output, frame: "DataFrame") -> "DataFrame":
    """Return the rows of a batch that go to an output."""
    pick = output.pick if isinstance(output, TableOutput) else None
    return frame if pick is None else pick(frame)


def check_unique(where: str, outputs: tuple[Output, ...], *, adds: bool) -> None:
    """Refuse two outputs of one name; only rows that are added may come to a table from several frames.

    Without `adds` an output replaces all rows of its table, as in a pipeline from tables only.
    """
    names = []
    for output in outputs:
        if isinstance(output, StreamOutput):
            names.append((output.stream, ""))
        else:
            names.append((output.table, output.of if adds and not output.key else ""))
            names += [(derived.table, "") for derived in output.derived]
    of_frames: dict[str, list[str]] = {}
    for name, frame in names:
        of_frames.setdefault(name, []).append(frame)
    shared = {name: frames for name, frames in of_frames.items() if len(frames) > 1}
    twice = sorted(name for name, frames in shared.items() if "" in frames or len(set(frames)) < len(frames))
    if twice:
        raise ConfigurationError(f"{where}: {', '.join(twice)} is written twice; give every output a name of its own")
    for name, frames in shared.items():
        for frame in frames:
            # The table remembers batches of a frame by its name, which also begins the names of files.
            if not IDENTIFIER.fullmatch(frame):
                raise ConfigurationError(
                    f"{where}: {frame!r} is not a name for a frame that shares table {name}: use letters, digits and _"
                )


def trigger_s(trigger: str, where: str = "trigger") -> float | None:
    """Return the seconds between two batches; None for `once`."""
    return None if trigger == ONCE else duration_s(trigger, f"{where}, trigger")


def duration_s(text: str, where: str) -> float:
    """Return a duration such as `5 seconds`, `1 minute` or `500ms` in seconds."""
    found_ns = DURATION_UNITS.single_ns(text.strip().lower())
    if not found_ns:
        raise ConfigurationError(f"{where}: {text!r} is not a duration; write it like 5 seconds, 1 minute or 500ms")
    return float(found_ns / UNITS_NS["s"])
