"""Has the disk keep what was written: files, and the names in a folder.

What these return from survives a power cut; a rename is durable when the folder it ended in was synced.
"""

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Have the disk keep what others wrote into this file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the disk keep the names in this folder."""
    sync_file(path)
