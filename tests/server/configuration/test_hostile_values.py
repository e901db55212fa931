"""Values that can be written and mean nothing: a file with them is refused, with the line of each.

A running server reads its file again at a signal. What comes out of that is a configuration or a `ConfigurationError`;
anything else would end the server and all its connections.
"""

import contextlib
import random

import msgspec
import pytest

import jetlake
from jetlake._engine import EngineError, check_options
from jetlake.config import Limits
from jetlake.errors import ConfigurationError, JetlakeError
from jetlake.server.configuration.document import ConfigurationNode, FilePosition
from jetlake.server.configuration.load import load_text
from jetlake.server.configuration.section import Problems, Section
from jetlake.server.configuration.source import ConfigurationSource
from jetlake.server.configuration.top_level import read_options
from jetlake.server.flags import ParsedFlags
from jetlake.server.options import ServerOptions
from jetlake.server.reload import plan_reload
from jetlake.server.times import SECONDS_MAX
from jetlake.shared.durations import TOO_LONG
from tests.compatibility.certificates import Authority
from tests.compatibility.claims import Operator

TIMES = [
    "authorization {{ timeout: {} }}",
    "tls {{ cert_file: a, key_file: b, timeout: {} }}",
    "websocket {{ port: -1, no_tls: true, handshake_timeout: {} }}",
    "websocket {{ port: -1, no_tls: true, ping_interval: {} }}",
    "websocket {{ port: -1, no_tls: true, authorization {{ user: a, password: b, timeout: {} }} }}",
    "leafnodes {{ port: -1, authorization {{ user: a, password: b, timeout: {} }} }}",
    "leafnodes {{ port: -1, reconnect: {} }}",
    "leafnodes {{ port: -1, tls {{ cert_file: a, key_file: b, timeout: {} }} }}",
    "leafnodes {{ dial_timeout: {}, remotes: [ {{ url: 'nats://h' }} ] }}",
    "leafnodes {{ remotes: [ {{ url: 'nats://h', first_info_timeout: {} }} ] }}",
    "leafnodes {{ remotes: [ {{ url: 'nats://h', tls {{ timeout: {} }} }} ] }}",
    "ping_interval: {}",
    "write_deadline: {}",
    "jetstream {{ sync_interval: {} }}",
    "choria {{ streams {{ event_retention: {} }} }}",
]
TAKES_DECIMALS = [text for text in TIMES if "timeout: {}" in text and "dial_" not in text and "info_" not in text]
LONGEST = "2562047h47m16.854775807s"


@pytest.mark.parametrize("text", TIMES)
@pytest.mark.parametrize("number", ["9223372037", "9223372036854775807", "-9223372037"])
def test_number_of_seconds_that_no_duration_has_is_refused(text, number):
    with pytest.raises(ConfigurationError, match=f'<text>:1:[0-9]+: "[a-z_]+" {TOO_LONG}$'):
        load_text(text.format(number))


@pytest.mark.parametrize("text", TAKES_DECIMALS)
@pytest.mark.parametrize("number", ["18446744073709549.0", f"{'9' * 306}.0", f"{'9' * 400}.0", f"-{'9' * 400}.5"])
def test_decimal_number_that_no_duration_has_is_refused(text, number):
    with pytest.raises(ConfigurationError, match=f'" {TOO_LONG}$'):
        load_text(text.format(number))


@pytest.mark.parametrize("text", TIMES)
def test_longest_duration_is_one_that_every_clock_can_wait_for(text, tmp_path):
    authority = Authority(tmp_path).server()
    files = text.replace("cert_file: a, key_file: b", f"cert_file: '{authority.certificate_file}', key_file: 'KEY'")
    options = load_text(files.format(f'"{LONGEST}"').replace("KEY", str(authority.key_file))).options

    told = msgspec.json.decode(options.engine_options("").to_json())
    times = [value for name, value in named_numbers(told) if name.endswith("_ms")]

    assert max(times) <= (SECONDS_MAX + 1) * 1000
    assert SECONDS_MAX * 1000 in times or "jetstream" in text or "choria" in text


@pytest.mark.parametrize("name", ["write_deadline_ms", "ping_interval_ms", "auth_timeout_ms", "handshake_timeout_ms"])
def test_program_cannot_ask_for_longer_times_than_a_file(name):
    assert ServerOptions(limits=Limits(**{name: SECONDS_MAX * 1000})).limits
    for milliseconds in (SECONDS_MAX * 1000 + 1, 2**63 - 1, 2**64 - 1, 10**30):
        with pytest.raises(ConfigurationError, match=f"{name} is {milliseconds}: it must be at most"):
            jetlake.Server(limits=Limits(**{name: milliseconds}))


def named_numbers(value, name=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from named_numbers(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from named_numbers(inner, name)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value


FILES = [
    *("pid_file: {}", "ports_file_dir: {}", "log_file: {}", "store_dir: {}", "jetstream {{ store_dir: {} }}"),
    *("tls {{ cert_file: {}, key_file: b }}", "tls {{ cert_file: a, key_file: {} }}"),
    "tls {{ cert_file: a, key_file: b, ca_file: {} }}",
    "tls {{ certs: [ {{ cert_file: {}, key_file: b }} ] }}",
    *("operator: {}", "operator: [ {} ]", "resolver_tls {{ ca_file: {} }}", "resolver_tls {{ cert_file: {} }}"),
    'trusted_keys: "OA", resolver {{ type: full, dir: {} }}',
    "leafnodes {{ remotes: [ {{ url: 'nats://h', credentials: {} }} ] }}",
    "leafnodes {{ remotes: [ {{ url: 'nats://h', tls {{ ca_file: {} }} }} ] }}",
    "leafnodes {{ remotes: [ {{ url: 'nats://h', tls {{ key_file: {}, cert_file: a }} }} ] }}",
    "jetstream {{ remotes {{ a {{ url: h, nkey: {} }} }} }}",
    "jetstream {{ remotes {{ a {{ url: h, credentials: {} }} }} }}",
    "jetstream {{ remotes {{ a {{ url: h, tls {{ ca_file: {} }} }} }} }}",
    *("submission {{ spool: {} }}", "submission {{ spool: a, ca_file: {} }}", "submission {{ spool: a, nkey: {} }}"),
    *("dashboard {{ ca_file: {} }}", "dashboard {{ lake: {} }}", "choria {{ tls_ca: {} }}"),
]
HOSTS = [
    *("host: {}", "listen: {}", "http: {}", "https: {}", "websocket {{ host: {} }}", "leafnodes {{ listen: {} }}"),
    *("dashboard {{ host: {} }}", "leafnodes {{ port: -1, advertise: {} }}"),
]


@pytest.mark.parametrize("text", [*FILES, *HOSTS])
def test_zero_byte_in_the_name_of_a_file_or_a_host_is_refused(text):
    value = '"a\\x00b:80"' if text in HOSTS and "host" not in text else '"a\\x00b"'

    with pytest.raises(ConfigurationError, match=r"<text>:1:[0-9]+: .*(zero|null) byte"):
        load_text(text.format(value))


def test_zero_byte_in_a_password_is_a_letter_like_any_other():
    options = load_text('authorization { user: a, password: "a\\x00b" }').options

    assert options.access.credentials.password == "a\0b"


@pytest.mark.parametrize(
    "text",
    [
        "mappings {{ a: {{ dest: b, weight: '{}' }} }}",
        "accounts {{ A {{ msg_trace {{ dest: a, sampling: '{}' }} }} }}",
        "accounts {{ A {{ exports: [ {{ service: a, latency: {{ subject: b, sampling: '{}' }} }} ] }} }}",
        "http: 'a:{}'",
        "choria {{ streams {{ event_retention: '{}y' }} }}",
        "jetstream {{ max_mem: '{}K' }}",
        "leafnodes {{ port: -1, min_version: '{}.1.1' }}",
        "ping_interval: '{}s'",
        "port: $DIGITS",
    ],
)
@pytest.mark.parametrize("count", [30, 5_000, 1_100_000])
def test_number_of_any_length_is_refused(text, count, monkeypatch):
    """Python reads no number of more than 4,300 digits; what is longer raises an error of its own."""
    if count < 100_000:
        # No environment holds more.
        monkeypatch.setenv("DIGITS", "9" * count)

    with pytest.raises(ConfigurationError):
        load_text(text.format("9" * count))


@pytest.mark.parametrize("version", ["9" * 5_000 + ".0.0", "²..1", "1.1", "-1.1.1", "٢.1.1"])
def test_version_that_an_operator_wants_may_be_none(version):
    operator = Operator(assert_server_version=version)

    with pytest.raises(ConfigurationError, match="it must be of the form"):
        load_text(operator.configuration())


# Every key that there is, with values of every kind.

VALUES = [
    *("0", "-1", "1", "9223372036854775807", "-9223372036854775808", "65536", "4294967296"),
    *(
        "0.0",
        "-0.5",
        "1.5",
        f"{'9' * 400}.0",
        f"-{'9' * 306}.0",
        "9223372036.9",
        "true",
        "false",
        "2026-01-01T00:00:00Z",
    ),
    *(
        '""',
        '"a"',
        "'$x'",
        '"a\\x00b"',
        '"\\x7f\\xc2\\x80"',
        '"a b"',
        '"é\\n"',
        '">"',
        '"*.>"',
        '"$9"',
        '"../x"',
        '"/"',
    ),
    *(f'"{LONGEST}"', '"-1ns"', '"1h"', '"9e9"', '"127.0.0.1:99999"', '"[::1]:-1"', '":0"', '"100%"', '"$2a$11$x"'),
    *('"nats://a\\x00b:1"', '"nats://u:p@h:4222/?a"', '"http://[::1"', '"URL(http://a:99999/)"', '"eyJ\\x00"'),
    *('"../x"', '"/"', "2026-01-01T00:00:00Z"),
    *(f'"{"9" * 5_000}"', f'"{"a." * 3_000}b"', "[]", "{}", "[1]", '["a", "a"]', "[[]]", "[{}]", '{ "": "" }'),
]

DEPTH_MAX = 6
ANY_NAME = "A"
"""For maps whose keys are chosen by whoever writes the file."""

SIBLINGS = {
    "tls": "cert_file: CERTIFICATE, key_file: KEY, ca_file: AUTHORITY,",
    "websocket": "port: -1, no_tls: true,",
    "leafnodes": "port: -1,",
    "urls": "url: 'nats://h',",
    "users": "user: a,",
    "resolver": "type: full, dir: FOLDER,",
    "submission": "spool: a,",
    "exports": "service: a,",
    "latency": "subject: b,",
}
"""What a map needs besides the key that is tried, so that the value of that key gets further than the file."""


class Step(msgspec.Struct, frozen=True):
    """A key on the way to a map, which is its value, or the only one in a list."""

    key: str
    is_listed: bool

    def around(self, inner):
        return f"{self.key}: " + (f"[ {{ {inner} }} ]" if self.is_listed else f"{{ {inner} }}")


def keys_below(steps, monkeypatch):
    """Return the keys that are looked for in the map at the end of the steps."""
    asked = set()
    ask = Section.node

    def note(section, *names):
        if section.position.line == len(steps) + 1:
            asked.update(names)
        return ask(section, *names)

    data = {}
    for depth, step in reversed(list(enumerate(steps, 1))):
        node = ConfigurationNode(data, FilePosition("", depth + 1, 1))
        listed = ConfigurationNode([node], node.position)
        data = {step.key: listed if step.is_listed else node}
    with monkeypatch.context() as context:
        context.setattr(Section, "node", note)
        read_options(ConfigurationNode(data, FilePosition("", 1, 1)), Problems())
    return sorted(asked)


def find_keys(monkeypatch):
    """Return every key there is, each with the steps to the map it is in."""
    found, maps = [], [()]
    while maps:
        steps = maps.pop()
        keys = keys_below(steps, monkeypatch)
        found += [(steps, key) for key in keys]
        # A map without known keys may have maps with names of their own; a list of such does not occur.
        is_named = not steps or not (steps[-1].is_listed or steps[-1].key == ANY_NAME)
        if len(steps) < DEPTH_MAX and (keys or is_named):
            maps += [(*steps, Step(key, is_listed)) for key in (*keys, ANY_NAME) for is_listed in (False, True)]
    return found


def written(tries, files):
    """Return a file in which each key has its value; `files` stand for names in `SIBLINGS`."""
    lines = []
    for steps, key, value in tries:
        text = f"{key}: {value}"
        for step in reversed(steps):
            siblings = SIBLINGS.get(step.key, "")
            if step.key == "remotes":
                siblings = SIBLINGS["urls"]
            text = step.around(f"{siblings} {text}")
        lines.append(text)
    text = "\n".join(lines)
    for name, path in files.items():
        text = text.replace(name, f"'{path}'")
    return text


def read(path):
    """Read a file as a running server does, and make of it everything that a server makes of its options.

    Raises nothing but what a reload answers with a line in the log.
    """
    source = ConfigurationSource(str(path), ParsedFlags({}), "nats-server")
    try:
        options = source.load().options
        plan_reload(options, options)
        told = options.engine_options("").to_json()
        check_options(told, msgspec.json.encode([remote.for_engine() for remote in options.jetstream.remotes]))
    except (JetlakeError, OSError, EngineError):
        return None
    with contextlib.suppress(JetlakeError):
        plan_reload(ServerOptions(), options)
    return options, msgspec.json.decode(told)


@pytest.fixture
def files(tmp_path):
    authority = Authority(tmp_path)
    server = authority.server()
    names = {"CERTIFICATE": server.certificate_file, "KEY": server.key_file, "AUTHORITY": authority.file}
    return {**names, "FOLDER": tmp_path}


@pytest.fixture
def configuration(tmp_path):
    return tmp_path / "server.conf"


def test_all_keys_are_found(monkeypatch):
    """Else the tests below would try fewer than there are."""
    found = {"/".join([*(step.key for step in steps), key]) for steps, key in find_keys(monkeypatch)}

    assert found >= {
        *("port", "tls/timeout", "tls/certs/cert_file", "websocket/tls/timeout", "leafnodes/remotes/tls/timeout"),
        *("accounts/A/exports/threshold", "accounts/A/users/permissions/allow_responses/expires", "mappings/A/weight"),
        *("jetstream/limits/batch/timeout", "jetstream/remotes/A/tls/ca_file", "choria/streams/event_retention"),
    }
    assert len(found) > 500


@pytest.mark.parametrize("seed", range(4))
def test_any_value_of_any_key_is_read_or_refused(configuration, files, monkeypatch, seed):
    """One key at a time, or a few that may have to do with each other."""
    monkeypatch.chdir(configuration.parent)
    generator = random.Random(seed)
    keys = find_keys(monkeypatch)
    read_count = 0
    for _ in range(1_500):
        chosen = generator.sample(keys, generator.choice([1, 1, 1, 2, 4]))
        text = written([(steps, key, generator.choice(VALUES)) for steps, key in chosen], files)
        configuration.write_text(text)

        result = read(configuration)

        if result is not None:
            read_count += 1
            assert all(abs(value) < 2**63 for _, value in named_numbers(result[1])), text
    assert read_count > 50
