"""Where templates are on disk: all of them in one small file, twice, in a folder of the store that no account can have.

```text
<store>/~templates/templates.1 and .2     a line with the digest of the rest, and then JSON
```

A copy is written beside and renamed, and the folder is synced, before the second one is touched; so a crash tears at
most one of them, and the digest tells which. Invariant: what `write` has returned from survives a power cut.
"""

import hashlib
import os

import msgspec

from jetlake.errors import reason_of

FOLDER = "~templates"
COPIES = ("templates.1", "templates.2")


class StreamTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """One template: what its streams are like, and how many there may be."""

    name: str
    # In the words of 2020, without a name.
    config: dict[str, object]
    max_streams: int

    @property
    def subjects(self) -> tuple[str, ...]:
        subjects = self.config.get("subjects")
        return tuple(map(str, subjects)) if isinstance(subjects, list) else ()


Templates = dict[str, dict[str, StreamTemplate]]
"""By account and name."""


class TemplateFileError(Exception):
    """Is raised when there is a file and neither copy can be read; the text says what to do."""


def read(directory: str) -> Templates:
    """Return the templates of a store. Raises `TemplateFileError`."""
    folder = os.path.join(directory, FOLDER)
    wrong = []
    for copy in COPIES:
        try:
            with open(os.path.join(folder, copy), "rb") as file:
                digest, _, body = file.read().partition(b"\n")
        except FileNotFoundError:
            continue
        except OSError as error:
            # The other copy may be on a part of the disk that can still be read.
            wrong.append(f"{copy}: {reason_of(error)}")
            continue
        if digest == _digest(body):
            try:
                return msgspec.json.decode(body, type=Templates)
            except msgspec.MsgspecError:
                pass
        wrong.append(f"{copy} is damaged")
    if wrong:
        raise TemplateFileError(
            f"{folder}: neither copy of the templates can be read ({', '.join(wrong)}); put a good one back from a "
            "backup, or remove both, and restart"
        )
    return {}


def write(directory: str, templates: Templates) -> None:
    """Write both copies. Raises `OSError`."""
    body = msgspec.json.encode(templates)
    folder = os.path.join(directory, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _sync_folder(directory)
    for copy in COPIES:
        path = os.path.join(folder, copy)
        with open(f"{path}.new", "wb", opener=_private) as file:
            file.write(_digest(body) + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
        _sync_folder(folder)


def _private(path: str, flags: int) -> int:
    """Open for the server's user alone."""
    return os.open(path, flags, 0o600)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
