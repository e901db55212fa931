"""`jetlake stream backup`, `restore` and `verify` against both servers."""

import json

import pytest


@pytest.fixture
def saved(done, read):
    """A stream of a hundred messages, two of them deleted."""
    if "SAVED" not in read("stream", "ls", "--names"):
        done("stream", "add", "SAVED", "--subjects", "saved.*", "--max-age", "1y")
        done("pub", "saved.{{Count}}", "{{Random 100 200}}", "--count", "100", "-J", "--quiet", "-H", "A:b")
        done("stream", "rmm", "SAVED", "7", "--force")
        done("stream", "rmm", "SAVED", "50", "--force")


def test_backup_is_restored_as_it_was(done, read, saved, tmp_path):
    before = read("stream", "verify", "SAVED")

    made = read("stream", "backup", "SAVED", str(tmp_path / "backup"))
    restored = read("stream", "restore", str(tmp_path / "backup"), "--name", "AGAIN", "--subjects", "again.*")
    after = read("stream", "verify", "AGAIN")
    done("stream", "rm", "AGAIN", "--force")

    assert sorted(path.name for path in (tmp_path / "backup").iterdir()) == ["backup.json", "stream.tar.s2"]
    assert made["messages"] == restored["state"]["messages"] == 98
    assert restored["config"]["max_age"] == 365 * 86400 * 10**9
    assert (after["digest"], after["last_sequence"]) == (before["digest"], 100)


def test_backup_does_not_replace_another_one(cli, done, saved, tmp_path):
    done("stream", "backup", "SAVED", str(tmp_path))

    answer = cli("stream", "backup", "SAVED", str(tmp_path))

    assert answer.exit_code == 1
    assert "holds a backup already" in answer.stderr
    assert "Backed up 98 messages of SAVED to" in done("stream", "backup", "SAVED", str(tmp_path), "--force")


def test_restore_over_a_stream_that_is_there_is_refused(cli, done, saved, tmp_path):
    done("stream", "backup", "SAVED", str(tmp_path))

    answer = cli("stream", "restore", str(tmp_path))

    assert answer.exit_code == 1
    assert "(10130)" in answer.stderr


@pytest.mark.parametrize("content", [None, "no json", '{"config": 1}'])
def test_folder_that_is_no_backup_is_refused(cli, tmp_path, content):
    if content is not None:
        (tmp_path / "backup.json").write_text(content)

    answer = cli("stream", "restore", str(tmp_path))

    assert answer.exit_code == 1
    assert "backup" in answer.stderr
    assert "Traceback" not in answer.output


def test_damaged_archive_is_refused_and_leaves_no_stream(cli, done, read, saved, tmp_path):
    done("stream", "backup", "SAVED", str(tmp_path))
    archive = tmp_path / "stream.tar.s2"
    archive.write_bytes(archive.read_bytes()[:500])

    answer = cli("stream", "restore", str(tmp_path), "--name", "DAMAGED", "--subjects", "damaged")

    assert answer.exit_code == 1
    assert "DAMAGED" not in read("stream", "ls", "--names")


def test_verify_finds_a_message_that_was_deleted_since(done, cli, read):
    done("stream", "add", "VERIFY", "--subjects", "verify")
    done("pub", "verify", "{{Count}}", "--count", "5", "-J")
    digest = read("stream", "verify", "VERIFY")["digest"]
    assert f"digest: {digest}" in done("stream", "verify", "VERIFY", "--digest", digest)

    done("pub", "verify", "6", "-J")
    assert read("stream", "verify", "VERIFY", "--to", "5")["digest"] == digest
    done("stream", "rmm", "VERIFY", "3", "--force")
    answer = cli("stream", "verify", "VERIFY", "--to", "5", "--digest", digest)

    assert answer.exit_code == 1
    assert "a message was changed, added or deleted" in answer.output


def test_mirror_has_the_digest_of_its_origin(done, read):
    done("stream", "add", "VERIFY_O", "--subjects", "verify.origin")
    done("pub", "verify.origin", "{{Count}}", "--count", "20", "-J", "-q", "-H", "A:b")
    done("stream", "add", "VERIFY_M", "--mirror", "VERIFY_O")
    # The mirror fills by itself, soon.
    text = done("sub", "--stream", "VERIFY_M", "--json", "--count", "20")

    assert json.loads(text.splitlines()[-1])["sequence"] == 20
    assert read("stream", "verify", "VERIFY_M")["digest"] == read("stream", "verify", "VERIFY_O")["digest"]


def test_digest_of_nothing_is_that_of_every_empty_stream(done, read):
    done("stream", "add", "EMPTY", "--subjects", "empty")

    verified = read("stream", "verify", "EMPTY")

    assert (verified["digest"], verified["messages"], verified["findings"]) == ("0" * 64, 0, [])


def test_process_shows_no_progress_bar_in_a_pipe(process, done, saved, tmp_path):
    answer = process("stream", "backup", "SAVED", str(tmp_path / "backup"))

    assert (answer.returncode, answer.stderr) == (0, "")


def test_consumers_come_back_where_they_were_unless_left_out(done, read, tmp_path):
    done("stream", "add", "WITH", "--subjects", "with")
    done("pub", "with", "{{Count}}", "--count", "5", "-J", "-q")
    done("consumer", "add", "WITH", "worker")
    done("consumer", "next", "WITH", "worker", "--count", "2")

    done("stream", "backup", "WITH", str(tmp_path / "with"))
    done("stream", "backup", "WITH", str(tmp_path / "without"), "--no-consumers")
    done("stream", "rm", "WITH", "--force")
    done("stream", "restore", str(tmp_path / "with"))
    info = read("consumer", "info", "WITH", "worker")
    after = done("consumer", "next", "WITH", "worker", "--raw")
    done("stream", "rm", "WITH", "--force")
    done("stream", "restore", str(tmp_path / "without"))

    assert (info["ack_floor"]["stream_seq"], info["num_pending"], after) == (2, 3, "3\n")
    assert read("consumer", "ls", "WITH") == []
