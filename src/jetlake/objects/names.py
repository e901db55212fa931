"""Names of object stores and objects, and the stream and subjects they become.

Any text can be the name of an object: it is encoded for the subject.
"""

import re
from base64 import urlsafe_b64encode

from jetlake.client.api import token
from jetlake.errors import ClientError, ConfigurationError

__all__ = ["check_name", "check_store", "chunk_subject", "meta_subject"]

STREAM_PREFIX = "OBJ_"
SUBJECT_PREFIX = "$O."

_STORE = re.compile(r"[a-zA-Z0-9_-]+")


def check_store(name: str) -> str:
    """Return a name of an object store. Raises `ConfigurationError` if it cannot be one."""
    if not isinstance(name, str) or not _STORE.fullmatch(name):
        raise ConfigurationError(f"invalid object store name {name!r}: use letters, digits, - and _")
    return name


def check_name(name: str) -> str:
    """Return a name of an object. Raises `ConfigurationError` if it cannot be one."""
    if not isinstance(name, str) or not name:
        raise ConfigurationError("invalid object name: it is empty")
    return name


def meta_subject(store: str, name: str) -> str:
    """Return the subject of what is known about an object."""
    return f"{SUBJECT_PREFIX}{store}.M.{urlsafe_b64encode(check_name(name).encode()).decode()}"


def chunk_subject(store: str, identity: str) -> str:
    """Return the subject of the contents of one version of an object. Raises `ClientError` for what names no version.

    Other clients write identities too: one with a wildcard would be the subject of all contents of the store.
    """
    try:
        return f"{SUBJECT_PREFIX}{store}.C.{token(identity)}"
    except ClientError as error:
        raise ClientError(
            f"the description of an object in {store} names no contents: its nuid is {identity!r}; "
            "delete the object, or put it again"
        ) from error
