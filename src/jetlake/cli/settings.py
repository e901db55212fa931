"""Flags that are fields of a configuration: one table makes the flags of `add`, `edit` and `copy`.

```python
@application.command()
@accepts(STREAM_SETTINGS)
def add(name: str, settings: dict[str, Any]) -> None: ...
```

The signature is made of the table because the same forty flags belong to three commands each, to the difference that
`edit` shows, and to the forms of the dashboard: written out, they would stand in six places.

Invariant: a flag that is not given leaves no trace; what is left out keeps the value it has.
"""

import functools
import inspect
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from jetlake.errors import ClientError, ConfigurationError, reason_of
from jetlake.presentation.quantities import read_duration, read_size
from jetlake.presentation.settings import Kind, Setting

_TYPES: dict[Kind, Any] = {
    Kind.NUMBER: int | None,
    Kind.SIZE: int | None,
    Kind.TIME: int | None,
    Kind.SWITCH: bool | None,
    Kind.OPPOSITE: bool | None,
    Kind.TEXTS: list[str] | None,
    Kind.PAIRS: list[str] | None,
    Kind.REMOVE: bool,
}
_METAVARS = {Kind.SIZE: "SIZE", Kind.TIME: "TIME", Kind.PAIRS: "KEY=VALUE"}
_PARSERS: dict[Kind, Callable[[str | int], int]] = {Kind.SIZE: read_size, Kind.TIME: read_duration}

Command = Callable[..., None]


def accepts(settings: Sequence[Setting]) -> Callable[[Command], Command]:
    """Give a command the flags of these settings; it gets the fields that were given as `settings`."""

    def with_flags(command: Command) -> Command:
        @functools.wraps(command)
        def call(**values: Any) -> None:
            given = {setting: values.pop(setting.parameter) for setting in settings}
            command(**values, settings=fields_of(given))

        signature = inspect.signature(command)
        own = [parameter for name, parameter in signature.parameters.items() if name != "settings"]
        parameters = [
            *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own),
            *map(_parameter, settings),
        ]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
        # Typer would follow it to the command itself and find its parameters instead.
        del call.__wrapped__
        return call

    return with_flags


def _parameter(setting: Setting) -> inspect.Parameter:
    metavar = _METAVARS.get(setting.kind)
    if setting.kind is Kind.CHOICE:
        metavar = "|".join(word for word, _ in setting.choices)
    names = [setting.flag]
    if setting.kind in (Kind.SWITCH, Kind.OPPOSITE):
        names = [f"{setting.flag}/--no-{setting.flag.removeprefix('--')}"]
    option = typer.Option(
        *names, help=setting.help, metavar=metavar, parser=_PARSERS.get(setting.kind), show_default=False
    )
    default: Any = False if setting.kind is Kind.REMOVE else None
    return inspect.Parameter(
        setting.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[_TYPES.get(setting.kind, str | None), option],
    )


def fields_of(given: dict[Setting, Any]) -> dict[str, Any]:
    """Return the fields of the flags that were given, by their dotted names; None takes a field away."""
    fields: dict[str, Any] = {}
    for setting, value in given.items():
        if value is None or (setting.kind is Kind.REMOVE and not value):
            continue
        match setting.kind:
            case Kind.REMOVE:
                fields[setting.field] = None
            case Kind.OPPOSITE:
                fields[setting.field] = not value
            case Kind.TEXTS:
                fields[setting.field] = [part.strip() for text in value for part in text.split(",") if part.strip()]
            case Kind.PAIRS:
                fields[setting.field] = dict(_pair(setting, text) for text in value)
            case Kind.CHOICE:
                fields[setting.field] = _choice(setting, value)
            case _:
                fields[setting.field] = value
    return fields


def merged(config: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with fields set, by their dotted names."""
    result: dict[str, Any] = json.loads(json.dumps(config))
    for path, value in fields.items():
        *outer, last = path.split(".")
        target = result
        for name in outer:
            if not isinstance(target.get(name), dict):
                target[name] = {}
            target = target[name]
        if value is None:
            target.pop(last, None)
        elif isinstance(value, dict) and isinstance(target.get(last), dict):
            target[last] = target[last] | value
        else:
            target[last] = value
    return result


def read_config(path: Path) -> dict[str, Any]:
    """Return the configuration in a JSON file: as it is sent, or within an answer that was saved."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON: {error}") from error
    if isinstance(content, dict) and isinstance(content.get("config"), dict):
        content = content["config"]
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} holds no configuration: a JSON object is needed")
    return content


def write_config(path: Path, config: dict[str, Any]) -> None:
    """Write a configuration to a JSON file, for `--config`."""
    try:
        path.write_text(json.dumps(config, indent=2) + "\n")
    except OSError as error:
        raise ClientError(f"cannot write {path}: {reason_of(error)}") from error


def edited(config: dict[str, Any]) -> dict[str, Any]:
    """Return what the user makes of a configuration in their editor."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise ConfigurationError("no editor is known: set EDITOR, or give flags instead of --interactive")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "configuration.json"
        write_config(path, config)
        try:
            done = subprocess.run([*editor.split(), str(path)], check=False)
        except OSError as error:
            raise ClientError(f"cannot run {editor}: {reason_of(error)}") from error
        if done.returncode != 0:
            raise ClientError(f"{editor} ended with {done.returncode}: nothing is changed")
        return read_config(path)


def _pair(setting: Setting, text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=") if "=" in text else text.partition(":")
    if not separator or not key:
        raise typer.BadParameter(f"{setting.flag} is {text!r}: write key=value")
    return key.strip(), value.strip()


def _choice(setting: Setting, text: str) -> str:
    known = dict(setting.choices) | {value: value for _, value in setting.choices}
    if text.lower() not in known:
        words = ", ".join(word for word, _ in setting.choices)
        raise typer.BadParameter(f"{setting.flag} is {text!r}: it must be one of {words}")
    return known[text.lower()]
