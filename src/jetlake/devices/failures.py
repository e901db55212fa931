"""What a failure of the server means to the one who sent a command."""

from jetlake.errors import ClientError, DeviceError

_FORBIDDEN = "permissions violation"
_NOT_AUTHENTICATED = (
    "authorization violation",
    "rejected the login",
    "authentication",
    "user authentication expired",
    "account",
)


def as_device_error(error: ClientError) -> DeviceError:
    """Return the error of a server as one of a command: forbidden, or to be tried again."""
    text = str(error)
    return DeviceError("PERMISSION_DENIED" if _FORBIDDEN in text.lower() else "UNAVAILABLE", text)


def as_login_error(error: ClientError) -> DeviceError:
    """Return why a user could not connect: wrong credentials, or a server that cannot be reached."""
    text = str(error)
    is_refused = any(words in text.lower() for words in _NOT_AUTHENTICATED)
    return DeviceError("UNAUTHENTICATED" if is_refused else "UNAVAILABLE", text)
