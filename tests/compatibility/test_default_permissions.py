"""`default_permissions`: who gets them, and who does not. Own permissions replace all of them, even empty ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_nkeys import PUBLIC, sign

DEFAULTS = 'default_permissions { publish: "pub.d", subscribe: ["sub.d", "group.d workers"] }'

TRIES = {
    "publish default": b"PUB pub.d 0\r\n\r\n",
    "publish own": b"PUB own 0\r\n\r\n",
    "publish other": b"PUB other 0\r\n\r\n",
    "subscribe default": b"SUB sub.d 1\r\n",
    "subscribe without group": b"SUB group.d 2\r\n",
    "subscribe with group": b"SUB group.d workers 3\r\n",
    "subscribe other": b"SUB other 4\r\n",
}
BY_DEFAULT = {"publish default", "subscribe default", "subscribe with group"}
OWN_PUBLISH = {name for name in TRIES if name.startswith("subscribe")} | {"publish own"}
EVERYTHING = set(TRIES)


def rights(server: ServerProcess, **options: Any) -> set[str]:
    """What of the tries is allowed to a client that says this; a nkey is signed for it."""
    with server.client() as client:
        if "nkey" in options:
            options["sig"] = sign(client.info["nonce"])
        client.connect(**options)
        allowed = set()
        for name, operation in TRIES.items():
            client.send(operation + b"PING\r\n")
            line = client.read_line()
            if line == b"PONG\r\n":
                allowed.add(name)
                continue
            assert line.startswith(b"-ERR 'Permissions Violation for ")
            client.expect(b"PONG\r\n")
        return allowed


def user(name: str) -> dict[str, str]:
    return {"user": name, "pass": "p"}


USERS = f"""users: [
  {{user: plain, password: p}}, {{user: own, password: p, permissions: {{publish: own}}}}
  {{user: empty, password: p, permissions: {{}}}}, {{nkey: {PUBLIC}}}
]"""


@pytest.mark.parametrize(
    "config",
    [
        f"authorization {{ {DEFAULTS}\n {USERS} }}",
        f"authorization {{ {USERS}\n {DEFAULTS} }}",
        f"accounts {{ A {{ {DEFAULTS}\n {USERS} }} }}",
        f"accounts {{ A {{ {USERS}\n {DEFAULTS} }} }}",
    ],
    ids=["before users", "after users", "of an account", "of an account, after users"],
)
def test_users_and_keys_without_permissions_of_their_own_get_the_defaults(start_server, config: str) -> None:
    server = start_server(config=config)

    assert rights(server, **user("plain")) == BY_DEFAULT
    assert rights(server, nkey=PUBLIC) == BY_DEFAULT
    assert rights(server, **user("own")) == OWN_PUBLISH
    assert rights(server, **user("empty")) == EVERYTHING


def test_key_with_permissions_of_its_own_takes_none_of_the_defaults(start_server) -> None:
    config = f"authorization {{ {DEFAULTS}\n users: [ {{nkey: {PUBLIC}, permissions: {{publish: own}}}} ] }}"

    assert rights(start_server(config=config), nkey=PUBLIC) == OWN_PUBLISH


def test_defaults_are_for_their_own_users_only(start_server) -> None:
    server = start_server(
        config=f"""
          authorization {{ {DEFAULTS}\n users: [ {{user: top, password: p}} ] }}
          accounts {{
            A {{ default_permissions {{ publish: own }}, users: [ {{user: a, password: p}} ] }}
            B {{ users: [ {{user: b, password: p}} ] }}
            $SYS {{ users: [ {{user: admin, password: p}} ] }}
          }}
        """
    )

    assert rights(server, **user("top")) == BY_DEFAULT
    assert rights(server, **user("a")) == OWN_PUBLISH
    assert rights(server, **user("b")) == EVERYTHING
    assert rights(server, **user("admin")) == EVERYTHING


@pytest.mark.parametrize(
    ("login", "options"), [("user: one, password: p", user("one")), ("token: t", {"auth_token": "t"})]
)
def test_a_single_user_or_a_token_has_no_defaults(start_server, login: str, options: dict[str, str]) -> None:
    server = start_server(config=f"authorization {{ {DEFAULTS}\n {login} }}")

    assert rights(server, **options) == EVERYTHING


def test_denial_by_default_is_lifted_by_permissions_of_ones_own(start_server) -> None:
    server = start_server(
        config="""authorization {
          default_permissions { publish: { deny: "pub.d" } }
          users: [ {user: plain, password: p}, {user: own, password: p, permissions: {publish: "pub.d"}} ]
        }"""
    )

    assert rights(server, **user("plain")) == EVERYTHING - {"publish default"}
    assert rights(server, **user("own")) == EVERYTHING - {"publish own", "publish other"}


@pytest.mark.parametrize(("guest", "expected"), [("plain", BY_DEFAULT), ("own", OWN_PUBLISH)])
def test_clients_without_credentials_have_the_rights_of_the_user_they_become(start_server, guest, expected) -> None:
    for config in (f"authorization {{ {DEFAULTS}\n {USERS} }}", f"accounts {{ A {{ {DEFAULTS}\n {USERS} }} }}"):
        assert rights(start_server(config=f"{config}\nno_auth_user: {guest}")) == expected
