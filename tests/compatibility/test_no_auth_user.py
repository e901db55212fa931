"""`no_auth_user`: only clients that say nothing about themselves become that user, and only as long as it is set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compatibility import test_reload
from tests.compatibility.server_process import run_to_end
from tests.compatibility.test_nkeys import PUBLIC
from tests.compatibility.test_reload import DONE, FAILED
from tests.compatibility.wire import RawClient

reload = test_reload.reload

USERS = f"""users: [
  {{user: guest, password: g, permissions: {{publish: lobby}}}}, {{user: ann, password: a}}, {{nkey: {PUBLIC}}}
]"""
IN_AUTHORIZATION = f"authorization {{ {USERS} }}"
IN_ACCOUNT = f"accounts {{ A {{ {USERS} }}, B {{ users: [ {{user: bob, password: b}} ] }} }}"

NOTHING = [
    {},
    {"user": "", "pass": "", "auth_token": "", "nkey": "", "sig": "", "jwt": ""},
    {"user": None, "pass": None},
    {"name": "ann", "tls_required": True},
]
WRONG = [
    {"user": "guest"},
    {"user": "guest", "pass": "x"},
    {"user": "ann", "pass": "g"},
    {"user": "nobody", "pass": "g"},
    {"user": " "},
    {"pass": "g"},
    {"user": "", "pass": "g"},
    {"auth_token": "g"},
    {"nkey": PUBLIC},
    {"nkey": PUBLIC, "sig": "AAAA"},
    {"nkey": PUBLIC, "sig": "AAAA", "user": "ann", "pass": "a"},
    {"nkey": "U" + "A" * 55, "sig": "x"},
    {"USER": "guest", "PASS": "x"},
    {"account": "A"},
]


def is_guest(client: RawClient, **options: Any) -> bool:
    """Say this, and return whether one is in and may do what the guest may; one who is refused hears nothing else."""
    client.send_connect(verbose=False, pedantic=False, **options)
    client.send(b"PUB lobby 0\r\n\r\nPUB secret 0\r\n\r\nPING\r\n")
    line = client.read_line()
    if line == b"-ERR 'Authorization Violation'\r\n":
        assert client.read_to_end() == b""
        return False
    assert line == b"-ERR 'Permissions Violation for Publish to \"secret\"'\r\n"
    client.expect(b"PONG\r\n")
    return True


@pytest.mark.parametrize("config", [IN_AUTHORIZATION, IN_ACCOUNT], ids=["authorization", "account"])
def test_only_clients_without_any_credentials_become_the_guest(start_server, config: str) -> None:
    server = start_server(config=f"{config}\nno_auth_user: guest")

    for options in NOTHING:
        with server.client() as client:
            assert is_guest(client, **options), options
    for options in WRONG:
        with server.client() as client:
            assert not is_guest(client, **options), options


def test_key_that_is_the_guest_is_still_signed_for_by_whoever_names_it(start_server, server_kind: str) -> None:
    users = f"{{user: ann, password: a}}, {{nkey: {PUBLIC}, permissions: {{publish: lobby}}}}"
    server = start_server(config=f"authorization {{ users: [ {users} ] }}\nno_auth_user: {PUBLIC}")

    with server.client() as client:
        assert is_guest(client)
    for options in ({"nkey": PUBLIC}, {"nkey": PUBLIC, "sig": "AAAA"}):
        with server.client() as client:
            # nats-server lets it in, without a signature.
            assert is_guest(client, **options) == (server_kind == "nats-server")


def test_one_who_fails_to_change_to_another_user_is_out(start_server) -> None:
    server = start_server(config=f"{IN_AUTHORIZATION}\nno_auth_user: guest")

    with server.client() as client:
        assert is_guest(client)
        assert not is_guest(client, user="ann", **{"pass": "x"})


@pytest.mark.parametrize("changed", ["", "no_auth_user: ann"])
def test_reload_does_not_change_who_comes_in_without_credentials(start_server, reload, changed: str) -> None:
    server = start_server(config=f"{IN_AUTHORIZATION}\nno_auth_user: guest")

    log = reload(server, f"{IN_AUTHORIZATION}\n{changed}")

    assert f"{FAILED}config reload not supported for NoAuthUser: old=guest" in log
    with server.client() as client:
        assert is_guest(client)


def test_guests_get_the_rights_of_the_file_that_is_reloaded(start_server, reload) -> None:
    server = start_server(config=f"{IN_AUTHORIZATION}\nno_auth_user: guest")
    with server.client() as guest:
        assert is_guest(guest)

        reloaded = f"{IN_AUTHORIZATION}\nno_auth_user: guest".replace("publish: lobby", "publish: hall")
        assert DONE in reload(server, reloaded)

        # Clients are asked about again after the reload is done; until then the old rights hold.
        frame = b"PONG\r\n"
        while frame == b"PONG\r\n":
            guest.send(b"PUB lobby 0\r\n\r\nPING\r\n")
            frame = guest.read_frame()
        assert frame == b"-ERR 'Permissions Violation for Publish to \"lobby\"'\r\n"


def test_reload_with_a_guest_that_does_not_exist_changes_nothing(start_server, reload) -> None:
    server = start_server(config=f"{IN_AUTHORIZATION}\nno_auth_user: guest")

    assert FAILED in reload(server, f"{IN_AUTHORIZATION}\nno_auth_user: nobody")

    with server.client() as client:
        assert is_guest(client)


@pytest.mark.parametrize("name", ["nobody", "Guest"])
@pytest.mark.parametrize("config", [IN_AUTHORIZATION, IN_ACCOUNT], ids=["authorization", "account"])
def test_guest_that_does_not_exist_is_found_before_the_start(
    server_kind: str, tmp_path: Path, config: str, name: str
) -> None:
    (tmp_path / "server.conf").write_text(f"{config}\nno_auth_user: {name}")
    # nats-server finds it when it starts, and not when it checks.
    flags = ["-t"] if server_kind == "jetlake" else ["-a", "127.0.0.1", "-p", "-1"]

    completed = run_to_end(server_kind, [*flags, "-c", "server.conf"], tmp_path)

    assert completed.returncode == 1
    assert f'no_auth_user: "{name}" not present as user or nkey' in completed.stdout + completed.stderr
