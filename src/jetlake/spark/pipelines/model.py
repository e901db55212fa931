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
from jetlake.spark.lake.folder import check_name
from jetlake.spark.lake.table import KINDS
from jetlake.spark.options import parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Mapping[str, "DataFrame"]
Transform = Callable[[Frames], Frames]
"""From the inputs, by name, to the outputs and whatever is on the way, by name."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DURATION = re.compile(r"(\d+(?:\.\d+)?) *(ms|milliseconds?|s|seconds?|m|min|minutes?|h|hours?|d|days?)")
UNITS_S = {"ms": 0.001, "mi": 60.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

DEFAULT_TRIGGER = "5 seconds"
"""Often enough to watch, seldom enough that tables do not fill with tiny files."""

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


@dataclass(frozen=True)
class TableOutput:
    """Rows of a frame into a table of the lake."""

    table: str
    of: str = ""
    """The frame; the last step, or the only one, unless given."""

    partition_by: tuple[str, ...] = ()
    kind: str = ""
    derived: tuple[Derived, ...] = ()

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
        return [*names, self.bad_table]

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
                raise ConfigurationError(f"{where}: input {name!r} is no name: use letters, digits and _")
            if isinstance(given, StreamInput):
                check_stream(f"{where}, input {name}", given)
            else:
                check_name(given.table)
        for output in self.outputs:
            if isinstance(output, TableOutput):
                check_table(where, output)
            elif not output.stream:
                raise ConfigurationError(f"{where}: an output needs the name of a table or of a stream")
        check_unique(where, [*self.table_names(), *(o.stream for o in self.outputs if isinstance(o, StreamOutput))])
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
                f"{where}: {given.pattern!r} is no regular expression ({error}); for all streams write .*"
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
    if output.kind and output.kind not in KINDS:
        raise ConfigurationError(f"{where}, table {output.table}: no kind {output.kind!r}; use {' or '.join(KINDS)}")


def check_unique(where: str, names: list[str]) -> None:
    """Refuse two outputs of one name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"{where}: {', '.join(twice)} is written twice; give every output a name of its own")


def trigger_s(trigger: str, where: str = "trigger") -> float | None:
    """Return the seconds between two batches; None for `once`."""
    return None if trigger == ONCE else duration_s(trigger, f"{where}, trigger")


def duration_s(text: str, where: str) -> float:
    """Return a duration such as `5 seconds`, `1 minute` or `500ms` in seconds."""
    found = DURATION.fullmatch(text.strip().lower())
    if found is None or float(found[1]) <= 0:
        raise ConfigurationError(f"{where}: {text!r} is no duration; write it like 5 seconds, 1 minute or 500ms")
    return float(found[1]) * UNITS_S[found[2] if found[2] in UNITS_S else _unit(found[2])]


def _unit(word: str) -> str:
    if word.startswith("milli"):
        return "ms"
    return "mi" if word.startswith("mi") else word[0]
