"""Damage to the files of a store that no server has open: a torn last write, and one flipped bit.

Invariant: exactly one file is changed, by exactly what the name of the damage says.
"""

import random
from pathlib import Path

from jetlake.errors import ServerError

__all__ = ["flip_a_bit", "tear_last_write"]

TORN_BYTES_MAX = 2048
"""How much of the last write is missing at most: several records."""

READ_BYTES = 1 << 20


def tear_last_write(store: Path, chance: random.Random) -> str:
    """Cut the newest file of messages off within its last bytes, and return what was done."""
    path = max(_message_files(store), key=lambda each: each.stat().st_mtime_ns)
    end = _end_of_data(path)
    cut = end - chance.randint(1, min(TORN_BYTES_MAX, end))
    with path.open("r+b") as file:
        file.truncate(cut)
    return f"{path.name} cut at {cut:,} of {end:,} bytes"


def flip_a_bit(store: Path, chance: random.Random) -> str:
    """Flip one bit at random among the used bytes of all files, and return what was done."""
    files = [(path, end) for path in _files(store) if (end := _end_of_data(path))]
    path, end = chance.choices(files, weights=[end for _, end in files])[0]
    position, bit = chance.randrange(end), chance.randrange(8)
    with path.open("r+b") as file:
        file.seek(position)
        (value,) = file.read(1)
        file.seek(position)
        file.write(bytes([value ^ (1 << bit)]))
    return f"bit {bit} of byte {position:,} of {path.name}"


def _files(store: Path) -> list[Path]:
    return sorted(path for path in store.rglob("*") if path.is_file())


def _message_files(store: Path) -> list[Path]:
    """Return the files with messages: the largest ones, whatever a server calls them."""
    files = [path for path in _files(store) if _end_of_data(path)]
    if not files:
        raise ServerError(f"there is nothing stored in {store}")
    largest = max(_end_of_data(path) for path in files)
    return [path for path in files if _end_of_data(path) * 4 >= largest]


def _end_of_data(path: Path) -> int:
    """Return where a file's last byte is that is not zero: servers may allocate more than they use."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while size > 0:
            start = max(0, size - READ_BYTES)
            file.seek(start)
            used = file.read(size - start).rstrip(b"\0")
            if used:
                return start + len(used)
            size = start
    return 0
