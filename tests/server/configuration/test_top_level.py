"""The keys of a file become the options of a server, or one line per mistake."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.config import Limits
from jetlake.errors import ConfigurationError
from jetlake.server.configuration import unsupported
from jetlake.server.configuration.load import load_file, load_text
from jetlake.server.options import LameDuckOptions, LogOptions, MonitoringOptions, ServerOptions


def options_of(text):
    return load_text(text).options


def mistakes_of(text):
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    return str(caught.value).splitlines()


def test_empty_file_is_the_defaults_and_a_warning(tmp_path):
    (tmp_path / "empty.conf").write_text("# nothing\n")

    configuration = load_file(str(tmp_path / "empty.conf"))

    assert configuration.options == ServerOptions()
    assert configuration.warnings == (f"{tmp_path}/empty.conf: config has no values or is empty",)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("port: 4333", "0.0.0.0", 4333),
        ("port: -1", "0.0.0.0", 0),
        ("port: 0", "0.0.0.0", 4222),
        ("listen: 4333", "0.0.0.0", 4333),
        ("listen: 127.0.0.1:4333", "127.0.0.1", 4333),
        ("listen: '127.0.0.1:-1'", "127.0.0.1", 0),
        ("listen: ':4333'", "0.0.0.0", 4333),
        ("listen: '[::1]:4333'", "::1", 4333),
        ("net: localhost", "localhost", 4222),
        ("HOST: localhost, Port: 1", "localhost", 1),
    ],
)
def test_address(text, host, port):
    options = options_of(text)

    assert (options.host, options.port) == (host, port)


def test_limits():
    options = options_of("""
        max_connections: 10, max_subs: 20, max_sub_tokens: 5, max_control_line: 2KB, max_payload: 2MB
        max_pending: 4MB, write_deadline: "3s", ping_interval: "1m", ping_max: 7, max_closed_clients: 9
        no_header_support: true, no_fast_producer_stall: on
    """)

    assert options.limits == Limits(
        max_connections=10,
        max_subscriptions=20,
        max_subscription_tokens=5,
        max_control_line_bytes=2048,
        max_payload_bytes=2 << 20,
        max_pending_bytes=4 << 20,
        write_deadline_ms=3000,
        ping_interval_ms=60_000,
        ping_max=7,
    )
    assert options.closed_connections_max == 9
    assert not options.headers
    assert not options.fast_producer_stall


def test_zero_is_the_default_except_for_connections():
    options = options_of("max_payload: 0, max_pending: 0, ping_max: 0, ping_interval: '0s', max_connections: 0")

    assert options.limits == Limits(max_connections=0)


def test_log():
    options = options_of("""
        debug: true, trace: yes, logtime: no, logtime_utc: true
        log_file: "/var/log/nats.log", logfile_size_limit: 1MB, logfile_max_num: 3
    """)

    assert options.log == LogOptions(
        file="/var/log/nats.log",
        size_limit_bytes=1 << 20,
        files_max=3,
        timestamps=False,
        utc=True,
        debug=True,
        trace=True,
    )
    assert options_of("trace_verbose: true").log.trace


def test_monitoring_is_carried():
    assert options_of("http: 8222").monitoring == MonitoringOptions(http_port=8222)
    assert options_of("http: '127.0.0.1:-1'").monitoring == MonitoringOptions(host="127.0.0.1", http_port=0)
    assert options_of("monitor_port: 1, https_port: 2, http_base_path: '/nats'").monitoring == MonitoringOptions(
        http_port=1, https_port=2, base_path="/nats"
    )


def test_names_files_and_lame_duck():
    options = options_of("""
        server_name: "harbour", client_advertise: "example.com:4222", server_tags: [a, b], server_metadata { x: y }
        pid_file: a.pid, ports_file_dir: ports, lame_duck_duration: "1m", lame_duck_grace_period: "5s"
    """)

    assert (options.server_name, options.client_advertise) == ("harbour", "example.com:4222")
    assert (options.tags, options.metadata) == (("a", "b"), {"x": "y"})
    assert (options.pid_file, options.ports_file_directory) == ("a.pid", "ports")
    assert options.lame_duck == LameDuckOptions(duration_s=60, grace_period_s=5)


def test_number_of_seconds_is_taken_with_a_warning():
    configuration = load_text("ping_interval: 5")

    assert configuration.options.limits.ping_interval_ms == 5000
    assert len(configuration.warnings) == 1
    assert configuration.warnings[0].startswith(
        '<text>:1:1: invalid use of field "ping_interval": ping_interval should be converted to a duration'
    )


def test_every_mistake_has_its_own_line_in_the_order_of_the_file():
    assert mistakes_of('foo: 1\nport: "4222"\nmax_payload: 1\nBar { x: 1 }') == [
        '<text>:1:1: unknown field "foo"',
        '<text>:2:1: "port" must be an integer, not text',
        '<text>:4:1: unknown field "Bar"',
    ]


def test_key_that_only_a_variable_refers_to_is_not_unknown():
    assert options_of("MY_PORT: 4333\nport: $MY_PORT").port == 4333


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("port: 70000", '"port" is 70000: it must be at least -1 and at most 65535'),
        ("port: 1.5", '"port" must be an integer, not a decimal number'),
        ("port: true", '"port" must be an integer, not a boolean'),
        ("listen: foo", "\"listen\": 'foo' is not an address"),
        ("listen: 'a:b'", "\"listen\": 'a:b' has no number as its port"),
        ("listen: true", '"listen" must be a port or host:port, not a boolean'),
        ("listen: 70000", '"listen" has the port 70000'),
        ("debug: 'true'", '"debug" must be true or false, not text'),
        ("server_name: 'a b'", "server name cannot contain spaces"),
        ("ping_interval: '5'", "\"ping_interval\": '5' has no unit"),
        ("ping_interval: '-5s'", '"ping_interval" is negative'),
        ("max_payload: '1MB'", '"max_payload" must be an integer, not text'),
        ("max_payload: 100MB", '"max_payload" is 104857600: it must be at least 0 and at most 67108864'),
        ("max_payload: 2000, max_pending: 1000", "max_payload (2000) cannot be higher than max_pending (1000)"),
        ("max_sub_tokens: 0", '"max_sub_tokens" is 0: it must be at least 1'),
        ("max_sub_tokens: 256", '"max_sub_tokens" is 256'),
        ("lame_duck_duration: '1s'", "invalid lame_duck_duration of 1s, minimum is 30 seconds"),
        ("lame_duck_duration: 30", '"lame_duck_duration" must be a duration in quotes'),
        ("lame_duck_duration: '30s', lame_duck_grace_period: '30s'", "lame duck grace period (30s) should be"),
        ("server_tags: [a, 1]", '"server_tags" must contain texts only, not an integer'),
        ("server_metadata { a: 1 }", '"a" must be text, not an integer'),
        ("write_timeout: retry", "\"write_timeout\" must be 'default' or 'close'"),
        ("proxy_protocol: true", '"proxy_protocol" is not supported yet'),
        ("ocsp: true", '"ocsp" is not supported yet'),
        ("tls: x", '"tls" must be a map, not text'),
        ("ping_max: 99999999999", '"ping_max" is 99999999999'),
    ],
)
def test_value_that_cannot_work_is_refused_with_its_place(text, mistake):
    (line,) = mistakes_of(text)

    assert line.startswith("<text>:1:")
    assert line.partition(": ")[2].startswith(mistake)


@pytest.mark.parametrize("key", sorted(unsupported.TOP_LEVEL))
def test_key_that_is_not_supported_is_one_line_with_what_to_do(key):
    (line,) = mistakes_of(f"{key} {{ anything: [1, 2] }}")

    assert line.startswith(f'<text>:1:1: "{key}" is not supported ')
    assert ": " in line.partition("is not supported ")[2]


def test_switches_that_are_off_are_no_mistake():
    assert options_of("ocsp: false, proxy_protocol: false, syslog: false, write_timeout: close") == ServerOptions()


def test_what_has_no_effect_is_kept_for_a_warning():
    options = options_of("syslog: true, remote_syslog: 'udp://a', prof_port: 1, max_traced_msg_len: 5")

    assert options.unserved == ("syslog", "remote_syslog", "profile", "max_traced_msg_len")


KEY_NAMES = """
    port listen http authorization users user pass password token nkey permissions publish subscribe allow deny
    allow_responses max expires accounts A $SYS limits jetstream store_dir sync max_mem tls cert_file key_file
    pinned_certs handshake_first cipher_suites certs no_auth_user system_account no_system_account ping_interval
    max_payload lame_duck_duration lame_duck_grace_period server_tags server_metadata allowed_connection_types timeout
    max_connections duplicate_window batch min_version foo websocket exports
"""
KEYS = st.sampled_from(KEY_NAMES.split())
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["a", "1s", "127.0.0.1:-1", "foo.>", "foo q", "$x", "auto", "always", "enabled", "1.2", "", "-1h"]),
    st.text(max_size=5),
)


def written(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return "'" + value.replace("'", "").replace("\0", "") + "'"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value).lower()


DOCUMENTS = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
    ),
    max_size=5,
)


@settings(max_examples=400, deadline=None)
@given(DOCUMENTS)
def test_any_document_becomes_options_or_a_configuration_error(document):
    text = "\n".join(f"{key}: {written(value)}" for key, value in document.items())

    try:
        configuration = load_text(text)
    except ConfigurationError:
        return
    assert isinstance(configuration.options, ServerOptions)
