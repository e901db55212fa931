"""What names of buckets and keys may be, and the subjects they become.

Invariant: a name that passes is one that every NATS client takes.
"""

import re

from jetlake.errors import ConfigurationError

__all__ = ["check_bucket", "check_filter", "check_key", "check_new_key"]

STREAM_PREFIX = "KV_"
SUBJECT_PREFIX = "$KV."

RESERVED_PREFIX = "_kv"
"""Keys that begin so are reserved by the specification of buckets."""

_BUCKET = re.compile(r"[a-zA-Z0-9_-]+")
_KEY = re.compile(r"[-/_=.a-zA-Z0-9]+")
_FILTER = re.compile(r"[-/_=.*>a-zA-Z0-9]+")

_KEY_LETTERS = "letters, digits and - _ = / ."


def check_bucket(name: str) -> str:
    """Return a name of a bucket. Raises `ConfigurationError` if it cannot be one."""
    if not isinstance(name, str) or not _BUCKET.fullmatch(name):
        raise ConfigurationError(f"invalid bucket name {name!r}: use letters, digits, - and _")
    return name


def check_key(key: str) -> str:
    """Return a key. Raises `ConfigurationError` if it cannot be one."""
    if isinstance(key, str) and _KEY.fullmatch(key) and not _has_empty_token(key):
        return key
    if not key:
        raise ConfigurationError("invalid key: it is empty")
    if isinstance(key, str) and _KEY.fullmatch(key):
        raise ConfigurationError(f"invalid key {key!r}: it must not begin or end with a dot, nor have two in a row")
    raise ConfigurationError(f"invalid key {key!r}: use {_KEY_LETTERS}")


def check_new_key(key: str) -> str:
    """Return a key that may be written."""
    if check_key(key).startswith(RESERVED_PREFIX):
        raise ConfigurationError(f"invalid key {key!r}: keys that begin with {RESERVED_PREFIX} are reserved")
    return key


def check_filter(pattern: str) -> str:
    """Return a key or a pattern of keys, in which `*` stands for one token and a final `>` for all that follow."""
    is_good = isinstance(pattern, str) and _FILTER.fullmatch(pattern) and not _has_empty_token(pattern)
    if is_good:
        tokens = pattern.split(".")
        is_good = all(token in ("*", ">") or not set(token) & {"*", ">"} for token in tokens) and ">" not in tokens[:-1]
    if not is_good:
        raise ConfigurationError(
            f"invalid key pattern {pattern!r}: use a key, with * for one token, and > at the end for all that follow"
        )
    return pattern


def _has_empty_token(text: str) -> bool:
    return text.startswith(".") or text.endswith(".") or ".." in text
