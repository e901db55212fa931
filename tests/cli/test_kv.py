"""`jetlake kv`, at both kinds of server."""

from __future__ import annotations

import itertools
import json

import pytest

_numbers = itertools.count(1)


@pytest.fixture
def bucket(done) -> str:
    """A bucket with a history of five."""
    name = f"K{next(_numbers)}"
    done("kv", "add", name, "--history", "5")
    return name


def test_a_bucket_is_made_with_all_flags_and_shown(done, read):
    name = f"K{next(_numbers)}"
    flags = ["--history", "3", "--ttl", "1h", "--max-value-size", "1KiB", "--max-bucket-size", "1MiB"]
    flags += ["--description", "settings", "--storage", "memory", "--marker-ttl", "10s", "--metadata", "team=a"]
    flags += ["--republish-destination", f"out.{name}.>", "--republish-headers", "--replicas", "1"]

    printed = done("kv", "add", name, *flags)
    found = read("kv", "status", name)

    assert printed.startswith(f"Created bucket {name}\n")
    assert "max value size: 1.0 KiB" in printed
    config = found["config"]
    assert (config["history"], config["ttl_s"], config["max_value_bytes"]) == (3, 3600, 1024)
    assert (config["max_bytes"], config["storage"], config["limit_marker_ttl_s"]) == (1 << 20, "memory", 10)
    assert config["republish"] == {"destination": f"out.{name}.>", "source": "", "headers_only": True}
    assert config["metadata"] == {"team": "a"}
    assert found["values"] == 0


def test_values_are_put_and_got(done, read, bucket, process):
    assert done("kv", "put", bucket, "auth.username", "bob") == "Set auth.username in revision 1\n"
    assert done("kv", "get", bucket, "auth.username") == "bob\n"
    assert done("kv", "get", bucket, "auth.username", "--raw") == "bob"
    assert done("kv", "put", bucket, "typed", "-", stdin="from stdin") == "Set typed in revision 2\n"
    assert read("kv", "put", bucket, "c", "3") == {"bucket": bucket, "key": "c", "revision": 3}
    entry = read("kv", "get", bucket, "typed", "--consistent")
    assert (entry["value"], entry["revision"], entry["operation"]) == ("from stdin", 2, "PUT")
    ran = process("kv", "get", bucket, "auth.username", "--raw")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "bob", "")


def test_a_value_that_is_not_text_is_shown_in_base64(done, read, bucket, cli):
    cli("kv", "put", bucket, "a", stdin=b"\x00\xff")

    assert done("kv", "get", bucket, "a") == "AP8=\n"
    assert read("kv", "get", bucket, "a")["value_base64"] == "AP8="
    assert cli("kv", "get", bucket, "a", "--raw").stdout_bytes == b"\x00\xff"


def test_create_and_update_are_conditional(done, cli, bucket):
    assert done("kv", "create", bucket, "a", "1") == "Created a in revision 1\n"
    refused = cli("kv", "create", bucket, "a", "2")
    assert refused.exit_code == 1
    assert f"jetlake kv create: key 'a' of bucket {bucket} exists already" in refused.stderr
    assert done("kv", "update", bucket, "a", "2", "1") == "Updated a, new revision 2\n"
    refused = cli("kv", "update", bucket, "a", "3", "1")
    assert refused.exit_code == 1
    assert "its last revision is 2, not 1" in refused.stderr


def test_revisions_are_listed_read_and_brought_back(done, read, bucket):
    for value in ("one", "two"):
        done("kv", "put", bucket, "a", value)

    assert done("kv", "get", bucket, "a", "--revision", "1") == "one\n"
    lines = done("kv", "history", bucket, "a").splitlines()
    assert [line.split("\t")[0::4] for line in lines] == [["revision", "value"], ["1", "one"], ["2", "two"]]
    assert done("kv", "revert", bucket, "a", "1", "-f") == "Reverted a to revision 1, new revision 3\n"
    assert [entry["value"] for entry in read("kv", "history", bucket, "a")] == ["one", "two", "one"]


def test_keys_are_deleted_purged_listed_and_compacted(done, read, cli, bucket):
    for key in ("a.x", "a.y", "b"):
        done("kv", "put", bucket, key, "1")

    assert done("kv", "keys", bucket) == "a.x\na.y\nb\n"
    assert done("kv", "keys", bucket, "a.*") == "a.x\na.y\n"
    assert read("kv", "ls", bucket) == ["a.x", "a.y", "b"]
    assert done("kv", "del", bucket, "a.x", "-f") == "Deleted a.x in revision 4\n"
    assert done("kv", "purge", bucket, "a.y", "-f", "--ttl", "1h") == "Purged a.y in revision 5\n"
    assert done("kv", "keys", bucket) == "b\n"
    assert cli("kv", "get", bucket, "a.x").exit_code == 1
    assert done("kv", "compact", bucket, "--older", "0s", "-f") == f"Compacted 2 deleted keys of bucket {bucket}\n"
    assert read("kv", "status", bucket)["values"] == 1
    assert done("kv", "clear", bucket, "-f") == f"Removed 1 values of bucket {bucket}\n"


def test_nothing_is_deleted_without_a_word(cli, done, bucket):
    done("kv", "put", bucket, "a", "1")

    for words in (("del", bucket, "a"), ("purge", bucket, "a"), ("rm", bucket), ("clear", bucket), ("compact", bucket)):
        refused = cli("kv", *words)
        assert refused.exit_code == 2
        assert "--force" in refused.stderr
    assert done("kv", "get", bucket, "a") == "1\n"


def test_buckets_are_listed_changed_and_deleted(done, read, cli, bucket):
    done("kv", "put", bucket, "a", "1")

    assert bucket in done("kv", "ls", "--names").splitlines()
    assert bucket in read("kv", "ls", "--names")
    assert [each["values"] for each in read("kv", "ls") if each["bucket"] == bucket] == [1]
    assert any(line.split("\t")[0] == bucket for line in done("kv", "ls").splitlines())
    assert done("kv", "edit", bucket, "--history", "7", "-f").endswith(f"Changed bucket {bucket}\n")
    assert read("kv", "status", bucket)["config"]["history"] == 7
    assert done("kv", "rm", bucket, "-f") == f"Deleted bucket {bucket}\n"
    gone = cli("kv", "status", bucket)
    assert gone.exit_code == 1
    assert f"bucket {bucket} does not exist: `jetlake kv ls` lists those there are" in gone.stderr


def test_an_edit_changes_only_what_was_asked_for(done, read, cli):
    name = f"K{next(_numbers)}"
    flags = ["--max-msgs-per-subject", "-1", "--max-msgs", "1000", "--dupe-window", "5s", "--allow-rollup", "--discard"]
    done("stream", "add", f"KV_{name}", "--subjects", f"$KV.{name}.>", *flags, "old")
    done("pub", f"$KV.{name}.a", "{{Count}}", "--count", "100", "-J", "-q")
    before = read("stream", "info", f"KV_{name}")["config"]

    printed = done("kv", "edit", name, "--description", "hello", "-f")

    assert printed == f"+ description: hello\nChanged bucket {name}\n"
    assert read("stream", "info", f"KV_{name}")["config"] == before | {"description": "hello"}
    assert len(read("kv", "history", name, "a")) == 100


def test_an_edit_shows_what_will_change_in_the_stream(done, read, cli):
    name = f"K{next(_numbers)}"
    done("stream", "add", f"KV_{name}", "--subjects", f"$KV.{name}.>", "--max-msgs-per-subject", "100")

    printed = read("kv", "edit", name, "--history", "7", "--dry-run")

    assert printed == {"max_msgs_per_subject": {"before": 100, "after": 7}}


def test_an_edit_adds_to_the_metadata(done, read):
    name = f"K{next(_numbers)}"
    done("kv", "add", name, "--metadata", "jetlake.iac=shop", "--metadata", "team=a")

    done("kv", "edit", name, "--metadata", "team=b", "--metadata", "tier=1", "-f")

    assert read("kv", "status", name)["config"]["metadata"] == {"jetlake.iac": "shop", "team": "b", "tier": "1"}


def test_a_bucket_is_saved_and_restored(done, cli, bucket, tmp_path):
    done("kv", "put", bucket, "a", "1")
    folder = str(tmp_path / "saved")

    assert f"bytes backup of bucket {bucket} in {folder}" in done("kv", "backup", bucket, folder)
    assert cli("kv", "backup", bucket, folder).exit_code == 1
    done("kv", "rm", bucket, "-f")
    assert done("kv", "restore", folder) == f"Restored bucket {bucket} with 1 values from {folder}\n"
    assert done("kv", "get", bucket, "a") == "1\n"


def test_values_are_watched(done, bucket, process):
    done("kv", "put", bucket, "a", "1")
    done("kv", "put", bucket, "a", "2")
    done("kv", "put", bucket, "b", "x")
    done("kv", "del", bucket, "b", "-f")

    lines = [line.split("\t")[1:] for line in done("kv", "watch", bucket, "--snapshot").splitlines()]
    assert lines == [["PUT", "a", "2", "2"], ["DEL", "b", "4", ""]]
    assert done("kv", "watch", bucket, "--once") == "2"
    assert len(done("kv", "watch", bucket, "--history", "--count", "3").splitlines()) == 3
    entries = [json.loads(line) for line in done("kv", "watch", bucket, "a", "--snapshot", "--json").splitlines()]
    assert [entry["value"] for entry in entries] == ["2"]
    assert done("kv", "watch", bucket, "--updates", "--snapshot") == ""
    assert "PUT\ta\t2" in process("kv", "watch", bucket, "--no-deletes", "--meta", "--snapshot").stdout


def test_mistakes_are_told(cli, bucket):
    for words, reason in (
        (("get", bucket, "a b"), "invalid key 'a b'"),
        (("get", bucket, "none"), "does not exist"),
        (("history", bucket, "none"), "has no history"),
        (("add", "a.b"), "invalid bucket name 'a.b'"),
        (("add", "B", "--history", "100"), "1 to 64"),
        (("add", "B", "--replicas", "3"), "replicas > 1 not supported"),
        (("put", "NONE", "a", "1"), "bucket NONE does not exist"),
        (("watch", bucket, "a..b"), "invalid key pattern"),
    ):
        refused = cli("kv", *words)
        assert refused.exit_code == 1, words
        assert reason in refused.stderr, words
