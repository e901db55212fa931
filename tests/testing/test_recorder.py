"""`jetlake.testing.Recorder`: what was published, with any client."""

import socket

import pytest

import jetlake
from jetlake.testing import Published, Recorder


@pytest.fixture
def server():
    with jetlake.Server() as server:
        yield server


@pytest.fixture
def client(server):
    with jetlake.connect_sync(server) as client:
        yield client


def test_every_message_is_kept_with_its_headers_and_reply(server, client):
    with Recorder(server) as published:
        client.publish("a.b", "text", headers={"K": "v"}, reply="answers")
        client.publish("a.c", {"id": 1})
        client.publish("other", b"\r\nMSG a.b 1 3\r\nabc\r\n")

        first, second = published.messages("a.*")

    assert (first.subject, first.text(), first.headers, first.reply) == ("a.b", "text", {"K": "v"}, "answers")
    assert second.json() == {"id": 1}
    assert len(published.messages()) == 3


@pytest.mark.parametrize("headers", [None, {"X": "1"}])
@pytest.mark.parametrize("reply", ["", "answers", "7"])
def test_reply_is_told_apart_from_the_length_of_headers(server, client, headers, reply):
    with Recorder(server) as published:
        client.publish("orders.new", b"hello", headers=headers, reply=reply)

        (message,) = published.messages("orders.*")

    assert message == Published(subject="orders.new", data=b"hello", headers=headers or {}, reply=reply)


def test_assertions_wait_for_what_is_on_its_way(server):
    with Recorder(server) as published, socket.create_connection(("127.0.0.1", server.port)) as late:
        late.sendall(b'CONNECT {"verbose":false}\r\n' + b"PUB late 1\r\nx\r\n" * 1000)

        assert len(published.assert_published("late", count=1000)) == 1000


def test_count_is_exact_and_a_payload_is_found(server, client):
    with Recorder(server) as published:
        for number in range(3):
            client.publish("orders.new", {"id": number})

        published.assert_published("orders.*")
        published.assert_published("orders.*", count=3, data={"id": 2})
        published.assert_not_published("refunds.>")
        assert published.assert_published("refunds.>", count=0) == []
        with pytest.raises(AssertionError, match=r"expected 2 published on 'orders\.\*', found 3; they are:\n  orders"):
            published.assert_published("orders.*", count=2)
        with pytest.raises(AssertionError, match="one with the payload 'x'"):
            published.assert_published("orders.*", data="x")
        with pytest.raises(AssertionError, match="expected none published"):
            published.assert_not_published("orders.new")
        with pytest.raises(AssertionError, match=r"found 0; on other subjects there are:\n  orders\.new"):
            published.assert_published("order.*", timeout_s=0)
        published.clear()
        with pytest.raises(AssertionError, match="nothing at all was published"):
            published.assert_published("orders.*", timeout_s=0)


def test_some_subjects_only(server, client):
    with Recorder(server, ["a.>", "b"]) as published:
        client.publish("a.x")
        client.publish("b")
        client.publish("c")

        assert sorted(message.subject for message in published.messages()) == ["a.x", "b"]
        # Nobody listens on c, and so a request there is refused at once.
        with pytest.raises(jetlake.ClientError, match="no service is listening"):
            client.request("c")
    with pytest.raises(jetlake.ConfigurationError, match="nothing would be recorded"):
        Recorder(server, [])


def test_credentials_of_the_server_are_used():
    for options in ({"user": "ada", "password": "pw"}, {"token": "t"}):
        with jetlake.Server(**options) as server, Recorder(server) as published:
            with jetlake.connect_sync(server) as client:
                client.publish("a")
            published.assert_published("a", count=1)


def test_server_that_is_gone_is_named(server):
    published = Recorder(server).start()
    server.stop()

    with pytest.raises(jetlake.ClientError, match="the recorder has lost nats://"):
        published.messages()
    published.stop()
    published.stop()
    with pytest.raises(jetlake.ClientError, match="is the server running"):
        Recorder(server).start()
