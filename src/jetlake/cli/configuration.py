"""Configurations as JSON: read from files and written to them, changed by fields, and edited by the user."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from jetlake.errors import ClientError, ConfigurationError, reason_of

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="A JSON file with the configuration; flags win over it.", metavar="FILE")
]


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
