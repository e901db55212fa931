"""The pid file and the ports file of one server: written at the start, moved by a reload, removed at the end.

What is in them is said in `files`. Invariant: the ports file that was written last is the only one there is.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from jetlake.errors import StartError, reason_of
from jetlake.server import files
from jetlake.server.options import ServerOptions

if TYPE_CHECKING:
    from jetlake.server.log import Log


class OwnFiles:
    """The files of one server."""

    def __init__(self, log: "Log") -> None:
        self._log = log
        self._ports_file = ""

    def write_pid(self, options: ServerOptions) -> None:
        """Write the pid file, if one is wanted. Raises `StartError`."""
        if options.pid_file:
            try:
                files.write_pid_file(options.pid_file, os.getpid())
            except OSError as error:
                raise StartError(f"Could not write pidfile: open {options.pid_file}: {reason_of(error)}") from error

    def write_ports(self, options: ServerOptions, ports: Callable[[], files.Ports]) -> None:
        """Write the ports file, if one is wanted; only then are the ports looked for."""
        if not options.ports_file_directory:
            return
        path = files.ports_file_path(options.ports_file_directory, options.program, os.getpid())
        try:
            files.write_ports_file(path, ports())
        except OSError as error:
            # As in nats-server: programs that wait for the file will notice, clients are not affected.
            self._log.error(f"Error writing ports file ({path}): {reason_of(error)}")
            return
        self._ports_file = path

    def move(self, before: ServerOptions, options: ServerOptions, ports: Callable[[], files.Ports]) -> None:
        """Write the files whose names have changed, and remove the ports file of before."""
        if options.pid_file != before.pid_file:
            try:
                self.write_pid(options)
            except StartError as error:
                self._log.error(str(error))
        if options.ports_file_directory != before.ports_file_directory:
            self.remove()
            self.write_ports(options, ports)

    def remove(self) -> None:
        """Remove the ports file; the pid file stays, as in nats-server."""
        if self._ports_file:
            try:
                os.remove(self._ports_file)
            except OSError as error:
                self._log.error(f"Error cleaning up ports file {self._ports_file}: {reason_of(error)}")
            self._ports_file = ""
