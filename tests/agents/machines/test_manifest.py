"""Manifests: the original's load, mistakes are named with their line, and no text makes the reader fail otherwise."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.agents.machines.manifest import check_manifest, parse_manifest, read_manifest
from jetlake.agents.machines.schema import schema_problems
from jetlake.agents.machines.watcher_options import ExecOptions, KvOptions, ScheduleOptions
from jetlake.errors import ConfigurationError

ROLLING_UPDATE = """
name: updater
version: 1.2.3
initial_state: WAIT
splay_start: 30
transitions:
  - name: update_deployment
    from: [WAIT]
    destination: REGION_UPDATE
    description: A new version is wanted
  - name: health_check
    from: [REGION_UPDATE]
    destination: CHECK
  - name: done
    from: [CHECK]
    destination: WAIT
    subscribe:
      - {machine_name: monitoring, event: healthy}
watchers:
  - name: wanted
    type: kv
    interval: 10s
    state_match: [WAIT]
    success_transition: update_deployment
    properties: {bucket: CFG, key: deployment.version, mode: poll, on_successful_get: true}
  - name: update
    type: exec
    interval: 20s
    announce_interval: 1h
    state_match: [REGION_UPDATE]
    success_transition: health_check
    foreign_state_required:
      - {machine_name: monitoring, state: OK}
    properties:
      command: ./update.sh {{ lookup "data.CFG_deployment\\\\.version" "none" }}
      timeout: 60s
      governor: NATS_SUPERCLUSTER
      environment: ['REGION={{ lookup "facts.region" "eu" }}']
  - name: nightly
    type: schedule
    state_match: [WAIT]
    success_transition: update_deployment
    properties: {duration: 1h30m, start_splay: 10m, schedules: ["0 2 * * SUN", "@daily"]}
  - {name: patience, type: timer, state_match: [CHECK], fail_transition: done, properties: {timer: 2h}}
  - {name: motd, type: file, interval: 1m, properties: {path: /etc/motd, gather_initial_state: true}}
  - {name: load, type: metric, properties: {command: ./load, interval: 30s, labels: {dc: ldn}}}
  - {name: check, type: nagios, interval: 5m, properties: {plugin: ./check.sh, annotations: {team: web}}}
"""

SMALL = """
name: small
version: 1.0.0
initial_state: A
transitions:
  - {name: go, from: [A], destination: B}
watchers:
  - {name: w, type: exec, properties: {command: "true"}}
"""


def refusal_of(text):
    with pytest.raises(ConfigurationError) as refused:
        parse_manifest(text, "machine.yaml")
    return str(refused.value)


def test_a_manifest_of_the_original_loads_with_all_its_watchers():
    manifest = parse_manifest(ROLLING_UPDATE, "machine.yaml")

    assert (manifest.name, manifest.version, manifest.splay_start_s) == ("updater", "1.2.3", 30)
    assert manifest.states == ("WAIT", "REGION_UPDATE", "CHECK")
    assert [watcher.kind for watcher in manifest.watchers] == [
        "kv", "exec", "schedule", "timer", "file", "metric", "nagios",
    ]  # fmt: skip
    wanted, update, nightly = manifest.watchers[:3]
    assert wanted.options == KvOptions(bucket="CFG", key="deployment.version", mode="poll", on_successful_get=True)
    assert isinstance(update.options, ExecOptions)
    assert (update.interval_s, update.announce_interval_s, update.options.timeout_s) == (20, 3600, 60)
    assert (update.options.governor, update.options.governor_timeout_s) == ("NATS_SUPERCLUSTER", 300)
    assert update.foreign_states[0].machine == "monitoring"
    assert isinstance(nightly.options, ScheduleOptions)
    assert (nightly.options.duration_s, nightly.options.start_splay_s) == (5400, 600)
    assert manifest.transitions[2].subscriptions[0].event == "healthy"


def test_manifests_agree_with_the_published_schema():
    assert schema_problems(ROLLING_UPDATE, "machine.yaml") == []
    assert schema_problems(SMALL, "machine.yaml") == [
        "initial_state is 'A': it must match ^[a-zA-Z][a-zA-Z0-9_-]+$"
    ] + [
        f"transitions[0].{key} is '{state}': it must match ^[a-zA-Z][a-zA-Z0-9_-]+$"
        for key, state in (("from[0]", "A"), ("destination", "B"))
    ] + ["watchers[0].name is 'w': it must match ^[a-zA-Z][a-zA-Z0-9_-]+$"]


def test_words_that_old_yaml_takes_for_true_and_false_are_states():
    text = SMALL.replace("from: [A], destination: B", "from: [on], destination: off").replace("state: A", "state: on")

    assert parse_manifest(text, "m").states == ("on", "off")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("name: small\n", "", "machine.yaml:2: the machine: name is required"),
        ("version: 1.0.0\n", "", "version is required"),
        ("state: A", "state:", "initial_state is required"),
        ("from: [A]", "from: A", "machine.yaml:6: transition 'go': from is the text 'A': write a list"),
        ("from: [A]", "from: []", "from is empty"),
        ("type: exec", "type: exe", "type 'exe' is unknown; did you mean exec?"),
        ("type: exec", "type: archive", "type 'archive' is not supported here"),
        ('{command: "true"}', "{}", "machine.yaml:8: watcher 'w': command is required"),
        ('{command: "true"}', '{command: "{{ lookup }"}', "a template is not closed"),
        ('{command: "true"}', '{command: "{{ look 1 }}"}', "there is no function 'look'; did you mean lookup?"),
        ('{command: "true"}', "{command: x, timeout: soon}", "timeout is 'soon': write a duration such as 10s"),
        ('{command: "true"}', "{command: x, disown: true, parse_as_data: true}", "exclude each other"),
        ('{command: "true"}', "{command: x, environment: [PATH]}", "write NAME=value"),
        ('{command: "true"}', "{command: x, gather_initial_state: true}", "gather_initial_state needs an interval"),
        ("type: exec,", "type: exec, interval: 10ms,", "it must be at least 0.5 s"),
        ("type: exec,", "type: exec, announce_interval: 10s,", "announce_interval is 10s: it must be at least 60 s"),
        ("type: exec,", "type: exec, state_match: [C],", "invalid state C in state match for watcher w"),
        ("type: exec,", "type: exec, fail_transition: g0,", "invalid fail_transition g0 specified in watcher w; did"),
        ("  - {name: w,", "  - {name: w, type: exec, properties: {command: x}}\n  - {name: w,", "two watchers 'w'"),
        ("destination: B}", "destination: B}\n  - {name: go, from: [A], destination: C}", "both B and C"),
    ],
)
def test_mistakes_are_named_with_their_line(before, after, reason):
    assert reason in refusal_of(SMALL.replace(before, after))


@pytest.mark.parametrize(
    ("watcher", "reason"),
    [
        ("{name: w, type: kv, properties: {bucket: a.b, key: k}}", "bucket is 'a.b': use letters"),
        ("{name: w, type: kv, properties: {bucket: B, key: k, mode: poll}}", "interval is required"),
        ("{name: w, type: kv, properties: {bucket: B, key: k, mode: pull}}", "did you mean poll?"),
        ("{name: w, type: timer, success_transition: go, properties: {timer: 1s}}", "does not support success events"),
        ("{name: w, type: nagios, properties: {}}", "plugin or builtin is required"),
        ("{name: w, type: nagios, properties: {plugin: x, builtin: heartbeat}}", "cannot set plugin and builtin"),
        ("{name: w, type: nagios, properties: {builtin: goss}}", "builtin 'goss' is not supported"),
        ("{name: w, type: schedule, properties: {schedules: ['61 * * * *']}}", "'61' is not a minute: 0 to 59"),
        ("{name: w, type: schedule, properties: {schedules: []}}", "schedules is empty"),
        ("{name: w, type: schedule, properties: {schedules: ['@daily'], duration: 1m, start_splay: 1m}}", "half the"),
        ("{name: w, type: file, properties: {path: x, contents: y}}", "owner is required when"),
        ("{name: w, type: file, properties: {path: x, contents: y, owner: a, group: b, mode: '9'}}", "octal digits"),
    ],
)
def test_mistakes_of_each_type_are_named(watcher, reason):
    assert reason in refusal_of(SMALL.replace('{name: w, type: exec, properties: {command: "true"}}', watcher))


def test_what_is_unknown_is_ignored_with_a_warning():
    manifest, problems = check_manifest(SMALL + "colour: blue\n", "machine.yaml")

    assert manifest is not None
    assert [str(problem) for problem in problems] == [
        "machine.yaml:9: warning: the machine: 'colour' is unknown and ignored"
    ]


def test_all_mistakes_are_found_at_once():
    _, problems = check_manifest("version: 1\nwatchers: [{name: w, type: exec}, 5]\n", "m")

    assert len([problem for problem in problems if problem.is_error]) >= 5


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"a machine's folder has a machine\.yaml"):
        read_manifest(tmp_path)
    (tmp_path / "machine.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        read_manifest(tmp_path)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["exec", "kv", "timer", "A", "go", "1s", "{{", "{{ lookup }}", "* * * * *", "@every 1h"]),
)
KEY_NAMES = """name version initial_state transitions watchers from destination type properties state_match interval
command timer schedules bucket key mode plugin path contents subscribe machine_name event environment labels"""
KEYS = st.sampled_from(KEY_NAMES.split())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=20,
)


@given(content=st.dictionaries(KEYS, VALUES, max_size=8))
@settings(max_examples=200, deadline=None)
def test_any_structure_is_a_manifest_or_has_an_error_with_a_place(content):
    import yaml

    manifest, problems = check_manifest(yaml.safe_dump(content), "any.yaml")

    assert (manifest is None) == any(problem.is_error for problem in problems)
    assert all(str(problem).startswith("any.yaml") for problem in problems)


@given(text=st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text):
    manifest, problems = check_manifest(text, "any.yaml")

    assert manifest is None
    assert problems


@given(position=st.integers(0, len(ROLLING_UPDATE) - 1), piece=st.text(max_size=6))
@settings(max_examples=200, deadline=None)
def test_a_manifest_with_a_piece_replaced_is_read_or_refused(position, piece):
    text = ROLLING_UPDATE[:position] + piece + ROLLING_UPDATE[position + 3 :]

    manifest, problems = check_manifest(text, "any.yaml")

    assert (manifest is None) == any(problem.is_error for problem in problems)
