"""`jetlake schema`: JSON schemas listed, shown and applied."""

import json

from typer.testing import CliRunner

from jetlake.cli.app import create


def run(*words, stdin=None):
    return CliRunner().invoke(create(), ["schema", *words], input=stdin)


def test_schemas_are_listed_by_name():
    names = json.loads(run("ls", "pause", "--json").output)

    assert names == [
        "io.nats.jetstream.advisory.v1.consumer_pause",
        "io.nats.jetstream.api.v1.consumer_pause_request",
        "io.nats.jetstream.api.v1.consumer_pause_response",
    ]
    assert "stream_configuration\t" in run("ls").output


def test_schema_is_shown_by_the_end_of_its_name():
    assert json.loads(run("show", "stream_configuration").output)["title"] == (
        "io.nats.jetstream.api.v1.stream_configuration"
    )


def test_unknown_schema_is_refused_with_a_suggestion():
    answer = run("show", "stream_configuratoin")

    assert answer.exit_code == 1
    assert "did you mean stream_configuration" in answer.stderr


def test_file_is_checked(tmp_path):
    path = tmp_path / "request.json"
    path.write_text('{"pause_until": 7}')

    wrong = run("validate", "consumer_pause_request", str(path))
    right = run("validate", "consumer_pause_request", "-", stdin='{"pause_until": "2030-01-01T00:00:00Z"}')

    assert (wrong.exit_code, wrong.output) == (1, "pause_until is 7: it must be of type string\n")
    assert (right.exit_code, right.output) == (0, "valid\n")
    assert json.loads(run("validate", "consumer_pause_request", str(path), "--json").output) == [
        "pause_until is 7: it must be of type string"
    ]


def test_what_cannot_be_read_is_refused(tmp_path):
    assert "cannot read" in run("validate", "pub_ack_response", str(tmp_path / "none")).stderr
    assert "is not JSON" in run("validate", "pub_ack_response", "-", stdin="{").stderr
