"""Auth callout by a configuration file: keys, certificates and WebSocket, reloads, pages, and files with mistakes."""

from __future__ import annotations

import re
import signal
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.compatibility.callout_service import CalloutService, CurveKey
from tests.compatibility.callout_site import CalloutSite, Start, information, refused
from tests.compatibility.certificates import Authority
from tests.compatibility.claims import Key
from tests.compatibility.monitored import monitored_of
from tests.compatibility.server_process import run_to_end
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import WebSocketClient

RELOADED = "Reloaded server configuration (sha256:"
FAILED = "[ERR] Failed to reload server configuration: "


def test_service_learns_what_a_key_has_signed(start_callout: Start) -> None:
    key = Key("user")
    site = start_callout(users=f"users: [ {{ nkey: {key.public} }} ]")
    client = site.client()
    nonce = client.info["nonce"]

    client.send_connect(verbose=False, nkey=key.public, sig=key.sign(nonce))
    asked = site.service.next()

    assert (asked.connect["nkey"], asked.connect["sig"]) == (key.public, key.sign(nonce))
    assert (asked.client["user"], asked.client["nonce"]) == (key.public, nonce)
    site.service.admit(asked, "APP")
    client.expect_pong()
    assert information(client)["user"] == key.public


def test_name_of_the_service_replaces_the_key(start_callout: Start) -> None:
    key = Key("user")
    site = start_callout(users=f"users: [ {{ nkey: {key.public} }} ]")
    client = site.client()
    client.send_connect(verbose=False, nkey=key.public, sig=key.sign(client.info["nonce"]))

    site.service.admit(site.service.next(), "APP", name="ada")
    client.expect_pong()

    assert information(client)["user"] == "ada"


def test_auth_user_may_be_a_key(start_callout: Start) -> None:
    key = Key("user")
    site = start_callout(callout=f"auth_users: [ auth, {key.public} ]", users=f"users: [ {{ nkey: {key.public} }} ]")
    client = site.client()

    client.connect(nkey=key.public, sig=key.sign(client.info["nonce"]))

    site.service.nothing_asked()
    assert information(client)["account"] == "$G"


def test_users_of_the_global_account_are_asked_about_whichever_accounts_are_allowed(start_callout: Start) -> None:
    site = start_callout("allowed_accounts: [ OTHER ]", users="users: [ { user: plain, password: pwd } ]")

    client, asked = site.ask(user="plain", **{"pass": "pwd"})

    site.service.admit(asked, "APP")
    client.expect_pong()


def test_jwt_is_not_passed_on_without_an_operator(start_callout: Start) -> None:
    _, asked = start_callout().ask(jwt="eyJ.eyJ.eyJ", user="ada")

    assert "jwt" not in asked.connect


class Secured:
    """A server with TLS that verifies clients, and a client's certificate."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.server = self.authority.server()
        self.client = self.authority.client("ada", subject={"O": "Harbour", "CN": "ada"}, email="ada@example.com")

    @property
    def block(self) -> str:
        return (
            f'tls {{ cert_file: "{self.server.certificate_file}", key_file: "{self.server.key_file}", '
            f'ca_file: "{self.authority.file}", verify: true }}'
        )

    def context(self) -> ssl.SSLContext:
        return self.authority.context(self.client)


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


def expect_chain(asked_tls: dict[str, Any]) -> None:
    """The client's certificate, and that of its authority."""
    assert set(asked_tls) == {"version", "cipher", "verified_chains"}
    assert asked_tls["version"] == "1.3"
    assert asked_tls["cipher"].startswith("TLS_")
    (chain,) = asked_tls["verified_chains"]
    own, above = [x509.load_pem_x509_certificate(text.encode()) for text in chain]
    assert "CN=ada" in own.subject.rfc4514_string()
    assert own.issuer == above.subject


def test_service_learns_the_certificates_of_a_client(start_callout: Start, secured: Secured) -> None:
    site = start_callout(further=secured.block, tls=secured.context())
    client = site.client()
    client.encrypt(secured.context())

    client.send_connect(verbose=False)
    asked = site.service.next()

    expect_chain(asked.claims["nats"]["client_tls"])
    site.service.admit(asked, "APP", name="ada")
    client.expect_pong()
    assert information(client)["user"] == "ada"


def test_service_learns_the_certificates_of_a_client_over_websocket(start_callout: Start, secured: Secured) -> None:
    site = start_callout(further=f'websocket {{ listen: "127.0.0.1:-1", {secured.block} }}')
    with WebSocketClient(site.server, tls=secured.context()) as client:
        client.send_connect(verbose=False)
        asked = site.service.next()

        expect_chain(asked.claims["nats"]["client_tls"])
        site.service.admit(asked, "APP")
        client.expect_pong()


def test_service_learns_of_tls_without_certificates(start_callout: Start, secured: Secured) -> None:
    block = secured.block.replace(", verify: true", "")
    site = start_callout(further=block, tls=secured.authority.context())
    client = site.client()
    client.encrypt(secured.authority.context())

    client.send_connect(verbose=False)
    asked = site.service.next()

    assert set(asked.claims["nats"]["client_tls"]) == {"version", "cipher"}


def test_service_is_asked_about_clients_over_websocket(start_callout: Start) -> None:
    site = start_callout(further=websocket_config('token_cookie: "ticket"'))
    with WebSocketClient(site.server, headers={"Cookie": "ticket=s3cr3t"}) as client:
        client.send_connect(verbose=False)
        asked = site.service.next()

        assert asked.client["type"] == "websocket"
        assert asked.connect["auth_token"] == "s3cr3t"
        site.service.admit(asked, "APP")
        client.expect_pong()


def test_service_is_asked_about_clients_with_the_credentials_of_websocket(start_callout: Start) -> None:
    site = start_callout(further=websocket_config("no_auth_user: local"))
    with WebSocketClient(site.server) as client:
        client.send_connect(verbose=False)
        asked = site.service.next()

        assert asked.connect["user"] == "local"
        site.service.refuse(asked, "no")
        assert b"Authorization Violation" in client.read_line()


def reload(site: CalloutSite, config: str) -> str:
    """Have the server read another file, and return what it says."""
    (site.server.folder / "server.conf").write_text(config)
    before = len(site.server.log())
    site.server.signal(signal.SIGHUP)
    while True:
        log = site.server.wait_for_log('Trapped "hangup" signal')[before:]
        if (RELOADED in log or FAILED in log) and log.endswith("\n"):
            return log


@pytest.mark.parametrize(
    ("old", "new"),
    [("auth_users: [ auth, admin ]", "auth_users: [ auth ]"), ("account: AUTH", "account: APP")],
    ids=["other users", "other account"],
)
def test_callout_cannot_change_while_the_server_runs(start_callout: Start, old: str, new: str) -> None:
    site = start_callout()

    log = reload(site, site.config.replace(old, new))

    assert f"{FAILED}config reload not supported for AuthCallout" in log
    site.come_in("APP").expect_pong()


def test_callout_cannot_be_removed_while_the_server_runs(start_callout: Start) -> None:
    site = start_callout()

    log = reload(site, re.sub(r"auth_callout \{[^}]*\}", "", site.config))

    assert f"{FAILED}config reload not supported for AuthCallout" in log


def test_service_is_asked_again_about_clients_that_are_in(start_callout: Start) -> None:
    site = start_callout()
    client, asked = site.ask(auth_token="ticket")
    site.service.admit(asked, "APP")
    client.expect_pong()

    # Only clients that are in already can be asked about: whoever was not yet, would be without the reload.
    (site.server.folder / "server.conf").write_text(site.config.replace("user: local,", "user: another,"))
    site.server.signal(signal.SIGHUP)
    again = site.service.next()

    assert again.connect["auth_token"] == "ticket"
    assert again.user_key != asked.user_key
    site.service.refuse(again, "not any more")
    client.expect_error_and_closed("Authorization Violation")


def test_clients_are_shown_with_the_account_the_service_named(start_callout: Start) -> None:
    site = start_callout(flags=("-m", "-1"))
    client = site.come_in("APP", name="ada lovelace")
    client.expect_pong()

    pages = monitored_of(site.server)
    (entry,) = pages.connections("?auth=1&acc=APP")
    account = pages.get_json("/accountz?acc=APP")["account_detail"]

    assert (entry["authorized_user"], entry["account"]) == ("ada lovelace", "APP")
    assert "jwt" not in entry
    assert (account["account_name"], account["client_connections"]) == ("APP", 1)


def test_refused_client_is_shown_with_its_reason(start_callout: Start) -> None:
    site = start_callout(flags=("-m", "-1"))
    with refused(site, user="eve") as asked:
        site.service.refuse(asked, "no")

    pages = monitored_of(site.server)
    (entry,) = [each for each in pages.wait_for_connections("?state=closed&auth=1", 1) if each["cid"] > 1]

    assert entry["reason"] == "Authentication Failure"


ISSUER = Key("account").public
VALID = f"issuer: {ISSUER}, auth_users: [ auth ]"


@pytest.mark.parametrize(
    ("callout", "mistake"),
    [
        ("auth_users: [ auth ]", "Authorization callouts require an issuer to be specified"),
        (f"issuer: {ISSUER}", "Authorization callouts require authorized users to be specified"),
        (f"issuer: {ISSUER}, auth_users: []", "Authorization callouts require authorized users to be specified"),
        ("issuer: UABC, auth_users: [ auth ]", "Expected callout user to be a valid public account nkey"),
        (f"{VALID}, xkey: XABC", "Expected callout xkey to be a valid public xkey"),
        (f"{VALID}, xkey: {ISSUER}", "Expected callout xkey to be a valid public xkey"),
        (f"{VALID}, allowed_accounts: [ NOWHERE ]", 'auth_callout allowed account "NOWHERE" not found'),
        (f"{VALID}, colour: red", 'field "colour"'),
    ],
    ids=["no issuer", "no users", "empty users", "bad issuer", "bad xkey", "other key", "no account", "unknown key"],
)
def test_file_with_a_mistake_is_refused(server_kind: str, tmp_path: Path, callout: str, mistake: str) -> None:
    config = tmp_path / "server.conf"
    config.write_text(f"authorization {{ users: [ {{ user: auth, password: pwd }} ], auth_callout {{ {callout} }} }}")

    result = run_to_end(server_kind, ["-t", "-c", str(config)], tmp_path)

    assert result.returncode == 1
    assert mistake.lower() in (result.stdout + result.stderr).lower()


@pytest.mark.parametrize("block", ["auth_callout", "auth_hook"])
def test_file_without_a_mistake_is_accepted(server_kind: str, tmp_path: Path, block: str) -> None:
    config = tmp_path / "server.conf"
    names = f"{VALID}, xkey: {CurveKey().public}, allowed_accounts: [ APP ], account: APP"
    config.write_text(
        f"accounts {{ APP {{ users: [ {{ user: auth, password: pwd }} ] }} }}\n"
        f"authorization {{ {block} {{ {names} }} }}"
    )

    result = run_to_end(server_kind, ["-t", "-c", str(config)], tmp_path)

    assert result.returncode == 0, result.stderr


def test_service_in_an_account_that_is_not_there_lets_nobody_in(start_server: Callable[..., Any]) -> None:
    server = start_server(
        config=f"""authorization {{
            timeout: 5s
            users: [ {{ user: auth, password: pwd }} ]
            auth_callout {{ issuer: {ISSUER}, account: NOWHERE, auth_users: [ auth, nobody ] }}
        }}"""
    )

    with server.client() as client:
        client.connect(user="auth", **{"pass": "pwd"})
    with server.client() as client:
        client.send_connect(verbose=False, user="ada")
        client.expect_error_and_closed("Authorization Violation")


def test_service_in_the_global_account_decides_about_it(start_server: Callable[..., Any]) -> None:
    issuer = Key("account")
    server = start_server(
        config=f"""authorization {{
            users: [ {{ user: auth, password: pwd }} ]
            auth_callout {{ issuer: {issuer.public}, auth_users: [ auth ] }}
        }}"""
    )
    with server.client() as running, server.client() as client:
        running.connect(user="auth", **{"pass": "pwd"})
        service = CalloutService(running, issuer)
        client.send_connect(verbose=False, user="ada")
        service.admit(service.next(), "$G")
        client.expect_pong()

        about = information(client)

    assert (about["user"], about["account"]) == ("ada", "$G")
    assert about["permissions"]["publish"] == {"deny": ["$SYS.REQ.USER.AUTH"]}
