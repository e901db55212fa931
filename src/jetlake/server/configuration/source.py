"""Where a process has its options from: a file and the flags that go over it. Both can be read again."""

import msgspec

from jetlake.server.configuration.load import Configuration, load_file
from jetlake.server.flags import ParsedFlags
from jetlake.server.options import from_flags


class ConfigurationSource:
    """A file and a command line. `load` reads the file as it is now; the flags stay what they were."""

    def __init__(self, path: str, flags: ParsedFlags, program: str) -> None:
        self.path = path
        self._flags = flags
        self._program = program

    def load(self) -> Configuration:
        """Return file and flags together. Raises `ConfigurationError` with a line for every mistake."""
        configuration = load_file(self.path)
        options = from_flags(self._flags, self._program, configuration.options)
        return msgspec.structs.replace(configuration, options=options)
