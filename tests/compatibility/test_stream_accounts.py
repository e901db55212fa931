"""Accounts with streams: what they use, what they may use, and what they are told of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.compatibility import jetstream
from tests.compatibility.jetstream import (
    ADVISORY,
    ADVISORY_TYPE,
    API,
    TYPE,
    Body,
    JetStream,
    Json,
    encode_body,
    error_of,
    normal,
    start_jetstream_server,
)
from tests.compatibility.server_process import ServerProcess

start_jetstream = jetstream.start_jetstream

NOT_ENABLED = {"code": 503, "err_code": 10039, "description": "JetStream not enabled for account"}
NO_STORAGE = (500, 10047, "insufficient storage resources available")
NO_MEMORY = (500, 10028, "insufficient memory resources available")
TOO_MANY_STREAMS = (400, 10027, "maximum number of streams reached")
TOO_MANY_CONSUMERS = (400, 10026, "maximum consumers limit reached")
TOO_MANY_BYTES = (400, 10122, "stream max bytes exceeds account limit max stream bytes")
BYTES_REQUIRED = (400, 10113, "account requires a stream config to have max bytes set")
LIMITS_EXCEEDED = (400, 10002, "resource limits exceeded for account")

# The account of each test, with its jetstream block; all have a user of their name.
ACCOUNTS = {
    "FRESH": "enabled",
    "USING": "enabled",
    "COUNTED": "enabled",
    "ADVISED": "enabled",
    "AUDITED": "enabled",
    "PURGED": "enabled",
    "ONE": "enabled",
    "OTHER": "enabled",
    "SHOWN": "{ max_mem: 2000, max_file: 3000, max_streams: 3, max_consumers: 2, max_ack_pending: 7, "
    "mem_max_stream_bytes: 400, disk_max_stream_bytes: 500, max_bytes_required: true }",
    "STREAMS": "{ max_streams: 2 }",
    "CONSUMERS": "{ max_consumers: 2 }",
    "BYTES": "{ max_mem: 2000, max_file: 3000 }",
    "FULL": "{ max_mem: 2000, max_file: 2000 }",
    "LARGE": "{ mem_max_stream_bytes: 400, disk_max_stream_bytes: 500 }",
    "REQUIRED": "{ max_bytes_required: true }",
}

UNLIMITED = {
    "max_memory": -1,
    "max_storage": -1,
    "max_streams": -1,
    "max_consumers": -1,
    "max_ack_pending": -1,
    "memory_max_stream_bytes": -1,
    "storage_max_stream_bytes": -1,
    "max_bytes_required": False,
}


def accounts_config() -> str:
    lines = [
        f"{name} {{ jetstream: {block}, users: [{{user: {name}, password: x}}] }}" for name, block in ACCOUNTS.items()
    ]
    lines += [f"{name} {{ users: [{{user: {name}, password: x}}] }}" for name in ("NONE", "SYS")]
    return "accounts {\n" + "\n".join(lines) + "\n}\nsystem_account: SYS\n"


@pytest.fixture(scope="module")
def accounts_server(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = start_jetstream_server(server_kind, tmp_path_factory.mktemp(server_kind), config=accounts_config())
    yield process
    process.stop()


@pytest.fixture
def account(accounts_server: ServerProcess) -> Iterator[Callable[[str], JetStream]]:
    """A function that connects a user of an account."""
    clients: list[JetStream] = []

    def connect(name: str) -> JetStream:
        clients.append(JetStream(accounts_server, user=name, **{"pass": "x"}))
        return clients[-1]

    yield connect
    for client in clients:
        client.raw.close()


Account = Callable[[str], JetStream]


# What an account uses


def test_fresh_account_uses_nothing(account: Account) -> None:
    js = account("FRESH")

    assert js.api("INFO") == {
        "type": f"{TYPE}account_info_response",
        "memory": 0,
        "storage": 0,
        "reserved_memory": 0,
        "reserved_storage": 0,
        "streams": 0,
        "consumers": 0,
        "limits": UNLIMITED,
        "api": {"level": 5, "total": 0, "errors": 0},
    }


def test_limits_are_those_of_the_configuration(account: Account) -> None:
    assert account("SHOWN").api("INFO")["limits"] == {
        "max_memory": 2000,
        "max_storage": 3000,
        "max_streams": 3,
        "max_consumers": 2,
        "max_ack_pending": 7,
        "memory_max_stream_bytes": 400,
        "storage_max_stream_bytes": 500,
        "max_bytes_required": True,
    }


def test_usage_is_the_sum_of_the_streams(account: Account) -> None:
    js = account("USING")
    js.create("A", max_bytes=1000)
    js.create("B")
    js.create("M", storage="memory", max_bytes=500)
    for name in "ABM":
        js.publish(f"{name}.a", b"12345")

    info = js.api("INFO")
    states = {name: js.state(name) for name in "ABM"}
    assert (info["memory"], info["storage"]) == (states["M"]["bytes"], states["A"]["bytes"] + states["B"]["bytes"])
    assert (info["reserved_memory"], info["reserved_storage"]) == (500, 1000)
    assert info["streams"] == 3

    js.api("STREAM.PURGE.B")
    js.api("STREAM.DELETE.M")
    info = js.api("INFO")
    assert (info["memory"], info["storage"]) == (0, states["A"]["bytes"])
    assert (info["reserved_memory"], info["reserved_storage"], info["streams"]) == (0, 1000, 2)


def test_calls_are_counted_except_reading_and_what_is_unknown(account: Account) -> None:
    js = account("COUNTED")
    js.create("A", allow_direct=True)
    js.publish("A.a")

    def counted(*calls: Callable[[], Any]) -> tuple[int, int]:
        before = js.api("INFO")["api"]
        for call in calls:
            call()
        after = js.api("INFO")["api"]
        return after["total"] - before["total"] - 1, after["errors"] - before["errors"]

    assert counted() == (0, 0)
    assert counted(lambda: js.api("STREAM.INFO.A"), lambda: js.api("STREAM.NAMES")) == (2, 0)
    assert counted(lambda: js.api("STREAM.INFO.NONE"), lambda: js.api("STREAM.NAMES", "{x")) == (2, 2)
    assert counted(lambda: js.get("A", seq=1)) == (0, 0)
    assert counted(lambda: js.api("STREAM.MSG.GET.A", {"seq": 9})) == (1, 1)
    assert counted(lambda: js.request(f"{API}DIRECT.GET.A", b'{"seq":1}')) == (0, 0)
    assert counted(lambda: js.publish("A.a"), lambda: js.send(f"{API}UNKNOWN"), js.flush) == (0, 0)


def test_streams_of_accounts_do_not_see_each_other(account: Account) -> None:
    one, other = account("ONE"), account("OTHER")
    one.create("S", subjects=["same.>"], max_msgs=5)
    other.create("S", subjects=["same.>"])

    one.publish("same.a", b"one")

    assert one.state("S")["messages"] == 1
    assert other.state("S")["messages"] == 0
    assert (one.config("S")["max_msgs"], other.config("S")["max_msgs"]) == (5, -1)


# What an account may use


def test_number_of_streams_is_limited(account: Account) -> None:
    js = account("STREAMS")
    js.create("A")
    js.create("B")

    assert js.create_error("C") == TOO_MANY_STREAMS
    assert "error" not in js.try_create("B")
    js.api("STREAM.DELETE.A")
    js.create("C")


def test_number_of_consumers_of_a_stream_is_limited(account: Account) -> None:
    js = account("CONSUMERS")

    assert js.create_error("A", max_consumers=3) == TOO_MANY_CONSUMERS
    js.create("A", max_consumers=2)
    assert error_of(js.try_update("A", max_consumers=3)) == TOO_MANY_CONSUMERS


def test_bytes_of_all_streams_are_reserved(account: Account) -> None:
    js = account("BYTES")
    js.create("A", max_bytes=1000)

    assert js.create_error("B", max_bytes=2001) == NO_STORAGE
    js.create("B", max_bytes=2000)
    assert js.create_error("C") == NO_STORAGE
    assert js.create_error("C", storage="memory", max_bytes=2001) == NO_MEMORY
    assert error_of(js.try_update("A", max_bytes=1001)) == NO_STORAGE
    js.update("A", max_bytes=900)
    js.update("B", max_bytes=2100)
    assert js.api("INFO")["reserved_storage"] == 3000


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_message_that_exceeds_the_bytes_is_refused(account: Account, storage: str) -> None:
    js = account("FULL")
    js.create(storage, storage=storage)

    assert js.publish_code(f"{storage}.a", b"x" * 1800) == 0
    assert js.publish_error(f"{storage}.a", b"x" * 200) == LIMITS_EXCEEDED
    assert js.publish_code(f"{storage}.a", b"x" * 50) == 0
    assert js.state(storage)["messages"] == 2


@pytest.mark.parametrize(("storage", "limit"), [("file", 500), ("memory", 400)])
def test_bytes_of_one_stream_are_limited(account: Account, storage: str, limit: int) -> None:
    js = account("LARGE")

    assert js.create_error(storage, storage=storage, max_bytes=limit + 1) == TOO_MANY_BYTES
    js.create(storage, storage=storage, max_bytes=limit)
    assert error_of(js.try_update(storage, max_bytes=limit + 1)) == TOO_MANY_BYTES


def test_limit_of_bytes_may_be_required(account: Account) -> None:
    js = account("REQUIRED")

    assert js.create_error("A") == BYTES_REQUIRED
    js.create("A", max_bytes=100)
    assert error_of(js.try_update("A", max_bytes=-1)) == BYTES_REQUIRED


def test_bytes_of_the_server_are_reserved(start_jetstream: Callable[..., ServerProcess]) -> None:
    with JetStream(start_jetstream(jetstream="max_mem: 1000, max_file: 2000")) as js:
        assert js.create_error("A", max_bytes=2001) == NO_STORAGE
        assert js.create_error("A", max_bytes=1001, storage="memory") == NO_MEMORY
        js.create("A", max_bytes=2000)
        assert js.create_error("B", max_bytes=1) == NO_STORAGE


@pytest.mark.parametrize(("storage", "taken"), [("file", 8), ("memory", 9)])
def test_server_that_is_full_refuses_until_there_is_room(
    start_jetstream: Callable[..., ServerProcess], storage: str, taken: int
) -> None:
    with JetStream(start_jetstream(jetstream="max_mem: 1000, max_file: 1000")) as js:
        js.create("S", subjects=["subj"], storage=storage)
        for _ in range(taken):
            assert "seq" in js.publish("subj", b"x" * 104)

        assert js.publish_error("subj", b"x" * 104) == (503, 10023, "insufficient resources")
        js.api("STREAM.PURGE.S")
        assert js.publish("subj", b"x" * 104)["seq"] == taken + 1


def test_duplicate_window_of_the_server_is_a_limit(start_jetstream: Callable[..., ServerProcess]) -> None:
    with JetStream(start_jetstream(jetstream="limits { duplicate_window: 10s }")) as js:
        assert js.create("A")["config"]["duplicate_window"] == 10 * 10**9
        assert js.create_error("B", duplicate_window=11 * 10**9)[:2] == (500, 10052)


def test_unknown_fields_are_ignored_when_the_server_is_not_strict(
    start_jetstream: Callable[..., ServerProcess],
) -> None:
    with JetStream(start_jetstream(jetstream="strict: false")) as js:
        assert "error" not in js.try_create("A", unknown=1)
        assert "error" not in js.api("STREAM.NAMES", {"unknown": 1})


# Accounts and servers without streams


@pytest.mark.parametrize(
    ("endpoint", "body", "kind", "zero_fields"),
    [
        ("INFO", None, "account_info_response", {}),
        ("STREAM.NAMES", None, "stream_names_response", {"total": 0, "offset": 0, "limit": 0, "streams": None}),
        ("STREAM.LIST", None, "stream_list_response", {"total": 0, "offset": 0, "limit": 0, "streams": []}),
        ("STREAM.CREATE.A", {"name": "A"}, "stream_create_response", {}),
        ("STREAM.UPDATE.A", {"name": "A"}, "stream_update_response", {}),
        ("STREAM.INFO.A", "{x", "stream_info_response", {"total": 0, "offset": 0, "limit": 0}),
        ("STREAM.DELETE.A", None, "stream_delete_response", {}),
        ("STREAM.PURGE.A", None, "stream_purge_response", {"purged": 0}),
        ("STREAM.MSG.GET.A", {"seq": 1}, "stream_msg_get_response", {}),
        ("STREAM.MSG.DELETE.A", {"seq": 1}, "stream_msg_delete_response", {}),
        ("STREAM.SNAPSHOT.A", {"deliver_subject": "x"}, "stream_snapshot_response", {}),
        (
            "STREAM.RESTORE.A",
            {"config": {"name": "A"}, "state": {}},
            "stream_restore_response",
            {"deliver_subject": ""},
        ),
    ],
)
def test_account_without_streams_is_refused(
    account: Account, endpoint: str, body: Body, kind: str, zero_fields: Json
) -> None:
    assert account("NONE").api(endpoint, body) == {"type": TYPE + kind, "error": NOT_ENABLED, **zero_fields}


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        ("INFO", "account_info_response"),
        ("STREAM.NAMES", "system_response"),
        ("STREAM.CREATE.A", "system_response"),
        ("STREAM.INFO.A", "system_response"),
        ("STREAM.LEADER.STEPDOWN.A", "system_response"),
    ],
)
def test_system_account_is_refused(account: Account, endpoint: str, kind: str) -> None:
    assert account("SYS").api(endpoint) == {"type": TYPE + kind, "error": NOT_ENABLED}


def test_system_account_deletes_all_streams_of_an_account(account: Account) -> None:
    js = account("PURGED")
    js.create("A")
    js.create("B")

    answer = account("SYS").api("ACCOUNT.PURGE.PURGED")

    assert answer == {"type": f"{TYPE}account_purge_response", "initiated": True}
    assert js.api("STREAM.NAMES")["streams"] is None


def test_server_without_streams_has_no_responders(start_server: Callable[..., ServerProcess]) -> None:
    with JetStream(start_server()) as js:
        assert js.request(f"{API}INFO").status == "503"
        assert "jetstream" not in js.raw.info


def test_server_with_streams_says_so(account: Account) -> None:
    info = account("FRESH").raw.info

    assert info["jetstream"] is True
    assert info["api_lvl"] == 5


def test_domain_has_its_own_subjects(start_jetstream: Callable[..., ServerProcess]) -> None:
    with JetStream(start_jetstream(jetstream="domain: hub")) as js:
        js.create("A", allow_direct=True)
        js.publish("A.a", b"1")

        assert js.raw.info["domain"] == "hub"
        assert js.api("INFO")["domain"] == "hub"
        assert js.info("A")["domain"] == "hub"
        assert js.request("$JS.hub.API.STREAM.NAMES").json()["streams"] == ["A"]
        assert js.request("$JS.hub.API.INFO").json()["domain"] == "hub"
        assert js.request("$JS.hub.API.DIRECT.GET.A", b'{"seq":1}').data == b"1"
        assert js.request("$JS.other.API.INFO").status == "503"


# Advisories


def test_changes_of_streams_are_told(account: Account) -> None:
    js = account("ADVISED")
    js.subscribe(f"{ADVISORY}STREAM.>")

    js.create("A")
    js.create("A")
    js.update("A", max_msgs=5)
    js.api("STREAM.PURGE.A")
    js.api("STREAM.DELETE.A")

    for name, action in (("CREATED", "create"), ("UPDATED", "modify"), ("DELETED", "delete")):
        message = js.next(f"{ADVISORY}STREAM.>")
        assert message.subject == f"{ADVISORY}STREAM.{name}.A"
        assert (message.headers, message.reply) == (b"", "")
        assert normal(message.json()) == {
            "type": f"{ADVISORY_TYPE}stream_action",
            "id": "...",
            "timestamp": "TIME",
            "stream": "A",
            "action": action,
        }
    assert js.received(f"{ADVISORY}STREAM.>") == []


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        ("INFO", None),
        ("STREAM.NAMES", {"offset": 1}),
        ("STREAM.INFO.NONE", "{x"),
        ("STREAM.DELETE.NONE", None),
        ("STREAM.MSG.GET.NONE", {"seq": 1}),
    ],
)
def test_calls_are_told_with_request_and_response(account: Account, endpoint: str, body: Body) -> None:
    js = account("AUDITED")
    js.subscribe(f"{ADVISORY}API")

    response = js.api_message(endpoint, body)

    advisory = js.next(f"{ADVISORY}API").json()
    assert advisory["type"] == f"{ADVISORY_TYPE}api_audit"
    assert advisory["subject"] == API + endpoint
    assert advisory.get("request", "") == encode_body(body).decode()
    assert advisory["response"].encode() == response.data
    assert advisory["server"] == js.raw.info["server_name"]
    client = advisory["client"]
    assert (client["acc"], client["user"], client["host"]) == ("AUDITED", "AUDITED", "127.0.0.1")
    assert (client["id"], client["kind"], client["client_type"]) == (js.raw.info["client_id"], "Client", "nats")
    assert client["server"] == js.raw.info["server_name"]


def test_reading_is_not_told(account: Account) -> None:
    js = account("AUDITED")
    js.create("A", allow_direct=True)
    js.publish("A.a")
    js.subscribe(f"{ADVISORY}API")

    js.get("A", seq=1)
    js.request(f"{API}DIRECT.GET.A", b'{"seq":1}')
    js.api("STREAM.NAMES")

    assert js.next(f"{ADVISORY}API").json()["subject"] == f"{API}STREAM.NAMES"
    js.api("STREAM.DELETE.A")
