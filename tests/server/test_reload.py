"""What a reload changes and what it refuses."""

import msgspec
import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_text
from jetlake.server.options import ServerOptions
from jetlake.server.reload import APPLIED, FIXED, plan_reload, spoken


def options_of(text):
    return load_text(text).options


def plan(old, new):
    return plan_reload(options_of(old), options_of(new))


def test_same_options_change_nothing():
    text = "authorization { users: [{user: a, password: b, permissions: {publish: c}}] }\naccounts { A {} }"

    assert plan(text, text) == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("", "debug: true", "debug = true"),
        ("trace: true", "trace: false", "trace = false"),
        ("", "log_file: a.log", "log_file = a.log"),
        ("", "logtime_utc: true", "logtime_utc = true"),
        ("", "max_connections: 5", "max_connections = 5"),
        ("", "max_payload: 100", "max_payload = 100"),
        ("", "max_control_line: 100", "max_control_line = 100"),
        ("", "ping_interval: '1m'", "ping_interval = 1m0s"),
        ("", "ping_max: 5", "ping_max = 5"),
        ("", "write_deadline: '1.5s'", "write_deadline = 1.5s"),
        ("", "pid_file: a.pid", "pid_file = a.pid"),
        ("", "ports_file_dir: ports", "ports_file_dir = ports"),
        ("", "client_advertise: 'a:1'", "client_advertise = a:1"),
        ("", "no_fast_producer_stall: true", "fast producers will not be stalled"),
        ("", "server_tags: [a]", "tags"),
        ("", "server_metadata { a: b }", "metadata"),
        ("", "authorization { token: t }", "authorization token"),
        ("", "authorization { timeout: 5 }", "authorization timeout = 5"),
        ("authorization { user: a, password: b }", "authorization { user: a, password: c }", "authorization password"),
        ("authorization { users: [{user: a}] }", "authorization { users: [{user: b}] }", "authorization users"),
        (
            "authorization { users: [{user: a}] }",
            "authorization { users: [{user: a, permissions: {publish: b}}] }",
            "authorization users",
        ),
        ("accounts { A {} }", "accounts { A { limits { max_conn: 1 } } }", "accounts"),
        ("jetstream { max_mem: 1GB }", "jetstream { max_mem: 2GB }", "JetStream max_mem_store = 2.00 GB"),
    ],
)
def test_change_has_a_line(old, new, line):
    assert plan(old, new) == [f"Reloaded: {line}"]


def test_no_line_shows_a_secret():
    lines = plan("authorization { token: hidden-1 }", "authorization { user: a, password: hidden-2 }")

    assert lines
    assert "hidden" not in " ".join(lines)


def test_certificates_are_read_again_in_any_case():
    text = "tls { cert_file: c, key_file: k }"

    assert plan(text, text) == ["Reloaded: tls = enabled"]
    assert "Reloaded: tls = disabled" in plan(text, "")


def test_certificates_for_websocket_may_change():
    old = "ws { port: -1, tls { cert_file: c, key_file: k } }"

    assert plan(old, old.replace("cert_file: c", "cert_file: d")) == []


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("", "port: 4333", "Port: old=4222, new=4333"),
        ("", "host: a", "Host: old=0.0.0.0, new=a"),
        ("", "server_name: a", "ServerName: old=, new=a"),
        ("", "max_pending: 2MB", "MaxPending: old=67108864, new=2097152"),
        ("", "max_subs: 5", "MaxSubs: old=0, new=5"),
        ("", "max_sub_tokens: 5", "MaxSubTokens: old=0, new=5"),
        ("", "lame_duck_duration: '30s'", "LameDuckDuration: old=2m0s, new=30s"),
        ("", "lame_duck_grace_period: '1s'", "LameDuckGracePeriod: old=10s, new=1s"),
        ("", "http: 8222", "HTTPPort: old=0, new=8222"),
        ("", "no_header_support: true", "NoHeaderSupport: old=false, new=true"),
        ("", "jetstream: true", "JetStream: old=false, new=true"),
        ("", "store_dir: a", "StoreDir: old=, new=a"),
        ("accounts { S {} }", "accounts { S {} }\nsystem_account: S", "SystemAccount: old=$SYS, new=S"),
        (
            "authorization { users: [{user: a}] }",
            "authorization { users: [{user: a}] }\nno_auth_user: a",
            "NoAuthUser: old=, new=a",
        ),
        ("jetstream {}", "jetstream { key: secret }", "JetStreamKey: old=, new=[REDACTED];"),
        ("jetstream { prev_key: a }", "jetstream { prev_key: b }", "JetStreamPreviousKey: old=[REDACTED], new=[RED"),
        (
            "jetstream { remotes { a { url: h, user: u, password: p } } }",
            "jetstream { remotes { a { url: h, user: u, password: q } } }",
            "JetStreamRemotes: old=[REDACTED], new=[REDACTED];",
        ),
        ("", "ws { port: -1, no_tls: true }", "Websocket: old=, new=[REDACTED];"),
        (
            "ws { port: -1, no_tls: true, authorization { token: a } }",
            "ws { port: -1, no_tls: true, authorization { token: b } }",
            "Websocket: old=[REDACTED], new=[REDACTED];",
        ),
        (
            "ws { port: -1, no_tls: true, tls { cert_file: c, key_file: k } }",
            "ws { port: -1, no_tls: true }",
            "Websocket: old=[REDACTED], new=[REDACTED];",
        ),
        (
            "ws { port: -1, tls { cert_file: c, key_file: k } }",
            "ws { port: -1, tls { cert_file: c, key_file: k, verify_and_map: true } }",
            "Websocket: old=[REDACTED], new=[REDACTED];",
        ),
        ("jetstream { max_mem: 2GB }", "jetstream { max_mem: 1GB }", "decreasing jetstream max memory and store"),
        ("jetstream { max_mem: 2GB }", "jetstream {}", "jetstream dynamic max memory and store"),
    ],
)
def test_what_cannot_change_refuses_the_whole_reload(old, new, reason):
    with pytest.raises(ConfigurationError) as caught:
        plan(old, f"{new}\ndebug: true")

    assert str(caught.value).startswith(f"config reload not supported for {reason}")


def test_user_without_credentials_may_go_together_with_its_user():
    old = "authorization { users: [{user: a}, {user: b}] }\nno_auth_user: a"

    assert plan(old, "authorization { users: [{user: b}] }") == ["Reloaded: authorization users"]
    with pytest.raises(ConfigurationError, match="NoAuthUser: old=a, new="):
        plan(old, "authorization { users: [{user: a}] }")


def test_every_option_is_either_fixed_or_applied():
    """A field of the options that nobody looks at would be lost in a reload without a word."""
    looked_at = set()

    class Spy:
        def __init__(self, value, path):
            self._value, self._path = value, path

        def __getattr__(self, name):
            path = f"{self._path}{name}"
            looked_at.add(path)
            value = getattr(self._value, name)
            return Spy(value, f"{path}.") if isinstance(value, msgspec.Struct) else value

    options = options_of("tls { cert_file: c, key_file: k }\nauthorization { users: [{user: a}] }")
    for _, get in (*FIXED, *APPLIED):
        get(Spy(options, ""))

    # By their parts or as a whole; the rest is decided by the command line or compared in another way.
    elsewhere = {"leaf", "manual_clock", "program", "unserved", "worker_threads"}
    assert {field for field in ServerOptions.__struct_fields__ if field not in looked_at} == elsewhere
    for part in ("limits", "log", "lame_duck", "monitoring"):
        fields = {f"{part}.{field}" for field in getattr(options, part).__struct_fields__}
        assert fields - looked_at <= {"limits.handshake_timeout_ms"}, part


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.3, "300ms"), (1.5, "1.5s"), (60, "1m0s"), (3661, "1h1m1s"), (120, "2m0s")]
)
def test_durations_are_printed_as_go_prints_them(seconds, text):
    assert spoken(seconds) == text
