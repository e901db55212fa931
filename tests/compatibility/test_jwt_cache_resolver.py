"""Operator mode: a resolver of type `cache` asks others in the system account for claims it does not have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.compatibility.claims import Account, make_user
from tests.compatibility.operator_site import Site
from tests.compatibility.wire import RawClient


@pytest.fixture
def site(start_site: Callable[..., Site]) -> Site:
    return start_site(resolver="type: cache")


def keeper(site: Site) -> RawClient:
    """Return a client of the system account that hears who looks for claims."""
    client = site.client(site.operator.admin)
    client.send(b"SUB $SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP 1\r\n")
    client.expect_pong()
    return client


def knock(site: Site, account: Account) -> RawClient:
    """Return a client that has said who it is, and has not heard yet."""
    client = site.server.client()
    client.send_connect(verbose=False, **make_user(account).presented(client.info["nonce"]))
    client.send(b"PING\r\n")
    return client


def test_account_that_somebody_else_knows_is_let_in_and_remembered(site: Site) -> None:
    account = site.operator.add_account()
    keeps = keeper(site)
    with knock(site, account) as client:
        _, subject, _, reply, _ = keeps.read_line().split()
        assert subject == f"$SYS.REQ.ACCOUNT.{account.public}.CLAIMS.LOOKUP".encode()

        token = account.jwt().encode()
        keeps.send(b"PUB %s %d\r\n%s\r\n" % (reply, len(token), token))

        client.expect(b"PONG\r\n")
    with knock(site, account) as again:
        again.expect(b"PONG\r\n")
    keeps.expect_pong()


@pytest.mark.parametrize("answers", [False, True])
def test_account_that_nobody_knows_is_refused(site: Site, answers: bool) -> None:
    account = site.operator.add_account()
    keeps = keeper(site)
    with knock(site, account) as client:
        reply = keeps.read_line().split()[3]
        if answers:
            keeps.send(b"PUB %s 0\r\n\r\n" % reply)

        assert client.read_line().startswith(b"-ERR 'Authorization Violation'")


def test_claims_of_another_account_do_not_count(site: Site) -> None:
    account, other = site.operator.add_account(), site.operator.add_account()
    keeps = keeper(site)
    with knock(site, account) as client:
        reply = keeps.read_line().split()[3]
        token = other.jwt().encode()
        keeps.send(b"PUB %s %d\r\n%s\r\n" % (reply, len(token), token))

        assert client.read_line().startswith(b"-ERR 'Authorization Violation'")
