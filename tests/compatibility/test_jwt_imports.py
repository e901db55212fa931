"""Operator mode: exports and imports in claims, public and with activations."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility.claims import EXPIRY_SECONDS, Account, Key, make_user
from tests.compatibility.operator_site import REVIEW_SECONDS_MAX, Site
from tests.compatibility.wire import RawClient


@pytest.fixture
def site(start_site: Callable[..., Site]) -> Site:
    return start_site()


def stream(exporter: Account, subject: str = "news.>", **further: Any) -> dict[str, Any]:
    return {"name": "news", "subject": subject, "account": exporter.public, "type": "stream", **further}


def service(exporter: Account, subject: str = "ask", **further: Any) -> dict[str, Any]:
    return {"name": "ask", "subject": subject, "account": exporter.public, "type": "service", **further}


def activation(exporter: Account, importer: Account, *, issuer: Key | None = None, **fields: Any) -> str:
    nats = {"subject": "news.>", "kind": "stream"}
    if issuer is not None:
        nats["issuer_account"] = exporter.public
    return (issuer or exporter.key).claims(importer.key, "activation", nats, **fields)


class Pair:
    """Two accounts; what one publishes the other may hear."""

    def __init__(self, site: Site, exports: list[dict[str, Any]], **further: Any) -> None:
        self.site = site
        self.admin = site.admin()
        self.exporter = site.operator.add_account(name="exporter", exports=exports, **further)
        self.importer = site.operator.add_account(name="importer")
        self.admin.push(self.exporter)

    def publisher(self) -> RawClient:
        return self.site.client(make_user(self.exporter))

    def listener(self, subject: str) -> RawClient:
        client = self.site.client(make_user(self.importer))
        client.send(f"SUB {subject} 1\r\n".encode())
        client.expect_pong()
        return client

    def push_imports(self, *imports: dict[str, Any]) -> None:
        reply = self.admin.push(self.importer, imports=list(imports))
        assert "data" in reply, reply

    def is_heard(self, listener: RawClient, publisher: RawClient, expected: bytes) -> bool:
        """Tell whether what is published arrives."""
        publisher.send(b"PUB news.today 2\r\nhi\r\n")
        publisher.expect_pong()
        listener.send(b"PING\r\n")
        frame = listener.read_line()
        if frame == b"PONG\r\n":
            return False
        assert frame == expected, frame
        listener.expect(b"PONG\r\n")
        return True

    def wait_until(self, heard: bool, listener: RawClient, publisher: RawClient, expected: bytes) -> None:
        deadline = time.monotonic() + REVIEW_SECONDS_MAX
        while self.is_heard(listener, publisher, expected) is not heard:
            assert time.monotonic() < deadline, f"heard: {not heard}"
            time.sleep(0.02)


TODAY = b"MSG news.today 1 2\r\nhi\r\n"
PUBLIC = [{"name": "news", "subject": "news.>", "type": "stream"}]
PRIVATE = [{"name": "news", "subject": "news.>", "type": "stream", "token_req": True}]


def test_public_stream_is_heard_by_who_imports_it(site: Site) -> None:
    pair = Pair(site, PUBLIC)
    pair.push_imports(stream(pair.exporter))

    pair.wait_until(True, pair.listener("news.today"), pair.publisher(), TODAY)


def test_stream_is_not_heard_without_an_import(site: Site) -> None:
    pair = Pair(site, PUBLIC)
    pair.push_imports()

    assert not pair.is_heard(pair.listener("news.today"), pair.publisher(), TODAY)


def test_stream_that_is_not_exported_is_not_heard(site: Site) -> None:
    pair = Pair(site, [])
    pair.push_imports(stream(pair.exporter))

    assert not pair.is_heard(pair.listener("news.today"), pair.publisher(), TODAY)


@pytest.mark.parametrize(
    ("renamed", "subject"), [({"local_subject": "of.them.>"}, "of.them.today"), ({"to": "x"}, "x.news.today")]
)
def test_stream_may_have_another_name_here(site: Site, renamed: dict[str, str], subject: str) -> None:
    pair = Pair(site, PUBLIC)
    pair.push_imports(stream(pair.exporter, **renamed))

    pair.wait_until(True, pair.listener(subject), pair.publisher(), f"MSG {subject} 1 2\r\nhi\r\n".encode())


def test_private_stream_needs_an_activation(site: Site) -> None:
    pair = Pair(site, PRIVATE)
    pair.push_imports(stream(pair.exporter))
    assert not pair.is_heard(pair.listener("news.today"), pair.publisher(), TODAY)

    pair.push_imports(stream(pair.exporter, token=activation(pair.exporter, pair.importer)))

    pair.wait_until(True, pair.listener("news.today"), pair.publisher(), TODAY)


def test_signing_key_of_the_exporter_activates(site: Site) -> None:
    key, stranger = Key("account"), Key("account")
    pair = Pair(site, PRIVATE, signing_keys=[key.public])
    pair.push_imports(stream(pair.exporter, token=activation(pair.exporter, pair.importer, issuer=stranger)))
    assert not pair.is_heard(pair.listener("news.today"), pair.publisher(), TODAY)

    pair.push_imports(stream(pair.exporter, token=activation(pair.exporter, pair.importer, issuer=key)))

    pair.wait_until(True, pair.listener("news.today"), pair.publisher(), TODAY)


def test_expired_activation_does_not_count(site: Site) -> None:
    pair = Pair(site, PRIVATE)
    token = activation(pair.exporter, pair.importer, exp=int(time.time()) - 10)
    pair.push_imports(stream(pair.exporter, token=token))

    assert not pair.is_heard(pair.listener("news.today"), pair.publisher(), TODAY)


def test_import_ends_when_its_activation_expires(site: Site) -> None:
    pair = Pair(site, PRIVATE)
    token = activation(pair.exporter, pair.importer, exp=int(time.time()) + EXPIRY_SECONDS)
    pair.push_imports(stream(pair.exporter, token=token))
    listener, publisher = pair.listener("news.today"), pair.publisher()
    pair.wait_until(True, listener, publisher, TODAY)

    pair.wait_until(False, listener, publisher, TODAY)


def test_revoked_activation_does_not_count(site: Site) -> None:
    pair = Pair(site, PRIVATE)
    pair.push_imports(stream(pair.exporter, token=activation(pair.exporter, pair.importer)))
    listener, publisher = pair.listener("news.today"), pair.publisher()
    pair.wait_until(True, listener, publisher, TODAY)

    revoked = [{**PRIVATE[0], "revocations": {pair.importer.public: int(time.time()) + 5}}]
    pair.admin.push(pair.exporter, exports=revoked)

    pair.wait_until(False, listener, publisher, TODAY)


def test_import_ends_with_its_export(site: Site) -> None:
    pair = Pair(site, PUBLIC)
    pair.push_imports(stream(pair.exporter))
    listener, publisher = pair.listener("news.today"), pair.publisher()
    pair.wait_until(True, listener, publisher, TODAY)

    pair.admin.push(pair.exporter, exports=[])

    pair.wait_until(False, listener, publisher, TODAY)


def test_exporter_may_be_pushed_after_its_importer(site: Site) -> None:
    exporter = site.operator.add_account(exports=PUBLIC)
    importer = site.operator.add_account(imports=[stream(exporter)])
    admin = site.admin()
    admin.push(importer)
    listener = site.client(make_user(importer))
    listener.send(b"SUB news.today 1\r\n")
    listener.expect_pong()

    admin.push(exporter)

    publisher = site.client(make_user(exporter))
    publisher.send(b"PUB news.today 2\r\nhi\r\n")
    listener.expect(TODAY)


def test_name_of_the_importer_may_be_part_of_the_subject(site: Site) -> None:
    exports = [{"name": "own", "subject": "own.*.>", "type": "stream", "account_token_position": 2}]
    exporter, importer, thief = (site.operator.add_account(exports=exports) for _ in range(3))
    own = stream(exporter, f"own.{importer.public}.>")
    admin = site.admin()
    admin.push(exporter)
    admin.push(importer, imports=[own])
    admin.push(thief, imports=[own])
    listener, stealing = (site.client(make_user(account)) for account in (importer, thief))
    for client in (listener, stealing):
        client.send(f"SUB own.{importer.public}.x 1\r\n".encode())
        client.expect_pong()

    site.client(make_user(exporter)).send(f"PUB own.{importer.public}.x 2\r\nhi\r\n".encode())

    listener.expect(f"MSG own.{importer.public}.x 1 2\r\nhi\r\n".encode())
    stealing.expect_pong()


@pytest.mark.parametrize("renamed", [{}, {"local_subject": "their.ask"}])
def test_service_is_asked_by_who_imports_it(site: Site, renamed: dict[str, str]) -> None:
    pair = Pair(site, [{"name": "ask", "subject": "ask", "type": "service"}])
    pair.push_imports(service(pair.exporter, **renamed))
    answering, asking = pair.publisher(), pair.listener("reply")
    answering.send(b"SUB ask 1\r\n")
    answering.expect_pong()

    asking.send(f"PUB {renamed.get('local_subject', 'ask')} reply 1\r\n?\r\n".encode())

    request = answering.read_line()
    assert request.startswith(b"MSG ask 1 ")
    answering.send(b"PUB %s 3\r\nyes\r\n" % request.split()[3])
    asking.expect(b"MSG reply 1 3\r\nyes\r\n")


@pytest.mark.parametrize(
    "broken",
    [
        {"subject": "news.*.*", "local_subject": "x.$1.$1"},
        {"subject": "news.*", "local_subject": "x.$0"},
        {"subject": "news.\ttoday"},
        {"subject": "news.>", "to": "x\ty"},
    ],
    ids=str,
)
def test_import_that_makes_no_sense_does_not_keep_others_from_working(site: Site, broken: dict[str, str]) -> None:
    pair = Pair(site, [{"name": "all", "subject": ">", "type": "stream"}])
    # Some of these are refused, by one server or by both.
    pair.admin.push(pair.importer, imports=[stream(pair.exporter, **broken)])
    other = site.operator.add_account(imports=[stream(pair.exporter)])
    pair.admin.push(other)

    listener, publisher = site.client(make_user(other)), pair.publisher()
    listener.send(b"SUB news.today 1\r\n")
    listener.expect_pong()

    pair.wait_until(True, listener, publisher, TODAY)


# Latency


@pytest.mark.parametrize("sampling", [100, "headers"])
def test_exporter_hears_how_long_requests_take(site: Site, sampling: int | str) -> None:
    measured = {"name": "ask", "subject": "ask", "type": "service"}
    exports = [{**measured, "service_latency": {"sampling": sampling, "results": "latency.ask"}}]
    pair = Pair(site, exports)
    pair.push_imports(service(pair.exporter, share=True))
    responder, events = pair.publisher(), pair.publisher()
    responder.send(b"SUB ask 1\r\n")
    responder.expect_pong()
    events.send(b"SUB latency.> 2\r\n")
    events.expect_pong()
    requester = site.client(make_user(pair.importer), headers=True)
    requester.send(b"SUB _INBOX.1 1\r\n")
    requester.expect_pong()

    header = b"NATS/1.0\r\nX-B3-Sampled: 1\r\n\r\n"
    requester.send(b"HPUB ask _INBOX.1 %d %d\r\n%s\r\n" % (len(header), len(header), header))
    reply = responder.read_line().split()[3]
    responder.send(b"PUB %s 2\r\nhi\r\n" % reply)

    requester.expect(b"MSG _INBOX.1 1 2\r\nhi\r\n")
    line, _, payload = events.read_line().partition(b"\r\n")
    event = json.loads(payload)
    assert line.startswith(b"MSG latency.ask 2 ")
    assert event["status"] == 200
    assert event["requestor"]["acc"] == pair.importer.public
    assert event["requestor"]["user"].startswith("U")
    assert event.get("header", {}) == ({"X-B3-Sampled": ["1"]} if sampling == "headers" else {})


def test_service_with_many_answers_counts_although_it_cannot_be_measured(site: Site) -> None:
    latency = {"sampling": 100, "results": "latency.ask"}
    exports = [
        {"name": "ask", "subject": "ask", "type": "service", "response_type": "Stream", "service_latency": latency}
    ]
    pair = Pair(site, exports)
    pair.push_imports(service(pair.exporter))
    responder = pair.publisher()
    responder.send(b"SUB ask 1\r\nSUB latency.> 2\r\n")
    responder.expect_pong()
    requester = pair.listener("_INBOX.1")

    requester.send(b"PUB ask _INBOX.1 0\r\n\r\n")
    reply = responder.read_line().split()[3]
    responder.send(b"PUB %s 1\r\n1\r\nPUB %s 1\r\n2\r\n" % (reply, reply))

    requester.expect(b"MSG _INBOX.1 1 1\r\n1\r\nMSG _INBOX.1 1 1\r\n2\r\n")
    responder.expect_pong()
