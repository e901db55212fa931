"""Every error Jetlake raises on purpose, as one small closed list.

```text
JetlakeError
├── ConfigurationError        options that cannot work, found before anything starts
├── MissingDependencyError    something this machine should have is not there: a Java, an extra
├── SpoolError                a message could not be put into a spool, or not be read there
├── ServerError               a server of ours could not do what was asked
│   ├── StartError            it did not start: the port is taken, the folder cannot be written
│   └── EngineFailedError     it stopped by itself; the message says what broke
├── DeviceError               the device event bus refused a command or could not read an event
└── ClientError               a server, ours or another one, could not be reached or did not answer
    └── ApiError              it answered with an error of the JetStream API
        ├── NotFoundError     a bucket, key or object is not there
        └── ConflictError     a compare-and-set lost: another client has written since
```

Every message says what was refused, why, and what to do about it:

```python
try:
    with jetlake.Server(port=4222) as server:
        ...
except jetlake.StartError as error:
    print(error)
```
"""

# A type checker takes this name for true; not importing `typing` keeps the start fast.
TYPE_CHECKING = False

__all__ = [
    "ApiError",
    "ClientError",
    "ConfigurationError",
    "ConflictError",
    "DeviceError",
    "EngineFailedError",
    "JetlakeError",
    "MissingDependencyError",
    "NotFoundError",
    "ServerError",
    "SpoolError",
    "StartError",
    "reason_of",
    "reworded",
]


NOT_FOUND = 404
"""HTTP's number, which the JetStream API uses too."""


class JetlakeError(Exception):
    """The base of all errors of this package."""


class ConfigurationError(JetlakeError):
    """Is raised when an option has a value that cannot work, or two options contradict each other."""


class MissingDependencyError(JetlakeError):
    """Is raised when a program or package that a feature needs is not on this machine."""


class SpoolError(JetlakeError):
    """Is raised when a spool is full, or the disk refuses to write or read it."""


class ServerError(JetlakeError):
    """Is raised when a server of ours cannot do what was asked."""


class StartError(ServerError):
    """Is raised when a server does not start."""


class EngineFailedError(ServerError):
    """Is raised by `Server.stop` when the engine had stopped by itself."""


class DeviceError(JetlakeError):
    """Is raised when a command to a device aggregate is refused, or when an event cannot be read."""

    def __init__(self, status: str, description: str) -> None:
        super().__init__(description)
        # A status of gRPC, such as NOT_FOUND; DATA_LOSS is an event that cannot be read.
        self.status = status


class ClientError(JetlakeError):
    """Is raised when a server cannot be reached or does not answer as it should."""


class ApiError(ClientError):
    """Is raised when a server refuses a request of its API; the numbers are those `jetlake errors` explains."""

    def __init__(self, code: int, error_code: int, description: str) -> None:
        super().__init__(f"{description} ({error_code})" if error_code else description)
        # HTTP's number for the kind of refusal, as 404, and JetStream's own for this very one, as 10059.
        self.code = code
        self.error_code = error_code
        self.description = description


class NotFoundError(ApiError):
    """Is raised when a bucket, a key or an object is not there."""

    def __init__(self, description: str, error_code: int = 0) -> None:
        super().__init__(NOT_FOUND, error_code, description)


class ConflictError(ApiError):
    """Is raised when a conditional write is refused: the key or subject has another revision than expected."""


def reason_of(error: OSError) -> str:
    """Return the operating system's reason as part of a sentence: `no such file or directory`."""
    reason = error.strerror or str(error)
    return reason[:1].lower() + reason[1:]


if TYPE_CHECKING:
    from typing import TypeVar

    E = TypeVar("E", bound=JetlakeError)


def reworded(error: "E", text: str) -> "E":
    """Return the same error in other words: its kind and its numbers stay for those who ask for them."""
    changed = type(error).__new__(type(error), text)
    changed.__dict__.update(error.__dict__)
    if isinstance(changed, ApiError):
        changed.description = text
    return changed
