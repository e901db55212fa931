"""No responders: a request that nobody hears is answered with status 503."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient


@pytest.fixture
def connected(client: RawClient) -> RawClient:
    client.connect(headers=True, no_responders=True)
    return client


def no_responders(reply: bytes, sid: bytes, subject: bytes) -> bytes:
    size = 32 + len(subject)
    return b"HMSG %b %b %d %d\r\nNATS/1.0 503\r\nNats-Subject: %b\r\n\r\n\r\n" % (reply, sid, size, size, subject)


def test_request_without_responder_is_answered_with_503(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.reply 1\r\nPUB %b %b.reply 2\r\nhi\r\n" % (subject, subject, subject))

    connected.expect(no_responders(subject + b".reply", b"1", subject))
    connected.expect_pong()


def test_exact_bytes_of_the_answer(connected: RawClient) -> None:
    connected.send(b"SUB inbox.17 1\r\nPUB nobody.home inbox.17 2\r\nhi\r\n")

    connected.expect(b"HMSG inbox.17 1 43 43\r\nNATS/1.0 503\r\nNats-Subject: nobody.home\r\n\r\n\r\n")


@pytest.mark.parametrize("pattern", [b"%b.reply.*", b"%b.reply.>", b"%b.*.one"])
def test_answer_reaches_a_wildcard_inbox(connected: RawClient, subject: bytes, pattern: bytes) -> None:
    connected.send(b"SUB %b w\r\nPUB %b %b.reply.one 2\r\nhi\r\n" % (pattern % subject, subject, subject))

    connected.expect(no_responders(subject + b".reply.one", b"w", subject))
    connected.expect_pong()


def test_hpub_request_is_answered_too(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.reply 1\r\n" % subject)
    connected.send(b"HPUB %b %b.reply 12 14\r\nNATS/1.0\r\n\r\nhi\r\n" % (subject, subject))

    connected.expect(no_responders(subject + b".reply", b"1", subject))


def test_several_matching_inboxes_get_one_answer(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.reply 1\r\nSUB %b.reply 2\r\nPUB %b %b.reply 2\r\nhi\r\n" % ((subject,) * 4))

    assert connected.read_line() in {no_responders(subject + b".reply", sid, subject) for sid in (b"1", b"2")}
    connected.expect_pong()


def test_answer_does_not_count_for_auto_unsubscribe(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.reply 1\r\nUNSUB 1 1\r\n" % subject)

    connected.send(b"PUB %b %b.reply 2\r\nhi\r\n" % (subject, subject) + b"PUB %b.reply 2\r\nhi\r\n" % subject * 2)

    connected.expect(no_responders(subject + b".reply", b"1", subject))
    connected.expect(b"MSG %b.reply 1 2\r\nhi\r\n" % subject)
    connected.expect_pong()


@pytest.mark.parametrize("queue", [b"", b" group"])
def test_request_with_a_responder_is_not_answered(connected: RawClient, subject: bytes, queue: bytes) -> None:
    connected.send(b"SUB %b.reply 1\r\nSUB %b%b 2\r\n" % (subject, subject, queue))

    connected.send(b"PUB %b %b.reply 2\r\nhi\r\n" % (subject, subject))

    connected.expect(b"MSG %b 2 %b.reply 2\r\nhi\r\n" % (subject, subject))
    connected.expect_pong()


def test_message_without_reply_is_not_answered(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.reply 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    connected.expect_pong()


def test_request_without_an_own_inbox_is_not_answered(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.other 1\r\nPUB %b %b.reply 2\r\nhi\r\n" % (subject, subject, subject))

    connected.expect_pong()


def test_inbox_of_another_connection_gets_no_answer(
    connected: RawClient, other_client: RawClient, subject: bytes
) -> None:
    other_client.connect(headers=True, no_responders=True)
    other_client.send(b"SUB %b.reply 1\r\n" % subject)
    other_client.expect_pong()

    connected.send(b"PUB %b %b.reply 2\r\nhi\r\n" % (subject, subject))

    connected.expect_pong()
    other_client.expect_pong()


def test_inbox_in_a_queue_group_gets_no_answer(connected: RawClient, subject: bytes) -> None:
    connected.send(b"SUB %b.reply group 1\r\nPUB %b %b.reply 2\r\nhi\r\n" % (subject, subject, subject))

    connected.expect_pong()


@pytest.mark.parametrize("options", [{}, {"headers": True}, {"headers": True, "no_responders": False}])
def test_client_that_did_not_ask_gets_no_answer(client: RawClient, subject: bytes, options: dict) -> None:
    client.connect(**options)

    client.send(b"SUB %b.reply 1\r\nPUB %b %b.reply 2\r\nhi\r\n" % (subject, subject, subject))

    client.expect_pong()


def test_echo_off_makes_the_own_responder_nobody(client: RawClient, subject: bytes) -> None:
    client.connect(headers=True, no_responders=True, echo=False)

    client.send(b"SUB %b.reply 1\r\nSUB %b 2\r\nPUB %b %b.reply 2\r\nhi\r\n" % ((subject,) * 4))

    client.expect(no_responders(subject + b".reply", b"1", subject))
    client.expect_pong()


def test_verbose_ok_comes_before_the_answer(client: RawClient, subject: bytes) -> None:
    client.connect(verbose=True, headers=True, no_responders=True)
    client.send(b"SUB %b.reply 1\r\n" % subject)
    client.expect(b"+OK\r\n")

    client.send(b"PUB %b %b.reply 2\r\nhi\r\n" % (subject, subject))

    client.expect(b"+OK\r\n" + no_responders(subject + b".reply", b"1", subject))


def test_jetstream_request_is_answered_where_jetstream_is_off(connected: RawClient) -> None:
    connected.send(b"SUB js.inbox 1\r\nPUB $JS.API.INFO js.inbox 0\r\n\r\n")

    connected.expect(no_responders(b"js.inbox", b"1", b"$JS.API.INFO"))


def test_reply_with_a_reserved_prefix_is_a_violation_first(connected: RawClient, subject: bytes) -> None:
    connected.send(b"PUB %b _R_.x 2\r\nhi\r\n" % subject)

    connected.expect_error('Permissions Violation for Publish with Reply of "_R_.x"')
    connected.expect_pong()
