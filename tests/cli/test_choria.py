"""`jetlake choria kv`, with the output of Choria, at both kinds of server."""

from __future__ import annotations

import itertools
import json
import re

import pytest

_numbers = itertools.count(1)

BLOCK = """{0} Key-Value Store

     Bucket Name: {0}
         History: 5
             TTL: 0s
 Max Bucket Size: -1
  Max Value Size: 10240
"""


@pytest.fixture
def choria(done):
    return lambda *words, **options: done("choria", "kv", *words, **options)


@pytest.fixture
def bucket(choria) -> str:
    name = f"C{next(_numbers)}"
    assert choria("add", name) == BLOCK.format(name)
    return name


def test_a_bucket_has_one_copy_on_one_server(cli):
    name = f"C{next(_numbers)}"

    made = cli("choria", "kv", "add", name, "--history", "5", "--replicas", "3")

    assert (made.exit_code, made.stdout) == (0, BLOCK.format(name))
    assert made.stderr == f"WARN: this server is not part of a cluster: {name} has 1 replica instead of 3\n"


def test_a_bucket_that_is_there_is_taken_as_it_is(choria, bucket):
    assert choria("add", bucket, "--history", "9") == BLOCK.format(bucket)


def test_the_flags_of_a_bucket_are_honoured(choria, read):
    name = f"C{next(_numbers)}"
    printed = choria("add", name, "--ttl", "30s", "--max-value-size", "100", "--max-bucket-size", "5000", "--no-direct")

    assert "TTL: 30s" in printed
    config = read("kv", "status", name)["config"]
    assert (config["ttl_s"], config["max_value_bytes"], config["max_bytes"]) == (30, 100, 5000)
    assert config["allow_direct"] is False


def test_values_are_put_and_got(choria, bucket, cli):
    assert choria("put", bucket, "auth.username", "bob") == "bob\n"
    assert choria("put", bucket, "typed", "-", stdin="by hand") == "by hand\n"
    assert choria("put", bucket, "dashes", "--", "-", stdin="too") == "too\n"

    printed = choria("get", bucket, "auth.username")
    assert re.fullmatch(rf"{bucket} > auth.username created @ \d\d \w{{3}} \d\d \d\d:\d\d UTC\n\nbob\n\n", printed)
    assert choria("get", bucket, "auth.username", "--raw") == "bob"
    cli("choria", "kv", "put", bucket, "binary", "-", stdin=b"\x00\xff")
    assert "\n\nAP8=\n" in choria("get", bucket, "binary")
    choria("put", bucket, "long", "x" * 300)
    assert "Showing first 80 characters, use --raw for full value\n\n" + "x" * 80 + "\n" in choria(
        "get", bucket, "long"
    )


def test_create_update_and_history(choria, bucket, cli):
    assert choria("create", bucket, "a", "1") == "1\n"
    assert cli("choria", "kv", "create", bucket, "a", "2").exit_code == 1
    assert choria("update", bucket, "a", "2", "1") == "Updated a, new revision 2\n"
    choria("put", bucket, "a", "y" * 41)

    lines = choria("history", bucket, "a").splitlines()
    assert lines[1].split("|")[1:6] == [
        " Seq ",
        " Operation ",
        lines[1].split("|")[3],
        " Length ",
        lines[1].split("|")[5],
    ]
    assert [cell.strip() for cell in lines[3].split("|")[1:6] if "UTC" not in cell and ":" not in cell] == [
        "1",
        "PUT",
        "1",
        "1",
    ]
    assert f"{'y' * 15}...{'y' * 15}" in lines[5]


def test_keys_and_buckets_are_listed(choria, bucket, cli):
    choria("put", bucket, "b", "1")
    choria("put", bucket, "a", "1")

    assert choria("keys", bucket) == "a\nb\n"
    assert json.loads(choria("keys", bucket, "--json")) == ["a", "b"]
    assert f"| {bucket} " in choria("ls")
    assert "   Values Stored: 2\n" in choria("status", bucket) == choria("info", bucket)
    dumped = json.loads(choria("dump", bucket))
    assert (dumped["a"]["val"], dumped["a"]["seq"], dumped["a"]["operation"]) == ("MQ==", 2, "PUT")


def test_deleting_asks_and_skips(choria, bucket, cli):
    choria("put", bucket, "a", "1")

    assert choria("del", bucket, "a") == "Skipping\n"
    assert choria("get", bucket, "a", "--raw") == "1"
    assert choria("del", bucket, "a", "-f") == ""
    missing = cli("choria", "kv", "get", bucket, "a")
    assert missing.exit_code == 1
    assert missing.stderr == f"FATA[0000] Could not run Choria: key 'a' of bucket {bucket} does not exist\n"
    choria("put", bucket, "b", "1")
    choria("purge", bucket, "b", "--force")
    assert choria("keys", bucket) == ""
    choria("put", bucket, "c", "1")
    choria("purge", bucket, "-f")
    assert "Values Stored: 0" in choria("status", bucket)
    choria("rm", bucket, "-f")
    assert cli("choria", "kv", "status", bucket).exit_code == 1


def test_changes_are_watched(choria, bucket, cli):
    choria("put", bucket, "users.bob", "1")

    printed = choria("watch", bucket, "--timeout", "4s")
    assert re.fullmatch(rf"\[\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\] PUT {bucket}\.users\.bob: 1\n", printed)
    assert choria("watch", bucket, "users.>", "--once") == "1\n"
    late = cli("choria", "kv", "watch", bucket, "none.>", "--once", "--timeout", "500ms")
    assert (late.exit_code, late.stderr) == (1, "FATA[0000] Could not run Choria: timeout\n")


def test_a_bucket_is_saved_and_restored(choria, bucket, tmp_path):
    choria("put", bucket, "a", "1")
    folder = str(tmp_path / "saved")

    assert re.fullmatch(rf"Created \d+ bytes backup of bucket {bucket} in {folder}\n", choria("backup", bucket, folder))
    choria("rm", bucket, "-f")
    assert re.fullmatch(rf"Restored \d+ bytes backup from {folder}\n", choria("restore", folder))
    assert choria("get", bucket, "a", "--raw") == "1"


def test_programs_manage_buckets_with_json(choria, cli):
    name = f"C{next(_numbers)}"
    assert json.loads(choria("api", "--check")) == {"api": "ok"}
    made = json.loads(choria("api", "--ensure", "--name", name, "--history", "3", "--expire", "60"))
    assert (made["name"], made["history"], made["expire"], made["max_value_size"]) == (name, 3, 60, 10240)
    assert json.loads(choria("api", "--ensure", "--name", name, "--history", "4"))["history"] == 4
    assert name in [each["name"] for each in json.loads(choria("api", "--list"))]
    choria("api", "--delete", "--name", name)
    failed = cli("choria", "kv", "api", "--delete", "--name", name)
    assert failed.exit_code == 1
    assert "does not exist" in json.loads(failed.stdout)["error"]


def test_a_bucket_keeps_its_values_though_its_replicas_cannot_be_changed(choria, cli):
    name = f"C{next(_numbers)}"
    ensure = ("choria", "kv", "api", "--ensure", "--force", "--name", name, "--replicas", "3")
    made = cli(*ensure)
    choria("put", name, "a", "1")

    same = cli(*ensure)
    changed = cli(*ensure, "--history", "9")

    assert choria("get", name, "a", "--raw") == "1"
    answers = [json.loads(ran.stdout) for ran in (made, same, changed)]
    assert [(answer["history"], answer["replicas"]) for answer in answers] == [(5, 1), (5, 1), (9, 1)]
    warned = f"WARN: this server is not part of a cluster: {name}"
    kept = f"{warned} keeps 1 replica, not 3\n"
    assert [ran.stderr for ran in (made, same, changed)] == [f"{warned} has 1 replica instead of 3\n", kept, kept]


def test_programs_change_only_what_they_ask_for(choria, done, read):
    name = f"C{next(_numbers)}"
    flags = ["--max-msgs", "1000", "--dupe-window", "5s", "--allow-rollup", "--discard", "old"]
    done("stream", "add", f"KV_{name}", "--subjects", f"$KV.{name}.>", "--max-msgs-per-subject", "3", *flags)
    before = read("stream", "info", f"KV_{name}")["config"]

    choria("api", "--ensure", "--name", name, "--history", "4")

    after = read("stream", "info", f"KV_{name}")["config"]
    assert after == before | {"max_msgs_per_subject": 4, "max_msg_size": 10240}


def test_a_configuration_file_may_stand_anywhere_and_names_the_servers(cli, url, bucket, tmp_path, monkeypatch):
    host = url.removeprefix("nats://")
    (tmp_path / "client.conf").write_text(f"# hosts\nplugin.choria.middleware_hosts = {host}\n")
    monkeypatch.delenv("NATS_URL")
    config = str(tmp_path / "client.conf")

    for words in (("--config", config, "kv", "status", bucket), ("kv", "status", bucket, f"--config={config}")):
        assert cli("choria", *words).exit_code == 0
    missing = cli("choria", "kv", "status", bucket, "--config", str(tmp_path / "none"))
    assert (missing.exit_code, "cannot read" in missing.stderr) == (1, True)


def test_an_unknown_command_is_told_with_the_list(cli):
    unknown = cli("choria", "nothing")

    assert unknown.exit_code == 1
    assert "unknown command 'nothing'" in unknown.stderr
    assert cli("choria", "--help").exit_code == 0
    assert "kv" in cli("choria").stdout
