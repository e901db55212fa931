"""Messages over WebSocket: the same as over TCP, and between the two."""

from __future__ import annotations

import json

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import WebSocketClient

LARGE_BYTES = 1_048_576
"""The largest message of a server that nobody has configured."""

HEADER = b"NATS/1.0\r\nColour: green\r\n\r\n"


def test_publish_from_tcp_arrives_over_websocket(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as page, websocket_server.client() as wired:
        page.connect()
        page.send(b"SUB from.tcp.* 7\r\n")
        page.expect_pong()
        wired.connect()
        wired.send(b"PUB from.tcp.one reply.to 5\r\nhello\r\n")

        page.expect(b"MSG from.tcp.one 7 reply.to 5\r\nhello\r\n")


def test_publish_over_websocket_arrives_over_tcp(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as page, websocket_server.client() as wired:
        wired.connect()
        wired.send(b"SUB from.page.* 7\r\n")
        wired.expect_pong()
        page.connect()
        page.send(b"PUB from.page.one reply.to 5\r\nhello\r\n")

        wired.expect(b"MSG from.page.one 7 reply.to 5\r\nhello\r\n")


def test_messages_between_pages(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as one, WebSocketClient(websocket_server) as other:
        one.connect()
        other.connect()
        one.send(b"SUB pages 1\r\n")
        one.expect_pong()
        for number in range(200):
            other.send(b"PUB pages 3\r\n%03d\r\n" % number)

        for number in range(200):
            one.expect(b"MSG pages 1 3\r\n%03d\r\n" % number)


def test_headers_go_along(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as client:
        client.connect(headers=True)
        client.send(b"SUB labelled 1\r\nHPUB labelled %d %d\r\n%bhi\r\n" % (len(HEADER), len(HEADER) + 2, HEADER))

        client.expect(b"HMSG labelled 1 %d %d\r\n%bhi\r\n" % (len(HEADER), len(HEADER) + 2, HEADER))


def test_members_of_a_queue_group_share_messages(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as page, websocket_server.client() as wired:
        for member in (page, wired):
            member.connect()
            member.send(b"SUB jobs workers 1\r\nSUB jobs.done 2\r\n")
            member.expect_pong()
        page.send(b"PUB jobs 1\r\nx\r\n" * 200 + b"PUB jobs.done 0\r\n\r\n")
        counts = []
        for member in (page, wired):
            received = []
            while (message := member.read_frame()) != b"MSG jobs.done 2 0\r\n\r\n":
                received.append(message)
            assert set(received) <= {b"MSG jobs 1 1\r\nx\r\n"}
            counts.append(len(received))

        assert sum(counts) == 200
        assert min(counts) > 0


def test_request_without_responders_is_answered(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as client:
        client.connect(headers=True, no_responders=True)
        client.send(b"SUB inbox 1\r\nPUB nobody.there inbox 0\r\n\r\n")

        client.expect(b"HMSG inbox 1 44 44\r\nNATS/1.0 503\r\nNats-Subject: nobody.there\r\n\r\n\r\n")


def test_largest_message_goes_both_ways(websocket_server: ServerProcess) -> None:
    body = b"0123456789abcdef" * (LARGE_BYTES // 16)
    with WebSocketClient(websocket_server) as page, websocket_server.client() as wired:
        for client in (page, wired):
            client.connect()
            client.send(b"SUB largest 1\r\n")
            client.expect_pong()
        for sender in (page, wired):
            sender.send(b"PUB largest %d\r\n%b\r\n" % (len(body), body))
            for receiver in (page, wired):
                receiver.expect(b"MSG largest 1 %d\r\n%b\r\n" % (len(body), body))


def test_client_that_wants_no_echo_gets_none(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as client:
        client.connect(echo=False)
        client.send(b"SUB quiet 1\r\nPUB quiet 0\r\n\r\n")

        client.expect_pong()


def test_verbose_client_gets_its_oks(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as client:
        client.connect(verbose=True)
        client.send(b"SUB said 1\r\n")

        client.expect(b"+OK\r\n")


def test_subscription_that_ends_by_itself(websocket_server: ServerProcess) -> None:
    with WebSocketClient(websocket_server) as client:
        client.connect()
        client.send(b"SUB twice 1\r\nUNSUB 1 2\r\n" + b"PUB twice 0\r\n\r\n" * 3)

        client.expect(b"MSG twice 1 0\r\n\r\n" * 2)
        client.expect_pong()


def test_server_pings_more_often_over_websocket(start_once) -> None:
    server = start_once(websocket_config('ping_interval: "200ms"', 'ping_interval: "1h"'))
    with WebSocketClient(server) as client:
        client.connect()
        client.answer_pings = False

        # Far less than an hour: the first PING comes soon after CONNECT in any case, so the second one counts.
        assert client.read_frame() == b"PING\r\n"
        client.send(b"PONG\r\n")
        assert client.read_frame() == b"PING\r\n"


def test_stream_is_made_filled_and_read_over_websocket(start_server) -> None:
    server = start_server(["-js", "-sd", "store"], websocket_config("compress: true"))
    with WebSocketClient(server, compress=True) as client:
        client.connect(headers=True, no_responders=True)
        client.send(b"SUB inbox.* 1\r\n")

        def request(subject: str, body: bytes) -> dict:
            client.send(b"PUB %b inbox.1 %d\r\n%b\r\n" % (subject.encode(), len(body), body))
            return json.loads(client.read_frame().split(b"\r\n", 1)[1])

        config = {"name": "PAGES", "subjects": ["pages.>"], "num_replicas": 1, "storage": "file"}
        assert "error" not in request("$JS.API.STREAM.CREATE.PAGES", json.dumps(config).encode())
        for sequence in range(1, 11):
            assert request(f"pages.{sequence}", b"x" * 10_000)["seq"] == sequence
        info = request("$JS.API.STREAM.INFO.PAGES", b"")
        assert info["state"]["messages"] == 10
        consumer = {"stream_name": "PAGES", "config": {"durable_name": "reader", "ack_policy": "explicit"}}
        assert "error" not in request("$JS.API.CONSUMER.DURABLE.CREATE.PAGES.reader", json.dumps(consumer).encode())

        client.send(b"PUB $JS.API.CONSUMER.MSG.NEXT.PAGES.reader inbox.2 1\r\n5\r\n")
        subjects = [client.read_frame().split(b" ")[1] for _ in range(5)]
        assert subjects == [b"pages.%d" % number for number in range(1, 6)]


def test_advisory_says_that_a_request_came_over_websocket(start_server) -> None:
    server = start_server(["-js", "-sd", "store"], websocket_config())
    with WebSocketClient(server) as page, server.client() as listener:
        listener.connect()
        listener.send(b"SUB $JS.EVENT.ADVISORY.API 1\r\n")
        listener.expect_pong()
        page.connect(name="page")
        page.send(b"SUB inbox 1\r\nPUB $JS.API.INFO inbox 0\r\n\r\nPUB $JS.API.STREAM.NAMES inbox 0\r\n\r\n")

        advisory = json.loads(listener.read_frame().partition(b"\r\n")[2])

        assert (advisory["client"]["name"], advisory["client"]["client_type"]) == ("page", "websocket")
