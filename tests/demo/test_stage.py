"""The folder and the server of the demo: nobody else's files are touched, and nothing is left running."""

import socket

import pytest

import jetlake
from jetlake.demo.stage import PORT, Stage
from jetlake.errors import ConfigurationError
from tests.demo.conftest import SMALLEST


def test_folder_of_somebody_else_is_refused_and_stays_as_it_is(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")

    with pytest.raises(ConfigurationError, match="is not empty"), Stage(tmp_path, SMALLEST):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_second_demo_in_a_folder_is_refused_while_the_first_one_runs(tmp_path):
    with (
        Stage(tmp_path, SMALLEST) as first,
        pytest.raises(ConfigurationError, match="another demo is running"),
        Stage(tmp_path, SMALLEST),
    ):
        pass

    assert first.folder == tmp_path


def test_next_demo_begins_with_an_empty_store(tmp_path):
    with Stage(tmp_path, SMALLEST) as stage:
        stage.create_stream("ORDERS", "orders.>")

    with Stage(tmp_path, SMALLEST) as stage:
        assert stage.with_api(lambda api: api.stream_names()) == []


def test_port_that_is_taken_is_left_to_whoever_has_it(tmp_path):
    with jetlake.Server() as other, socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", PORT))
            taken.listen()
        except OSError:
            # Somebody else has it, which is as good.
            pass
        with Stage(tmp_path, SMALLEST) as stage:
            assert stage.server.port not in (PORT, other.port)


def test_server_is_gone_after_an_error(tmp_path):
    ports = []

    def interrupted():
        with Stage(tmp_path, SMALLEST) as stage:
            ports.append(stage.server.port)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", ports[0])) != 0
