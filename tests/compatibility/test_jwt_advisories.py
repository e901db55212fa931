"""Classes of NATS security advisories about operator mode, 2020 to 2026; the docstring of each test names them.

Besides: CVE-2020-26892 (expired claims) and CVE-2022-24450 (another account) are in `test_jwt_users.py`, CVE-2021-3127
(tokens of imports used by others) is in `test_jwt_claims.py` and `test_jwt_imports.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.claims import STORING, Account, Key, make_user
from tests.compatibility.operator_site import DELETE, LIST, UPDATE, Admin, Site
from tests.compatibility.test_jwt_claims import deletion

PUBLISHED = b"PUB news.today 2\r\nhi\r\n"


@pytest.fixture
def site(start_site: Callable[..., Site], tmp_path: Path) -> Site:
    return start_site(resolver="type: full, allow_delete: true", flags=("-js", "-sd", str(tmp_path / "store")))


def test_server_with_nothing_but_a_system_account_is_closed(site: Site) -> None:
    """CVE-2023-47090: users of the system account alone must not open the door for everybody else."""
    for options in ({}, {"user": "", "pass": ""}, {"user": "ada", "pass": "x"}, {"auth_token": "x"}):
        with site.server.client() as client:
            client.send_connect(verbose=False, **options)
            client.expect_error_and_closed("Authorization Violation")


@pytest.mark.parametrize("path", ["../../secret", "/etc/passwd", "..\\secret", "%2e%2e/secret", "secret"])
def test_names_of_accounts_lead_to_no_other_file(site: Site, path: str) -> None:
    """CVE-2022-28357: a name in a request of the system account must not leave the folder."""
    victim = site.folder / "secret.jwt"
    victim.write_text("secret")
    admin = site.admin()

    reply = admin.ask(DELETE, deletion(site.operator.key, path))

    assert reply["error"]["description"].endswith("malformed request")
    assert victim.read_text() == "secret"
    assert admin.ask(LIST)["data"] == [site.operator.system.public]


@pytest.mark.parametrize(
    "claims",
    [
        {"exports": [None]},
        {"imports": [None]},
        {"imports": [{}]},
        {"exports": [{}]},
        {"imports": [{"type": "service", "subject": "a", "account": "x", "token": "x"}]},
        {"signing_keys": [None]},
        {"signing_keys": [{}]},
        {"signing_keys": ["x"]},
        {"limits": []},
        {"mappings": {"a": [{"subject": "b", "weight": 200}]}},
        {"mappings": {"": []}},
        {"authorization": {"auth_users": ["x"]}},
        {"trace": {"dest": "a.*"}},
    ],
    ids=str,
)
def test_broken_claims_do_not_stop_the_server(site: Site, claims: dict[str, Any]) -> None:
    """CVE-2020-26521 and CVE-2020-26149: claims with holes were a way to stop a server."""
    account = site.operator.add_account()
    admin = site.admin()

    reply = admin.push(account, **claims)

    assert "error" in reply or claims == {"signing_keys": [None]}
    assert admin.push(site.operator.add_account())["data"]["message"] == "jwt updated"


def loop(site: Site, kind: str) -> tuple[Account, Account]:
    """Return two accounts that import the same subject from each other."""
    shared = {"name": "x", "subject": "news.>", "type": kind}
    one, other = (site.operator.add_account(exports=[shared]) for _ in range(2))
    one.nats["imports"] = [{**shared, "account": other.public}]
    other.nats["imports"] = [{**shared, "account": one.public}]
    return one, other


@pytest.mark.parametrize("kind", ["stream", "service"])
def test_imports_in_a_circle_do_not_go_round(site: Site, kind: str) -> None:
    """CVE-2020-28466: accounts that import from each other kept a server busy for ever."""
    one, other = loop(site, kind)
    admin = site.admin()
    for account in (one, other):
        assert "data" in admin.push(account)
    listener, publisher = site.client(make_user(one)), site.client(make_user(other))
    listener.send(b"SUB news.> 1\r\n")
    listener.expect_pong()

    publisher.send(PUBLISHED * 3)

    publisher.expect_pong()
    listener.send(b"PING\r\n")
    received = 0
    while listener.read_line() != b"PONG\r\n":
        received += 1
    assert received <= 3


def test_account_cannot_manage_streams_of_another(site: Site) -> None:
    """CVE-2025-30215: requests that manage accounts are for the system account."""
    victim, attacker = (site.operator.add_account(limits=STORING) for _ in range(2))
    admin = site.admin()
    for account in (victim, attacker):
        admin.push(account)
    owner, stranger = (Admin(site.client(make_user(account))) for account in (victim, attacker))
    config = {"name": "ORDERS", "subjects": ["orders"], "num_replicas": 1}
    owner.ask_raw("$JS.API.STREAM.CREATE.ORDERS", json.dumps(config))

    for subject in (
        f"$JS.API.ACCOUNT.PURGE.{victim.public}",
        f"$JS.API.ACCOUNT.STREAM.MOVE.{victim.public}.ORDERS",
        "$JS.API.SERVER.REMOVE",
        "$JS.API.META.LEADER.STEPDOWN",
    ):
        stranger.client.send(f"PUB {subject} _INBOX.1 2\r\n{{}}\r\n".encode())
    stranger.client.send(b"PING\r\n")
    while stranger.client.read_line() != b"PONG\r\n":
        pass

    assert "error" not in json.loads(owner.ask_raw("$JS.API.STREAM.INFO.ORDERS"))


def test_system_account_of_another_operator_is_not_ours(site: Site) -> None:
    """Claims that are signed, but not by an operator this server trusts, change nothing."""
    stranger = Key("operator")
    account = site.operator.add_account()
    token = account.jwt(issuer=stranger)

    site.admin().ask(UPDATE, token)

    site.refuse(make_user(account))
