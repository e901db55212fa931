"""`jetlake stream add`, `edit` and `copy` against both servers."""

import json
import os

import pytest
from typer.main import get_command

from jetlake.cli.stream import application
from jetlake.cli.stream_options import stream_fields
from jetlake.dashboard.pages.stream_edit import FLAGS


def test_flags_become_the_configuration(read):
    made = read(
        "stream", "add", "FLAGS",
        "--subjects", "flags.a,flags.b", "--subjects", "flags.c",
        "--storage", "memory", "--retention", "work", "--discard", "new",
        "--max-msgs", "1000", "--max-bytes", "10MiB", "--max-age", "1w", "--max-msg-size", "1k",
        "--max-msgs-per-subject", "5", "--max-consumers", "3", "--dupe-window", "30s", "--replicas", "1",
        "--description", "all flags", "--allow-rollup", "--deny-delete", "--no-allow-direct", "--allow-batch",
        "--metadata", "team=a", "--metadata", "tier=gold",
        "--republish-source", "flags.>", "--republish-destination", "copy.>",
    )  # fmt: skip

    config = made["config"]
    assert config["subjects"] == ["flags.a", "flags.b", "flags.c"]
    assert (config["storage"], config["retention"], config["discard"]) == ("memory", "workqueue", "new")
    assert (config["max_msgs"], config["max_bytes"], config["max_msg_size"]) == (1000, 10 << 20, 1024)
    assert (config["max_age"], config["duplicate_window"]) == (604800 * 10**9, 30 * 10**9)
    assert (config["max_msgs_per_subject"], config["max_consumers"]) == (5, 3)
    assert (config["allow_rollup_hdrs"], config["deny_delete"], config["allow_atomic"]) == (True, True, True)
    assert config.get("allow_direct", False) is False
    assert {key: config["metadata"][key] for key in ("team", "tier")} == {"team": "a", "tier": "gold"}
    assert config["republish"] == {"src": "flags.>", "dest": "copy.>"}


def test_stream_takes_its_own_name_as_subject_unless_told(read, done):
    assert read("stream", "add", "PLAIN", "--defaults")["config"]["subjects"] == ["PLAIN"]
    assert "Created stream PLAIN2" in done("stream", "add", "PLAIN2", "--defaults")


def test_mirrors_and_sources_are_named(read, done):
    done("stream", "add", "ORIGIN", "--subjects", "origin")
    done("stream", "add", "SECOND", "--subjects", "second")

    mirror = read("stream", "add", "MIRROR", "--mirror", "ORIGIN")
    sourced = read("stream", "add", "SOURCED", "--source", "ORIGIN", "--source", "SECOND")

    assert mirror["config"]["mirror"]["name"] == "ORIGIN"
    assert [source["name"] for source in sourced["config"]["sources"]] == ["ORIGIN", "SECOND"]


def test_configuration_can_be_written_checked_and_used(done, read, cli, tmp_path):
    path = tmp_path / "config.json"

    done("stream", "add", "FILE", "--subjects", "file", "--max-age", "1d", "--output", str(path))
    assert "FILE" not in read("stream", "ls", "--names")
    assert done("stream", "add", "--config", str(path), "--validate") == "The configuration is valid\n"
    made = read("stream", "add", "--config", str(path), "--max-msgs", "7")

    assert (made["config"]["name"], made["config"]["max_age"], made["config"]["max_msgs"]) == ("FILE", 86400 * 10**9, 7)


def test_wrong_configuration_is_refused_with_a_suggestion(cli, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"name": "X", "subjects": ["x"], "max_mgs": 1, "storage": "tape"}))

    answer = cli("stream", "add", "--config", str(path), "--validate")

    assert answer.exit_code == 1
    assert "max_mgs is unknown; did you mean max_msgs?" in answer.stderr
    assert "storage is 'tape': it must be one of file, memory" in answer.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("a.b", "--subjects", "x"), 1, "is not a name for a stream"),
        (("--defaults",), 1, "Give a stream name"),
        (("BAD", "--storage", "tape"), 2, "--storage is 'tape'"),
        (("BAD", "--max-bytes", "much"), 2, "is not a size"),
        (("BAD", "--metadata", "nothing"), 2, "write key=value"),
        (("BAD", "--config", "/no/such/file"), 1, "cannot read"),
        (("BAD", "--subjects", "bad..subject"), 1, "(10"),
    ],
)
def test_what_cannot_be_added_is_refused_in_words(cli, words, code, text):
    answer = cli("stream", "add", *words)

    assert answer.exit_code == code
    assert text in answer.output


def test_edit_shows_the_difference_and_changes(done, read):
    done("stream", "add", "EDIT", "--subjects", "edit", "--max-age", "1d")

    text = done("stream", "edit", "EDIT", "--max-msgs", "1000", "--max-age", "2d", "--subjects", "edit,more", "--force")

    lines = text.splitlines()
    assert lines[:6] == [
        "- max_age: 1d",
        "+ max_age: 2d",
        "- max_msgs: unlimited",
        "+ max_msgs: 1,000",
        "- subjects: [edit]",
        "+ subjects: [edit, more]",
    ]
    assert read("stream", "info", "EDIT")["config"]["max_msgs"] == 1000


def test_edit_asks_and_changes_nothing_without_an_answer(done, cli, read):
    done("stream", "add", "ASK", "--subjects", "ask")

    answer = cli("stream", "edit", "ASK", "--max-msgs", "5")

    assert answer.exit_code == 2
    assert "--force" in answer.output
    assert read("stream", "info", "ASK")["config"]["max_msgs"] == -1


def test_edit_that_changes_nothing_says_so(done):
    done("stream", "add", "SAME", "--subjects", "same", "--max-msgs", "5")

    assert "nothing changes" in done("stream", "edit", "SAME", "--max-msgs", "5")


def test_dry_run_only_shows(done, read):
    done("stream", "add", "DRY", "--subjects", "dry")

    shown = read("stream", "edit", "DRY", "--max-bytes", "1GiB", "--dry-run")

    assert shown == {"max_bytes": {"before": -1, "after": 1 << 30}}
    assert read("stream", "info", "DRY")["config"]["max_bytes"] == -1


def test_parts_can_be_taken_away(done, read):
    done("stream", "add", "PARTS", "--subjects", "p.*", "--republish-source", "p.>", "--republish-destination", "q.>")

    done("stream", "edit", "PARTS", "--no-republish", "--force")

    assert "republish" not in read("stream", "info", "PARTS")["config"]


def test_configuration_can_be_edited_in_an_editor(done, read, monkeypatch, tmp_path):
    done("stream", "add", "EDITOR", "--subjects", "editor")
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/"max_msgs": -1/"max_msgs": 9/\' "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setitem(os.environ, "VISUAL", str(editor))

    done("stream", "edit", "EDITOR", "--interactive", "--force")

    assert read("stream", "info", "EDITOR")["config"]["max_msgs"] == 9


def test_what_cannot_be_changed_is_refused_by_the_server(done, cli):
    done("stream", "add", "FIXED", "--subjects", "fixed")

    answer = cli("stream", "edit", "FIXED", "--storage", "memory", "--force")

    assert answer.exit_code == 1
    assert "jetlake stream edit: stream configuration update can not change storage type" in answer.stderr


def test_copy_takes_the_configuration_without_messages(done, read):
    done("stream", "add", "FROM", "--subjects", "from", "--max-age", "1h", "--metadata", "a=b")
    done("pub", "from", "x", "-J")

    made = read("stream", "copy", "FROM", "TO", "--subjects", "to", "--max-msgs", "3")

    config = made["config"]
    assert (config["name"], config["subjects"], config["max_age"], config["max_msgs"]) == (
        "TO",
        ["to"],
        3600 * 10**9,
        3,
    )
    assert (config["metadata"]["a"], made["state"]["messages"]) == ("b", 0)


def test_process_says_what_was_made(process):
    answer = process("stream", "add", "PROCESS", "--subjects", "process.>", "--max-age", "1y")

    assert answer.returncode == 0
    assert "Created stream PROCESS" in answer.stdout
    assert "age: 1y" in answer.stdout


def test_dashboard_knows_the_options_of_edit_that_take_one_value():
    options = get_command(application).commands["edit"].params

    taking_one_value = {option.opts[0] for option in options if not getattr(option, "is_flag", True)}
    repeatable = {option.opts[0] for option in options if getattr(option, "multiple", False)}

    assert set(FLAGS.values()) == taking_one_value - repeatable - {"--config"}


@pytest.mark.parametrize(("field", "flag"), FLAGS.items())
def test_dashboard_names_the_option_that_sets_a_field(field, flag):
    words = {"storage": "file", "retention": "limits", "discard": "old", "compression": "s2"}
    parameter = flag.removeprefix("--").replace("-", "_")

    assert list(stream_fields(**{parameter: words.get(parameter, "1")})) == [field]
