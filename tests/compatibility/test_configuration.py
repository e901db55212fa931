"""Configuration files: both servers take the same ones, refuse the same ones, and compute the same digest."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.compatibility.server_process import ServerProcess, run_to_end

HASH = "$2a$11$PWIFAL8RsWyGI3jVZtO9Nu8.6jOxzxfZo7c/W0eLk017hjgUKWrhy"

VALID = {
    "nothing but a port": "port: 4222",
    "equals signs": "port = 4222\nhost = localhost",
    "no separators": "port 4222\nhost localhost",
    "json": '{ "port": 4222, "server_tags": ["a", "b"], "debug": false }',
    "json over lines": '{\n "port": 4222,\n "authorization": { "user": "a", "password": "b" }\n}\n',
    "semicolons": "port: 4222; debug: true; trace: no",
    "value on the next line": "port\n4222\njetstream\n{\n max_mem\n1GB\n}",
    "brace too many": "port: 4222\n}",
    "comments": "# one\nport: 4222 # two\n// three\ndebug: on // four\nlog_file: /tmp/a//b#c\n",
    "quotes": "server_name: \"a\\x41\"\nhost: 'x y'\nserver_tags: [\"a\\tb\", 'c\\d']",
    "block text": "server_metadata { a (\n several\n lines\n)\n}",
    "sizes": "max_payload: 1k, max_pending: 64MB, max_control_line: 1KiB",
    "durations": "ping_interval: '1m30s', write_deadline: 3s, lame_duck_duration: \"1m\"",
    "list over lines": "server_tags: [\n a\n b,\n c\n]",
    "trailing commas": "server_tags: [a, b,]\nauthorization { users: [ {user: a, pass: b,}, ] }",
    "variables": "NAME: x\nserver_name: $NAME\nauthorization { P: q\n user: a, password: $P }",
    "variable that is a map": (
        "authorization { BASIC { publish: a, subscribe: b }\n users: [ {user: a, pass: b, permissions: $BASIC} ] }"
    ),
    "bcrypt without quotes": f"authorization {{ user: a, password: {HASH} }}",
    "characters": "authorization { user: 'ä#;,[]{}$', password: \"<&>é\" }",
    "numbers": "server_metadata { a: '1' }\nmax_connections: 100, ping_max: 3",
    "accounts": "accounts { A { users: [{user: a, pass: b}] }, B { jetstream: enabled }, $SYS { users: [{user: s}] } }",
    "account names": "accounts: [A, B]",
    "nkeys": "authorization { users = [ {nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4} ] }",
    "permissions": (
        "authorization { default_permissions { publish: 'a.>' }\n users: [ {user: a, permissions: "
        "{pub: [a, b], sub: {allow: ['c', 'd q'], deny: e}, allow_responses: {max: 5, expires: '1m'}}} ] }"
    ),
    "jetstream": 'jetstream { store_dir: "/tmp/x", max_mem: "64M", max_file: 1GB, domain: hub, sync_interval: always }',
    "monitoring": "http: '127.0.0.1:-1'\nhttp_base_path: '/x'",
    "duplicate keys": "port: 1\nport: 4222",
    "keys in any case": "PORT: 4222\nServer_Name: x\nAuthorization { USER: a, Password: b }",
    "windows line ends": "port: 4222\r\nauthorization {\r\n user: a\r\n password: b\r\n}\r\n",
}

INVALID = {
    "nothing": "",
    "unknown key": "foo: 1",
    "unknown key in a block": "authorization { foo: 1 }",
    "unknown key of a user": "authorization { users: [{user: a, foo: 1}] }",
    "unknown key of a permission": "authorization { users: [{user: a, permissions: {foo: 1}}] }",
    "unknown key of tls": "tls { foo: 1 }",
    "unknown key of jetstream": "jetstream { foo: 1 }",
    "no space before a brace": "tls{\n}",
    "text for a number": 'port: "4222"',
    "text for a boolean": "debug: 'true'",
    "number for a text": "server_name: 5",
    "size in quotes": "max_payload: '1MB'",
    "number of seconds": "ping_interval: 5",
    "duration without unit": "ping_interval: '5'",
    "two entries on one line": "authorization { user: a password: b }",
    "value on the next line": "port:\n4222",
    "unknown variable": "port: $NO_SUCH_VARIABLE",
    "missing include": "include missing.conf",
    "open list": "server_tags: [a, b",
    "open map": "authorization { user: a",
    "open text": 'server_name: "a',
    "bad escape": 'server_name: "\\q"',
    "name with a blank": "server_name: 'a b'",
    "bad address": "listen: foo",
    "bad port": "listen: 'a:b'",
    "user twice": "authorization { users: [{user: a}, {user: a}] }",
    "user in two accounts": "accounts { A { users: [{user: a}] }, B { users: [{user: a}] } }",
    "token and users": "authorization { token: t, users: [{user: a}] }",
    "user and token": "authorization { user: a, token: t }",
    "user and users": "authorization { user: a, users: [{user: b}] }",
    "user without a name": "authorization { users: [{password: b}] }",
    "bad nkey": "authorization { users: [{nkey: UABC}] }",
    "nkey with a password": (
        "authorization { users: [{nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4, password: a}] }"
    ),
    "bad subject": "authorization { users: [{user: a, permissions: {publish: 'a b'}}] }",
    "global account": "accounts { $G { } }",
    "account twice": "accounts: [A, A]",
    "short lame duck": "lame_duck_duration: '1s'",
    "too many tokens": "max_sub_tokens: 256",
    "missing certificate": "tls { cert_file: missing.pem, key_file: missing.pem }",
    "bad jetstream": "jetstream: maybe",
    "two stores": "store_dir: a\njetstream { store_dir: b }",
}


def check(server_kind: str, folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "server.conf").write_text(text, newline="")
    return run_to_end(server_kind, ["-t", "-c", "server.conf"], folder)


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_file_is_valid(server_kind: str, tmp_path: Path, text: str) -> None:
    completed = check(server_kind, tmp_path, text)

    assert (completed.returncode, completed.stdout) == (0, "")
    assert re.fullmatch(
        r"nats-server: configuration file server\.conf is valid \(sha256:[0-9a-f]{64}\)\n", completed.stderr
    )


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
@pytest.mark.jetlake
def test_digest_is_that_of_nats_server(tmp_path: Path, text: str) -> None:
    ours = check("jetlake", tmp_path, text)
    theirs = check("nats-server", tmp_path, text)

    assert ours.stderr == theirs.stderr


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID.keys())
def test_file_is_refused(server_kind: str, tmp_path: Path, text: str) -> None:
    completed = check(server_kind, tmp_path, text)

    assert (completed.returncode, completed.stdout) == (1, "")
    assert completed.stderr.startswith("nats-server: ")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("port: 1\nfoo: 1", "2:1", 'unknown field "foo"'),
        ("port: 1\n  authorization {\n    foo: 1\n  }", "3:5", 'unknown field "foo"'),
        ("port: 1\nauthorization { users: [{user: a, foo: 1}] }", "2:35", 'unknown field "foo"'),
        ("port: 1\njetstream { foo: 1 }", "2:13", 'unknown field "foo"'),
        ("port: 1\nserver_name: 'a b'", "2:1", "server name cannot contain spaces"),
        ("port: 1\naccounts { $G { } }", "2:12", '"$G" is a Reserved Account'),
        ("port: 1\nlame_duck_duration: '1s'", "2:1", "invalid lame_duck_duration of 1s, minimum is 30 seconds"),
    ],
)
def test_mistake_is_named_with_file_line_and_column(
    server_kind: str, tmp_path: Path, text: str, place: str, message: str
) -> None:
    completed = check(server_kind, tmp_path, text)

    assert completed.stderr.startswith(f"nats-server: server.conf:{place}: {message}")


def test_all_mistakes_are_named(server_kind: str, tmp_path: Path) -> None:
    completed = check(server_kind, tmp_path, "port: 1\nfoo: 1\nbar: 2\n")

    assert 'server.conf:2:1: unknown field "foo"\n' in completed.stderr
    assert 'server.conf:3:1: unknown field "bar"\n' in completed.stderr


def test_missing_file_is_named(server_kind: str, tmp_path: Path) -> None:
    completed = run_to_end(server_kind, ["-c", "missing.conf"], tmp_path)

    assert completed.returncode == 1
    assert completed.stderr == "nats-server: open missing.conf: no such file or directory\n"


def test_environment_fills_variables(server_kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPATIBILITY_SIZE", "1KB")
    monkeypatch.setenv("COMPATIBILITY_NAME", "harbour")

    completed = check(server_kind, tmp_path, "max_payload: $COMPATIBILITY_SIZE\nserver_name: $COMPATIBILITY_NAME")

    assert completed.returncode == 0, completed.stderr


def test_includes_are_relative_to_their_file(server_kind: str, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.conf").write_text("include ./two.conf\nNAME: x")
    (tmp_path / "parts" / "two.conf").write_text("max_payload: 1KB")

    completed = check(server_kind, tmp_path, "include 'parts/one.conf'\nserver_name: $NAME")

    assert completed.returncode == 0, completed.stderr


def test_keys_of_a_file_hold(start_server) -> None:
    server = start_server(
        config="server_name: harbour\nmax_payload: 2KB\nclient_advertise: 'example.com:4222'\nno_header_support: true"
    )

    with server.client() as client:
        assert client.info["server_name"] == "harbour"
        assert client.info["max_payload"] == 2048
        assert (client.info["host"], client.info["port"]) == ("example.com", 4222)
        assert client.info["headers"] is False


def test_flags_go_over_the_file(start_server) -> None:
    server = start_server(
        config="port: 1\nserver_name: file\nauthorization { user: a, password: b }", flags=["-n", "flag"]
    )

    assert server.port != 1
    with server.client() as client:
        assert client.info["server_name"] == "flag"
        client.connect(**{"user": "a", "pass": "b"})


def test_log_names_the_file(start_server) -> None:
    server = start_server(config="debug: true")

    server.wait_for_log(f"[INF] Using configuration file: {server.folder}/server.conf (sha256:")


def test_log_goes_to_the_file_that_the_file_names(server_kind: str, tmp_path: Path) -> None:
    (tmp_path / "server.conf").write_text("log_file: chosen.log\nlogtime: false")
    server = ServerProcess(server_kind, tmp_path, ["-a", "127.0.0.1", "-p", "-1", "-c", "server.conf"])
    try:
        server.wait_until_ready(tmp_path / "chosen.log")
        server.signal(signal.SIGINT)

        assert server.wait_for_exit() == 0
        assert f"[{server.pid}] [INF] Server is ready\n" in (tmp_path / "chosen.log").read_text()
    finally:
        server.stop()


def test_mistake_stops_the_start(server_kind: str, tmp_path: Path) -> None:
    (tmp_path / "server.conf").write_text("foo: 1")

    completed = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-c", "server.conf"], tmp_path)

    assert completed.returncode == 1
    assert 'unknown field "foo"' in completed.stderr
