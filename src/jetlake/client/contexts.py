"""Named connections, in the files that NATS' own command line keeps: one folder serves both tools.

```text
~/.config/nats/               $XDG_CONFIG_HOME/nats when that is set
├── context.txt               the name of the one that is chosen
├── previous-context.txt      the one chosen before, for `-`
└── context/NAME.json         one connection
```

Invariant: keys of a file that are not known here survive an edit.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

from jetlake.errors import ClientError, ConfigurationError, reason_of

NAME = re.compile(r"[^/\\\s.][^/\\\s]*")
"""What a context may be called: it becomes the name of a file."""

FIELDS = {
    "description": str,
    "url": str,
    "token": str,
    "user": str,
    "password": str,
    "creds": str,
    "nkey": str,
    "cert": str,
    "key": str,
    "ca": str,
    "tls_first": bool,
    "jetstream_domain": str,
    "jetstream_api_prefix": str,
    "inbox_prefix": str,
}
"""The keys of a file that are used, and what their values are."""

PRIVATE_MODE = 0o600
"""Passwords and tokens are in these files."""


def folder() -> Path:
    """Return where contexts and the choice among them are kept."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base else Path.home() / ".config") / "nats"


def names() -> list[str]:
    """Return the names of all contexts, sorted."""
    return sorted(path.stem for path in (folder() / "context").glob("*.json") if NAME.fullmatch(path.stem))


def chosen() -> str:
    """Return the name of the chosen context; empty when none is."""
    return _read_name("context.txt")


def previous() -> str:
    """Return the name of the context that was chosen before; empty when none was."""
    return _read_name("previous-context.txt")


def read(name: str) -> dict[str, Any]:
    """Return the keys of a context as its file has them. Raises `ConfigurationError`."""
    path = _path(name)
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        known = ", ".join(names()) or "none"
        raise ConfigurationError(f"there is no context {name!r}; there are: {known}") from error
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON: {error}; fix it, or remove it and add it again") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} is not a JSON object; remove it and add it again")
    for key, kind in FIELDS.items():
        if key in content and not isinstance(content[key], kind):
            raise ConfigurationError(f"{key!r} in {path} is {content[key]!r}: it must be a {kind.__name__}")
    return content


def write(name: str, content: dict[str, Any]) -> None:
    """Create or replace a context; its file is readable by its owner only."""
    path = _path(name)
    _write(path, json.dumps(content, indent=2) + "\n")


def remove(name: str) -> None:
    """Delete a context, and the choice of it."""
    read(name)
    try:
        _path(name).unlink()
        if chosen() == name:
            (folder() / "context.txt").unlink()
    except OSError as error:
        raise ClientError(f"cannot remove the context {name!r}: {reason_of(error)}") from error


def choose(name: str) -> None:
    """Make a context the one that is used when none is named; an empty name makes it none."""
    if name:
        read(name)
    before = chosen()
    if before and before != name:
        _write(folder() / "previous-context.txt", before)
    _write(folder() / "context.txt", name)


def _path(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} cannot be the name of a context: no slashes, no blanks, no dot in front")
    return folder() / "context" / f"{name}.json"


def _read_name(file: str) -> str:
    try:
        return (folder() / file).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(beside, "w", opener=lambda name, flags: os.open(name, flags, PRIVATE_MODE)) as file:
            file.write(text)
        beside.replace(path)
    except OSError as error:
        raise ClientError(f"cannot write {path}: {reason_of(error)}") from error
