"""The envelope of a reply: which server answers, and the body or an error.

| reply to                       | form                                                          |
|--------------------------------|---------------------------------------------------------------|
| most requests                  | `{"server": …, "data": …}`                                    |
| options that cannot be read    | `{"server": …, "error": {"code": 400, "description": …}}`     |
| a question without an answer   | `{"server": …, "data": null, "error": {"code": 500, …}}`      |
| STATSZ                         | `{"server": …, "statsz": …}`                                  |
| a command                      | `{"server": …}`, with `error` when it failed                  |

A requester that says so with `Accept-Encoding: gzip` gets the reply compressed. nats-server's other encoding, S2, is
answered without any, which every client that asks for it understands too.
"""

import msgspec

from jetlake.monitoring.statsz import ServerInformation, Statsz

UNREADABLE, FAILED, NOT_SUPPORTED = 400, 500, 501

ACCEPT_ENCODING = b"\r\nAccept-Encoding:"
GZIP_HEADER = b"NATS/1.0\r\nContent-Encoding: gzip\r\n\r\n"


class ReplyError(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer."""

    code: int
    description: str


class SystemReply(msgspec.Struct, frozen=True, kw_only=True):
    """Most replies. A command has no data; a question without an answer has null."""

    server: ServerInformation
    data: msgspec.Raw | msgspec.UnsetType | None = msgspec.UNSET
    error: ReplyError | msgspec.UnsetType = msgspec.UNSET


class StatisticsReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to STATSZ, and the event of the same name."""

    server: ServerInformation
    statsz: Statsz


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to PROFILEZ: there is never one."""

    profile: None = None
    error: str = "profiles are not supported by this server; use a sampling profiler on the process"


def accepts_gzip(header: bytes) -> bool:
    """Return whether the requester understands gzip. The name is spelled like this or not understood at all.

    No other header of a request is looked at: a client writes what it likes, so none may say who it is.
    """
    start = header.find(ACCEPT_ENCODING)
    if start < 0:
        return False
    start += len(ACCEPT_ENCODING)
    end = header.find(b"\r\n", start)
    return b"gzip" in header[start : end if end >= 0 else None].lower()


def compressed(body: bytes) -> bytes:
    """Return it in gzip. The time is left out, so that equal bodies stay equal."""
    from gzip import compress

    return compress(body, mtime=0)
