"""Requests about claims to the system account: what `nsc push`, `pull` and `delete` send, and what comes of them."""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility.claims import EXPIRY_SECONDS, Account, Key, Operator, make_user, scoped
from tests.compatibility.operator_site import DELETE, LIST, PACK, REVIEW_SECONDS_MAX, UPDATE, Site, expect_soon
from tests.compatibility.wire import RawClient


@pytest.fixture
def site(start_site: Callable[..., Site]) -> Site:
    return start_site()


def test_account_that_was_pushed_lets_its_users_in(site: Site) -> None:
    account = site.operator.add_account(name="shop")
    site.refuse(make_user(account))

    reply = site.admin().push(account)

    assert reply == {"data": {"account": account.public, "code": 200, "message": "jwt updated"}}
    assert site.client(make_user(account)).connected_info["remote_account"] == account.public


@pytest.mark.parametrize("subject", ["$SYS.REQ.ACCOUNT.{}.CLAIMS.UPDATE", "$SYS.ACCOUNT.{}.CLAIMS.UPDATE"])
def test_account_may_be_named_in_the_subject(site: Site, subject: str) -> None:
    account, other = site.operator.add_account(), site.operator.add_account()
    admin = site.admin()

    right = admin.ask(subject.format(account.public), account.jwt())
    wrong = admin.ask(subject.format(other.public), account.jwt())

    assert right["data"]["message"] == "jwt updated"
    assert wrong["error"] == {
        "account": other.public,
        "code": 500,
        "description": "jwt update resulted in error - subject does not match jwt content",
    }


def test_claims_are_files_named_by_their_account(site: Site) -> None:
    account = site.operator.add_account()
    text = account.jwt()

    site.admin().ask(UPDATE, text)

    assert site.file_of(account).read_text() == text
    assert sorted(path.name for path in site.jwt_folder.iterdir()) == sorted(
        f"{each.public}.jwt" for each in (account, site.operator.system)
    )


def test_claims_are_there_after_a_restart(site: Site) -> None:
    account = site.operator.add_account()
    site.admin().push(account)
    site.server.stop()

    site.start()

    assert site.client(make_user(account)).connected_info["remote_account"] == account.public


def test_file_that_somebody_puts_into_the_folder_is_found(site: Site) -> None:
    account = site.operator.add_account()

    site.file_of(account).write_text(account.jwt())

    assert site.client(make_user(account)).connected_info["remote_account"] == account.public


def test_lookup_returns_the_claims_or_nothing(site: Site) -> None:
    account = site.operator.add_account()
    text = account.jwt()
    admin = site.admin()
    admin.ask(UPDATE, text)

    assert admin.ask_raw(f"$SYS.REQ.ACCOUNT.{account.public}.CLAIMS.LOOKUP") == text.encode()
    assert admin.ask_raw(f"$SYS.REQ.ACCOUNT.{Key('account').public}.CLAIMS.LOOKUP") == b""


def test_list_names_all_accounts(site: Site) -> None:
    accounts = [site.operator.add_account() for _ in range(3)]
    admin = site.admin()
    for account in accounts:
        admin.push(account)

    listed = admin.ask(LIST)["data"]

    assert sorted(listed) == sorted(each.public for each in (*accounts, site.operator.system))


def test_pack_sends_all_claims_and_then_an_empty_message(site: Site) -> None:
    texts = {}
    admin = site.admin()
    for account in [site.operator.add_account() for _ in range(2)]:
        texts[account.public] = account.jwt()
        admin.ask(UPDATE, texts[account.public])
    texts[site.operator.system.public] = site.file_of(site.operator.system).read_text()

    received = [admin.ask_raw(PACK)]
    while received[-1]:
        received.append(admin.read())

    assert dict(each.decode().split("|") for each in received[:-1]) == texts


def test_pack_sends_nothing_to_whoever_has_the_same(site: Site) -> None:
    text = site.file_of(site.operator.system).read_bytes()

    assert site.admin().ask_raw(PACK, hashlib.sha256(text).digest()) == b""


def test_account_called_claims_can_be_asked_about(site: Site) -> None:
    reply = site.admin().ask("$SYS.REQ.ACCOUNT.CLAIMS.CONNZ")

    assert reply["data"]["num_connections"] == 0


@pytest.mark.parametrize(
    ("payload", "description"),
    [
        ("", "jwt update resulted in error - expected 3 chunks"),
        ("x.y", "jwt update resulted in error - expected 3 chunks"),
    ],
)
def test_text_that_is_no_claims_is_refused(site: Site, payload: str, description: str) -> None:
    assert site.admin().ask(UPDATE, payload) == {
        "error": {"account": "n/a", "code": 500, "description": description},
    }


def test_claims_of_a_user_are_not_those_of_an_account(site: Site) -> None:
    reply = site.admin().ask(UPDATE, make_user(site.operator.system).jwt)

    assert reply["error"]["description"] == "jwt update resulted in error - not account claim"


def test_claims_with_a_broken_signature_are_refused(site: Site) -> None:
    account = site.operator.add_account()
    head, body, _ = account.jwt().split(".")
    _, _, other_signature = account.jwt(name="other").split(".")

    reply = site.admin().ask(UPDATE, f"{head}.{body}.{other_signature}")

    assert reply["error"]["description"] == "jwt update resulted in error - claim failed V2 signature verification"
    assert not site.file_of(account).exists()


def test_invalid_claims_are_refused(site: Site) -> None:
    account = site.operator.add_account()

    reply = site.admin().push(account, default_permissions={"pub": {"allow": ["a..b"]}})

    assert reply["error"]["account"] == account.public
    assert reply["error"]["description"].startswith("jwt validation failed - validation errors: [")
    assert "cannot contain consecutive" in reply["error"]["description"]
    assert not site.file_of(account).exists()


def activation(exporter: Account, importer: Key, subject: str) -> str:
    return exporter.key.claims(importer, "activation", {"subject": subject, "kind": "stream"})


def test_import_with_a_token_for_another_account_is_refused(site: Site) -> None:
    """CVE-2021-3127: an activation token is of use only for the account it names."""
    exporter, thief = site.operator.add_account(), site.operator.add_account()
    honest = site.operator.add_account()
    token = activation(exporter, honest.key, "secret.>")
    shared = {"subject": "secret.>", "account": exporter.public, "type": "stream", "token": token}
    admin = site.admin()

    stolen = admin.push(thief, imports=[{"name": "x", **shared}])
    widened = admin.push(honest, imports=[{"name": "x", **shared, "subject": ">"}])
    of_another = admin.push(honest, imports=[{"name": "x", **shared, "account": thief.public}])

    assert "activation token doesn't match account it is being included in" in stolen["error"]["description"]
    assert "doesn't match import" in widened["error"]["description"]
    assert "activation token doesn't match account for import" in of_another["error"]["description"]
    assert admin.push(honest, imports=[{"name": "x", **shared}])["data"]["message"] == "jwt updated"


def test_only_the_system_account_can_push(site: Site) -> None:
    account = site.operator.add_account()
    site.admin().push(account)
    client = site.client(make_user(account))
    other = site.operator.add_account()

    client.send(f"SUB _INBOX.* 1\r\nPUB {UPDATE} _INBOX.1 {len(other.jwt())}\r\n{other.jwt()}\r\n".encode())
    client.expect_pong()

    site.refuse(make_user(other))
    assert not site.file_of(other).exists()


def test_new_limits_hold_for_clients_that_are_in(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    client = site.client(make_user(account))
    client.send(b"PUB a 10\r\n0123456789\r\n")
    client.expect_pong()

    admin.push(account, limits=account.limits(payload=4))

    expect_soon(client, b"PUB a 10\r\n0123456789\r\n", "Maximum Payload Violation")


def test_fewer_connections_close_the_newest(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    user = make_user(account)
    clients = [site.client(user) for _ in range(3)]

    admin.push(account, limits=account.limits(conn=2))

    gone: set[RawClient] = set()
    deadline = time.monotonic() + REVIEW_SECONDS_MAX
    while not gone and time.monotonic() < deadline:
        gone = {client for client in clients if _is_sent_away(client)}
    assert len(gone) == 1
    assert not any(_is_sent_away(client) for client in clients if client not in gone)


def _is_sent_away(client: RawClient) -> bool:
    client.send(b"PING\r\n")
    line = client.read_line()
    assert line in (b"PONG\r\n", b"-ERR 'maximum account active connections exceeded'\r\n")
    return line != b"PONG\r\n"


def test_new_default_permissions_hold_for_clients_that_are_in(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    client = site.client(make_user(account))

    admin.push(account, default_permissions={"pub": {"deny": ["secret"]}})

    expect_soon(client, b"PUB secret 0\r\n\r\n", 'Permissions Violation for Publish to "secret"')


def test_revoked_user_is_sent_away_and_others_stay(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    bad, good = make_user(account), make_user(account)
    bad_client, good_client = site.client(bad), site.client(good)

    admin.push(account, revocations={bad.key.public: int(time.time()) + 5})

    bad_client.expect_error_and_closed("User Authentication Revoked")
    good_client.expect_pong()
    site.refuse(bad)


def test_claims_issued_after_the_revocation_count(site: Site) -> None:
    account = site.operator.add_account()
    now = int(time.time())
    user = make_user(account, iat=now)

    site.admin().push(account, revocations={user.key.public: now - 60})

    site.client(user).expect_pong()


def test_star_revokes_all_users(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    client = site.client(make_user(account))

    admin.push(account, revocations={"*": int(time.time()) + 5})

    client.expect_error_and_closed("User Authentication Revoked")
    site.refuse(make_user(account))


def test_clients_are_sent_away_when_their_account_expires(site: Site) -> None:
    account, other = site.operator.add_account(), site.operator.add_account()
    admin = site.admin()
    admin.push(other)
    admin.push(account, exp=int(time.time()) + EXPIRY_SECONDS)
    client, other_client = site.client(make_user(account)), site.client(make_user(other))

    client.expect_error_and_closed("Account Authentication Expired")
    other_client.expect_pong()
    site.refuse(make_user(account))


def test_account_can_be_renewed_before_it_expires(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account, exp=int(time.time()) + EXPIRY_SECONDS)
    client = site.client(make_user(account))

    admin.push(account, exp=int(time.time()) + 1000)
    time.sleep(EXPIRY_SECONDS + 1)

    client.expect_pong()


def test_bearer_tokens_are_sent_away_when_they_are_disallowed(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    bearer, signing = site.client(make_user(account, bearer_token=True)), site.client(make_user(account))

    admin.push(account, limits=account.limits(disallow_bearer=True))

    bearer.expect_error_and_closed("Authorization Violation")
    signing.expect_pong()


def test_users_of_a_signing_key_that_is_gone_are_sent_away(site: Site) -> None:
    key = Key("account")
    account = site.operator.add_account(signing_keys=[scoped(key, subs=-1, data=-1, payload=-1)])
    admin = site.admin()
    admin.push(account)
    scoped_client = site.client(make_user(account, issuer=key, claimed={}))
    own_client = site.client(make_user(account))

    admin.push(account, signing_keys=[])

    # nats-server closes without a word.
    scoped_client.read_to_end()
    own_client.expect_pong()


def test_pushing_the_same_claims_again_disturbs_nobody(site: Site) -> None:
    account = site.operator.add_account()
    admin, text = site.admin(), account.jwt()
    admin.ask(UPDATE, text)
    client = site.client(make_user(account))

    assert admin.ask(UPDATE, text)["data"]["message"] == "jwt updated"

    client.expect_pong()


def test_deletion_must_be_allowed(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)

    reply = admin.ask(DELETE, deletion(site.operator.key, account))

    assert reply["error"]["description"] == (
        f"delete accounts request by {site.operator.key.public} failed - delete must be enabled in server config"
    )
    assert site.file_of(account).exists()


def deletion(issuer: Key, *accounts: Account | str, subject: Key | None = None) -> str:
    keys = [each if isinstance(each, str) else each.public for each in accounts]
    body = {
        "iss": issuer.public,
        "sub": (subject or issuer).public,
        "iat": int(time.time()),
        "nats": {"accounts": keys},
    }
    return issuer.token(body)


def test_deleted_account_lets_nobody_in_and_sends_its_clients_away(start_site: Callable[..., Site]) -> None:
    site = start_site(resolver="type: full, allow_delete: true")
    account, other = site.operator.add_account(), site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    admin.push(other)
    client, other_client = site.client(make_user(account)), site.client(make_user(other))

    reply = admin.ask(DELETE, deletion(site.operator.key, account))

    assert reply == {"data": {"code": 200, "message": "deleted 1 accounts"}}
    client.expect_error_and_closed("Account Authentication Expired")
    site.refuse(make_user(account))
    other_client.expect_pong()
    assert not site.file_of(account).exists()
    assert Path(f"{site.file_of(account)}.deleted").exists()


def test_hard_deletion_leaves_no_file(start_site: Callable[..., Site]) -> None:
    site = start_site(resolver="type: full, allow_delete: true, hard_delete: true")
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)

    admin.ask(DELETE, deletion(site.operator.key, account))

    assert [path.name for path in site.jwt_folder.iterdir()] == [f"{site.operator.system.public}.jwt"]


def test_account_that_was_deleted_can_be_pushed_again(start_site: Callable[..., Site]) -> None:
    site = start_site(resolver="type: full, allow_delete: true")
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    site.client(make_user(account)).expect_pong()
    admin.ask(DELETE, deletion(site.operator.key, account))

    admin.push(account, name="again")

    site.client(make_user(account)).expect_pong()


def test_only_the_operator_deletes(start_site: Callable[..., Site]) -> None:
    site = start_site(resolver="type: full, allow_delete: true")
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    own, stranger = site.operator.key, Key("operator")

    replies = [
        admin.ask(DELETE, deletion(stranger, account)),
        admin.ask(DELETE, deletion(account.key, account)),
        admin.ask(DELETE, deletion(own, account, subject=stranger)),
        admin.ask(DELETE, deletion(own, "../../etc/passwd")),
        admin.ask(DELETE, deletion(own, site.operator.system)),
        admin.ask(DELETE, "x"),
    ]

    reasons = [reply["error"]["description"].rpartition(" - ")[2] for reply in replies]
    assert reasons == [
        "not trusted",
        "not trusted",
        "not self signed",
        "malformed request",
        "not allowed to delete system account",
        "expected 3 chunks",
    ]
    assert site.file_of(account).exists()


def test_full_folder_refuses_more_accounts(start_site: Callable[..., Site]) -> None:
    site = start_site(resolver="type: full, limit: 2")
    one, other = site.operator.add_account(), site.operator.add_account()
    admin = site.admin()

    assert admin.push(one)["data"]["message"] == "jwt updated"
    assert admin.push(other)["error"]["description"] == "jwt update resulted in error - jwt store is full"
    assert admin.push(one, name="again")["data"]["message"] == "jwt updated"


def test_system_account_can_be_pushed_before_it_is_there(start_site: Callable[..., Site]) -> None:
    site = start_site()
    site.server.stop()
    os.remove(site.file_of(site.operator.system))
    site.start(preload="")

    reply = site.admin().push(site.operator.system)

    assert reply["data"]["message"] == "jwt updated"
    site.server.stop()
    site.start(preload="")
    site.admin()


def test_preloaded_claims_do_not_replace_newer_ones(start_site: Callable[..., Site]) -> None:
    site = start_site()
    account = site.operator.add_account()
    now = int(time.time())
    site.admin().push(account, name="newer", iat=now)
    site.server.stop()
    older = account.jwt(name="older", iat=now - 60)

    site.start(preload=f"resolver_preload {{ {account.public}: {older} }}\n")

    assert b"newer" in _payload(site.file_of(account).read_text())


def _payload(token: str) -> bytes:
    part = token.split(".")[1]
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_cache_keeps_what_is_in_use(start_site: Callable[..., Site]) -> None:
    site = start_site(resolver='type: cache, ttl: "1h"')
    account, unused = site.operator.add_account(name="used"), site.operator.add_account(name="unused")
    site.file_of(account).write_text(account.jwt())
    client = site.client(make_user(account))
    admin = site.admin()

    used = admin.push(account, limits=account.limits(payload=4))
    skipped = admin.push(unused)

    assert used["data"]["message"] == "jwt updated cache"
    assert skipped["data"]["message"] == "jwt update cache skipped"
    assert not site.file_of(unused).exists()
    expect_soon(client, b"PUB a 10\r\n0123456789\r\n", "Maximum Payload Violation")


def test_memory_resolver_takes_claims_of_accounts_that_are_known(start_site: Callable[..., Site]) -> None:
    operator = Operator()
    account = operator.add_account()
    site = start_site(resolver="MEMORY", operator=operator, preloads=[operator.system, account])
    unknown = operator.add_account()
    client, admin = site.client(make_user(account)), site.admin()

    known = admin.ask(f"$SYS.REQ.ACCOUNT.{account.public}.CLAIMS.UPDATE", account.jwt(limits=account.limits(payload=4)))
    skipped = admin.ask(f"$SYS.REQ.ACCOUNT.{unknown.public}.CLAIMS.UPDATE", unknown.jwt())

    assert known["data"]["message"] == "jwt updated"
    assert skipped["data"]["message"] == "jwt update skipped"
    expect_soon(client, b"PUB a 10\r\n0123456789\r\n", "Maximum Payload Violation")
