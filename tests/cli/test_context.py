"""`jetlake context`: named connections, and what a line makes of them."""

import json
import os
import stat

import pytest
from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create
from jetlake.client import contexts


def run(*words):
    return CliRunner().invoke(create(), list(words))


def test_saved_connection_is_used_by_name_and_when_it_is_chosen(tmp_path):
    with jetlake.Server(token="t0p") as server:
        assert run("rtt", "-s", server.url).exit_code == 1
        assert run("context", "add", "secret", "-s", server.url, "--token", "t0p").exit_code == 0

        assert run("rtt", "--context", "secret").exit_code == 0
        assert run("context", "select", "secret").output == "Context secret is chosen\n"
        assert run("rtt", "--json").exit_code == 0


def test_variables_choose_too(monkeypatch):
    with jetlake.Server(user="ada", password="pw") as server:
        run("context", "add", "ada", "-s", server.url, "--user", "ada", "--password", "pw")
        monkeypatch.setenv("NATS_CONTEXT", "ada")

        assert run("rtt").exit_code == 0
        monkeypatch.setenv("NATS_PASSWORD", "wrong")
        assert run("rtt").exit_code == 1


def test_files_are_those_of_nats_own_command_line(tmp_path):
    folder = tmp_path / "config" / "nats"
    (folder / "context").mkdir(parents=True)
    (folder / "context" / "old.json").write_text('{"url": "nats://old:4222", "color_scheme": "red", "user": "u"}')
    (folder / "context.txt").write_text("old")

    listed = json.loads(run("context", "ls", "--json").output)
    run("context", "add", "old", "-s", "nats://new:4222")

    assert listed == [{"name": "old", "url": "nats://old:4222", "selected": True}]
    content = json.loads((folder / "context" / "old.json").read_text())
    assert content == {"url": "nats://new:4222", "color_scheme": "red", "user": "u"}


def test_file_is_for_its_owner_only():
    run("context", "add", "own", "--token", "t")

    assert stat.S_IMODE(os.stat(contexts.folder() / "context" / "own.json").st_mode) == 0o600


def test_secrets_are_hidden_unless_asked_for():
    run("context", "add", "hidden", "-s", "nats://ada:pw@host:1", "--password", "secret", "--user", "ada")

    assert "secret" not in run("context", "info", "hidden").output
    assert "pw" not in run("context", "ls").output
    shown = json.loads(run("context", "info", "hidden", "--show-secrets", "--json").output)
    assert (shown["password"], shown["url"]) == ("secret", "nats://ada:pw@host:1")


def test_dash_is_the_one_before():
    for name in ("a", "b"):
        run("context", "add", name, "--select")

    assert run("context", "select", "-").output == "Context a is chosen\n"
    assert run("context", "previous").output == "Context b is chosen\n"
    run("context", "unselect")
    assert contexts.chosen() == ""


def test_contexts_are_copied_and_deleted():
    run("context", "add", "a", "-s", "nats://a:1")
    run("context", "copy", "a", "b", "--token", "t")

    assert contexts.read("b") == {"url": "nats://a:1", "token": "t"}
    assert run("context", "rm", "a").exit_code == 2
    assert run("context", "rm", "a", "--force").exit_code == 0
    assert contexts.names() == ["b"]


def test_validation_finds_what_is_missing(jetlake_server):
    run("context", "add", "good", "-s", jetlake_server.url)
    assert run("context", "validate", "--connect").exit_code == 0

    run("context", "add", "bad", "--creds", "/no/such/file")
    answer = run("context", "validate", "--json")

    assert answer.exit_code == 1
    assert json.loads(answer.output) == {"good": "", "bad": "there is no file /no/such/file"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("info",), "no context is chosen"),
        (("info", "nowhere"), "there is no context 'nowhere'"),
        (("add", "a/b"), "cannot be the name of a context"),
        (("select", "-"), "no context was chosen before"),
        (("rm", "nowhere", "--force"), "there is no context 'nowhere'"),
    ],
)
def test_refusals_are_told(words, text):
    answer = run("context", *words)

    assert answer.exit_code == 1
    assert text in answer.output


def test_damaged_file_is_named(tmp_path):
    (tmp_path / "config" / "nats" / "context").mkdir(parents=True)
    (tmp_path / "config" / "nats" / "context" / "bad.json").write_text("{")

    answer = run("rtt", "--context", "bad")

    assert answer.exit_code == 1
    assert "bad.json is not JSON" in answer.output
