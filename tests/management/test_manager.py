"""The thread that answers: turns, bounds, and the end."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec
import pytest

from jetlake._engine import EngineError
from jetlake.management import lanes
from jetlake.management.streams.context import StreamAccountLimits
from tests.management.api_twin import SETTINGS, ApiTwin
from tests.management.engine_twin import EngineTwin, TwinConsumerEvent, TwinRequest
from tests.management.schemas import problems_of

WAIT_SECONDS = 60.0

SOON_SECONDS = 4.0
"""After what a test does first, also on a machine that is busy."""
LIMIT_REACHED = "$JS.EVENT.ADVISORY.API.LIMIT_REACHED"


class GatedApi(ApiTwin):
    """An API whose first answer waits until it may go on."""

    def __init__(self) -> None:
        super().__init__(
            msgspec.structs.replace(SETTINGS, accounts={"A": StreamAccountLimits(), "B": StreamAccountLimits()})
        )
        self.begun, self.may_go_on, self.all_done = threading.Event(), threading.Event(), threading.Event()
        self.answered: list[tuple[str, str]] = []
        self.expected = 0
        publish = self.engine.publish

        def publish_when_allowed(account: str, subject: str, payload: bytes, **options: bytes | None) -> int:
            self.begun.set()
            assert self.may_go_on.wait(WAIT_SECONDS)
            self.answered.append((account, subject))
            if len(self.answered) == self.expected:
                self.all_done.set()
            return publish(account, subject, payload, **options)

        self.engine.publish = publish_when_allowed

    def send(self, account: str, reply: str, payload: bytes = b"") -> None:
        self.manager.receive(TwinRequest(subject="$JS.API.STREAM.NAMES", account=account, reply=reply, payload=payload))

    def finish(self, expected: int) -> None:
        self.expected = expected
        self.may_go_on.set()
        assert self.all_done.wait(WAIT_SECONDS), self.answered


@pytest.fixture
def api() -> Iterator[GatedApi]:
    api = GatedApi()
    yield api
    api.may_go_on.set()
    api.manager.close()
    api.manager.join()


def test_accounts_take_turns_and_keep_their_order(api):
    api.send("A", "a0")
    assert api.begun.wait(WAIT_SECONDS)
    for number in range(1, 50):
        api.send("A", f"a{number}")
    api.send("B", "b0")
    api.send("B", "b1")

    api.finish(52)

    assert api.answered.index(("B", "b0")) <= 2
    assert api.answered.index(("B", "b1")) <= 4
    assert [reply for account, reply in api.answered if account == "A"] == [f"a{number}" for number in range(50)]


def wait_until(condition: Callable[[], object]) -> None:
    waited = threading.Event()
    for _ in range(1_000):
        if condition():
            return
        waited.wait(WAIT_SECONDS / 1_000)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize(("payload", "count"), [(b"", 10_001), (b"x" * 1_000_000, 68)])
def test_queue_that_overflows_is_dropped_as_a_whole_and_told(api, payload, count):
    api.engine.interest.add(LIMIT_REACHED)
    api.send("A", "first")
    assert api.begun.wait(WAIT_SECONDS)
    api.send("B", "other")
    for _ in range(count):
        api.send("A", "flood", payload)
    api.send("A", "later")

    api.finish(4)
    wait_until(lambda: api.warnings)

    replies = {reply for _, reply in api.answered}
    assert replies == {"first", "other", "later", LIMIT_REACHED}
    (account, _, advisory, _) = next(each for each in api.engine.published if each[1] == LIMIT_REACHED)
    assert account == "$SYS"
    dropped = json.loads(advisory)["dropped"]
    assert 0 < dropped <= count
    assert problems_of(json.loads(advisory), "api_limit_reached") == []
    assert api.warnings == [f"JetStream API limit reached, dropping {dropped} requests"]


def test_message_of_the_server_itself_is_no_request(api):
    api.manager.receive(TwinRequest(subject="$JS.API.STREAM.DELETE.S", connection_id=0))

    assert not any(thread.name == "jetlake-management" for thread in threading.enumerate())


def test_close_ends_the_thread_after_the_answer_that_is_being_given(api):
    api.send("A", "first")
    assert api.begun.wait(WAIT_SECONDS)
    api.send("A", "second")

    api.manager.close()
    api.send("A", "third")
    api.may_go_on.set()
    api.manager.join()

    assert api.answered == [("A", "first")]


def test_bounds_are_those_of_nats_server():
    assert lanes.REQUESTS_OF_ACCOUNT_MAX == 10_000


def test_other_settings_are_in_force_at_once():
    api = ApiTwin()
    assert "error" not in api.ask("INFO")

    api.manager.update(msgspec.structs.replace(SETTINGS, accounts={}))

    assert api.error("INFO") == "10039 JetStream not enabled for account"


PAUSE_TOLD = "$JS.EVENT.ADVISORY.CONSUMER.PAUSE.S.C"
DELETION_TOLD = "$JS.EVENT.ADVISORY.CONSUMER.DELETED.S.C"


class HeardApi(ApiTwin):
    """An API with a consumer, and somebody who waits for one advisory."""

    def __init__(self, awaited: str, engine: EngineTwin | None = None) -> None:
        super().__init__(engine=engine)
        self.heard = threading.Event()
        self.engine.interest.add(awaited)
        publish = self.engine.publish

        def publish_and_notice(account: str, subject: str, *arguments: object, **options: object) -> int:
            count = publish(account, subject, *arguments, **options)
            if subject == awaited:
                self.heard.set()
            return count

        self.engine.publish = publish_and_notice
        if engine is None:
            self.ask("STREAM.CREATE.S", {"name": "S"})
            self.ask("CONSUMER.CREATE.S.C", {"stream_name": "S"})

    def close(self) -> None:
        self.manager.close()
        self.manager.join()


def test_consumer_that_nobody_uses_is_deleted_and_told():
    api = HeardApi(DELETION_TOLD)

    for name in ("C", "C", "NOPE"):
        api.manager.note(TwinConsumerEvent(account="$G", stream="S", name=name))
    assert api.heard.wait(WAIT_SECONDS)
    api.close()

    assert api.error("CONSUMER.INFO.S.C") == "10014 consumer not found"
    assert not api.engine.streams["$G", "S"].consumers
    assert not api.warnings


def pause_of(seconds: float) -> str:
    return datetime.fromtimestamp(time.time() + seconds, UTC).isoformat()


def test_end_of_a_pause_is_told_when_it_comes():
    api = HeardApi(PAUSE_TOLD)
    api.manager.receive(TwinRequest(subject="$JS.API.INFO"))
    body = json.dumps({"pause_until": pause_of(SOON_SECONDS)}).encode()

    api.manager.receive(TwinRequest(subject="$JS.API.CONSUMER.PAUSE.S.C", payload=body))
    assert api.heard.wait(WAIT_SECONDS)
    api.heard.clear()
    assert api.heard.wait(WAIT_SECONDS)
    api.close()

    told = [json.loads(payload)["paused"] for _, subject, payload, _ in api.engine.published if subject == PAUSE_TOLD]
    assert told == [True, False]


def test_end_of_a_pause_is_told_after_a_restart_too():
    engine = EngineTwin([("$G", "S", b'{"config":{"name":"S"},"created":""}')])
    config = {"name": "C", "pause_until": pause_of(SOON_SECONDS)}
    engine.stored_definitions["$G", "S"] = [json.dumps({"name": "C", "config": config, "created": ""}).encode()]
    engine.create_consumer = lambda *_: None
    api = HeardApi(PAUSE_TOLD, engine)

    api.manager.update(SETTINGS)
    assert api.heard.wait(WAIT_SECONDS)
    api.close()


def consumer_request(name: str, reply: str) -> TwinRequest:
    body = json.dumps({"stream_name": "S", "config": {"name": name, "ack_policy": "explicit"}}).encode()
    return TwinRequest(subject=f"$JS.API.CONSUMER.CREATE.S.{name}", account="A", reply=reply, payload=body)


def send_together(api: GatedApi, *requests: TwinRequest) -> dict[str, dict[str, object]]:
    """Return the answers to requests that were all waiting when the first of them was looked at."""
    api.manager.answer(TwinRequest(subject="$JS.API.STREAM.CREATE.S", account="A", reply="", payload=b'{"name":"S"}'))
    api.send("A", "first")
    assert api.begun.wait(WAIT_SECONDS)
    for request in requests:
        api.manager.receive(request)
    api.finish(1 + len(requests))
    return {subject: json.loads(payload) for _, subject, payload, _ in api.engine.published}


def counting_commits(api: GatedApi, failure: EngineError | None = None) -> list[int]:
    """Return where it is noted how many consumers there are at each commit."""
    commits: list[int] = []

    def commit(account: str, stream: str) -> list[tuple[str, str]]:
        commits.append(len(api.engine.streams[account, stream].consumers))
        if failure is not None:
            raise failure
        return []

    api.engine.commit_consumers = commit
    return commits


def test_consumers_that_are_made_at_the_same_time_share_a_sync(api):
    commits = counting_commits(api)

    answers = send_together(api, *[consumer_request(f"C{number}", f"c{number}") for number in range(20)])

    assert commits == [20]
    assert [answers[f"c{number}"]["name"] for number in range(20)] == [f"C{number}" for number in range(20)]
    assert [reply for _, reply in api.answered] == ["first", *[f"c{number}" for number in range(20)]]


def test_whatever_is_asked_after_a_consumer_was_made_finds_it_durable(api):
    commits = counting_commits(api)
    information = TwinRequest(subject="$JS.API.CONSUMER.INFO.S.C", account="A", reply="info")
    deletion = TwinRequest(subject="$JS.API.CONSUMER.DELETE.S.D", account="A", reply="deleted")

    answers = send_together(
        api, consumer_request("C", "c"), information, consumer_request("D", "d"), consumer_request("D", "d2"), deletion
    )

    assert commits == [1, 2]
    assert [reply for _, reply in api.answered] == ["first", "c", "info", "d", "d2", "deleted"]
    assert not [reply for reply, answer in answers.items() if "error" in answer]


def test_a_consumer_that_cannot_be_made_durable_is_refused_and_those_beside_it_are_there(api):
    api.engine.commit_consumers = lambda *_: [("D", "the disk is full: free some space and try again")]

    answers = send_together(api, *[consumer_request(name, name.lower()) for name in "CDE"])

    assert "the disk is full" in str(answers["d"]["error"])
    assert (answers["c"]["name"], answers["e"]["name"]) == ("C", "E")
    assert sorted(api.catalog.consumers.of("A", "S")) == ["C", "E"]


def test_consumers_that_cannot_be_made_durable_are_all_refused_and_are_not_there(api):
    counting_commits(api, EngineError("store", "the disk is full: free some space and try again"))

    answers = send_together(api, consumer_request("C", "c"), consumer_request("D", "d"))

    assert {answers[reply]["error"]["err_code"] for reply in "cd"} == {10012}
    assert "the disk is full" in str(answers["c"]["error"])
    assert not api.catalog.consumers.of("A", "S")
