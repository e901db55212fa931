"""INFO: what a server says first, and once more after the first PONG."""

from __future__ import annotations

import re

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient, parse_info

ALWAYS_PRESENT = {
    "server_id": str,
    "server_name": str,
    "version": str,
    "proto": int,
    "go": str,
    "host": str,
    "port": int,
    "headers": bool,
    "max_payload": int,
    "client_id": int,
    "client_ip": str,
    "api_lvl": int,
    "xkey": str,
}

# Fields that belong to servers with TLS, accounts, JetStream, a cluster, or to a later INFO.
ABSENT_FROM_A_PLAIN_SERVER = [
    "auth_required",
    "tls_required",
    "tls_verify",
    "tls_available",
    "jetstream",
    "nonce",
    "cluster",
    "domain",
    "connect_urls",
    "ws_connect_urls",
    "ldm",
    "connect_info",
    "remote_account",
    "acc_is_sys",
    "ip",
    "compression",
    "leafnode_urls",
    "import",
    "export",
    "info_on_connect",
]


def test_info_line_ends_with_a_space_before_crlf(client: RawClient) -> None:
    assert client.info_line.startswith(b'INFO {"')
    assert client.info_line.endswith(b"} \r\n")


@pytest.mark.parametrize("field", ALWAYS_PRESENT)
def test_info_field_is_present_with_its_type(client: RawClient, field: str) -> None:
    assert type(client.info[field]) is ALWAYS_PRESENT[field]


@pytest.mark.parametrize("field", ABSENT_FROM_A_PLAIN_SERVER)
def test_info_field_is_absent_from_a_plain_server(client: RawClient, field: str) -> None:
    assert field not in client.info


def test_info_has_the_protocol_defaults(client: RawClient) -> None:
    assert client.info["proto"] == 1
    assert client.info["headers"] is True
    assert client.info["max_payload"] == 1_048_576
    assert client.info["api_lvl"] >= 1


def test_info_version_is_one_that_clients_can_compare(client: RawClient) -> None:
    assert re.fullmatch(r"2\.\d+\.\d+(-\S+)?", client.info["version"])


def test_info_server_id_is_a_public_server_key(client: RawClient) -> None:
    assert re.fullmatch(r"N[A-Z2-7]{55}", client.info["server_id"])


def test_info_xkey_is_a_public_curve_key(client: RawClient) -> None:
    assert re.fullmatch(r"X[A-Z2-7]{55}", client.info["xkey"])


def test_info_server_name_is_the_server_id_when_none_is_given(client: RawClient) -> None:
    assert client.info["server_name"] == client.info["server_id"]


def test_info_server_name_is_the_given_one(start_server) -> None:
    server = start_server(flags=["-n", "harbour"])

    with server.client() as client:
        assert client.info["server_name"] == "harbour"
        assert client.info["server_id"] != "harbour"


def test_info_names_the_address_it_listens_on(server: ServerProcess, client: RawClient) -> None:
    assert client.info["host"] == server.host
    assert client.info["port"] == server.port
    assert client.info["client_ip"] == "127.0.0.1"


def test_info_names_the_advertised_address_and_no_connect_urls(start_server) -> None:
    server = start_server(flags=["--client_advertise", "nats.example.org:7777"])

    with server.client() as client:
        assert client.info["host"] == "nats.example.org"
        assert client.info["port"] == 7777
        assert "connect_urls" not in client.info


def test_info_client_id_rises_and_server_id_stays(client: RawClient, other_client: RawClient) -> None:
    assert 1 <= client.info["client_id"] < other_client.info["client_id"]
    assert client.info["server_id"] == other_client.info["server_id"]


def test_info_server_id_is_new_with_every_start(start_server) -> None:
    identities = set()

    for _ in range(2):
        with start_server().client() as client:
            identities.add(client.info["server_id"])

    assert len(identities) == 2


def test_second_info_follows_the_first_pong_with_protocol_1(client: RawClient) -> None:
    client.send_connect(verbose=False, protocol=1)
    client.send(b"PING\r\n")

    client.expect(b"PONG\r\n")
    information = parse_info(client.read_line())
    assert information["connect_info"] is True
    assert information["remote_account"] == "$G"
    assert "acc_is_sys" not in information


def test_second_info_repeats_the_first_one(client: RawClient) -> None:
    client.connect(protocol=1)

    added = {"connect_info", "remote_account"}
    repeated = {field: value for field, value in client.connected_info.items() if field not in added}
    assert repeated == client.info


def test_second_info_comes_once(client: RawClient) -> None:
    client.connect(protocol=1)

    client.expect_pong()
    client.expect_pong()


@pytest.mark.parametrize("options", [{}, {"protocol": 0}])
def test_second_info_does_not_come_with_protocol_0(client: RawClient, options: dict) -> None:
    client.send_connect(verbose=False, **options)

    client.expect_pong()
    client.expect_pong()


def test_second_info_does_not_come_without_connect(client: RawClient) -> None:
    client.expect_pong()

    client.expect_pong()


def test_info_says_headers_are_off(start_server) -> None:
    server = start_server(config="no_header_support: true")

    with server.client() as client:
        assert client.info["headers"] is False


def test_info_shows_the_configured_max_payload(start_server) -> None:
    server = start_server(config="max_payload: 1000")

    with server.client() as client:
        assert client.info["max_payload"] == 1000


def test_connection_over_the_maximum_gets_info_and_an_error(start_server) -> None:
    server = start_server(config="max_connections: 1")

    with server.client() as first:
        first.connect()

        with server.client() as second:
            second.expect_error_and_closed("maximum connections exceeded")
        first.expect_pong()
