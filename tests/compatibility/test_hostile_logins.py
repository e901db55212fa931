"""Numbers in the claims of users that no tool would write: they decide about their user, and the server goes on."""

from __future__ import annotations

import pytest

from tests.compatibility.callout_site import Start
from tests.compatibility.claims import make_user
from tests.compatibility.operator_site import Site

LOWEST, HIGHEST = -(2**63), 2**63 - 1

ODD = [
    *({"exp": number} for number in (-1, -5, LOWEST)),
    # With an end further away nats-server's own arithmetic says that it has come.
    {"exp": 2**53},
    *({"iat": number} for number in (-1, LOWEST, HIGHEST)),
    {"nbf": LOWEST},
    *({limit: number} for limit in ("subs", "data", "payload") for number in (LOWEST, 2**31, HIGHEST)),
    *({"resp": {"max": number, "ttl": number}} for number in (LOWEST, -1, HIGHEST)),
]
"""Numbers that Go reads. Of an end before 1970 it says that it has come, once the client is in."""

UNREADABLE = [{"exp": 2**63}, {"exp": -5.0}, {"subs": 1e300}, {"payload": LOWEST - 1}, {"resp": {"ttl": 2**64}}]


def is_over(claims: dict) -> bool:
    return claims.get("exp", 0) < 0


@pytest.mark.parametrize("claims", ODD, ids=str)
def test_service_lets_a_client_in_with_numbers_as_large_as_can_be(start_callout: Start, claims: dict) -> None:
    site = start_callout(timeout="60s")
    client, asked = site.ask(user="ada")

    site.service.admit(asked, "APP", **claims)

    if is_over(claims):
        assert client.read_line() == b"-ERR 'User Authentication Expired'\r\n"
    else:
        client.expect_pong()
    site.come_in().expect_pong()


@pytest.mark.parametrize("claims", UNREADABLE, ids=str)
def test_claims_of_a_service_with_unreadable_numbers_are_refused(start_callout: Start, claims: dict) -> None:
    site = start_callout(timeout="2s")
    client, asked = site.ask(user="ada")

    site.service.admit(asked, "APP", **claims)

    assert client.read_line().startswith(b"-ERR '")
    site.come_in().expect_pong()


def test_users_of_an_account_come_in_with_numbers_as_large_as_can_be(start_site) -> None:
    site: Site = start_site(resolver="MEMORY")
    account = site.operator.system
    for claims in ODD:
        with site.server.client() as client:
            user = make_user(account, **claims)
            client.send_connect(verbose=False, **user.presented(client.info["nonce"]))
            if is_over(claims):
                assert b"-ERR 'User Authentication Expired'\r\n" in client.read_to_end(), claims
                continue
            client.send(b"PING\r\n")
            frames = [client.read_line(), client.read_line()]
            assert b"PONG\r\n" in frames, claims


def test_users_whose_claims_have_unreadable_numbers_are_refused(start_site) -> None:
    site: Site = start_site(resolver="MEMORY")
    for claims in UNREADABLE:
        site.refuse(make_user(site.operator.system, **claims))
    site.admin()
