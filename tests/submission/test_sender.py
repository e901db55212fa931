"""The sender: what is delivered, in which order, how often, and what becomes of the rest; on both servers."""

import asyncio
import os
import time
import urllib.request

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from jetlake.client.access import Access
from jetlake.submission import SenderOptions, run_sender, submit
from jetlake.submission.delivery import Delivery
from jetlake.submission.spool import Spool
from tests.submission.reading import count, messages, until, until_count


def waiting(spool):
    return [path.name for path in sorted(spool.folder.glob("P*/*.msg"))]


def rejected(spool):
    return sorted(path.name for path in (spool.folder / "rejected").glob("*.msg"))


async def until_empty(spool):
    await until(lambda: not waiting(spool), "the spool does not become empty")


async def test_a_message_has_choria_s_subject_and_headers(api, spool, make_stream, start_sender, collective):
    stream = await make_stream()
    before = time.time_ns()
    message_id = submit(
        "tasks.status",
        b"\0done",
        spool=spool,
        reliable=True,
        priority=2,
        sender="cron 1",
        identity="n1",
        headers={"a": "b"},
    )

    start_sender()
    await until_count(api, stream, 1)
    await until_empty(spool)

    (message,) = await messages(api, stream)
    created = int(message.headers.pop("Choria-Created"))
    assert message.subject == f"{collective}.submission.in.tasks.status"
    assert message.payload == b"\0done"
    assert message.headers == {
        "Nats-Msg-Id": message_id,
        "Choria-Priority": "2",
        "Choria-Sender": "cron 1",
        "Choria-Reliable": "1",
        "Choria-Identity": "n1",
        "a": "b",
    }
    assert before <= created <= time.time_ns()


async def test_messages_of_a_subject_stay_in_order_while_a_stream_is_missing(api, spool, make_stream, start_sender):
    """Choria lets younger messages overtake one that waits for its next try; here nothing overtakes it."""
    for number in range(20):
        submit(f"app.{number % 2}", str(number), spool=spool, reliable=True)
    start_sender()
    first = waiting(spool)[0]
    await until(lambda: spool.read(4, first).tries >= 2, "it is not tried")
    for number in range(20, 40):
        submit(f"app.{number % 2}", str(number), spool=spool, reliable=True)

    stream = await make_stream()
    await until_count(api, stream, 40)
    await until_empty(spool)

    found = await messages(api, stream)
    assert len(found) == 40
    for parity in range(2):
        numbers = [int(each.payload) for each in found if each.subject.endswith(f".{parity}")]
        assert numbers == list(range(parity, 40, 2))
    assert any("Choria-Tries" in message.headers for message in found)


async def test_a_subject_without_a_stream_does_not_hold_up_others(api, spool, make_stream, start_sender, collective):
    stream = await make_stream(subjects=[f"{collective}.submission.in.good"])
    submit("bad", "1", spool=spool, reliable=True)
    submit("good", "2", spool=spool, reliable=True)

    start_sender()
    await until_count(api, stream, 1)

    assert [message.payload for message in await messages(api, stream)] == [b"2"]
    await until(lambda: len(waiting(spool)) == 1, "what was sent is not removed")
    assert spool.read(4, waiting(spool)[0]).payload == b"1"


async def test_an_urgent_message_is_chosen_first(api, spool, make_stream, start_sender, monkeypatch):
    """Several are under way at once and may overtake each other; here it is one, so that the choice is seen."""
    monkeypatch.setattr("jetlake.submission.sender.UNDER_WAY_MAX", 1)
    stream = await make_stream()
    for priority in (4, 3, 2, 1, 0):
        for number in range(2):
            submit(f"p{priority}.{number}", str(priority), spool=spool, reliable=True, priority=priority)

    start_sender()
    await until_count(api, stream, 10)

    assert [int(message.payload) for message in await messages(api, stream)] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


async def test_an_unreliable_message_is_published_once(api, spool, start_sender, collective):
    heard = await api.connection.subscribe(f"{collective}.submission.in.log")
    await api.connection.flush()
    submit("log", "line", spool=spool)

    sender = start_sender()
    message = await heard.next_msg(60)
    await until_empty(spool)

    assert message.data == b"line"
    assert "Choria-Reliable" not in message.headers
    figures = await sender.stop()
    assert (figures.published, figures.delivered) == (1, 0)


async def test_an_unreliable_message_is_not_held_up_by_a_reliable_one(api, spool, start_sender):
    submit("app", "stuck", spool=spool, reliable=True)
    submit("app", "free", spool=spool)

    start_sender()
    await until(lambda: len(waiting(spool)) == 1, "the unreliable one waits")

    assert spool.read(4, waiting(spool)[0]).payload == b"stuck"


async def test_tries_and_the_next_try_survive_a_restart(spool, start_sender):
    submit("nowhere", "x", spool=spool, reliable=True)
    name = waiting(spool)[0]
    sender = start_sender()
    await until(lambda: spool.read(4, name).tries >= 1, "it is not tried")
    await sender.stop()
    before = spool.read(4, name)

    start_sender()
    await until(lambda: spool.read(4, name).tries > before.tries, "it is not tried again")

    assert before.next_try_ns > before.created_ns


async def test_a_message_is_given_up_after_its_tries_and_kept_aside(spool, start_sender):
    submit("nowhere", "x", spool=spool, reliable=True, max_tries=2)
    name = waiting(spool)[0]

    sender = start_sender()
    await until_empty(spool)

    assert rejected(spool) == [name]
    figures = await sender.stop()
    assert (figures.rejected, figures.retries) == (1, 2)
    assert "no stream is listening on subject" in figures.last_error


async def test_an_expired_message_is_removed_and_what_follows_is_sent(api, spool, make_stream, start_sender):
    submit("app", "old", spool=spool, reliable=True, ttl_s=0.05)
    submit("app", "new", spool=spool, reliable=True)
    await asyncio.sleep(0.1)

    stream = await make_stream()
    sender = start_sender()
    await until_count(api, stream, 1)
    await until_empty(spool)

    assert [message.payload for message in await messages(api, stream)] == [b"new"]
    assert (await sender.stop()).expired == 1
    assert rejected(spool) == []


async def test_a_message_expires_without_a_connection_too(spool):
    submit("app", "old", spool=spool, reliable=True, ttl_s=0.2)
    stop = asyncio.Event()
    options = SenderOptions(spool=spool.folder, access=Access(url="nats://127.0.0.1:1"))
    task = asyncio.create_task(run_sender(options, stop=stop))

    await until_empty(spool)

    stop.set()
    assert (await task).expired == 1


@pytest.mark.parametrize("content", [b"", b"not json", b'{"id":"1"}', b"\0" * 100])
async def test_a_file_that_is_no_message_is_moved_aside(api, spool, make_stream, start_sender, content):
    stream = await make_stream()
    spool.create()
    (spool.folder / "P4" / "1-bad.msg").write_bytes(content)
    submit("app", "good", spool=spool, reliable=True)

    start_sender()
    await until_count(api, stream, 1)

    assert rejected(spool) == ["1-bad.msg"]


async def test_a_file_that_is_damaged_while_it_waits_is_moved_aside(api, spool, make_stream, start_sender):
    submit("bad", "1", spool=spool, reliable=True)
    sender = start_sender()
    (name,) = waiting(spool)
    await until(lambda: spool.read(4, name).tries >= 1, "it is not tried")

    def is_rejected_once_damaged() -> bool:
        # A try that is under way writes the whole message again.
        for file in waiting(spool):
            (spool.lane(4) / file).write_bytes(b"")
        return rejected(spool) == [name] or sender.task.done()

    await until(is_rejected_once_damaged, "it is not moved aside")
    assert not sender.task.done()
    stream = await make_stream()
    submit("good", "2", spool=spool, reliable=True)
    await until_count(api, stream, 1)

    assert [message.payload for message in await messages(api, stream)] == [b"2"]


async def test_a_file_with_a_forged_subject_is_moved_aside(api, spool, start_sender):
    """Whoever may write to the folder must not be able to break the protocol."""
    submit("app", "x", spool=spool, reliable=True)
    file = next(spool.folder.glob("P4/*.msg"))
    file.write_bytes(file.read_bytes().replace(b'"app"', b'"app 5\\r\\nPUB evil 0"'))

    start_sender()
    await until_empty(spool)

    assert rejected(spool) == [file.name]


async def test_a_message_that_the_server_cannot_take_is_moved_aside(api, spool, make_stream, start_sender, tmp_path):
    large = Spool(spool.folder, payload_bytes_max=10_000_000)
    submit("app", bytes(1_500_000), spool=large, reliable=True)
    submit("app", "small", spool=spool, reliable=True)
    stream = await make_stream()

    sender = start_sender(payload_bytes_max=10_000_000)
    await until_count(api, stream, 1)
    await until_empty(spool)

    figures = await sender.stop()
    assert figures.rejected == 1
    assert "the server takes 1,048,576 at most" in figures.last_error


async def test_a_stream_that_refuses_is_tried_again_until_it_does_not(api, spool, make_stream, start_sender):
    stream = await make_stream(max_msgs=1, discard="new")
    for number in range(3):
        submit("app", str(number), spool=spool, reliable=True)
    start_sender()

    seen = []
    for number in range(3):
        await until_count(api, stream, 1)
        seen += [message.payload for message in await messages(api, stream)]
        name = waiting(spool)[0] if number < 2 else ""
        if name:
            await until(lambda name=name: is_refused(spool, name), "it is not refused")
        await api.request(f"STREAM.PURGE.{stream}", {})

    assert seen == [b"0", b"1", b"2"]


def is_refused(spool, name):
    message = spool.read(4, name)
    return message is None or message.tries > 0


async def test_what_was_sent_before_a_crash_is_not_stored_twice(api, spool, make_stream, start_sender, collective):
    """The sender was killed between the acknowledgement and the removal, and came back after the duplicate window."""
    stream = await make_stream(duplicate_window=100_000_000)
    submit("app", "1", spool=spool, reliable=True)
    submit("app", "2", spool=spool, reliable=True)
    message = spool.read(4, waiting(spool)[0])
    await Delivery(api, collective).send(message)
    await asyncio.sleep(0.3)

    sender = start_sender()
    await until_empty(spool)

    assert [each.payload for each in await messages(api, stream)] == [b"1", b"2"]
    figures = await sender.stop()
    assert (figures.delivered, figures.duplicates) == (2, 1)


async def test_what_is_sent_twice_within_the_window_is_stored_once(api, spool, make_stream, start_sender, collective):
    stream = await make_stream()
    submit("app", "1", spool=spool, reliable=True)
    message = spool.read(4, waiting(spool)[0])
    for _ in range(3):
        await Delivery(api, collective).send(message)
    assert await count(api, stream) == 1


async def test_a_second_sender_waits_for_the_first(api, spool, make_stream, start_sender, caplog):
    stream = await make_stream()
    first = start_sender()
    submit("app", "1", spool=spool, reliable=True)
    await until_count(api, stream, 1)
    second = start_sender()
    await until(lambda: "another sender has the spool" in caplog.text, "it does not notice")

    await first.stop()
    submit("app", "2", spool=spool, reliable=True)
    await until_count(api, stream, 2)

    assert (await second.stop()).delivered == 1


async def test_a_server_that_is_not_there_uses_up_no_try(spool, caplog):
    submit("app", "1", spool=spool, reliable=True)
    submit("app", "2", spool=spool)
    stop = asyncio.Event()
    options = SenderOptions(spool=spool.folder, access=Access(url="nats://127.0.0.1:1"))
    task = asyncio.create_task(run_sender(options, stop=stop))
    await until(lambda: "cannot connect" in caplog.text, "it does not notice")
    stop.set()
    figures = await task

    assert len(waiting(spool)) == 2
    assert spool.read(4, waiting(spool)[0]).tries == 0
    assert "cannot connect" in figures.last_error


async def test_a_disk_that_refuses_to_write_loses_nothing(api, spool, make_stream, start_sender, monkeypatch):
    """The number of tries cannot be written; Choria throws the message away then."""
    submit("app", "1", spool=spool, reliable=True)
    real = Spool.replace
    refusals = []

    def full(self, *words):
        monkeypatch.setattr(os, "open", refuse)
        try:
            real(self, *words)
        finally:
            monkeypatch.setattr(os, "open", open_for_real)
            refusals.append(words)

    open_for_real = os.open

    def refuse(*_words, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "replace", full)
    sender = start_sender()
    await until(lambda: len(refusals) >= 2, "it is not tried again")

    stream = await make_stream()
    await until_count(api, stream, 1)
    await until_empty(spool)
    figures = await sender.stop()

    assert figures.disk_errors >= 1
    assert figures.rejected == 0


async def test_a_message_is_signed_if_it_asks_for_it(api, spool, make_stream, start_sender, tmp_path):
    stream = await make_stream()
    seed, token = tmp_path / "seed", tmp_path / "token"
    seed.write_text("07" * 32)
    token.write_text("a.jwt.token\n")
    submit("app", "signed", spool=spool, reliable=True, sign=True)

    start_sender(seed_file=seed, token_file=token)
    await until_count(api, stream, 1)

    (message,) = await messages(api, stream)
    public = Ed25519PrivateKey.from_private_bytes(bytes([7] * 32)).public_key()
    public.verify(bytes.fromhex(message.headers["Choria-Signature"]), b"signed")
    assert message.headers["Choria-Token"] == "a.jwt.token"


async def test_a_message_that_cannot_be_signed_is_moved_aside(spool, start_sender):
    submit("app", "x", spool=spool, reliable=True, sign=True)

    sender = start_sender()
    await until_empty(spool)

    assert len(rejected(spool)) == 1
    assert "has no seed" in (await sender.stop()).last_error


async def test_the_figures_are_served_for_prometheus(api, spool, make_stream, start_sender, caplog):
    caplog.set_level("INFO")
    stream = await make_stream()
    submit("app", "1", spool=spool, reliable=True)
    start_sender(metrics_port=0)
    await until_count(api, stream, 1)
    await until_empty(spool)
    address = next(line for line in caplog.messages if line.startswith("metrics at ")).removeprefix("metrics at ")

    def read():
        with urllib.request.urlopen(address, timeout=60) as page:
            return page.read().decode()

    page = await asyncio.to_thread(read)

    assert "# TYPE jetlake_submission_delivered_total counter\njetlake_submission_delivered_total 1\n" in page
    assert 'jetlake_submission_spooled_messages{priority="4"} 0.0\n' in page
