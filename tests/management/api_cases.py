"""Requests to the API that both servers are asked, one after the other, starting from nothing.

A step is a request below `$JS.API`, or, with `@`, a message to a subject of the one stream that takes it.
"""

from __future__ import annotations

import msgspec


class ApiStep(msgspec.Struct, frozen=True):
    """One request or message."""

    subject: str
    body: bytes = b""
    header: bytes = b""


def level(text: str) -> bytes:
    """Return the header of a request that needs this level."""
    return f"NATS/1.0\r\nNats-Required-Api-Level: {text}\r\n\r\n".encode()


BODIES = (b"", b"{}", b" { } ", b"x", b"[]", b"null", b'{"x":1}', b" ", b'"a"', b"7")

NAMED = (
    *(
        f"STREAM.{word}"
        for word in ("CREATE", "UPDATE", "INFO", "DELETE", "PURGE", "MSG.GET", "MSG.DELETE", "SNAPSHOT")
    ),
    *(f"STREAM.{word}" for word in ("LEADER.STEPDOWN", "PEER.REMOVE", "PEER.EVACUATE", "CANCEL_MOVE")),
    *(f"CONSUMER.{word}" for word in ("NAMES", "LIST")),
)
TWICE_NAMED = tuple(
    f"CONSUMER.{word}"
    for word in (
        "INFO",
        "DELETE",
        "PAUSE",
        "UNPIN",
        "LEADER.STEPDOWN",
        "PEER.REMOVE",
        "PEER.EVACUATE",
        "DURABLE.CREATE",
    )
)

BODIES_OF_STREAMS = [
    ApiStep("STREAM.CREATE.S", b'{"name":"S","subjects":["s.>"],"max_bytes":100000}'),
    ApiStep("STREAM.CREATE.S", b'{"name":"S","subjects":["s.>"],"max_bytes":100000}'),
    ApiStep("STREAM.CREATE.S", b'{"name":"S","subjects":["s.>"],"max_bytes":100001}'),
    ApiStep("STREAM.UPDATE.S", b'{"name":"S","subjects":["s.>"],"max_bytes":200000}'),
    ApiStep("STREAM.UPDATE.S", b'{"name":"S","subjects":["s.>"],"max_bytes":200000}'),
    ApiStep("STREAM.UPDATE.T", b'{"name":"T"}'),
    *(ApiStep(f"@{subject}", b"1") for subject in ("s.a", "s.b", "s.c", "s.a")),
    *(
        ApiStep("STREAM.INFO.S", body)
        for body in (
            b"",
            b'{"deleted_details":true,"subjects_filter":">"}',
            *(b'{"subjects_filter":">","offset":%d}' % offset for offset in (-3, 1, 3, 9)),
            b'{"subjects_filter":"x.>","offset":9}',
            b'{"subjects_filter":"..bad"}',
            b' {"offset":"1"}',
            b'{"offset":1}',
        )
    ),
    *(ApiStep("STREAM.MSG.DELETE.S", b'{"seq":%d}' % sequence) for sequence in (2, 2, 0, 99, 5)),
    ApiStep("STREAM.MSG.DELETE.S", b'{"seq":4,"no_erase":true}'),
    ApiStep("STREAM.MSG.DELETE.S", b'{"seq":4} trailing'),
    ApiStep("STREAM.INFO.S", b'{"deleted_details":true,"subjects_filter":"s.a"}'),
    *(
        ApiStep(f"STREAM.{word}", body)
        for word in ("NAMES", "LIST")
        for body in (
            *BODIES,
            *(b'{"subject":"%s"}' % subject for subject in (b"s.*", b"t.*", b"s.x", b"..bad", b">", b"")),
            *(b'{"offset":%d}' % offset for offset in (-7, 1, 7)),
        )
    ),
    ApiStep("STREAM.PURGE.S", b'{"seq":1,"keep":2}'),
    ApiStep("STREAM.PURGE.S", b'{"filter":"..bad"}'),
    ApiStep("STREAM.PURGE.S", b'{"filter":"s.a"}'),
    ApiStep("STREAM.PURGE.S", b'{"seq":-1}'),
    ApiStep("STREAM.PURGE.NOPE", b'{"seq":-1}'),
    ApiStep("STREAM.PURGE.NOPE", b'{"seq":1,"keep":2}'),
    *(
        ApiStep("STREAM.MSG.GET.S", body)
        for body in (
            b'{"seq":1,"last_by_subj":"x"}',
            b'{"seq":1,"batch":1}',
            b'{"last_by_subj":"x","next_by_subj":"x"}',
            b'{"multi_last":["x"]}',
            b'{"start_time":"x"}',
        )
    ),
    ApiStep("INFO"),
    ApiStep("STREAM.PURGE.S", b"garbage"),
    *(ApiStep("STREAM.MSG.DELETE.S", b'{"seq":%d}' % sequence) for sequence in (1, 4, 5)),
    ApiStep("STREAM.INFO.S"),
    ApiStep("STREAM.DELETE.S", b" { } "),
    ApiStep("INFO"),
    ApiStep("STREAM.CREATE.M", b'{"name":"M","storage":"memory","first_seq":10}'),
    ApiStep("STREAM.INFO.M"),
    ApiStep("STREAM.MSG.DELETE.M", b'{"seq":2}'),
    ApiStep("@M", b"x"),
    ApiStep("STREAM.MSG.DELETE.M", b'{"seq":0}'),
    ApiStep("STREAM.MSG.DELETE.M", b'{"seq":10}'),
    ApiStep("STREAM.INFO.M", b'{"subjects_filter":">"}'),
    ApiStep("STREAM.CREATE.D", b'{"name":"D","deny_delete":true,"deny_purge":true}'),
    ApiStep("STREAM.MSG.DELETE.D", b'{"seq":2}'),
    ApiStep("STREAM.PURGE.D"),
    ApiStep("STREAM.UPDATE.D", b'{"name":"D","deny_delete":true,"deny_purge":true,"sealed":true}'),
    ApiStep("STREAM.PURGE.D"),
    ApiStep("STREAM.MSG.DELETE.D", b'{"seq":2}'),
    ApiStep("STREAM.LIST"),
    ApiStep("STREAM.DELETE.D"),
    ApiStep("STREAM.CREATE.MI", b'{"name":"MI","mirror":{"name":"NOPE","external":{"api":"$JS.x.API"}}}'),
    ApiStep(
        "STREAM.CREATE.SO",
        b'{"name":"SO","sources":[{"name":"X","filter_subject":"a.>","external":{"api":"$JS.x.API","deliver":"dd"}}]}',
    ),
    ApiStep("STREAM.NAMES"),
    ApiStep("STREAM.LIST", b'{"offset":1}'),
    ApiStep("CONSUMER.NAMES.M", b'{"offset":3}'),
    ApiStep("CONSUMER.LIST.M", b'{"offset":-3}'),
    ApiStep("CONSUMER.PAUSE.M.C", b'{"pause_until":"x"}'),
    *(ApiStep("CONSUMER.UNPIN.M.C", b'{"group":"%s"}' % group) for group in (b"", b"a b", b"g", b"a" * 17)),
    ApiStep("CONSUMER.CREATE.M", b'{"stream_name":"X"}'),
    ApiStep("CONSUMER.CREATE.X.C", b'{"stream_name":"X","config":{"ack_policy":"explicit"}}'),
    ApiStep("INFO"),
]


def all_steps() -> list[ApiStep]:
    """Return the requests: first without any stream, then with some."""
    steps = [ApiStep(f"{word}.S", body) for word in NAMED for body in BODIES]
    steps += [ApiStep(f"{word}.S.C", body) for word in TWICE_NAMED for body in BODIES]
    steps += [
        ApiStep(f"{word}.S.C" if word in TWICE_NAMED else f"{word}.S", b"x", level("6")) for word in NAMED + TWICE_NAMED
    ]
    steps += [
        ApiStep("STREAM.INFO.S", b"", level(text)) for text in ("5", "6", "x", "", "-1", "+6", "5 ", "99999999999")
    ]
    steps += [ApiStep("INFO", b"", level("6")), ApiStep("INFO", b"garbage"), ApiStep("STREAM.INFO.*"), ApiStep("INFO")]
    return steps + BODIES_OF_STREAMS


SILENT = [
    "FOO",
    "STREAM",
    "STREAM.INFO",
    "STREAM.INFO.A.B",
    "STREAM.CREATE",
    "STREAM.NAMES.x",
    "INFO.x",
    "CONSUMER.INFO.S",
    "CONSUMER.INFO.S.C.D",
    "STREAM.LEADER.STEPDOWN",
    "META.LEADER.STEPDOWN",
    "SERVER.REMOVE",
    "ACCOUNT.PURGE.A",
    "ACCOUNT.STREAM.MOVE.A.B",
    "STREAM.TEMPLATE.NAMES",
    "CONSUMER.RESET.S.C",
    "META.RESCUE",
    "CONSUMER.CREATE",
]
"""Requests that nobody answers."""
