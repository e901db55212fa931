"""Which servers a request means, and how a reply is packed."""

import gzip

import pytest

from jetlake.monitoring.parameters import UnreadableOptionsError
from jetlake.server.system.filters import ServerFilter
from jetlake.server.system.payloads import read_options
from jetlake.server.system.replies import accepts_gzip, compressed
from jetlake.server.system.requests import Question, read_question
from tests.monitoring.recorded import FACTS


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"", False),
        (b"NATS/1.0\r\nAccept-Encoding: gzip\r\n\r\n", True),
        (b"NATS/1.0\r\nAccept-Encoding: s2, GZIP\r\n\r\n", True),
        (b"NATS/1.0\r\nAccept-Encoding: s2\r\n\r\n", False),
        (b"NATS/1.0\r\naccept-encoding: gzip\r\n\r\n", False),
        (b"NATS/1.0\r\nAccept-Encoding:\r\nOther: gzip\r\n\r\n", False),
        (b"NATS/1.0\r\nAccept-Encoding: gzip", True),
    ],
)
def test_gzip_is_used_when_asked_for(header, expected):
    assert accepts_gzip(header) is expected


def test_compressed_body_is_the_same():
    assert gzip.decompress(compressed(b"body")) == b"body"


@pytest.mark.parametrize("payload", [b"x", b"[]", b'{"tags":1}', b"\xff", b'{"x":' + b"[" * 100_000])
def test_options_that_cannot_be_read_are_refused(payload):
    with pytest.raises(UnreadableOptionsError):
        read_options(payload, ServerFilter)


def test_no_options_are_the_defaults():
    assert read_options(b" ", ServerFilter) == ServerFilter()
    assert ServerFilter().fits(FACTS)


def test_filter_needs_all_of_what_it_names():
    name = FACTS.server_name

    assert ServerFilter(server_name=name[1:]).fits(FACTS)
    assert ServerFilter(server_name=name, exact_match=True).fits(FACTS)
    assert not ServerFilter(server_name=name[1:], exact_match=True).fits(FACTS)
    assert not ServerFilter(server_name=name, cluster="c").fits(FACTS)
    assert not ServerFilter(server_name=name, tags=["no such tag"]).fits(FACTS)
    assert not ServerFilter(domain="no such domain").fits(FACTS)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("$SYS.REQ.SERVER.PING", Question("server", "STATSZ")),
        ("$SYS.REQ.SERVER.PING.CONNZ", Question("server", "CONNZ")),
        ("$SYS.REQ.SERVER.NID.KICK", Question("command", "KICK")),
        ("$SYS.REQ.ACCOUNT.B.INFO", Question("account", "INFO", "B")),
        ("$SYS.REQ.ACCOUNT.PING.STATZ", Question("all accounts", "STATZ")),
        ("$SYS.REQ.USER.INFO", Question("user")),
        ("$SYS.DEBUG.SUBSCRIBERS", Question("subscribers")),
    ],
)
def test_system_account_asks_about_everything(subject, expected):
    assert read_question(subject, "$SYS", is_system=True) == expected


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("$SYS.REQ.SERVER.PING.CONNZ", Question("account", "CONNZ", "A")),
        ("$SYS.REQ.ACCOUNT.PING.CONNZ", Question("account", "CONNZ", "A")),
        ("$SYS.REQ.ACCOUNT.PING.STATZ", Question("account", "STATZ", "A")),
        ("$SYS.REQ.USER.INFO", Question("user")),
        ("$SYS.REQ.SERVER.PING", None),
        ("$SYS.REQ.SERVER.NID.KICK", None),
        ("$SYS.REQ.ACCOUNT.B.CONNZ", None),
        ("$SYS.DEBUG.SUBSCRIBERS", None),
    ],
)
def test_other_accounts_ask_about_themselves(subject, expected):
    assert read_question(subject, "A", is_system=False) == expected
