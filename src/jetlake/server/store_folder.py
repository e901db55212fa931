"""The folder that JetStream stores in, and how much it may hold: found at the start, given back at the end.

Invariant: a temporary folder is gone after `remove`; any other stays.
"""

import os
import stat
import time
from typing import TYPE_CHECKING

from jetlake.errors import StartError, reason_of
from jetlake.server import banner
from jetlake.server.options import JetStreamOptions, default_store_directory

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from jetlake.server.log import Log


def check_owner(path: str) -> None:
    """Refuse a default folder, in a place where everybody may create folders, that another user has created.

    The owner of it, or of a link in its place, could read and replace everything stored. Raises `StartError`.
    """
    for place in (os.path.dirname(path), path):
        try:
            found = os.lstat(place)
        except OSError:
            continue
        if stat.S_ISLNK(found.st_mode) or found.st_uid not in (os.geteuid(), 0):
            raise StartError(
                f'Can\'t start JetStream: "{place}" belongs to another user, who could read and change '
                "what is stored; choose another folder with -sd"
            )


class StoreFolder:
    """The folder of one server; empty until it is opened, and for good without JetStream."""

    def __init__(self, options: JetStreamOptions, log: "Log", *, temporary: bool) -> None:
        self._options = options
        self._log = log
        self._temporary_wanted = temporary
        self._temporary: TemporaryDirectory[str] | None = None
        self.directory = ""
        self.memory_bytes_max = 0
        self.storage_bytes_max = 0

    def open(self) -> None:
        """Make the folder, and say in the log where it is. Raises `StartError`."""
        begun_at = time.monotonic()
        self._log.info("Starting JetStream")
        path = os.path.join(self._choose(), banner.STORE_SUBDIRECTORY)
        if not self._options.store_directory and not self._temporary_wanted:
            check_owner(path)
        try:
            # For the server's user alone; a folder that was there keeps the mode its owner gave it.
            os.makedirs(path, mode=0o700, exist_ok=True)
        except OSError as error:
            if isinstance(error, NotADirectoryError | FileExistsError):
                what = "storage directory is not a directory"
            else:
                what = f"could not create storage directory - {reason_of(error)}"
            raise StartError(f'Can\'t start JetStream: {what}: "{path}"; choose another with -sd') from error
        memory, storage = self._options.max_memory_bytes, self._options.max_storage_bytes
        self.directory = path
        self.memory_bytes_max = banner.memory_bytes_max() if memory is None else memory
        self.storage_bytes_max = banner.storage_bytes_max(path) if storage is None else storage
        for line in banner.jetstream_lines(
            store_path=path, memory_bytes_max=self.memory_bytes_max, storage_bytes_max=self.storage_bytes_max
        ):
            self._log.info(line)
        self._log.info(f"Took {(time.monotonic() - begun_at) * 1000:.3f}ms to start JetStream")

    def remove(self) -> None:
        """Remove the folder, if it was a temporary one."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def _choose(self) -> str:
        if self._options.store_directory:
            return self._options.store_directory
        if self._temporary_wanted:
            from tempfile import TemporaryDirectory

            self._temporary = TemporaryDirectory(prefix="jetlake-")
            return self._temporary.name
        self._log.warning("Temporary storage directory used, data could be lost on system reboot")
        return default_store_directory()
