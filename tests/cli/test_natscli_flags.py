"""Flags of NATS' own tool that people lean on, against both servers."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import asked_until


def test_consumer_next_waits_as_long_as_told(done, cli):
    done("stream", "add", "W1", "--subjects", "w1")
    done("consumer", "add", "W1", "c", "--pull", "--defaults")

    result = cli("consumer", "next", "W1", "c", "--wait", "100ms")
    assert result.exit_code == 1
    assert "had no message within 0.1 s" in result.stderr
    done("pub", "w1", "hello", "--jetstream")
    assert "hello" in done("consumer", "next", "W1", "c", "--wait", "5s")


def test_atomic_batch_is_stored_as_a_whole(done, cli, read):
    done("stream", "add", "B1", "--subjects", "b1.>", "--allow-batch")
    done("stream", "add", "B2", "--subjects", "b2.>")

    sent = read("pub", "b1.a", "message {{Count}}", "--count", "3", "--atomic")

    assert sent[-1]["sequence"] == 3
    assert read("stream", "info", "B1")["state"]["messages"] == 3
    assert read("stream", "get", "B1", "2")["data"] == "message 2"
    refused = cli("pub", "b2.a", "x", "--count", "2", "--atomic")
    assert refused.exit_code == 1
    assert "10174" in refused.stderr
    assert read("stream", "info", "B2")["state"]["messages"] == 0
    assert cli("pub", "b1.a", "x", "--count", "1001", "--atomic").exit_code == 2


def test_scheduled_message_is_published_to_its_destination(done, read, cli):
    done("stream", "add", "T1", "--subjects", "t1.>", "--allow-schedules", "--allow-msg-ttl")

    done("pub", "t1.plan", "later", "--schedule-after", "1h", "--schedule-dest", "t1.out", "--schedule-ttl", "1m")
    done("pub", "t1.now", "soon", "--schedule-at", "2020-01-01T00:00:00Z", "--schedule-dest", "t1.soon")

    headers = read("stream", "get", "T1", "--last-for", "t1.plan")["headers"]
    assert headers["Nats-Schedule"].startswith("@at 2")
    assert headers["Nats-Schedule-Target"] == "t1.out"
    assert headers["Nats-Schedule-TTL"] == "60s"
    assert "soon" in done("sub", "t1.soon", "--stream", "T1", "--all", "--count", "1", "--wait", "20s")
    for words in (
        ("--schedule-every", "5s"),
        ("--schedule-dest", "t1.x"),
        ("--schedule-every", "5s", "--schedule-cron", "* * * * * *", "--schedule-dest", "t1.x"),
    ):
        assert cli("pub", "t1.bad", "x", *words).exit_code == 2


def test_direct_get_gives_the_same_message(done, read, cli):
    done("stream", "add", "D1", "--subjects", "d1.>")
    done("pub", "d1.a", "content", "-H", "Kind:test", "--jetstream")
    done("stream", "add", "D2", "--subjects", "d2", "--no-allow-direct")

    assert read("stream", "get", "D1", "1", "--direct") == read("stream", "get", "D1", "1")
    assert read("stream", "get", "D1", "--last-for", "d1.a", "--direct")["sequence"] == 1
    assert "D1 has no message 9" in cli("stream", "get", "D1", "9", "--direct").stderr
    assert "does not allow direct gets" in cli("stream", "get", "D2", "1", "--direct").stderr


def test_mirror_of_another_account_is_declared(done, tmp_path):
    path = tmp_path / "mirror.json"

    done("stream", "add", "M1", "--mirror", "O", "--external", "$JS.hub.API", "--output", str(path))

    config = json.loads(path.read_text())
    assert config["mirror"] == {"name": "O", "external": {"api": "$JS.hub.API"}}


def test_server_info_shows_what_the_server_says(read, done):
    said = read("server", "info")["info"]

    assert said["jetstream"] is True
    assert "version: " in done("server", "info")


def test_server_list_needs_the_system_account(start_server, cli, monkeypatch):
    server = start_server(
        config="server_name: harbour\nsystem_account: SYS\n"
        "accounts: { SYS: { users: [ {user: admin, password: pw} ] } }\n"
    )
    monkeypatch.setenv("NATS_URL", server.url)

    refused = cli("server", "ls", "--timeout", "1s")
    listing = ("server", "ls", "--user", "admin", "--password", "pw", "--json")
    listed = asked_until(lambda: cli(*listing), lambda answer: answer.exit_code == 0)

    assert refused.exit_code == 1
    assert listed.exit_code == 0, listed.output
    assert [each["server"]["name"] for each in json.loads(listed.stdout)] == ["harbour"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("connection", "--warn", "1h", "--critical", "2h"), 0, "OK connection: round trip"),
        (("connection", "--warn", "1ns", "--critical", "1h"), 1, "WARNING connection"),
        (("connection", "--critical", "1ns"), 2, "CRITICAL connection"),
        (("jetstream",), 0, "OK jetstream: "),
        (("stream", "C1"), 0, "OK stream: C1: 2 messages"),
        (("stream", "C1", "--messages-warn", "5"), 1, "WARNING stream"),
        (("stream", "C1", "--messages-critical", "5"), 2, "CRITICAL stream"),
        (("stream", "NOPE"), 2, "CRITICAL stream: "),
        (("consumer", "C1", "c"), 0, "OK consumer: c: 2 pending"),
        (("consumer", "C1", "c", "--pending-warn", "2"), 1, "WARNING consumer"),
        (("consumer", "C1", "c", "--pending-critical", "2"), 2, "CRITICAL consumer"),
    ],
)
def test_checks_end_as_monitoring_systems_expect(done, cli, words, code, text):
    if "C1" not in done("stream", "ls", "--names"):
        done("stream", "add", "C1", "--subjects", "c1")
        done("consumer", "add", "C1", "c", "--pull", "--defaults")
        done("pub", "c1", "x", "--count", "2", "--jetstream")

    result = cli("server", "check", *words)
    as_json = cli("server", "check", *words, "--json")

    assert result.exit_code == as_json.exit_code == code, result.output
    assert text in result.stdout
    assert json.loads(as_json.stdout)["status"] == text.partition(" ")[0]


def test_check_of_a_server_that_is_not_there_is_critical(cli):
    result = cli("server", "check", "connection", "--server", "nats://127.0.0.1:9")

    assert result.exit_code == 2
    assert "Nothing is listening at 127.0.0.1:9" in result.stdout
