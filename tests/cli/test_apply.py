"""`jetlake apply` on both servers."""

import json
import os
import subprocess
import sys

import pytest

from tests.iac.servers import jetlake, publish, request, server, server_kind, streams_server  # noqa: F401


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "streams.yaml"
    made.write_text("project: shop\nstreams: {A: {subjects: [a]}, B: {mirror: A}}\n")
    return made


def test_it_is_done_once(server, path):  # noqa: F811
    first, second = jetlake(server, "apply", path), jetlake(server, "apply", path)

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "[1/2] created stream A" in first.stdout
    assert "[2/2] created stream B" in first.stdout
    assert first.stdout.endswith("Done: 2 steps, 0 unchanged.\n")
    assert second.stdout == "Nothing to do: 2 as declared.\n"
    assert request(server, "STREAM.INFO.A")["config"]["metadata"]["jetlake.iac"] == "shop"


def test_what_destroys_needs_permission(server, path):  # noqa: F811
    jetlake(server, "apply", path)
    publish(server, "a", 5)
    path.write_text("project: shop\nstreams: {A: {subjects: [a], max_msgs: 2}, B: {mirror: A}}\n")

    refused = jetlake(server, "apply", path)
    kept = request(server, "STREAM.INFO.A")["state"]["messages"]
    allowed = jetlake(server, "apply", path, "--allow-destroy")

    assert refused.exit_code == 1
    assert "nothing was done, because the plan destroys something:" in refused.stderr
    assert "update stream A: max_msgs becomes 2: 3 of 5 messages go" in refused.stderr
    assert kept == 5
    assert allowed.exit_code == 0
    assert request(server, "STREAM.INFO.A")["state"]["messages"] == 2


def test_pruning_needs_permission_too(server, path):  # noqa: F811
    jetlake(server, "apply", path)
    request(server, "STREAM.CREATE.MANUAL", {"name": "MANUAL"})
    path.write_text("project: shop\nstreams: {A: {subjects: [a]}}\n")

    left = jetlake(server, "apply", path)
    refused = jetlake(server, "apply", path, "--prune")
    allowed = jetlake(server, "apply", path, "--prune", "--allow-destroy")

    assert left.stdout.splitlines()[-1] == "stream B was made by shop and is no longer declared; --prune removes it"
    assert refused.exit_code == 1
    assert "removed stream B" in allowed.stdout
    assert request(server, "STREAM.NAMES")["streams"] == ["A", "MANUAL"]


def test_pruning_goes_on_after_a_stream_that_is_replaced_with_a_consumer_that_is_no_longer_declared(
    server,  # noqa: F811
    path,
):
    consumers = "consumers: {c1: {ack_policy: explicit}, c2: {ack_policy: explicit}}"
    path.write_text(f"project: shop\nstreams: {{A: {{subjects: [a], {consumers}}}, B: {{subjects: [b]}}}}\n")
    jetlake(server, "apply", path)
    path.write_text(
        "project: shop\nstreams: {A: {subjects: [a], storage: memory, consumers: {c1: {ack_policy: explicit}}}}\n"
    )

    answer = jetlake(server, "apply", path, "--prune", "--allow-destroy")

    assert answer.exit_code == 0, answer.output
    assert request(server, "STREAM.NAMES")["streams"] == ["A"]
    assert request(server, "CONSUMER.NAMES.A")["consumers"] == ["c1"]


def test_a_refusal_of_the_server_says_what_was_done_and_what_was_not(server, path):  # noqa: F811
    path.write_text("streams: {A: {}, B: {discard_new_per_subject: true}, C: {}}\n")

    answer = jetlake(server, "apply", path)

    assert answer.exit_code == 1
    lines = answer.stderr.splitlines()
    assert lines[0].startswith("jetlake apply: create stream B failed: ")
    assert lines[1:3] == ["done: create stream A", "not done: create stream B, create stream C"]
    assert request(server, "STREAM.NAMES")["streams"] == ["A"]


@pytest.mark.parametrize(("wrong", "code"), [("", 0), (", WRONG: {discard_new_per_subject: true}", 1)])
def test_everything_is_done_when_its_reader_has_seen_enough(server, path, wrong, code):  # noqa: F811
    names = [f"S{number:02}" for number in range(50)]
    path.write_text(f"streams: {{{', '.join(f'{name}: {{}}' for name in names)}{wrong}}}\n")
    command = f"{sys.executable} -m jetlake apply {path} --yes | head -1; exit ${{PIPESTATUS[0]}}"

    answer = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"NATS_URL": server.url},
    )

    assert (answer.returncode, answer.stdout) == (code, f"[1/{50 + code}] created stream S00\n"), answer.stderr
    assert ("create stream WRONG failed" in answer.stderr) == bool(wrong)
    assert request(server, "STREAM.NAMES")["streams"] == names


def test_json_says_the_same(server, path):  # noqa: F811
    path.write_text("streams: {A: {}, B: {discard_new_per_subject: true}, C: {}}\n")

    facts = json.loads(jetlake(server, "apply", path, "--json").stdout)

    assert facts["done"] == [{"action": "create", "title": "stream A"}]
    assert facts["failed"]["title"] == "stream B"
    assert facts["not_done"] == [{"action": "create", "title": "stream C"}]


def test_a_plan_that_was_kept_is_carried_out(server, path, tmp_path):  # noqa: F811
    kept = tmp_path / "plan.json"
    jetlake(server, "plan", path, "--out", kept)
    path.unlink()

    answer = jetlake(server, "apply", kept)

    assert answer.exit_code == 0, answer.output
    assert request(server, "STREAM.NAMES")["streams"] == ["A", "B"]


def test_a_plan_that_was_kept_is_refused_when_the_server_has_changed(server, path, tmp_path):  # noqa: F811
    kept = tmp_path / "plan"
    jetlake(server, "plan", path, "--out", kept)
    request(server, "STREAM.CREATE.A", {"name": "A", "subjects": ["other"]})

    answer = jetlake(server, "apply", kept)

    assert answer.exit_code == 1
    assert "the server has changed since this plan was made" in answer.stderr
    assert request(server, "STREAM.NAMES")["streams"] == ["A"]


def test_a_plan_that_was_kept_knows_of_messages_that_came_since(server, path, tmp_path):  # noqa: F811
    jetlake(server, "apply", path)
    path.write_text("project: shop\nstreams: {A: {subjects: [a], max_msgs: 2}, B: {mirror: A}}\n")
    kept = tmp_path / "plan"
    jetlake(server, "plan", path, "--out", kept)
    publish(server, "a", 5)

    answer = jetlake(server, "apply", kept)

    assert answer.exit_code == 1
    assert "3 of 5 messages go" in answer.stderr


def test_a_kept_plan_takes_no_options(server, path, tmp_path):  # noqa: F811
    kept = tmp_path / "plan"
    jetlake(server, "plan", path, "--out", kept)

    answer = jetlake(server, "apply", kept, "--prune")

    assert answer.exit_code == 1
    assert "is complete" in answer.stderr


def test_what_another_project_has_made_is_taken_over_only_when_asked(server, path):  # noqa: F811
    jetlake(server, "apply", path)
    path.write_text("project: other\nstreams: {A: {subjects: [a]}}\n")

    refused, taken = jetlake(server, "apply", path), jetlake(server, "apply", path, "--take-over")

    assert "belongs to project 'shop'" in refused.stderr
    assert taken.exit_code == 0
    assert request(server, "STREAM.INFO.A")["config"]["metadata"]["jetlake.iac"] == "other"
