"""How a copying server says who it is to another one, and how it is sure whom it talks to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compatibility import remotes
from tests.compatibility.certificates import Authority
from tests.compatibility.claims import Key, operator_mode
from tests.compatibility.jetstream import JetStream
from tests.compatibility.origins import publish_numbers, wait_for_messages
from tests.compatibility.remotes import Pair, error_text, origin_of, wait_for_origin

pair = remotes.pair

USER = 'accounts { A { jetstream: enabled, users: [{user: ada, password: "s3cret"}] } }'
LOGIN = {"user": "ada", "pass": "s3cret"}


def copies(pair: Pair, **login: Any) -> bool:
    """Whether a message goes from one server to the other."""
    with JetStream(pair.servers["origin"], **login) as origin, pair.copy() as copy:
        origin.create("O")
        publish_numbers(origin, "O.a", 1)
        copy.create("M", mirror=origin_of("O"))
        wait_for_messages(copy, "M", 1)
        return bool(copy.get("M", seq=1) == origin.get("O", seq=1))


def logs(pair: Pair) -> str:
    return pair.servers["copy"].log()


def test_user_and_password(pair: Pair) -> None:
    pair.origin_config = USER
    pair.remote = 'user: ada, password: "s3cret"'
    pair.start_origin()
    pair.start_copy()

    assert copies(pair, **LOGIN)
    assert "s3cret" not in logs(pair)


def test_user_and_password_in_the_url(pair: Pair) -> None:
    pair.origin_config = USER
    origin = pair.start_origin()
    pair.start_copy(f'"nats://ada:s3cret@{origin.host}:{origin.port}"')

    assert copies(pair, **LOGIN)


def test_token(pair: Pair) -> None:
    pair.origin_config = "authorization { token: t0ken }"
    pair.remote = "token: t0ken"
    pair.start_origin()
    pair.start_copy()

    assert copies(pair, auth_token="t0ken")


def test_a_key_signs(pair: Pair, tmp_path: Path) -> None:
    key = Key("user")
    (tmp_path / "user.nk").write_text(key.seed)
    pair.origin_config = (
        f"accounts {{ A {{ jetstream: enabled, users: [{{nkey: {key.public}}}, {{user: ada, password: s3cret}}] }} }}"
    )
    pair.remote = f'nkey: "{tmp_path / "user.nk"}"'
    pair.start_origin()
    pair.start_copy()

    assert copies(pair, **LOGIN)


def test_credentials_are_shown_to_a_server_in_operator_mode(pair: Pair, tmp_path: Path) -> None:
    pair.origin_config = operator_mode(tmp_path / "user.creds")
    pair.remote = f'credentials: "{tmp_path / "user.creds"}"'
    pair.start_origin()
    pair.start_copy()
    with pair.copy() as copy:
        copy.create("M", mirror=origin_of("O"))

        # It is in: what is asked for is not there, because nobody else has credentials.
        assert error_text(copy, "M") == "stream not found"


def test_a_wrong_password_is_said_and_tried_again(pair: Pair) -> None:
    pair.origin_config = USER.replace("s3cret", "other")
    pair.remote = 'user: ada, password: "s3cret"'
    pair.start_origin()
    pair.start_copy()
    with pair.copy() as copy:
        copy.create("M", mirror=origin_of("O"))
        text = error_text(copy, "M")

        assert text == "remote hub: it says 'Authorization Violation'"
        assert "s3cret" not in str(copy.info("M"))
        pair.servers["origin"].stop()
        pair.origin_config = USER
        pair.start_origin()
        with JetStream(pair.servers["origin"], **LOGIN) as origin:
            origin.create("O")
            publish_numbers(origin, "O.a", 1)
            wait_for_messages(copy, "M", 1)
            wait_for_origin(copy, "M", lambda state: "error" not in state)
    assert "s3cret" not in logs(pair)


@pytest.mark.parametrize("retention", ["limits", "workqueue"])
def test_a_user_needs_no_more_than_the_guide_says(pair: Pair, retention: str) -> None:
    allowed = ("$JS.API.STREAM.INFO.O", "$JS.API.CONSUMER.*.O.>", "$JS.API.CONSUMER.MSG.NEXT.O.*", "$JS.ACK.O.>")
    subjects = ", ".join(f'"{subject}"' for subject in allowed)
    reader = f'{{user: copy, password: x, permissions: {{ publish: [{subjects}], subscribe: "_INBOX.>" }} }}'
    pair.origin_config = (
        f"accounts {{ A {{ jetstream: enabled, users: [{{user: ada, password: s3cret}}, {reader}] }} }}"
    )
    pair.remote = "user: copy, password: x"
    pair.start_origin()
    pair.start_copy()
    with JetStream(pair.servers["origin"], **LOGIN) as origin, pair.copy() as copy:
        origin.create("O", retention=retention)
        publish_numbers(origin, "O.a", 3)

        copy.create("S", subjects=[], sources=[origin_of("O")])

        wait_for_messages(copy, "S", 3)
        wait_for_messages(origin, "O", 3 if retention == "limits" else 0)
        wait_for_origin(copy, "S", lambda state: "error" not in state)


# TLS


def tls_block(authority: Authority, more: str = "") -> str:
    server = authority.server()
    return f'tls {{ cert_file: "{server.certificate_file}", key_file: "{server.key_file}", {more} }}'


def copies_securely(pair: Pair) -> bool:
    """Whether the other server is reached: it says that it has no such stream."""
    with pair.copy() as copy:
        copy.create("M", mirror=origin_of("O"))
        return error_text(copy, "M") == "stream not found"


@pytest.mark.parametrize("first", ["false", "true"])
def test_tls_with_an_authority_that_is_trusted(pair: Pair, tmp_path: Path, first: str) -> None:
    authority = Authority(tmp_path)
    pair.origin_config = tls_block(authority, f"handshake_first: {first}")
    pair.remote = f'tls {{ ca_file: "{authority.file}", handshake_first: {first} }}'
    pair.start_origin()
    pair.start_copy()

    assert copies_securely(pair)


def test_tls_with_a_certificate_of_the_client(pair: Pair, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.client()
    pair.origin_config = tls_block(authority, f'ca_file: "{authority.file}", verify: true')
    pair.remote = (
        f'tls {{ ca_file: "{authority.file}", cert_file: "{own.certificate_file}", key_file: "{own.key_file}" }}'
    )
    pair.start_origin()
    pair.start_copy()

    assert copies_securely(pair)


def test_a_server_that_nobody_vouches_for_is_not_told_anything(pair: Pair, tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "Other")
    pair.origin_config = tls_block(authority)
    pair.remote = f'user: ada, password: s3cret, tls {{ ca_file: "{other.file}" }}'
    pair.start_origin()
    pair.start_copy()
    with pair.copy() as copy:
        copy.create("M", mirror=origin_of("O"))

        text = error_text(copy, "M")

        assert text.startswith("remote hub: TLS with 127.0.0.1:"), text
        assert "certificate" in text, text


def test_a_server_that_wants_tls_says_so(pair: Pair, tmp_path: Path) -> None:
    pair.origin_config = tls_block(Authority(tmp_path))
    pair.start_origin()
    pair.start_copy()
    with pair.copy() as copy:
        copy.create("M", mirror=origin_of("O"))

        assert error_text(copy, "M") == "remote hub: it wants TLS: give the remote a block tls with a ca_file"
