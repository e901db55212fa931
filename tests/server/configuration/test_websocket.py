"""The block `websocket`: every key, and every refusal with what to do."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_text
from jetlake.server.options import Credentials, TlsOptions, WebSocketOptions

USERS = "authorization { users: [{user: ada, password: secret}] }"


def websocket_of(keys, rest=""):
    return load_text(f"websocket {{ no_tls: true, {keys} }}\n{rest}").options.websocket


def mistakes_of(text):
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    return [line.partition(": ")[2] for line in str(caught.value).splitlines()]


def mistake_of(keys, rest=""):
    (mistake,) = mistakes_of(f"websocket {{ port: 8080, no_tls: true, {keys} }}\n{rest}")
    return mistake


def test_server_without_the_block_has_no_listener():
    assert load_text("port: 4222").options.websocket is None


@pytest.mark.parametrize("keys", ["", "compress: true", "host: a", "port: 0", "listen: 'a:0'", "no_auth_user: nobody"])
def test_block_without_a_port_has_no_effect(keys):
    assert websocket_of(keys) is None
    assert load_text(f"ws {{ {keys} }}").options.websocket is None


@pytest.mark.parametrize(
    ("keys", "host", "port"),
    [
        ("port: 8080", "", 8080),
        ("port: -1", "", 0),
        ("listen: 8080", "", 8080),
        ("listen: '127.0.0.1:8080'", "127.0.0.1", 8080),
        ("listen: '[::1]:-1'", "::1", 0),
        ("host: a, port: 1", "a", 1),
        ("net: a, port: 1", "a", 1),
    ],
)
def test_address(keys, host, port):
    options = websocket_of(keys)

    assert (options.host, options.port) == (host, port)
    assert options.listen_host == (host or "0.0.0.0")


def test_every_key_is_read():
    options = websocket_of(
        """
        port: 8080
        advertise: "nats.example.com:443"
        same_origin: true
        allowed_origins: ["https://a.example", "http://b.example:8080"]
        handshake_timeout: "5s"
        compress: true
        authorization { user: web, password: page, timeout: 1.5 }
        user_cookie: who
        pass_cookie: what
        token_cookie: pass
        ping_interval: "30s"
        headers { X-Served-By: one, X-Region: "north" }
        """
    )

    assert options == WebSocketOptions(
        port=8080,
        advertise="nats.example.com:443",
        allows_plain=True,
        same_origin=True,
        allowed_origins=("https://a.example", "http://b.example:8080"),
        handshake_timeout_s=5.0,
        compress=True,
        credentials=Credentials(user="web", password="page"),
        auth_timeout_s=1.5,
        user_cookie="who",
        password_cookie="what",
        token_cookie="pass",
        ping_interval_s=30.0,
        headers=(("X-Served-By", "one"), ("X-Region", "north")),
    )


@pytest.mark.parametrize(
    ("keys", "field", "value"),
    [
        ("compression: true", "compress", True),
        ("authentication { token: t }", "credentials", Credentials(token="t")),
        ("authorization { username: a, pass: b }", "credentials", Credentials(user="a", password="b")),
        ("handshake_timeout: 3", "handshake_timeout_s", 3),
        *[
            (f"{name}: 'https://a.example'", "allowed_origins", ("https://a.example",))
            for name in ("allowed_origin", "allow_origins", "allow_origin", "origins", "origin")
        ],
    ],
)
def test_other_names_of_keys(keys, field, value):
    assert getattr(websocket_of(f"port: 1, {keys}"), field) == value


def test_tls_is_read_as_that_of_the_client_port():
    options = load_text(
        "websocket { port: 443, tls { cert_file: c.pem, key_file: k.pem, ca_file: a.pem, verify_and_map: true } }"
    ).options

    assert options.websocket.tls == TlsOptions(
        certificate_file="c.pem", key_file="k.pem", authority_file="a.pem", verify_clients=True, map_users=True
    )
    assert options.tls is None
    assert not options.access.map_certificates


def test_user_of_the_file_may_stand_for_clients_without_credentials():
    assert websocket_of("port: 1, no_auth_user: ada", USERS).no_auth_user == "ada"


def test_listener_in_the_clear_must_be_asked_for():
    (mistake,) = mistakes_of("websocket { port: 8080 }")

    assert mistake.startswith("websocket requires TLS configuration: add a tls block to it, or no_tls: true")


@pytest.mark.parametrize(
    ("origin", "reason"),
    [
        ("example.com", "allowed origins must be absolute URLs with http or https scheme"),
        ("/page", "allowed origins must be absolute URLs with http or https scheme"),
        ("ftp://example.com", "allowed origins must be absolute URLs with http or https scheme"),
        ("https://", "host is required"),
        ("https:///page", "host is required"),
        ("https://example.com:port", "Port could not be cast to integer value as 'port'"),
        ("https://example.com:99999", "Port out of range 0-65535"),
        ("https://example.com:0", "0 is not a port that a page can come from"),
        ("https://[::1", "Invalid IPv6 URL"),
    ],
)
def test_origin_that_no_page_has_is_refused(origin, reason):
    mistake = mistake_of(f"allowed_origins: ['{origin}']")

    assert mistake.startswith(f'unable to parse allowed origin "{origin}": {reason}; write the scheme, the host')


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("", "present, but users/nkeys are not defined; add this user to authorization"),
        (USERS, "not present as user or nkey in authorization block or account configuration; add this user there"),
    ],
)
def test_unknown_user_is_refused(rest, reason):
    assert mistake_of("no_auth_user: nobody", rest) == f'no_auth_user: "nobody" {reason}'


@pytest.mark.parametrize(("keys", "kind"), [("user: a, password: b", "username"), ("token: t", "token")])
@pytest.mark.parametrize("rest", [USERS, "accounts { A { users: [{user: a, password: b}] } }"])
def test_credentials_besides_users_are_refused(keys, kind, rest):
    mistake = mistake_of(f"authorization {{ {keys} }}", rest)

    assert mistake.startswith(f"websocket authentication {kind} not compatible with presence of users/nkeys: remove it")


def test_cookie_with_a_jwt_needs_somebody_who_is_trusted():
    mistake = mistake_of("jwt_cookie: jwt")

    assert mistake.startswith(
        'trusted operators or trusted keys configuration is required for JWT authentication via cookie "jwt": add '
    )


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("Host: a", 'invalid header "Host" not allowed'),
        ("content-length: '1'", 'invalid header "content-length" not allowed'),
        ("CONNECTION: a", 'invalid header "CONNECTION" not allowed'),
        ("Upgrade: a", 'invalid header "Upgrade" not allowed'),
        ("Nats-No-Masking: 'true'", 'invalid header "Nats-No-Masking" not allowed'),
        ("Sec-WebSocket-Accept: a", 'invalid header "Sec-WebSocket-Accept", "Sec-WebSocket-" prefix not allowed'),
        ("'a b': c", "invalid header 'a b': take letters, digits and hyphens"),
        ('X: "a\\r\\nSet-Cookie: b"', 'invalid value of header "X"'),
        ('X: "ä"', 'invalid value of header "X"'),
    ],
)
def test_header_that_would_break_the_handshake_is_refused(header, reason):
    assert mistake_of(f"headers {{ {header} }}").startswith(f"websocket: {reason}")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("nonsense: 1", 'unknown field "nonsense"'),
        ("authorization { users: [] }", 'unknown field "users"'),
        ("compress: 1", '"compress" must be true or false'),
        ("headers: [a]", '"headers" must be a map'),
        ("headers { a: 1 }", '"a" must be text'),
        ("handshake_timeout: '-1s'", '"handshake_timeout" is negative'),
        ("ping_interval: '-1s'", '"ping_interval" is negative'),
        ("authorization { timeout: -1 }", '"timeout" is negative'),
        ("port: 70000", '"port" is 70000'),
        ("listen: '0.0.0.0:70000'", '"listen" has the port 70000'),
        ("listen: 'a'", "\"listen\": 'a' is not an address"),
    ],
)
def test_wrong_value_is_refused(keys, reason):
    assert any(mistake.startswith(reason) for mistake in mistakes_of(f"ws {{ no_tls: true, {keys} }}"))


def test_all_mistakes_are_found_at_once_each_with_its_place():
    with pytest.raises(ConfigurationError) as caught:
        load_text("websocket {\n  port: 1\n  origins: [a]\n  no_auth_user: b\n  nonsense: c\n}")

    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        "<text>:1:1",
        "<text>:3:3",
        "<text>:4:3",
        "<text>:5:3",
    ]


def test_no_mistake_shows_a_password():
    mistakes = mistakes_of(f"ws {{ port: 1, authorization {{ user: a, password: hidden, token: hidden }} }}\n{USERS}")

    assert mistakes
    assert "hidden" not in " ".join(mistakes)
