"""Operator mode: what a reload changes, and what it must not."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from tests.compatibility.claims import Account, Operator, make_user
from tests.compatibility.operator_site import Site, expect_soon

RELOADED = "Reloaded server configuration"


def start(start_site: Callable[..., Site], operator: Operator, *preloads: Account) -> Site:
    return start_site(resolver="MEMORY", operator=operator, preloads=[operator.system, *preloads])


def reload(site: Site, config: str, expected: str = RELOADED) -> str:
    """Write another configuration, have it read, and return the log."""
    (site.folder / "server.conf").write_text(config)
    site.server.signal(signal.SIGHUP)
    return site.server.wait_for_log(expected)


def test_account_that_is_preloaded_later_lets_its_users_in(start_site: Callable[..., Site]) -> None:
    operator = Operator()
    site = start(start_site, operator)
    text = (site.folder / "server.conf").read_text()
    account = operator.add_account()
    site.refuse(make_user(account))

    reload(site, text.replace("resolver_preload {", f"resolver_preload {{\n{account.public}: {account.jwt()}"))

    site.client(make_user(account)).expect_pong()


def test_new_claims_hold_for_clients_that_are_in(start_site: Callable[..., Site]) -> None:
    operator = Operator()
    account = operator.add_account()
    site = start(start_site, operator, account)
    text = (site.folder / "server.conf").read_text()
    old = text.split(f"{account.public}: ")[1].split()[0]
    client = site.client(make_user(account))

    reload(site, text.replace(old, account.jwt(limits=account.limits(payload=4))))

    expect_soon(client, b"PUB a 10\r\n0123456789\r\n", "Maximum Payload Violation")


def test_users_of_an_account_that_is_gone_are_sent_away(start_site: Callable[..., Site]) -> None:
    operator = Operator()
    account, other = operator.add_account(), operator.add_account()
    site = start(start_site, operator, account, other)
    text = (site.folder / "server.conf").read_text()
    old = text.split(f"{account.public}: ")[1].split()[0]
    client, other_client = site.client(make_user(account)), site.client(make_user(other))

    reload(site, text.replace(f"{account.public}: {old}", ""))

    client.expect_error_and_closed("Authorization Violation")
    site.refuse(make_user(account))
    other_client.expect_pong()


def test_revocation_in_the_preload_sends_away(start_site: Callable[..., Site]) -> None:
    operator = Operator()
    account = operator.add_account()
    site = start(start_site, operator, account)
    text = (site.folder / "server.conf").read_text()
    old = text.split(f"{account.public}: ")[1].split()[0]
    bad, good = make_user(account), make_user(account)
    bad_client, good_client = site.client(bad), site.client(good)

    reload(site, text.replace(old, account.jwt(revocations={bad.key.public: int(time.time()) + 5})))

    assert bad_client.read_line().startswith(b"-ERR '")
    bad_client.expect_closed()
    good_client.expect_pong()


def test_another_operator_is_refused(start_site: Callable[..., Site]) -> None:
    operator, other = Operator(), Operator()
    account = operator.add_account()
    site = start(start_site, operator, account)
    text = (site.folder / "server.conf").read_text()
    old = text.split("operator: ")[1].split()[0]

    reload(site, text.replace(old, other.jwt()), "not supported for TrustedOperators")

    site.client(make_user(account)).expect_pong()


def test_operator_mode_cannot_be_left(start_site: Callable[..., Site]) -> None:
    operator = Operator()
    account = operator.add_account()
    site = start(start_site, operator, account)

    reload(site, "max_payload: 1000\n", "config reload")

    site.client(make_user(account)).expect_pong()
    with site.server.client() as client:
        client.send_connect(verbose=False)
        client.expect_error_and_closed("Authorization Violation")
