"""`jetlake export` on both servers."""

import pytest

from tests.iac.servers import jetlake, request, server, server_kind, streams_server  # noqa: F401


@pytest.fixture
def filled(server):  # noqa: F811
    """A server with two streams and a bucket."""
    request(server, "STREAM.CREATE.A", {"name": "A", "subjects": ["a.>"], "max_age": 3600 * 10**9})
    request(server, "STREAM.CREATE.B", {"name": "B", "metadata": {"jetlake.iac": "shop"}})
    body = {"stream_name": "A", "config": {"durable_name": "c", "ack_policy": "explicit"}}
    request(server, "CONSUMER.CREATE.A.c", body)
    return server


def test_what_runs_is_written_without_defaults(filled):
    answer = jetlake(filled, "export")

    assert answer.exit_code == 0, answer.output
    assert answer.stdout == (
        "streams:\n  - name: A\n    subjects:\n      - a.>\n    max_age: 1h\n"
        "    consumers:\n      - name: c\n        ack_policy: explicit\n  - name: B\n"
    )


@pytest.mark.parametrize("ending", ["yaml", "json", "toml"])
def test_what_is_written_is_as_declared(filled, tmp_path, ending):
    path = tmp_path / f"all.{ending}"

    written = jetlake(filled, "export", "--format", ending, "--output", path)

    assert (written.exit_code, written.stdout) == (0, "")
    assert jetlake(filled, "drift", path).exit_code == 0


def test_streams_can_be_named_and_those_of_a_project(filled):
    assert jetlake(filled, "export", "B").stdout == "streams:\n  - name: B\n"
    assert jetlake(filled, "export", "--project", "shop").stdout == "project: shop\nstreams:\n  - name: B\n"


def test_a_stream_that_is_not_there_is_refused(filled):
    answer = jetlake(filled, "export", "C")

    assert answer.exit_code == 1
    assert "the server has no stream C" in answer.stderr


def test_a_folder_that_is_not_there_is_refused(filled, tmp_path):
    answer = jetlake(filled, "export", "--output", tmp_path / "absent" / "x.yaml")

    assert answer.exit_code == 1
    assert "cannot be written: no such file or directory" in answer.stderr
