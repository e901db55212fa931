"""A power cut: a file system in an image file, of which only what has reached the device survives.

The server stores on an ext4 file system whose device is an image file (a loop device). At the cut the server is stopped
and the image is copied. What the operating system still holds in memory, because nobody asked for it to be written, is
not in the copy: that is what a power cut leaves. The copy is mounted, which replays the file system's journal, and
another server is started on it. A disk with a volatile cache of its own may lose more; the image is such a disk's
best case.

It needs root and loop devices. Invariant: a copy during which the image changed is thrown away and made again.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jetlake.errors import MissingDependencyError, ServerError

__all__ = ["copy_image", "make_image", "mounted", "require"]

IMAGE_BYTES = 512 * 1024 * 1024
"""Room for the messages of one round and the space that a server allocates in advance; the file is sparse."""

COPIES_MAX = 20
"""Copies made before we give up: while one is made, the system may write to the image."""

TOOLS = ("mkfs.ext4", "mount", "umount")


def require() -> None:
    """Raise `MissingDependencyError` if power cuts cannot be made here."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise MissingDependencyError("needs root, for a file system in an image (loop device): run it with sudo")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing or not Path("/dev/loop-control").exists():
        raise MissingDependencyError(f"needs loop devices and {', '.join(TOOLS)}")


def make_image(path: Path) -> None:
    """Make an image with an empty file system."""
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(path))


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    """Mount an image on a folder, and unmount it at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-o", "loop", str(image), str(folder))
    try:
        yield folder
    finally:
        _run("umount", str(folder))


def copy_image(image: Path, copy: Path) -> None:
    """Copy an image as it is at one moment."""
    for _ in range(COPIES_MAX):
        before = image.stat().st_mtime_ns
        _run("cp", "--sparse=always", str(image), str(copy))
        if image.stat().st_mtime_ns == before:
            return
    raise ServerError(f"{image} changed during each of {COPIES_MAX} copies: the machine is too busy for a power cut")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingDependencyError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
