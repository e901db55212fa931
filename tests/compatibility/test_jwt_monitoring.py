"""Operator mode on the pages of monitoring, and in the events and answers of the system account."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.compatibility.claims import Key, Operator, User, make_user, scoped
from tests.compatibility.monitored import Monitored, monitored_of
from tests.compatibility.operator_site import Admin, Site


class Place:
    """A server in operator mode with its pages."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.operator = site.operator
        self.pages: Monitored = monitored_of(site.server)

    def entry(self, user: User) -> dict[str, Any]:
        """Return what `/connz` says about the connection of a user."""
        page = self.pages.get_json("/connz?auth=1")
        (entry,) = [each for each in page["connections"] if each["authorized_user"] == user.key.public]
        return entry


@pytest.fixture
def place(start_site: Callable[..., Site]) -> Place:
    return Place(start_site(flags=("-m", "-1")))


def test_varz_shows_the_operator(place: Place) -> None:
    page = place.pages.get_json("/varz")

    (token,) = page["trusted_operators_jwt"]
    (claims,) = page["trusted_operators_claim"]
    assert claims["sub"] == place.operator.key.public
    assert claims["nats"]["type"] == "operator"
    assert token.count(".") == 2
    assert page["system_account"] == place.operator.system.public
    assert page["auth_required"] is True


def test_connz_shows_claims_of_a_user(place: Place) -> None:
    account = place.operator.add_account(name="shop")
    user = make_user(account, name="ada", tags=["team:red"])
    place.site.admin().push(account)
    place.site.client(user)

    entry = place.entry(user)

    assert entry["jwt"] == user.jwt
    assert entry["account"] == entry["issuer_key"] == account.public
    assert entry["name_tag"] == "shop"
    assert entry["tags"] == ["team:red"]


def test_connz_shows_the_signing_key(place: Place) -> None:
    key = Key("account")
    account = place.operator.add_account(signing_keys=[scoped(key, subs=-1, data=-1, payload=-1)])
    user = make_user(account, issuer=key, claimed={})
    place.site.admin().push(account)
    place.site.client(user)

    assert place.entry(user)["issuer_key"] == key.public


def test_connz_does_not_show_bearer_tokens(place: Place) -> None:
    """A page must not show what would let its reader in."""
    account = place.operator.add_account()
    user = make_user(account, bearer_token=True)
    place.site.admin().push(account)
    place.site.client(user)

    assert "jwt" not in place.entry(user)


def test_connz_shows_nothing_of_claims_unless_asked(place: Place) -> None:
    place.site.client(make_user(place.operator.system))

    for entry in place.pages.get_json("/connz")["connections"]:
        assert not {"jwt", "issuer_key", "tags", "name_tag", "account", "authorized_user"} & set(entry)


def test_accountz_shows_the_claims_of_an_account(place: Place) -> None:
    revoked = Key("user").public
    account = place.operator.add_account(name="shop", tags=["a:b"], revocations={revoked: 1_700_000_000})
    text = account.jwt()
    place.site.admin().ask("$SYS.REQ.CLAIMS.UPDATE", text)
    place.site.client(make_user(account))

    detail = place.pages.get_json(f"/accountz?acc={account.public}")["account_detail"]

    assert detail["jwt"] == text
    assert detail["issuer_key"] == place.operator.key.public
    assert detail["name_tag"] == "shop"
    assert detail["tags"] == ["a:b"]
    assert detail["decoded_jwt"]["sub"] == account.public
    assert detail["decoded_jwt"]["nats"]["limits"]["conn"] == -1
    assert list(detail["revoked_user"]) == [revoked]
    assert detail["expired"] is False
    assert detail["client_connections"] == 1


def test_accountz_lists_accounts_in_use(place: Place) -> None:
    account = place.operator.add_account()
    place.site.admin().push(account)
    place.site.client(make_user(account))

    assert {account.public, place.operator.system.public} <= set(place.pages.get_json("/accountz")["accounts"])


def test_accstatz_has_names(place: Place) -> None:
    account = place.operator.add_account(name="shop")
    place.site.admin().push(account)
    place.site.client(make_user(account))

    names = {each["acc"]: each["name"] for each in place.pages.get_json("/accstatz")["account_statz"]}

    assert names[account.public] == "shop"


def test_user_is_told_who_it_is(place: Place) -> None:
    account = place.operator.add_account(name="shop")
    user = make_user(account, name="ada", pub={"allow": ["a", "$SYS.>"]}, exp=int(time.time()) + 1000)
    place.site.admin().push(account)

    told = Admin(place.site.client(user)).ask("$SYS.REQ.USER.INFO")["data"]

    assert told["user"] == user.key.public
    assert told["account"] == account.public
    assert told["account_name"] == "shop"
    assert told["user_name"] == "ada"
    assert told["permissions"]["publish"]["allow"] == ["a", "$SYS.>"]
    assert 900e9 < told["expires"] <= 1000e9


def test_events_show_who_came(place: Place) -> None:
    account = place.operator.add_account(name="shop")
    user = make_user(account, tags=["x"])
    admin = place.site.admin()
    admin.push(account)
    admin.client.send(f"SUB $SYS.ACCOUNT.{account.public}.CONNECT 2\r\n".encode())
    admin.client.expect_pong()

    place.site.client(user)

    frame = admin.client.read_line()
    client = json.loads(frame.partition(b"\r\n")[2])["client"]
    assert client["user"] == user.key.public
    assert client["acc"] == client["issuer_key"] == account.public
    assert client["name_tag"] == "shop"
    assert client["tags"] == ["x"]


def test_pinned_accounts_are_counted(start_site: Callable[..., Site]) -> None:
    operator = Operator()
    account = operator.add_account()
    pinned = f"resolver_pinned_accounts: [{operator.system.public}]"
    place = Place(start_site(operator=operator, further=pinned, flags=("-m", "-1")))

    place.site.refuse(make_user(account))

    assert place.pages.get_json("/varz")["pinned_account_fails"] == 1
