"""Watchers without a server: exec, file, timer, schedule, metric and nagios do what the original's do."""

import asyncio
import json
import os
import stat

from jetlake.agents.machines.perfdata import parse_performance_data
from jetlake.agents.machines.watchers.metric import read_metrics
from jetlake.client.schemas import problems, read
from tests.agents.machines.running import is_there, manifest, read_json, running, write


def check_schema(body):
    if body["type"] in ("exec", "file", "nagios"):
        assert list(problems(body, read(f"choria.machine.watcher.{body['type']}.v1.state"))) == []


# exec


async def test_a_command_runs_in_its_state_and_its_outcome_fires(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: start, type: exec, interval: 0.5s, state_match: [A], success_transition: go, "
            'properties: {command: "true"}}\n'
            "  - {name: work, type: exec, state_match: [B], success_transition: never, fail_transition: back, "
            "properties: {command: ./work.sh one 'two three', environment_file: variables, "
            'environment: [\'WHO={{ lookup "node.identity" "" }}\']}}',
            transitions="[{name: go, from: [A], destination: B}, {name: back, from: [B], destination: C}, "
            "{name: never, from: [B], destination: D}]",
        ),
        **{"work.sh": 'env > environment; cat $WATCHER_FACTS > facts; echo "$@" > arguments; echo sorry; exit 7'},
    )
    (folder / "variables").write_text("# a comment\nCOLOUR='light blue'\n")

    async with running(folder) as found:
        await found.until_state("C")
        events = found.events("exec")

    environment = dict(line.partition("=")[::2] for line in (folder / "environment").read_text().splitlines())
    assert environment["MACHINE_NAME"] == "m"
    assert environment["MACHINE_WATCHER_NAME"] == "work"
    assert environment["WHO"] == "web1.example.net"
    assert environment["COLOUR"] == "light blue"
    assert environment["PATH"].endswith(f":{folder}")
    assert "HOME" not in environment
    assert not is_there(environment["WATCHER_DATA"])
    assert (folder / "arguments").read_text() == "one two three\n"
    assert (folder / "facts").read_text() == "{}"
    assert [event["previous_outcome"] for event in events] == ["success", "error"]
    assert events[1]["command"] == "./work.sh one 'two three'"
    assert events[1]["previous_run_time"] > 0
    for event in events:
        check_schema(event)
    assert any("exit code 7, it said: sorry" in line for line in found.log)


async def test_the_output_of_a_command_becomes_data_that_survives(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: gather, type: exec, interval: 0.5s, state_match: [A], success_transition: go, "
            "fail_transition: back, properties: {command: ./gather.sh, parse_as_data: true, "
            "suppress_success_announce: true}}"
        ),
        **{"gather.sh": """echo '{"port": 4222, "tags": ["a"]}'"""},
    )

    async with running(folder) as found:
        await found.until_state("B")
        assert found.machine.data == {"port": 4222, "tags": ["a"]}
        assert found.events("exec") == []
    assert read_json(folder / "machine_data.json") == {"port": 4222, "tags": ["a"]}

    (folder / "gather.sh").write_text("#!/bin/sh\necho nonsense\n")
    (folder / "machine_state.json").unlink()
    async with running(folder) as found:
        assert found.machine.data["port"] == 4222
        await found.until(lambda: any("is not JSON" in line for line in found.log))


async def test_a_command_that_hangs_fails_and_other_machines_go_on(tmp_path):
    hanging = write(
        tmp_path / "hanging",
        manifest(
            "  - {name: hang, type: exec, interval: 0.5s, state_match: [A], fail_transition: go, "
            "properties: {command: sleep 600, timeout: 6s}}",
            name="hanging",
        ),
    )
    lively = write(
        tmp_path / "lively",
        manifest(
            "  - {name: a, type: exec, state_match: [A, B], interval: 0.5s, success_transition: go, "
            'properties: {command: "true"}}',
            name="lively",
        ),
    )

    async with running(hanging, lively) as found:
        other = found.host.find(name="lively")[0]
        await found.until(lambda: other.state == "B")
        assert found.machine.state == "A"
        await found.until_state("B")
    assert any("killed after 6 s" in line for line in found.log)


async def test_an_agent_that_stops_kills_its_commands(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest("  - {name: hang, type: exec, interval: 0.5s, properties: {command: ./hang.sh, timeout: 10m}}"),
        **{"hang.sh": "echo $$ > pid; exec sleep 600"},
    )

    async with running(folder) as found:
        await found.until(lambda: (folder / "pid").exists() and bool((folder / "pid").read_text().strip()))
    pid = int((folder / "pid").read_text())
    await found.until(lambda: not is_there(f"/proc/{pid}"))


async def test_a_command_whose_environment_cannot_be_read_fails(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: a, type: exec, interval: 0.5s, state_match: [A], fail_transition: go, "
            'properties: {command: \'echo {{ lookup "data.nothing" "" | Base64Decode | ToLower }}\', '
            "environment_file: missing}}"
        ),
    )

    async with running(folder) as found:
        await found.until_state("B")
    assert any("cannot read the environment file" in line for line in found.log)


# file


async def test_a_file_that_changes_fires_and_one_that_is_missing_fails(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: look, type: file, interval: 0.5s, state_match: [A, B], success_transition: go, "
            "fail_transition: back, properties: {path: watched, gather_initial_state: true}}"
        ),
    )
    (folder / "watched").write_text("x")
    os.utime(folder / "watched", (1_000, 1_000))

    async with running(folder) as found:
        await found.until(lambda: found.machine._watchers[0].state_fields()["previous_outcome"] == "unchanged")
        assert found.machine.state == "A"
        os.utime(folder / "watched", (2_000, 2_000))
        await found.until_state("B")
        (folder / "watched").unlink()
        await found.until_state("A")
        outcomes = [event["previous_outcome"] for event in found.events("file")]
        for event in found.events("file"):
            check_schema(event)

    assert outcomes[:2] == ["changed", "error"]
    assert found.events("file")[0]["path"] == str(folder / "watched")


async def test_contents_are_kept_as_the_manifest_says(tmp_path):
    owner, group = os.geteuid(), os.getegid()
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: keep, type: file, interval: 0.5s, success_transition: go, properties: {path: kept, "
            'contents: \'user={{ lookup "data.user" "none" }}\', '
            f"owner: '{owner}', group: '{group}', mode: '0640'}}}}"
        ),
    )

    async with running(folder, data={"user": "bob"}) as found:
        await found.until_state("B")
        assert (folder / "kept").read_text() == "user=bob"
        assert stat.S_IMODE((folder / "kept").stat().st_mode) == 0o640
        (folder / "kept").write_text("mischief")
        await found.until(lambda: (folder / "kept").read_text() == "user=bob")
        await found.machine.put_data({"user": "alice"})
        await found.until(lambda: (folder / "kept").read_text() == "user=alice")


# timer


async def test_a_timer_fires_after_its_state_was_entered_and_stops_when_it_is_left(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: wait, type: timer, state_match: [A], fail_transition: go, properties: {timer: 1s}}\n"
            "  - {name: long, type: timer, state_match: [B], fail_transition: back, properties: {timer: 1h}}"
        ),
    )

    async with running(folder) as found:
        await found.until_state("B")
        await found.until(lambda: len(found.events("timer")) >= 3)
        events = found.events("timer")
        await found.machine.fire("back")
        await found.until(lambda: [e["state"] for e in found.events("timer") if e["name"] == "long"][-1] == "stopped")

    assert [event["state"] for event in events if event["name"] == "wait"] == ["running", "stopped"]
    assert [event["timer"] for event in events if event["name"] == "long"] == [3_600_000_000_000]


# schedule


async def test_a_schedule_opens_and_closes(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: now, type: schedule, state_match: [A, B], success_transition: go, fail_transition: back, "
            "properties: {duration: 1s, schedules: ['@every 2s']}}"
        ),
    )

    async with running(folder) as found:
        await found.until_state("B")
        await found.until_state("A")
        events = found.events("schedule")

    assert [event["state"] for event in events[:2]] == ["on", "off"]


async def test_a_schedule_fires_again_in_its_window_unless_that_is_to_be_skipped(tmp_path):
    for skip, expected in ((False, 2), (True, 1)):
        folder = write(
            tmp_path / f"skip{skip}",
            manifest(
                "  - {name: now, type: schedule, state_match: [A], success_transition: go, "
                f"properties: {{duration: 1h, schedules: ['@every 1s'], skip_trigger_on_reenter: '{skip}'}}}}"
            ),
        )
        async with running(folder) as found:
            await found.until_state("B")
            await found.machine.fire("back")
            watcher = found.machine._watchers[0]
            await found.until(lambda: watcher._previous_state == "on" or found.machine.state == "B")  # noqa: B023

            def fired(found=found) -> int:
                return sum(event["transition"] == "go" for event in found.events("transition"))

            if not skip:
                await found.until(lambda: fired() == expected)  # noqa: B023
            assert fired() == expected


# metric


async def test_metrics_go_into_events_data_prometheus_and_graphite(tmp_path):
    received = bytearray()

    async def serve(reader, writer):
        received.extend(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    (tmp_path / "prometheus").mkdir()
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: load, type: metric, properties: {command: ./load.sh, interval: 1s, store: true, "
            f"labels: {{dc: ldn}}, graphite_host: 127.0.0.1, graphite_port: '{port}', graphite_prefix: 'x.y'}}}}"
        ),
        **{"load.sh": """echo '{"labels": {"cpu": "0"}, "metrics": {"one": 0.5, "five": 2}}'"""},
    )

    async with running(folder, prometheus_folder=str(tmp_path / "prometheus")) as found:
        # Not only the first connection: one that took too long is given up, and there is another with the next metrics.
        await found.until(lambda: b"x.y.one 0.500000 " in received)
        await found.until(lambda: bool(found.events("metric")))
        event = found.events("metric")[0]
        data = found.machine.data
    server.close()
    await server.wait_closed()

    assert event["metrics"]["labels"] == {"format": "choria", "cpu": "0", "dc": "ldn"}
    assert event["metrics"]["metrics"]["one"] == 0.5
    assert event["metrics"]["metrics"]["choria_runtime_seconds"] > 0
    assert data["metric"]["load"]["metrics"]["five"] == 2
    assert b"x.y.one 0.500000 " in received
    text = (tmp_path / "prometheus" / "choria_machine_metrics_watcher_status.prom").read_text()
    assert 'choria_machine_metric_watcher_load_one{format="choria",cpu="0",dc="ldn"} 0.500000' in text


async def test_metrics_that_cannot_be_read_fail(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: load, type: metric, state_match: [A], fail_transition: go, "
            "properties: {command: ./load.sh, interval: 1s}}"
        ),
        **{"load.sh": """echo '{"metrics": {"one": "much"}}'"""},
    )

    async with running(folder) as found:
        await found.until_state("B")


def test_performance_data_is_read_as_the_original_does():
    assert parse_performance_data("OK: fine | load=0.5;1;2 'free space'=12MB time=3ms;; bad=x count=7c") == [
        {"unit": "", "label": "load", "value": 0.5},
        {"unit": "MB", "label": "free_space", "value": 12.0},
        {"unit": "ms", "label": "time", "value": 3.0},
        {"unit": "c", "label": "count", "value": 7.0},
    ]
    assert parse_performance_data("no bar") == []
    assert read_metrics("OK | a=1")[1] == {"a": 1.0}


# nagios

CHECK = """[{name: OK, from: [UNKNOWN, OK, WARNING, CRITICAL, FORCE_CHECK], destination: OK},
  {name: WARNING, from: [UNKNOWN, OK, WARNING, CRITICAL, FORCE_CHECK], destination: WARNING},
  {name: CRITICAL, from: [UNKNOWN, OK, WARNING, CRITICAL, FORCE_CHECK], destination: CRITICAL},
  {name: UNKNOWN, from: [UNKNOWN, OK, WARNING, CRITICAL, FORCE_CHECK], destination: UNKNOWN},
  {name: force, from: [UNKNOWN, OK, WARNING, CRITICAL], destination: FORCE_CHECK}]"""


async def test_a_check_moves_its_machine_to_its_status(tmp_path):
    (tmp_path / "prometheus").mkdir()
    (tmp_path / "overrides.json").write_text(json.dumps({"check": {"warning": 7}}))
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: disk, type: nagios, interval: 0.5s, state_match: [UNKNOWN, OK, WARNING, CRITICAL], "
            "properties: {plugin: './check.sh {{ o \"warning\" 5 }}', annotations: {team: web}}}",
            name="check",
            transitions=CHECK,
            initial="UNKNOWN",
        ),
        **{"check.sh": 'echo "used $1 | used=$1%;5;9"; exit $(cat status)'},
    )
    (folder / "status").write_text("0")

    async with running(
        folder,
        prometheus_folder=str(tmp_path / "prometheus"),
        overrides_file=str(tmp_path / "overrides.json"),
    ) as found:
        await found.until_state("OK")
        (folder / "status").write_text("2")
        await found.until_state("CRITICAL")
        (folder / "status").write_text("99")
        await found.until_state("UNKNOWN")
        events = found.events("nagios")
        text = (tmp_path / "prometheus" / "choria_machine_nagios_watcher_status.prom").read_text()

    first = events[0]
    assert (first["status"], first["status_code"], first["output"]) == ("OK", 0, "used 7 | used=7%;5;9")
    assert first["perfdata"] == [{"unit": "%", "label": "used", "value": 7.0}]
    assert first["plugin"] == "./check.sh 7"
    assert first["annotations"] == {"team": "web"}
    assert len(events[-1]["history"]) == min(len(events), 15)
    for event in events:
        check_schema(event)
    assert 'choria_machine_nagios_watcher_status{name="check",status="UNKNOWN"} 3' in text


async def test_forcing_a_check_runs_it_at_once(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: beat, type: nagios, interval: 10h, state_match: [UNKNOWN], properties: {builtin: heartbeat}}",
            transitions=CHECK,
            initial="UNKNOWN",
        ),
    )

    async with running(folder) as found:
        await found.machine.fire("force")
        await found.until_state("OK")

    assert found.events("nagios")[0]["output"].isdecimal()
