"""A pipeline as YAML.

```yaml
pipeline: large_orders
from:
  orders:
    stream: ORDERS
    columns: id BIGINT, total DOUBLE
    expect: {no id: id IS NOT NULL}
steps:
  - name: large
    sql: SELECT id, total, to_date(timestamp) AS day FROM orders WHERE total > 100
to:
  - table: large_orders
    partition_by: day
```

Or one that ships, with other settings: `use: archive` and `with: {stream: ORDERS}`. A key that is not known is refused
with the nearest one.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jetlake.errors import ConfigurationError, MissingDependencyError
from jetlake.shared.yaml_values import YamlError, load_yaml
from jetlake.spark.pipelines.model import (
    DEFAULT_TRIGGER,
    IDENTIFIER,
    Input,
    Output,
    Pipeline,
    StreamInput,
    StreamOutput,
    TableInput,
    TableOutput,
)
from jetlake.spark.pipelines.steps import QueryStep, transform_of
from jetlake.suggestions import hint, nearest

TOP_KEYS = ("pipeline", "about", "from", "sql", "steps", "to", "trigger", "options", "sample", "expected")
USE_KEYS = ("pipeline", "about", "use", "with")
STREAM_KEYS = ("stream", "pattern", "subjects", "columns", "expect", "start", "watermark", "options")
TABLE_KEYS = ("table",)
STEP_KEYS = ("name", "sql")
TABLE_OUTPUT_KEYS = ("table", "from", "partition_by", "key", "order_by")
STREAM_OUTPUT_KEYS = ("stream", "from", "subject", "options")

SIZE_BYTES_MAX = 1024 * 1024
"""A definition that is larger is some other file."""


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the keys of a definition. Raises `ConfigurationError` with line and column."""
    try:
        if path.stat().st_size > SIZE_BYTES_MAX:
            raise ConfigurationError(f"{path} is larger than {SIZE_BYTES_MAX:,} bytes: is it a pipeline?")
        loaded = load_yaml(path.read_text(encoding="utf-8"))
    except ImportError as error:
        raise MissingDependencyError(f"reading {path} needs the package pyyaml: run `pip install pyyaml`") from error
    except YamlError as error:
        place = "" if error.line is None else f", line {error.line}, column {error.column}"
        raise ConfigurationError(f"{path}{place}: {error.problem or 'this is not YAML'}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    if not isinstance(loaded, dict):
        raise ConfigurationError(f"{path}: a pipeline begins with `pipeline:`, `from:` and `to:`")
    return {str(key): value for key, value in loaded.items()}


def parse(loaded: Mapping[str, Any], name: str, origin: Path | None = None) -> Pipeline:
    """Return the pipeline that a definition describes. Raises `ConfigurationError`."""
    name = text(loaded.get("pipeline", name), "pipeline")
    where = f"pipeline {name}"
    check_keys(loaded, TOP_KEYS, where)
    options = {str(key): spelled(value) for key, value in mapping(loaded.get("options"), f"{where}, options").items()}
    inputs = {
        str(key): parse_input(value, f"{where}, input {key}", options)
        for key, value in mapping(loaded.get("from"), f"{where}, from").items()
    }
    steps = parse_steps(loaded, where, name)
    check_names([*inputs, *(step.name for step in steps)], where)
    outputs = tuple(
        parse_output(value, f"{where}, output {number}", [*inputs, *(step.name for step in steps)])
        for number, value in enumerate(listed(loaded.get("to"), f"{where}, to"), 1)
    )
    pipeline = Pipeline(
        name=name,
        about=text(loaded.get("about", ""), f"{where}, about"),
        inputs=inputs,
        transform=transform_of(steps),
        outputs=named(outputs, steps, inputs),
        trigger=text(loaded.get("trigger", DEFAULT_TRIGGER), f"{where}, trigger"),
        sample=rows(loaded.get("sample"), f"{where}, sample", inputs),
        expected=rows(loaded.get("expected"), f"{where}, expected", [output.name for output in outputs]),
        origin=origin,
        steps=tuple(step.name for step in steps),
    )
    pipeline.check()
    return pipeline


def parse_input(value: Any, where: str, options: Mapping[str, str]) -> Input:
    """Return an input. A text alone is the name of a stream."""
    given = {"stream": value} if isinstance(value, str) else mapping(value, where)
    if "table" in given:
        check_keys(given, TABLE_KEYS, where)
        return TableInput(text(given["table"], where))
    check_keys(given, STREAM_KEYS, where)
    watermark, column = parse_watermark(given.get("watermark", ""), where)
    own = {str(key): spelled(option) for key, option in mapping(given.get("options"), f"{where}, options").items()}
    return StreamInput(
        stream=text(given.get("stream", ""), f"{where}, stream"),
        pattern=text(given.get("pattern", ""), f"{where}, pattern"),
        subjects=tuple(text(part, f"{where}, subjects") for part in listed(given.get("subjects"), where)),
        columns=text(given.get("columns", ""), f"{where}, columns"),
        expect=parse_expect(given.get("expect"), f"{where}, expect"),
        start=text(given.get("start", "earliest"), f"{where}, start"),
        watermark=watermark,
        watermark_column=column,
        options={**options, **own},
    )


def parse_watermark(value: Any, where: str) -> tuple[str, str]:
    """Return the delay and its column: `1 minute`, or `{column: placed, delay: 1 minute}`."""
    if isinstance(value, Mapping):
        check_keys(value, ("column", "delay"), f"{where}, watermark")
        return text(value.get("delay", ""), where), text(value.get("column", "timestamp"), where)
    return text(value, f"{where}, watermark"), "timestamp"


def parse_expect(value: Any, where: str) -> dict[str, str]:
    """Return conditions by their reasons; a list of conditions gives reasons of its own."""
    if isinstance(value, Mapping):
        return {str(reason): text(condition, where) for reason, condition in value.items()}
    return {f"not true: {condition}": text(condition, where) for condition in listed(value, where)}


def parse_steps(loaded: Mapping[str, Any], where: str, name: str) -> list[QueryStep]:
    """Return the steps; `sql` alone is one step with the name of the pipeline."""
    if "sql" in loaded and "steps" in loaded:
        raise ConfigurationError(f"{where}: give either `sql`, for one step, or `steps`")
    if "sql" in loaded:
        return [QueryStep(name.replace("-", "_"), text(loaded["sql"], f"{where}, sql"))]
    found = []
    for number, value in enumerate(listed(loaded.get("steps"), f"{where}, steps"), 1):
        given = mapping(value, f"{where}, step {number}")
        check_keys(given, STEP_KEYS, f"{where}, step {number}")
        for key in STEP_KEYS:
            if not given.get(key):
                raise ConfigurationError(f"{where}, step {number}: `{key}` is missing")
        found.append(QueryStep(text(given["name"], where), text(given["sql"], where)))
    return found


def parse_output(value: Any, where: str, frames: list[str]) -> Output:
    """Return an output. A text alone is the name of a table."""
    given = {"table": value} if isinstance(value, str) else mapping(value, where)
    of = text(given.get("from", ""), f"{where}, from")
    if of and of not in frames:
        raise ConfigurationError(f"{where}: there is no input or step {of}{hint(of, frames)}")
    if "stream" in given:
        check_keys(given, STREAM_OUTPUT_KEYS, where)
        options = {str(key): spelled(option) for key, option in mapping(given.get("options"), where).items()}
        return StreamOutput(text(given["stream"], where), text(given.get("subject", ""), where), of, options)
    check_keys(given, TABLE_OUTPUT_KEYS, where)
    if "table" not in given:
        raise ConfigurationError(f"{where}: name a `table` or a `stream`")
    columns = {
        name: tuple(text(part, f"{where}, {name}") for part in listed(given.get(name), where))
        for name in ("partition_by", "key", "order_by")
    }
    return TableOutput(
        text(given["table"], where),
        of,
        partition_by=columns["partition_by"],
        key=columns["key"],
        order_by=columns["order_by"],
    )


def named(outputs: Iterable[Output], steps: list[QueryStep], inputs: Mapping[str, Input]) -> tuple[Output, ...]:
    """Return the outputs, each with the frame it takes: the last step, or the last input, unless it says so."""
    from dataclasses import replace

    last = steps[-1].name if steps else next(reversed(list(inputs)), "")
    return tuple(output if output.of else replace(output, of=last) for output in outputs)


def rows(value: Any, where: str, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return rows by the input or output they belong to."""
    known = list(names)
    found = {}
    for name, given in mapping(value, where).items():
        if name not in known:
            raise ConfigurationError(f"{where}: there is no {name}{hint(str(name), known)}")
        found[str(name)] = [dict(mapping(row, f"{where}, {name}")) for row in listed(given, where)]
    return found


def check_names(names: list[str], where: str) -> None:
    """Refuse names that SQL could not use, or that two things have."""
    for name in names:
        if not IDENTIFIER.fullmatch(name):
            raise ConfigurationError(f"{where}: {name!r} cannot be a name in SQL: use letters, digits and _")
        if names.count(name) > 1:
            raise ConfigurationError(f"{where}: two inputs or steps are called {name}; give each a name of its own")


def check_keys(given: Mapping[Any, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse a key that means nothing, with the nearest that does."""
    for key in given:
        if key not in known:
            near = nearest(str(key), known)
            tail = f"did you mean `{near}`?" if near else f"known are {', '.join(known)}"
            raise ConfigurationError(f"{where}: there is no key `{key}`; {tail}")


def text(value: Any, where: str) -> str:
    """Return a text; numbers are taken as they are written."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ConfigurationError(f"{where}: {value!r} should be a text")


def spelled(value: Any) -> str:
    """Return the value of an option as Spark takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def mapping(value: Any, where: str) -> dict[Any, Any]:
    """Return keys and values; a missing value yields none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where}: write keys and values here, one `key: value` per line")
    return value


def listed(value: Any, where: str) -> list[Any]:
    """Return a list; a single value is a list of one."""
    if value is None:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, str | dict):
        return [value]
    raise ConfigurationError(f"{where}: {value!r} should be a list")
