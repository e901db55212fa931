"""CONNECT: its defaults, its fields, and what ends a connection."""

from __future__ import annotations

import pytest

from tests.compatibility.wire import RawClient, parse_info


def test_connect_is_optional_and_the_defaults_are_verbose(client: RawClient, subject: bytes) -> None:
    client.send(b"SUB %b 1\r\n" % subject)
    client.expect(b"+OK\r\n")

    client.send(b"PUB %b 2\r\nhi\r\n" % subject)

    client.expect(b"+OK\r\nMSG %b 1 2\r\nhi\r\n" % subject)


def test_defaults_without_connect_are_pedantic(client: RawClient) -> None:
    client.send(b"PUB wild.* 0\r\n\r\n")

    client.expect_error("Invalid Publish Subject")
    client.expect(b"+OK\r\n")


def test_defaults_without_connect_have_no_headers(client: RawClient, subject: bytes) -> None:
    client.send(b"HPUB %b 12 12\r\nNATS/1.0\r\n\r\n\r\n" % subject)

    client.expect_closed()


def test_empty_connect_keeps_the_defaults(client: RawClient, subject: bytes) -> None:
    client.send(b"CONNECT {}\r\nSUB %b 1\r\nPUB %b 0\r\n\r\nPUB wild.* 0\r\n\r\n" % (subject, subject))

    client.expect(b"+OK\r\n+OK\r\n+OK\r\nMSG %b 1 0\r\n\r\n-ERR 'Invalid Publish Subject'\r\n" % subject)


def test_connect_field_left_out_keeps_its_default(client: RawClient) -> None:
    client.send_connect(pedantic=False)

    client.expect(b"+OK\r\n")


def test_connect_without_verbose_is_answered_by_nothing(client: RawClient) -> None:
    client.send_connect(verbose=False)

    client.expect_pong()


def test_ping_before_connect_gets_a_pong(client: RawClient) -> None:
    client.send(b"PING\r\n")

    client.expect(b"PONG\r\n")


@pytest.mark.parametrize("key", ["VERBOSE", "Verbose", "vErBoSe"])
def test_connect_keys_are_matched_without_case(client: RawClient, key: str) -> None:
    client.send_connect(**{key: False})

    client.expect_pong()


def test_connect_unknown_keys_are_ignored(client: RawClient) -> None:
    client.send_connect(verbose=False, colour="green", nested={"a": [1, 2]})

    client.expect_pong()


def test_connect_without_a_blank_is_accepted(client: RawClient) -> None:
    client.send(b'CONNECT{"verbose":false}\r\n')

    client.expect_pong()


@pytest.mark.parametrize("operation", [b"connect", b"Connect", b"cOnNeCt"])
def test_connect_operation_is_matched_without_case(client: RawClient, operation: bytes) -> None:
    client.send(operation + b' {"verbose":false}\r\n')

    client.expect_pong()


@pytest.mark.parametrize(
    "argument",
    [
        b"{",
        b"{verbose:false}",
        b'{"verbose":false',
        b'{"verbose":false}}',
        b"{'verbose':false}",
        b"hello",
        b"[]",
        b'"text"',
        b"1",
        b"true",
        b"",
    ],
)
def test_connect_with_malformed_json_closes_silently(client: RawClient, argument: bytes) -> None:
    client.send(b"CONNECT " + argument + b"\r\n")

    client.expect_closed()


def test_connect_with_null_keeps_the_defaults(client: RawClient) -> None:
    client.send(b"CONNECT null\r\n")

    client.expect(b"+OK\r\n")
    client.expect_pong()


def test_connect_null_value_keeps_the_default(client: RawClient) -> None:
    client.send_connect(verbose=None)

    client.expect(b"+OK\r\n")


@pytest.mark.parametrize(
    "options",
    [
        {"verbose": "false"},
        {"verbose": 0},
        {"pedantic": 1},
        {"echo": "no"},
        {"headers": "yes"},
        {"protocol": "1"},
        {"protocol": 1.5},
        {"name": 5},
        {"lang": ["python"]},
        {"user": 1},
        {"auth_token": {}},
    ],
    ids=str,
)
def test_connect_with_a_wrong_value_type_closes_silently(client: RawClient, options: dict) -> None:
    client.send_connect(**options)

    client.expect_closed()


@pytest.mark.parametrize(
    "json_text",
    [
        rb'{"x":1e999}',
        rb'{"name":"\ud800"}',
        rb'{"\udc00":1}',
        rb'{"user":"\ud83dx\ude00"}',
        b'{"x":' + b"[" * 1500 + b"]" * 1500 + b"}",
    ],
)
def test_connect_takes_what_means_nothing_to_it(client: RawClient, json_text: bytes) -> None:
    client.send(b"CONNECT " + json_text + b"\r\nPING\r\n")

    client.expect(b"+OK\r\nPONG\r\n")


def test_connect_last_of_several_keys_counts(client: RawClient) -> None:
    client.send(b'CONNECT {"verbose":true,"VERBOSE":false}\r\nPING\r\n')

    client.expect(b"PONG\r\n")


@pytest.mark.parametrize("protocol", [2, 3, -1, 100])
def test_connect_with_an_unknown_protocol_is_refused(client: RawClient, protocol: int) -> None:
    client.send_connect(verbose=False, protocol=protocol)

    client.expect_error_and_closed("invalid client protocol")


@pytest.mark.parametrize("options", [{}, {"headers": False}])
def test_connect_no_responders_requires_headers(client: RawClient, options: dict) -> None:
    client.send_connect(verbose=False, no_responders=True, **options)

    client.expect_error_and_closed("no responders requires headers support")


def test_connect_no_responders_with_headers_is_accepted(client: RawClient) -> None:
    client.send_connect(verbose=False, no_responders=True, headers=True)

    client.expect_pong()


@pytest.mark.parametrize("options", [{"account": "A"}, {"new_account": True}, {"account": "A", "new_account": True}])
def test_connect_account_fields_are_refused(client: RawClient, options: dict) -> None:
    client.send_connect(verbose=False, **options)

    client.expect_error_and_closed("Authorization Violation")


def test_connect_tls_required_is_ignored(client: RawClient) -> None:
    client.send_connect(verbose=False, tls_required=True)

    client.expect_pong()


@pytest.mark.parametrize("options", [{"user": "u", "pass": "p"}, {"auth_token": "t"}, {"jwt": "x"}, {"nkey": "x"}])
def test_connect_credentials_are_accepted_where_none_are_required(client: RawClient, options: dict) -> None:
    client.send_connect(verbose=False, **options)

    client.expect_pong()


def test_connect_describes_the_client_in_any_words(client: RawClient) -> None:
    client.send_connect(verbose=False, name="näme \u2603", lang="python", version="1.2.3")

    client.expect_pong()


def test_second_connect_is_accepted(client: RawClient) -> None:
    client.connect()

    client.send_connect(verbose=True)

    client.expect(b"+OK\r\n")


def test_first_connect_keeps_subscriptions_made_before_it(client: RawClient, subject: bytes) -> None:
    client.send(b"SUB %b 1\r\n" % subject)
    client.expect(b"+OK\r\n")

    client.send_connect(verbose=False, pedantic=False)
    client.send(b"PUB %b 2\r\nhi\r\n" % subject)

    client.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


def test_second_connect_drops_the_subscriptions(client: RawClient, subject: bytes) -> None:
    client.connect()
    client.send(b"SUB %b 1\r\n" % subject)

    client.send_connect(verbose=False)
    client.send(b"PUB %b 2\r\nhi\r\n" % subject)

    client.expect_pong()


def test_second_connect_frees_the_subscription_ids(client: RawClient, subject: bytes) -> None:
    client.connect()
    client.send(b"SUB %b.old 1\r\n" % subject)

    client.send_connect(verbose=False)
    client.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    client.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


def test_second_connect_changes_the_options(client: RawClient, subject: bytes) -> None:
    client.connect(echo=True)

    client.send_connect(verbose=False, echo=False)
    client.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    client.expect_pong()


def test_second_connect_keeps_options_it_does_not_name(client: RawClient, subject: bytes) -> None:
    client.connect(verbose=False, echo=False, headers=True)

    client.send(b"CONNECT {}\r\nSUB %b 1\r\nHPUB %b 12 12\r\nNATS/1.0\r\n\r\n\r\n" % (subject, subject))

    client.expect_pong()


def test_second_connect_before_the_first_ping_keeps_the_protocol(client: RawClient) -> None:
    client.send_connect(verbose=False, protocol=1)

    client.send(b"CONNECT {}\r\nPING\r\n")

    client.expect(b"PONG\r\n")
    assert parse_info(client.read_line())["connect_info"] is True


def test_second_connect_after_the_first_pong_brings_no_info(client: RawClient) -> None:
    client.connect(protocol=1)

    client.send_connect(verbose=False, protocol=1)

    client.expect_pong()
    client.expect_pong()


def test_echo_off_keeps_own_messages_away(client: RawClient, other_client: RawClient, subject: bytes) -> None:
    client.connect(echo=False)
    other_client.connect()
    other_client.send(b"SUB %b 7\r\n" % subject)
    other_client.expect_pong()

    client.send(b"SUB %b 1\r\nPUB %b 2\r\nhi\r\n" % (subject, subject))

    client.expect_pong()
    other_client.expect(b"MSG %b 7 2\r\nhi\r\n" % subject)


def test_echo_off_still_delivers_messages_of_others(client: RawClient, other_client: RawClient, subject: bytes) -> None:
    client.connect(echo=False)
    other_client.connect()
    client.send(b"SUB %b 1\r\n" % subject)
    client.expect_pong()

    other_client.send(b"PUB %b 2\r\nhi\r\n" % subject)

    client.expect(b"MSG %b 1 2\r\nhi\r\n" % subject)


def test_connect_no_responders_is_refused_where_the_server_has_no_headers(start_server) -> None:
    server = start_server(config="no_header_support: true")

    with server.client() as client:
        client.send_connect(verbose=False, headers=True, no_responders=True)

        client.expect_error_and_closed("no responders requires headers support")
