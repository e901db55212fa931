"""`jetlake drift` on both servers."""

import json

import pytest

from tests.iac.servers import jetlake, request, server, server_kind, streams_server  # noqa: F401


@pytest.fixture
def path(tmp_path, server):  # noqa: F811
    """A declaration that the server has followed."""
    made = tmp_path / "streams.yaml"
    made.write_text("project: shop\nstreams: {A: {consumers: {c: {ack_policy: explicit}}}}\n")
    assert jetlake(server, "apply", made).exit_code == 0
    return made


def test_no_difference_is_zero(server, path):  # noqa: F811
    answer = jetlake(server, "drift", path)

    assert (answer.exit_code, answer.stdout) == (0, "No difference: 2 as declared.\n")


def test_a_hand_made_change_is_two(server, path):  # noqa: F811
    config = request(server, "STREAM.INFO.A")["config"]
    request(server, "STREAM.UPDATE.A", {**config, "max_msgs": 7})

    answer = jetlake(server, "drift", path)

    assert answer.exit_code == 2
    assert "~ max_msgs: 7 → unlimited" in answer.stdout


def test_something_missing_is_two(server, path):  # noqa: F811
    request(server, "CONSUMER.DELETE.A.c")

    answer = jetlake(server, "drift", path, "--json")

    assert answer.exit_code == 2
    assert [step["action"] for step in json.loads(answer.stdout)["steps"]] == ["create"]


def test_something_that_is_no_longer_declared_is_two(server, path):  # noqa: F811
    path.write_text("project: shop\nstreams: {A: {}}\n")

    answer = jetlake(server, "drift", path)

    assert answer.exit_code == 2
    assert "? consumer A/c was made by shop and is no longer declared" in answer.stdout


def test_what_others_have_made_is_no_drift(server, path):  # noqa: F811
    request(server, "STREAM.CREATE.MANUAL", {"name": "MANUAL"})

    assert jetlake(server, "drift", path).exit_code == 0


def test_an_error_is_one(server, path):  # noqa: F811
    path.write_text("streams: {A: {max_aeg: 5}}")

    assert jetlake(server, "drift", path).exit_code == 1
