"""Declarations that come with Jetlake: the streams of a Choria broker, applied to both servers."""

import json
from pathlib import Path

import pytest

from jetlake.choria.streams import StreamRetention, broker_streams
from jetlake.errors import ConfigurationError
from jetlake.iac.reader import read
from tests.compatibility import fixtures
from tests.compatibility.fixtures import start_server

own_environment, server_kind = fixtures.own_environment, fixtures.server_kind

__all__ = ["own_environment", "server_kind", "start_server"]


def declared(**variables):
    return {resource.name: resource.config for resource in read([Path("@choria_streams")], variables, {}).resources}


def test_the_file_and_the_server_make_the_same_streams():
    found = declared()

    wanted = {config["name"]: config for config in broker_streams(StreamRetention())}
    assert found.keys() == wanted.keys()
    for name, config in wanted.items():
        # What a declaration leaves out is the API's default.
        defaults = {"retention": "limits", "storage": "file", "discard": "old", "duplicate_window": 120 * 10**9}
        assert {**defaults, **found[name]} | {"name": name} == config, name


def test_retention_and_replicas_are_variables_with_the_names_of_the_original():
    found = declared(event_retention="30d", machine_replicas="3")

    assert found["CHORIA_EVENTS"]["max_age"] == 30 * 86_400 * 10**9
    assert found["CHORIA_MACHINE"]["num_replicas"] == 3


def test_an_unknown_declaration_is_refused_with_those_there_are():
    with pytest.raises(ConfigurationError, match="did you mean choria_streams"):
        read([Path("@choria_stream")], {}, {})


def test_it_is_applied_to_a_server_and_changes_nothing_the_second_time(start_server, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from jetlake.cli.app import create

    server = start_server(["-js", "-sd", str(tmp_path / "store")])
    monkeypatch.setenv("NATS_URL", server.url)

    def run(*words):
        result = CliRunner().invoke(create(), list(words))
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "Done: 5 steps" in run("apply", "@choria_streams", "--var", "event_retention=48h")
    assert "Nothing to do" in run("apply", "@choria_streams", "--var", "event_retention=48h")
    assert "Done: 1 step" in run("apply", "@choria_streams")
    info = json.loads(run("stream", "info", "CHORIA_EVENTS", "--json"))
    assert info["config"]["max_age"] == 86_400 * 10**9
