"""Snapshot and restore: what the engine is asked, what becomes of what it says, and who hears of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from jetlake._engine import EngineError
from jetlake.management.archives import consumers as archived_consumers
from jetlake.management.archives.consumers import CONSUMERS_PER_STEP
from jetlake.management.archives.endpoints import CONSUMERS_PER_STEP as SNAPSHOT_CONSUMERS_PER_STEP
from jetlake.management.endpoints.streams import CONSUMERS_TOLD_PER_STEP
from jetlake.management.streams.context import StreamAccountLimits
from tests.management.api_twin import SETTINGS, ApiTwin
from tests.management.engine_twin import TwinArchiveEvent, TwinRequest
from tests.management.schemas import problems_of

NOT_OURS = "nobody"


@pytest.fixture
def api() -> ApiTwin:
    twin = ApiTwin()
    twin.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
    twin.publish("S", "s.a")
    for word in ("SNAPSHOT_CREATE", "SNAPSHOT_COMPLETE", "RESTORE_CREATE", "RESTORE_COMPLETE", "CREATED"):
        twin.engine.interest |= {f"$JS.EVENT.ADVISORY.STREAM.{word}.{stream}" for stream in "ST"}
    return twin


def begin_restore(api: ApiTwin, **config: Any) -> str:
    """Begin to restore the stream T, and return the restore's id."""
    answer = api.ask("STREAM.RESTORE.T", {"config": {"name": "T", "subjects": ["t.>"], **config}})
    assert "error" not in answer, answer
    return str(answer["deliver_subject"]).rpartition(".")[2]


def tell(api: ApiTwin, kind: str, archive_id: str, **details: Any) -> dict[str, Any] | None:
    """Let the engine say something, and return what is answered to the last chunk."""
    before = len(api.engine.published)
    event = TwinArchiveEvent(kind=kind, id=archive_id, details=json.dumps(details).encode())
    for _ in api.manager._archives.note(event) or ():
        pass
    answers = [payload for _, subject, payload, _ in api.engine.published[before:] if subject == "last"]
    assert len(answers) <= 1
    return json.loads(answers[0]) if answers else None


def advisories(api: ApiTwin) -> list[str]:
    prefix = "$JS.EVENT.ADVISORY.STREAM."
    return [subject.removeprefix(prefix) for _, subject, _, _ in api.engine.published if subject.startswith(prefix)]


def advisory(api: ApiTwin, name: str) -> dict[str, Any]:
    subject = f"$JS.EVENT.ADVISORY.STREAM.{name}"
    found = [payload for _, each, payload, _ in api.engine.published if each == subject]
    return dict(json.loads(found[-1]))


@pytest.mark.parametrize(
    ("request_sizes", "chunk_bytes", "window_bytes"),
    [
        ({}, 131_072, 8_388_608),
        ({"chunk_size": 1, "window_size": 1}, 1_024, 1_024),
        ({"chunk_size": -1, "window_size": -1}, 1_024, 1_024),
        ({"chunk_size": 2**40, "window_size": 2**40}, 1_048_576, 33_554_432),
        ({"chunk_size": 500_000, "window_size": 2_000}, 500_000, 500_000),
    ],
)
def test_engine_is_asked_for_sizes_within_bounds(api, request_sizes, chunk_bytes, window_bytes):
    api.ask("STREAM.SNAPSHOT.S", {"deliver_subject": "d", **request_sizes})

    ((account, asked),) = api.engine.archives
    assert account == "$G"
    assert (asked["chunk_bytes"], asked["window_bytes"]) == (chunk_bytes, window_bytes)


def test_archive_says_the_same_state_as_the_answer(api):
    answer = api.ask("STREAM.SNAPSHOT.S", {"deliver_subject": "d.e"})

    ((_, asked),) = api.engine.archives
    assert json.loads(asked["state"]) == answer["state"]
    assert asked["last_sequence"] == 1
    assert asked["deliver_subject"] == "d.e"
    assert answer["config"]["metadata"] == {"_nats.req.level": "0"}
    assert problems_of(answer, "stream_snapshot_response") == []


def test_nothing_is_sent_before_the_answer(api):
    api.ask("STREAM.SNAPSHOT.S", {"deliver_subject": "d"})

    assert advisories(api) == ["SNAPSHOT_CREATE.S"]
    subjects = [subject for _, subject, _, _ in api.engine.published]
    assert subjects.index("reply") < subjects.index("$JS.EVENT.ADVISORY.STREAM.SNAPSHOT_CREATE.S")


@pytest.mark.parametrize("failure", ["", "no interest"])
def test_end_of_a_snapshot_is_told(api, failure):
    api.ask("STREAM.SNAPSHOT.S", {"deliver_subject": "d"})
    ((_, asked),) = api.engine.archives

    tell(api, "snapshot_ended", asked["id"], failure=failure)

    assert advisories(api) == ["SNAPSHOT_CREATE.S", "SNAPSHOT_COMPLETE.S"]
    assert advisory(api, "SNAPSHOT_COMPLETE.S").get("error", "") == failure
    assert any(failure in line for line in api.warnings) == bool(failure)


def test_snapshot_that_the_engine_refuses_ends_with_its_words(api):
    call = api.engine.begin_snapshot

    def refuse(*_arguments: object) -> None:
        raise EngineError("store", "32 snapshots are under way")

    api.engine.begin_snapshot = refuse
    api.ask("STREAM.SNAPSHOT.S", {"deliver_subject": "d"})
    api.engine.begin_snapshot = call

    assert ("$G", "d", b"", b"NATS/1.0 500 32 snapshots are under way\r\n\r\n") in api.engine.published
    assert advisory(api, "SNAPSHOT_COMPLETE.S")["error"] == "32 snapshots are under way"


@pytest.mark.parametrize("subject", ["", "a.*", ">", "a b", "a..b"])
def test_deliver_subject_must_be_literal(api, subject):
    assert api.error("STREAM.SNAPSHOT.S", {"deliver_subject": subject, "jsck": True}).startswith("10015")
    assert api.engine.archives == []


def test_restore_becomes_a_stream_when_the_engine_is_ready(api):
    restore_id = begin_restore(api)
    assert "T" not in api.ask("STREAM.NAMES")["streams"]

    answer = tell(api, "restore_ready", restore_id, reply="last", bytes=300)

    assert answer is not None
    assert answer["type"].endswith("stream_create_response")
    assert "did_create" not in answer
    assert problems_of(answer, "stream_create_response") == []
    assert api.ask("STREAM.NAMES")["streams"] == ["S", "T"]
    assert api.engine.restores == {}
    assert advisories(api) == ["RESTORE_CREATE.T", "CREATED.T", "RESTORE_COMPLETE.T"]
    assert advisory(api, "RESTORE_COMPLETE.T")["bytes"] == 300


@pytest.mark.parametrize(
    ("details", "number"),
    [({"failure": "no archive"}, 10062), ({"exceeded": True}, 10047), ({"taken": True}, 10130)],
)
def test_restore_that_fails_is_answered_and_makes_no_stream(api, details, number):
    restore_id = begin_restore(api)

    answer = tell(api, "restore_failed", restore_id, reply="last", **details)

    assert answer is not None
    assert answer["error"]["err_code"] == number
    assert api.ask("STREAM.NAMES")["streams"] == ["S"]
    assert advisories(api) == ["RESTORE_CREATE.T", "RESTORE_COMPLETE.T"]


def test_memory_that_would_be_exceeded_has_its_own_number(api):
    restore_id = begin_restore(api, storage="memory")

    answer = tell(api, "restore_failed", restore_id, reply="last", exceeded=True)

    assert answer is not None
    assert answer["error"]["err_code"] == 10028


def test_restore_that_has_stalled_is_told_to_nobody_but_the_log(api):
    restore_id = begin_restore(api)

    assert tell(api, "restore_failed", restore_id, failure="is stalled", stalled=True) is None

    assert advisories(api) == ["RESTORE_CREATE.T"]
    assert any("is stalled" in line for line in api.warnings)


def test_what_has_changed_meanwhile_counts(api):
    taken, overlapping = begin_restore(api), begin_restore(api)
    api.ask("STREAM.CREATE.T", {"name": "T", "subjects": ["other"]})

    answer = tell(api, "restore_ready", taken, reply="last")
    assert answer is not None
    assert answer["error"]["err_code"] == 10130

    api.ask("STREAM.DELETE.T")
    api.ask("STREAM.CREATE.U", {"name": "U", "subjects": ["t.a"]})
    answer = tell(api, "restore_ready", overlapping, reply="last")
    assert answer is not None
    assert "subjects overlap with an existing stream (10065)" in answer["error"]["description"]
    assert api.engine.restores == {}
    assert api.ask("STREAM.NAMES")["streams"] == ["S", "U"]


def test_disk_that_fails_at_the_end_is_told(api):
    restore_id = begin_restore(api)
    api.engine.fail_with = EngineError("store", "the disk is full")

    answer = tell(api, "restore_ready", restore_id, reply="last")

    assert answer is not None
    assert answer["error"]["description"] == "restore failed: the disk is full"
    api.engine.fail_with = None
    assert api.ask("STREAM.NAMES")["streams"] == ["S"]


@pytest.mark.parametrize(("created", "is_kept"), [("2020-01-02T03:04:05.6Z", True), ("", False), ("nonsense", False)])
def test_time_of_creation_is_kept_where_the_archive_knows_it(api, created, is_kept):
    answer = tell(api, "restore_ready", begin_restore(api), reply="last", created=created)

    assert answer is not None
    assert (answer["created"] == "2020-01-02T03:04:05.6Z") == is_kept


def test_answer_to_a_restore_fits_the_published_schema(api):
    request = {"config": {"name": "T", "subjects": ["t"]}, "state": api.ask("STREAM.INFO.S")["state"]}

    assert problems_of(api.ask("STREAM.RESTORE.T", request), "stream_restore_response") == []
    assert problems_of(api.ask("STREAM.RESTORE.S", request), "stream_restore_response") == []


def test_consumers_that_are_left_out_are_logged(api):
    tell(api, "restore_ready", begin_restore(api), reply="last", consumers_lost=3)

    assert any("3 consumers are in the archive in a form from before" in line for line in api.warnings)


def test_engine_hears_how_much_may_be_stored():
    limits = msgspec.structs.replace(SETTINGS.accounts["$G"], max_storage=10_000, max_memory=5_000)
    api = ApiTwin(msgspec.structs.replace(SETTINGS, accounts={"$G": limits}))
    api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
    api.publish("S", "s.a", b"x" * 967)

    begin_restore(api)
    begin_restore(api, storage="memory")

    (_, to_file), (_, to_memory) = api.engine.archives
    assert (to_file["spool_bytes_max"], to_file["stored_bytes_max"]) == (9_000, 9_000)
    assert (to_memory["spool_bytes_max"], to_memory["stored_bytes_max"]) == (9_000, 5_000)


def test_event_of_something_unknown_is_passed_over(api):
    before = len(api.engine.published)

    assert tell(api, "restore_ready", NOT_OURS, reply="last") is None

    assert len(api.engine.published) == before


def test_events_are_dealt_with_by_the_thread(api):
    restore_id = begin_restore(api)
    details = b'{"reply":"last"}'

    api.manager.note(TwinArchiveEvent(kind="restore_ready", id=restore_id, details=details))
    api.manager.close()
    api.manager.join()

    # It was dealt with before the end, or forgotten with everything else that waited.
    assert api.engine.restores == {} or api.ask("STREAM.NAMES")["streams"] == ["S"]


class Limited(TwinRequest, frozen=True, kw_only=True):
    """A request of somebody for whom the server may send to `own.>` only."""

    def may_send_to(self, _target: str, pattern: str) -> bool:
        return pattern.startswith("own.")


def archived(name: str, /, **config: Any) -> dict[str, str]:
    state = {"delivered": {"consumer_seq": 0, "stream_seq": 0}, "ack_floor": {"consumer_seq": 0, "stream_seq": 0}}
    kept = {
        "durable_name": name,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "replay_policy": "instant",
        **config,
    }
    return {"name": name, "config": json.dumps(kept), "state": json.dumps(state)}


@pytest.mark.parametrize(("deliver_subject", "is_allowed"), [("own.x", True), ("elsewhere", False)])
def test_consumers_of_an_archive_deliver_where_whoever_restores_it_may_have_them_deliver(
    api, deliver_subject, is_allowed
):
    body = json.dumps({"config": {"name": "T", "subjects": ["t.>"]}}).encode()
    api.manager.answer(Limited(subject="$JS.API.STREAM.RESTORE.T", payload=body))
    restore_id = json.loads(api.engine.published[-1][2])["deliver_subject"].rpartition(".")[2]

    answer = tell(
        api,
        "restore_ready",
        restore_id,
        reply="last",
        consumers=[archived("PULL"), archived("PUSH", deliver_subject=deliver_subject)],
    )

    if is_allowed:
        assert "error" not in answer
        return
    assert answer["error"]["description"].endswith(
        "consumer PUSH: permissions violation for deliver subject 'elsewhere': neither publish nor subscribe is allowed"
    )
    assert "T" not in api.catalog.streams_of("$G")


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("a\0b", {}),
        ("c" * 256, {}),
        ("a.b", {}),
        ("C", {"durable_name": "D"}),
        ("C", {"name": "D"}),
        ("C", {"ack_policy": "none", "max_ack_pending": 5, "pause_until": "2100-01-01T00:00:00+24:00"}),
    ],
)
def test_consumer_of_an_archive_that_no_request_could_have_made_is_refused(api, name, config):
    consumers = [archived("FINE"), archived(name, **config)]

    answer = tell(api, "restore_ready", begin_restore(api), reply="last", consumers=consumers)

    assert answer["error"]["description"].startswith(f"restore failed: consumer {name}: ")
    assert "T" not in api.catalog.streams_of("$G")


@pytest.mark.parametrize("by", ["stream", "account"])
def test_archive_has_no_more_consumers_than_a_stream_may(api, by):
    accounts = {"$G": StreamAccountLimits(max_consumers=2 if by == "account" else -1)}
    api.manager.update(msgspec.structs.replace(SETTINGS, accounts=accounts))
    limits = {"max_consumers": 2} if by == "stream" else {}

    for count in (3, 2):
        restore_id = begin_restore(api, **limits)
        consumers = [archived(f"C{number}") for number in range(count)]
        answer = tell(api, "restore_ready", restore_id, reply="last", consumers=consumers)
        if count > 2:
            assert answer["error"]["description"] == "maximum consumers limit reached"
            assert "T" not in api.catalog.streams_of("$G")
        else:
            assert "error" not in answer, answer


def steps_of(api: ApiTwin, restore_id: str, count: int) -> Any:
    consumers = [archived(f"C{number}") for number in range(count)]
    details = json.dumps({"consumers": consumers, "reply": "last"}).encode()
    return api.manager._archives.note(TwinArchiveEvent(kind="restore_ready", id=restore_id, details=details))


def test_archive_with_many_consumers_is_checked_and_made_in_steps(api):
    count = 3 * CONSUMERS_PER_STEP

    made = [len(api.catalog.consumers.of("$G", "T")) for _ in steps_of(api, begin_restore(api), count)]

    assert made == [0, 0, 0, *range(CONSUMERS_PER_STEP, count + 1, CONSUMERS_PER_STEP)]
    assert api.ask("STREAM.INFO.T")["state"]["consumer_count"] == count


def test_stream_is_offline_until_its_consumers_are_there(api):
    steps = steps_of(api, begin_restore(api), 2 * CONSUMERS_PER_STEP)
    while not len(api.catalog.consumers.of("$G", "T")):
        next(steps)

    for request, body in (
        ("STREAM.INFO.T", b""),
        ("STREAM.DELETE.T", b""),
        ("STREAM.CREATE.T", {"name": "T", "subjects": ["t.>"]}),
        ("CONSUMER.DURABLE.CREATE.T.C0", {"stream_name": "T", "config": {"durable_name": "C0"}}),
    ):
        assert api.ask(request, body)["error"]["description"] == "stream is offline: it is being restored"
    assert api.ask("STREAM.CREATE.U", {"name": "U", "subjects": ["t.x"]})["error"]["err_code"] == 10065
    listed = api.ask("STREAM.LIST")
    assert [stream["config"]["name"] for stream in listed["streams"]] == ["S"]
    assert listed["missing"] == ["T"]

    assert [*steps] != []
    assert api.ask("STREAM.INFO.T")["config"]["name"] == "T"
    assert "missing" not in api.ask("STREAM.LIST")


@pytest.mark.parametrize("is_made", [False, True], ids=["while they are checked", "while they are made"])
def test_nothing_is_left_of_a_restore_that_the_server_does_not_finish(api, is_made):
    restore_id = begin_restore(api)
    steps = steps_of(api, restore_id, 2 * CONSUMERS_PER_STEP)
    next(steps)
    while is_made and not len(api.catalog.consumers.of("$G", "T")):
        next(steps)

    steps.close()

    assert "T" not in api.catalog.streams_of("$G")
    assert ("$G", "T") not in api.engine.streams
    assert restore_id not in api.engine.restores
    assert "error" not in api.ask("STREAM.CREATE.T", {"name": "T", "subjects": ["t.>"]})


@pytest.mark.parametrize("retention", ["limits", "workqueue", "interest"])
def test_consumers_of_an_archive_deliver_only_after_all_of_them_are_durable(api, monkeypatch, retention):
    monkeypatch.setattr(archived_consumers, "CONSUMERS_PER_SYNC", CONSUMERS_PER_STEP)
    restore_id = begin_restore(api, retention=retention)
    calls = []
    for name in ("commit_restored_consumers", "serve_restored", "begin_consumers"):
        call = getattr(api.engine, name)

        def note(*arguments: str, name: str = name, call: Any = call) -> Any:
            calls.append((name, len(api.catalog.consumers.of("$G", "T"))))
            return call(*arguments)

        monkeypatch.setattr(api.engine, name, note)
    assert [*steps_of(api, restore_id, 2 * CONSUMERS_PER_STEP)] != []

    assert calls == [
        ("commit_restored_consumers", CONSUMERS_PER_STEP),
        ("commit_restored_consumers", 2 * CONSUMERS_PER_STEP),
        ("commit_restored_consumers", 2 * CONSUMERS_PER_STEP),
        ("serve_restored", 2 * CONSUMERS_PER_STEP),
        ("begin_consumers", 2 * CONSUMERS_PER_STEP),
    ]


def test_snapshot_of_a_stream_with_many_consumers_is_sent_after_all_of_them_were_told(api):
    names = [f"C{number:03}" for number in range(2 * SNAPSHOT_CONSUMERS_PER_STEP + 50)]
    for name in names:
        api.ask(f"CONSUMER.DURABLE.CREATE.S.{name}", {"stream_name": "S", "config": {"durable_name": name}})
    told = []
    add = api.engine.add_to_snapshot

    def note(snapshot_id: str, consumers: bytes) -> None:
        told.append(len(json.loads(consumers)))
        assert api.engine.sent_snapshots == []
        add(snapshot_id, consumers)

    api.engine.add_to_snapshot = note
    answer = api.ask("STREAM.SNAPSHOT.S", {"deliver_subject": "d"})

    ((_, asked),) = api.engine.archives
    assert answer["state"]["consumer_count"] == len(names)
    assert [consumer["name"] for consumer in asked["consumers"]] == names
    assert told == [SNAPSHOT_CONSUMERS_PER_STEP, SNAPSHOT_CONSUMERS_PER_STEP, 50]
    assert api.engine.sent_snapshots == [asked["id"]]


def test_every_consumer_of_a_deleted_stream_is_told_of_and_the_stream_at_last(api):
    names = [f"C{number:04}" for number in range(CONSUMERS_TOLD_PER_STEP + 10)]
    for name in names:
        api.ask(f"CONSUMER.DURABLE.CREATE.S.{name}", {"stream_name": "S", "config": {"durable_name": name}})
    prefix = "$JS.EVENT.ADVISORY."
    wanted = [*(f"{prefix}CONSUMER.DELETED.S.{name}" for name in names), f"{prefix}STREAM.DELETED.S"]
    api.engine.interest |= set(wanted)

    assert api.ask("STREAM.DELETE.S")["success"]

    assert [subject for _, subject, _, _ in api.engine.published if "DELETED" in subject] == wanted
