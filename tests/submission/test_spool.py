"""The folder: who may read it, what is in it when, and how much."""

import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from jetlake.client.access import Access
from jetlake.errors import ConfigurationError, SpoolError
from jetlake.submission import SenderOptions, Spool, run_sender, submit, submit_async
from jetlake.submission.message import SpoolMessage
from tests.submission.reading import until


def mode(path):
    return os.stat(path).st_mode & 0o777


def files(spool, priority=4):
    return sorted((spool.folder / f"P{priority}").glob("*.msg"))


def test_only_its_owner_may_look_into_a_spool_whatever_the_umask(spool):
    before = os.umask(0)
    try:
        submit("a", "x", spool=spool)
    finally:
        os.umask(before)

    assert mode(spool.folder) == 0o700
    assert {mode(spool.folder / f"P{number}") for number in range(5)} == {0o700}
    assert mode(files(spool)[0]) == 0o600


def test_a_folder_that_is_there_keeps_its_permissions(spool):
    spool.folder.mkdir()
    spool.folder.chmod(0o770)

    submit("a", "x", spool=spool)

    assert mode(spool.folder) == 0o770


def test_a_file_is_named_by_time_and_id_and_has_the_message(spool):
    begin = time.time_ns()

    message_id = submit("tasks.status", b"done", spool=spool, reliable=True, priority=1, sender="cron", ttl_s=60)

    (file,) = files(spool, 1)
    stamp, _, name = file.name.partition("-")
    assert begin <= int(stamp) <= time.time_ns()
    assert name == f"{message_id}.msg"
    content = json.loads(file.read_bytes())
    assert (content["subject"], content["payload"], content["reliable"]) == ("tasks.status", "ZG9uZQ==", True)
    assert (content["sender"], content["ttl"], content["tries"]) == ("cron", 60, 0)
    assert sorted(os.listdir(spool.folder)) == ["P0", "P1", "P2", "P3", "P4"]


def test_names_are_in_the_order_of_submission_even_if_the_clock_is_set_back(spool, monkeypatch):
    first = submit("a", "1", spool=spool)
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 600 * 10**9)
    second = submit("a", "2", spool=spool)
    monkeypatch.undo()
    third = submit("a", "3", spool=spool)

    assert [file.name.partition("-")[2][:-4] for file in files(spool)] == [first, second, third]


def test_a_file_from_the_far_future_does_not_take_the_others_along(spool):
    spool.create()
    (spool.folder / "P4" / f"{2**62}-x.msg").write_bytes(b"{}")

    submit("a", "1", spool=spool)

    assert int(files(spool)[0].name.partition("-")[0]) <= time.time_ns()


def test_the_limit_is_exact_with_many_at_once(tmp_path):
    spool = Spool(tmp_path / "spool", messages_max=20)

    def attempt(_number):
        try:
            submit("a", "x", spool=spool)
        except SpoolError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, range(60)))

    assert len(files(spool)) == 20
    assert outcomes.count("") == 20
    assert all("spool is full" in outcome for outcome in outcomes if outcome)
    assert [name for name in os.listdir(spool.folder) if name.startswith(".")] == []


def test_other_priorities_have_room_of_their_own(tmp_path):
    spool = Spool(tmp_path / "spool", messages_max=1)
    submit("a", "x", spool=spool)

    submit("a", "x", spool=spool, priority=0)

    with pytest.raises(SpoolError, match=r"spool is full: .*P4 holds 1 messages"):
        submit("a", "x", spool=spool)


def test_a_message_that_cannot_be_delivered_is_refused_before_anything_is_written(spool):
    with pytest.raises(ConfigurationError, match="subject"):
        submit("a..b", "x", spool=spool)

    assert not spool.folder.exists()


def test_no_spool_is_an_error_that_says_how_to_name_one(monkeypatch):
    monkeypatch.delenv("JETLAKE_SPOOL", raising=False)

    with pytest.raises(
        ConfigurationError, match="spool is not configured: name its folder with --spool or JETLAKE_SPOOL"
    ):
        submit("a", "x")


def test_the_variable_names_the_spool(spool, monkeypatch):
    monkeypatch.setenv("JETLAKE_SPOOL", str(spool.folder))

    submit("a", "x")

    assert len(files(spool)) == 1


async def test_the_same_without_holding_up_an_event_loop(spool):
    message_id = await submit_async("a", "x", spool=spool, reliable=True)

    assert message_id in files(spool)[0].name
    with pytest.raises(ConfigurationError, match="no option relaible"):
        await submit_async("a", "x", spool=spool, relaible=True)


def test_a_folder_that_cannot_be_written_is_an_error_with_the_reason(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")

    with pytest.raises(SpoolError, match=r"cannot be made: .*; choose a folder"):
        submit("a", "x", spool=blocked / "spool")


def test_what_a_crash_left_unfinished_is_removed_after_an_hour_and_nothing_else(spool):
    submit("a", "x", spool=spool)
    old = [spool.folder / name for name in (".submit-abc.tmp", ".submit.Xy12Ab", "123456789")]
    young = spool.folder / ".submit-young.tmp"
    other = spool.folder / "notes.txt"
    for path in (*old, young, other):
        path.write_text("")
    for path in (*old, other):
        os.utime(path, (0, 0))

    removed = spool.clean_up()

    assert removed == 3
    assert young.exists()
    assert other.exists()
    assert len(files(spool)) == 1


def test_rejected_files_are_kept_up_to_a_limit(spool, monkeypatch):
    monkeypatch.setattr("jetlake.submission.spool.REJECTED_MAX", 3)
    for number in range(5):
        submit("a", str(number), spool=spool)
    names = [file.name for file in files(spool)]

    for name in names:
        spool.reject(4, name)

    assert sorted(os.listdir(spool.folder / "rejected")) == names[-3:]
    assert mode(spool.folder / "rejected") == 0o700


def test_a_message_survives_the_death_of_the_program_that_wrote_it(spool):
    program = (
        "import os, sys\nfrom jetlake.submission import submit\n"
        "submit('a', 'x', spool=sys.argv[1], reliable=True)\nos.kill(os.getpid(), 9)\n"
    )

    subprocess.run([sys.executable, "-c", program, str(spool.folder)], check=False, timeout=60)

    assert spool.read(4, files(spool)[0].name).payload == b"x"


def test_a_full_disk_refuses_and_leaves_nothing_behind(spool, monkeypatch):
    spool.create()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SpoolError, match="no space left on device; the message was not submitted"):
        submit("a", "x", spool=spool, reliable=True)

    assert files(spool) == []
    assert [name for name in os.listdir(spool.folder) if name.startswith(".")] == []


def test_a_message_that_is_changed_is_changed_in_one_step(spool):
    submit("a", "x", spool=spool)
    name = files(spool)[0].name
    message = spool.read(4, name)
    assert isinstance(message, SpoolMessage)

    spool.replace(4, name, SpoolMessage(id=message.id, subject="b", payload=b"y", created_ns=1, sender="s", tries=3))

    assert spool.read(4, name).tries == 3
    assert [name for name in os.listdir(spool.folder) if name.startswith(".")] == []


@pytest.mark.parametrize("reliable", [True, False])
def test_a_reliable_message_that_is_changed_is_on_disk_before_it_takes_the_place_of_the_old_one(
    spool, monkeypatch, reliable
):
    submit("a", "x", spool=spool, reliable=reliable)
    name = files(spool)[0].name
    message = spool.read(4, name)
    synced: list[int] = []
    real = os.fsync

    def recorded(descriptor):
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    spool.replace(4, name, msgspec.structs.replace(message, tries=3))

    assert spool.read(4, name).tries == 3
    assert (files(spool)[0].stat().st_ino in synced) == reliable


def test_one_sender_has_the_lock(spool):
    spool.create()
    with spool.sender_lock() as first, spool.sender_lock() as second:
        assert (first, second) == (True, False)
    with spool.sender_lock() as again:
        assert again


async def test_a_sender_that_waits_for_the_lock_opens_no_more_files_each_time(spool, monkeypatch):
    monkeypatch.setattr("jetlake.submission.sender.LOCK_RETRY_S", 0.01)
    spool.create()
    stop = asyncio.Event()
    tries = []
    real = Spool.sender_lock

    def counted(self):
        tries.append(self)
        return real(self)

    with spool.sender_lock():
        monkeypatch.setattr(Spool, "sender_lock", counted)
        task = asyncio.create_task(run_sender(SenderOptions(spool=spool.folder, access=Access()), stop=stop))
        await until(lambda: len(tries) >= 5, "it does not try")
        before = len(os.listdir("/proc/self/fd"))
        await until(lambda: len(tries) >= 20, "it does not try again")
        after = len(os.listdir("/proc/self/fd"))
        stop.set()
        await task

    assert after <= before
