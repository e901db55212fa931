"""The environment of commands: small and the same everywhere, as in the original; nothing of the agent's is inherited.

`WATCHER_DATA` and `WATCHER_FACTS` name files with the machine's data and the node's facts as JSON, which are removed
when the command has ended.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetlake.errors import ConfigurationError, reason_of

if TYPE_CHECKING:
    from jetlake.agents.machines.watchers.watcher import Watcher

__all__ = ["base_environment", "data_files", "read_environment_file"]

FILE_BYTES_MAX = 1024 * 1024
"""Of a file with variables."""


def base_environment(watcher: "Watcher") -> dict[str, str]:
    """Return what every command of a watcher gets."""
    folder = watcher.machine.folder
    return {
        "MACHINE_WATCHER_NAME": watcher.name,
        "MACHINE_NAME": watcher.machine.name,
        "PATH": f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{folder}",
    }


@contextmanager
def data_files(data: dict[str, Any], facts: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Write data and facts to files, give the variables that name them, and remove the files."""
    paths: dict[str, str] = {}
    try:
        for name, content in (("WATCHER_DATA", data), ("WATCHER_FACTS", facts)):
            try:
                # Readable by this user only: data may be passwords.
                descriptor, paths[name] = tempfile.mkstemp(prefix="jetlake-machine-", suffix=".json")
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(content, file)
            except OSError as error:
                raise ConfigurationError(f"cannot write the file for {name}: {reason_of(error)}") from error
        yield paths
    finally:
        for path in paths.values():
            with suppress(OSError):
                os.unlink(path)


def read_environment_file(path: Path) -> dict[str, str]:
    """Return the `NAME=value` lines of a file. Raises `ConfigurationError`."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX).decode()
    except OSError as error:
        raise ConfigurationError(f"cannot read the environment file {path}: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the environment file {path} is not text in UTF-8") from error
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"{path}:{number}: {stripped[:40]!r} is not a variable: write NAME=value")
        found[name.removeprefix("export ").strip()] = value.strip().strip("\"'")
    return found
