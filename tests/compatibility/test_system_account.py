"""The system account: requests about the server, events, and what other accounts may ask about themselves."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.compatibility.monitored import (
    ACCOUNT_DETAIL,
    DIRECTION,
    JSZ,
    LOOKUPS,
    MESSAGES,
    TIME,
    VARZ,
    assert_shape,
)
from tests.compatibility.server_process import ServerProcess

CONFIG = """
server_name: sirius
server_tags: ["az:1", "blue"]
accounts {
  $SYS { users: [
    {user: admin, password: admin}
    {user: limited, password: limited, permissions: {publish: "$SYS.REQ.SERVER.PING", subscribe: "_INBOX.>"}}
  ] }
  A { users: [
    {user: a, password: a}
    {user: a2, password: a2, permissions: {
      publish: {allow: ["foo.>", "$SYS.REQ.>"], deny: "bar"}, subscribe: "_INBOX.>"
      allow_responses: {max: 5, expires: "1m"}
    }}
  ] }
  B { users: [ {user: b, password: b} ] }
}
"""

ANSWER_S_MAX = 60.0
SILENCE_S = 0.5

SERVER = {
    "name": str,
    "host": str,
    "id": str,
    "ver": str,
    "tags": list,
    "jetstream": bool,
    "flags": int,
    "seq": int,
    "time": str,
}
STATSZ = {
    "start": str,
    "mem": int,
    "cores": int,
    "cpu": float,
    "connections": int,
    "total_connections": int,
    "active_accounts": int,
    "subscriptions": int,
    "sent": MESSAGES,
    "sent_to_clients": MESSAGES,
    "received": MESSAGES,
    "received_from_clients": MESSAGES,
    "slow_consumers": int,
    "active_servers": int,
    "gomaxprocs": int,
}
SUBSZ = {"server_id": str, "now": str, **LOOKUPS, "total": int, "offset": int, "limit": int}
CONNZ = {
    "server_id": str,
    "now": str,
    "num_connections": int,
    "total": int,
    "offset": int,
    "limit": int,
    "connections": list,
}
ACCOUNT_FIGURES = {
    "acc": str,
    "name": str,
    "conns": int,
    "leafnodes": int,
    "total_conns": int,
    "num_subscriptions": int,
    "sent": DIRECTION,
    "received": DIRECTION,
    "slow_consumers": int,
}
BODIES: dict[str, Any] = {
    "VARZ": {**VARZ, "auth_required": bool, "tags": list},
    "SUBSZ": SUBSZ,
    "CONNZ": CONNZ,
    "ROUTEZ": {"server_id": str, "server_name": str, "now": str, "num_routes": int, "routes": list},
    "GATEWAYZ": {"server_id": str, "now": str, "outbound_gateways": dict, "inbound_gateways": dict},
    "LEAFZ": {"server_id": str, "now": str, "leafnodes": int, "leafs": list},
    "ACCOUNTZ": {"server_id": str, "now": str, "system_account": str, "accounts": list},
    "JSZ": {**JSZ, "disabled": bool},
    "HEALTHZ": {"status": str, "status_code": int},
    "RAFTZ": {},
}
ACCOUNT_BODIES: dict[str, Any] = {
    "SUBSZ": {**SUBSZ, "subscriptions_list": list},
    "CONNZ": CONNZ,
    "LEAFZ": BODIES["LEAFZ"],
    "STATZ": {"server_id": str, "now": str, "account_statz": list},
    "INFO": ACCOUNT_DETAIL,
}
ADVISORY = {"type": str, "id": str, "timestamp": str, "server": SERVER}
CLIENT = {
    "start": str,
    "host": str,
    "id": int,
    "acc": str,
    "user": str,
    "name": str,
    "lang": str,
    "ver": str,
    "name_tag": str,
    "kind": str,
    "client_type": str,
}

Connect = Callable[..., Awaitable[Client]]


@pytest.fixture
def server(start_server: Callable[..., ServerProcess]) -> ServerProcess:
    return start_server(config=CONFIG)


@pytest.fixture
async def connect(server: ServerProcess) -> AsyncIterator[Connect]:
    """A function that connects a user, whose password is its name."""
    clients: list[Client] = []

    async def hear(_: Exception) -> None:
        pass

    async def connect_user(user: str, **options: Any) -> Client:
        client = await nats.connect(
            server.url, user=user, password=user, allow_reconnect=False, error_cb=hear, **options
        )
        clients.append(client)
        # Its id comes with an INFO that may follow the first PONG, but not the second.
        await client.flush()
        return client

    yield connect_user
    for client in clients:
        await client.close()


@pytest.fixture
async def admin(connect: Connect) -> Client:
    return await connect("admin", name="admin")


async def ask(client: Client, subject: str, payload: bytes = b"", headers: dict[str, str] | None = None) -> Any:
    answer = await client.request(subject, payload, timeout=ANSWER_S_MAX, headers=headers)
    return json.loads(answer.data)


async def server_id_of(client: Client) -> str:
    return str((await ask(client, "$SYS.REQ.SERVER.PING.IDZ"))["id"])


def check_server(server: dict[str, Any]) -> None:
    # nats-server lists features it has switched on or off.
    assert_shape({key: value for key, value in server.items() if key != "feature_flags"}, SERVER, "server")
    assert (server["name"], server["tags"], server["flags"]) == ("sirius", ["az:1", "blue"], 0)
    assert TIME.match(server["time"])


class Listener:
    """Hears events of one client."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[Msg] = asyncio.Queue()

    async def listen(self, client: Client, subject: str) -> None:
        await client.subscribe(subject, cb=self._heard.put)
        await client.flush()

    async def wait_for(self, subject: str, condition: Callable[[Any], bool] = lambda _: True) -> Any:
        """Return the first event on this subject that meets the condition; others are not looked at."""
        async with asyncio.timeout(ANSWER_S_MAX):
            while True:
                message = await self._heard.get()
                if message.subject == subject and condition(event := json.loads(message.data)):
                    return event


@pytest.fixture
async def listener(admin: Client) -> Listener:
    listener = Listener()
    await listener.listen(admin, "$SYS.ACCOUNT.>")
    await listener.listen(admin, "$SYS.SERVER.>")
    return listener


@pytest.mark.parametrize("name", BODIES)
async def test_server_answers_with_the_same_keys_by_ping_and_by_id(admin: Client, name: str) -> None:
    server_id = await server_id_of(admin)
    for subject in (f"$SYS.REQ.SERVER.PING.{name}", f"$SYS.REQ.SERVER.{server_id}.{name}"):
        answer = await ask(admin, subject)

        assert list(answer) == ["server", "data"]
        check_server(answer["server"])
        assert_shape(answer["data"], BODIES[name], name)


@pytest.mark.parametrize("name", ["EXPVARZ", "IPQUEUESZ", "PROFILEZ"])
async def test_bodies_of_the_machinery_are_answered(admin: Client, name: str) -> None:
    answer = await ask(admin, f"$SYS.REQ.SERVER.PING.{name}")

    assert isinstance(answer["data"], dict)
    if name == "PROFILEZ":
        assert answer["data"]["profile"] is None
        assert answer["data"]["error"]


async def test_statistics_have_an_envelope_of_their_own(admin: Client) -> None:
    server_id = await server_id_of(admin)
    for subject in ("$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.STATSZ", f"$SYS.REQ.SERVER.{server_id}.STATSZ"):
        answer = await ask(admin, subject)

        assert list(answer) == ["server", "statsz"]
        check_server(answer["server"])
        assert_shape(answer["statsz"], STATSZ, "statsz")
        assert (answer["statsz"]["connections"], answer["statsz"]["active_servers"]) == (1, 1)


async def test_identity_is_bare(admin: Client) -> None:
    identity = await ask(admin, "$SYS.REQ.SERVER.PING.IDZ", b"whatever")

    assert_shape(identity, {"name": str, "host": str, "id": str})
    assert (identity["name"], identity["host"]) == ("sirius", "127.0.0.1")


@pytest.mark.parametrize(
    ("payload", "meant"),
    [
        ({"server_name": "siri"}, True),
        ({"server_name": "siri", "exact_match": True}, False),
        ({"server_name": "sirius", "exact_match": True}, True),
        ({"host": "127"}, True),
        ({"host": "128"}, False),
        ({"cluster": "c"}, False),
        ({"tags": ["BLUE", "az:1"]}, True),
        ({"tags": ["red"]}, False),
        ({"domain": "d"}, False),
        ({"domain": ""}, True),
    ],
)
async def test_only_servers_that_are_meant_answer(admin: Client, payload: dict[str, Any], meant: bool) -> None:
    for subject in ("$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.ROUTEZ"):
        try:
            await admin.request(subject, json.dumps(payload).encode(), timeout=ANSWER_S_MAX if meant else SILENCE_S)
        except nats.errors.TimeoutError:
            assert not meant
        else:
            assert meant


@pytest.mark.parametrize("subject", ["$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.ACCOUNT.A.CONNZ"])
@pytest.mark.parametrize("payload", [b"garbage", b"[]", b'{"tags":"x"}'])
async def test_options_that_cannot_be_read_are_an_error_400(admin: Client, subject: str, payload: bytes) -> None:
    answer = await ask(admin, subject, payload)

    assert list(answer) == ["server", "error"]
    assert answer["error"]["code"] == 400
    assert isinstance(answer["error"]["description"], str)


@pytest.mark.parametrize(
    ("subject", "payload", "text"),
    [
        ("$SYS.REQ.SERVER.PING.CONNZ", b'{"sort":"bogus"}', "invalid sorting option: bogus"),
        ("$SYS.REQ.SERVER.PING.ACCOUNTZ", b'{"account":"NONE"}', "Account NONE does not exist"),
        ("$SYS.REQ.ACCOUNT.NONE.INFO", b"", "Account NONE does not exist"),
        ("$SYS.REQ.ACCOUNT.A.JSZ", b"", "jetstream not enabled"),
    ],
)
async def test_questions_without_an_answer_are_an_error_500(
    admin: Client, subject: str, payload: bytes, text: str
) -> None:
    answer = await ask(admin, subject, payload)

    assert answer["data"] is None
    assert answer["error"] == {"code": 500, "description": text}


@pytest.mark.parametrize(
    "subject", ["$SYS.REQ.SERVER.PING.NONE", "$SYS.REQ.SERVER.NOBODY.VARZ", "$SYS.REQ.ACCOUNT.A.NONE", "$SYS.REQ"]
)
async def test_nobody_answers_unknown_requests(admin: Client, subject: str) -> None:
    with pytest.raises(nats.errors.NoRespondersError):
        await admin.request(subject, timeout=ANSWER_S_MAX)


@pytest.mark.parametrize("name", ACCOUNT_BODIES)
async def test_accounts_are_answered_about(admin: Client, connect: Connect, name: str) -> None:
    client = await connect("a")
    await client.subscribe("x.y")
    await client.flush()

    data = (await ask(admin, f"$SYS.REQ.ACCOUNT.A.{name}"))["data"]

    assert_shape(data, ACCOUNT_BODIES[name], name)
    if name == "CONNZ":
        assert (data["total"], data["connections"][0]["cid"]) == (1, client.client_id)
    if name == "SUBSZ":
        assert {each["account"] for each in data["subscriptions_list"]} == {"A"}
        assert "x.y" in {each["subject"] for each in data["subscriptions_list"]}
    if name == "STATZ":
        assert_shape(data["account_statz"][0], ACCOUNT_FIGURES)
        assert [(each["acc"], each["conns"]) for each in data["account_statz"]] == [("A", 1)]


async def test_counts_of_an_account_are_answered(admin: Client, connect: Connect) -> None:
    await connect("a")

    counts = await ask(admin, "$SYS.REQ.ACCOUNT.A.CONNS")

    assert counts["type"] == "io.nats.server.advisory.v1.account_connections"
    check_server(counts.pop("server"))
    assert_shape(counts, {"type": str, "id": str, "timestamp": str, **ACCOUNT_FIGURES})
    assert (counts["acc"], counts["conns"], len(counts["id"])) == ("A", 1, 22)


async def test_statistics_of_chosen_accounts(admin: Client, connect: Connect) -> None:
    await connect("a")

    used = await ask(admin, "$SYS.REQ.ACCOUNT.PING.STATZ")
    chosen = await ask(admin, "$SYS.REQ.ACCOUNT.PING.STATZ", b'{"accounts":["A","B","NONE"],"include_unused":true}')

    assert {each["acc"] for each in used["data"]["account_statz"]} == {"$SYS", "A"}
    assert sorted(each["acc"] for each in chosen["data"]["account_statz"]) == ["A", "B"]


async def test_answer_is_compressed_on_demand(admin: Client) -> None:
    headers = {"Accept-Encoding": "gzip"}

    answer = await admin.request("$SYS.REQ.SERVER.PING.ROUTEZ", timeout=ANSWER_S_MAX, headers=headers)
    plain = await admin.request("$SYS.REQ.SERVER.PING.ROUTEZ", timeout=ANSWER_S_MAX, headers={"Other": "gzip"})

    assert answer.headers == {"Content-Encoding": "gzip"}
    assert list(json.loads(gzip.decompress(answer.data))) == ["server", "data"]
    assert plain.headers is None
    assert json.loads(plain.data)


async def test_subscribers_are_counted(admin: Client) -> None:
    for subject, queue in (("foo.bar", ""), ("foo.bar", "q"), ("foo.*", "q"), ("foo.*", "r")):
        await admin.subscribe(subject, queue=queue)
    await admin.flush()
    expected = {b"foo.bar": 4, b"foo.bar q": 2, b"foo.* q": 2, b"foo.> ": 4, b"foo.bar none": 0, b"x": 0, b"": 0}

    counted = {payload: int((await admin.request("$SYS.DEBUG.SUBSCRIBERS", payload)).data) for payload in expected}

    assert counted == expected


async def test_user_is_told_who_it_is(connect: Connect) -> None:
    told = {user: await ask(await connect(user), "$SYS.REQ.USER.INFO") for user in ("admin", "a", "a2")}

    check_server(told["a"]["server"])
    assert told["a"]["data"] == {"user": "a", "account": "A", "account_name": "A"}
    assert told["admin"]["data"] == {"user": "admin", "account": "$SYS", "account_name": "$SYS"}
    permissions = told["a2"]["data"]["permissions"]
    # nats-server lists subjects in any order.
    publish, subscribe = (
        {word: set(listed) for word, listed in permissions.pop(name).items()} for name in ("publish", "subscribe")
    )
    assert publish == {"allow": {"$SYS.REQ.>", "foo.>"}, "deny": {"bar"}}
    assert subscribe == {"allow": {"_INBOX.>"}}
    assert permissions == {"responses": {"max": 5, "ttl": 60_000_000_000}}


@pytest.mark.parametrize(
    ("config", "options", "user"),
    [
        ("", {}, ""),
        ("authorization { user: u, password: p }", {"user": "u", "password": "p"}, "u"),
        ("authorization { token: t }", {"token": "t"}, "[REDACTED]"),
    ],
)
async def test_users_without_an_account_are_told_too(
    start_server: Callable[..., ServerProcess], config: str, options: dict[str, str], user: str
) -> None:
    client = await nats.connect(start_server(config=config).url, **options)  # type: ignore[arg-type]

    assert (await ask(client, "$SYS.REQ.USER.INFO"))["data"] == {"user": user, "account": "$G", "account_name": "$G"}
    await client.close()


@pytest.mark.parametrize("subject", ["$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ"])
@pytest.mark.parametrize("headers", [None, {"Nats-Request-Info": '{"acc":"B"}'}])
async def test_an_account_sees_its_own_connections_whatever_it_says(
    connect: Connect, subject: str, headers: dict[str, str] | None
) -> None:
    client, other = await connect("a"), await connect("b")

    for wanted in ("A", "B", "$SYS", ""):
        payload = json.dumps({"acc": wanted, "auth": True}).encode()
        data = (await ask(client, subject, payload, headers))["data"]

        assert [(each["cid"], each["account"]) for each in data["connections"]] == [(client.client_id, "A")]
    data = (await ask(other, subject))["data"]
    assert [each["cid"] for each in data["connections"]] == [other.client_id]


async def test_an_account_sees_its_own_statistics_whatever_it_says(connect: Connect) -> None:
    client = await connect("a")
    await connect("b")

    for payload in (b"", b'{"accounts":["B"]}', b'{"accounts":["B","$SYS"],"include_unused":true}'):
        data = (await ask(client, "$SYS.REQ.ACCOUNT.PING.STATZ", payload))["data"]

        assert [each["acc"] for each in data["account_statz"]] == ["A"]


async def test_other_accounts_have_nobody_else_to_ask(admin: Client, connect: Connect) -> None:
    server_id = await server_id_of(admin)
    client = await connect("a")

    for subject in (
        "$SYS.REQ.SERVER.PING",
        "$SYS.REQ.SERVER.PING.VARZ",
        f"$SYS.REQ.SERVER.{server_id}.CONNZ",
        f"$SYS.REQ.SERVER.{server_id}.KICK",
        f"$SYS.REQ.SERVER.{server_id}.RELOAD",
        "$SYS.REQ.ACCOUNT.A.CONNZ",
        "$SYS.REQ.ACCOUNT.B.STATZ",
        "$SYS.DEBUG.SUBSCRIBERS",
    ):
        with pytest.raises(nats.errors.NoRespondersError):
            await client.request(subject, timeout=ANSWER_S_MAX)


async def test_a_limited_user_of_the_system_account_stays_limited(connect: Connect) -> None:
    client = await connect("limited")

    assert "statsz" in await ask(client, "$SYS.REQ.SERVER.PING")
    with pytest.raises(nats.errors.TimeoutError):
        await client.request("$SYS.REQ.SERVER.PING.VARZ", timeout=SILENCE_S)


async def test_client_is_kicked(admin: Client, connect: Connect) -> None:
    subject = f"$SYS.REQ.SERVER.{await server_id_of(admin)}.KICK"
    closed = asyncio.Event()

    async def note() -> None:
        closed.set()

    client = await connect("a", closed_cb=note)
    refused = await ask(admin, subject, b'{"cid":99999}')
    done = await ask(admin, subject, json.dumps({"cid": client.client_id}).encode())

    assert refused["error"] == {"code": 500, "description": "no such client or leafnode id"}
    assert list(done) == ["server"]
    await asyncio.wait_for(closed.wait(), ANSWER_S_MAX)


async def test_configuration_is_reloaded(server: ServerProcess, admin: Client, connect: Connect) -> None:
    subject = f"$SYS.REQ.SERVER.{await server_id_of(admin)}.RELOAD"
    path = server.folder / "server.conf"
    path.write_text(CONFIG.replace("  B {", "  C { users: [ {user: c, password: c} ] }\n  B {"))
    done = await ask(admin, subject)
    client = await connect("c")
    path.write_text("no such key: 1")
    failed = await ask(admin, subject)

    assert list(done) == ["server"]
    assert (await ask(client, "$SYS.REQ.USER.INFO"))["data"]["account"] == "C"
    assert failed["error"]["code"] == 500


async def test_arrivals_and_departures_are_told(listener: Listener, connect: Connect) -> None:
    client = await connect("a", name="guest")
    client_id = client.client_id
    await client.publish("x", b"12345")
    await client.flush()
    came = await listener.wait_for("$SYS.ACCOUNT.A.CONNECT")
    await client.close()
    left = await listener.wait_for("$SYS.ACCOUNT.A.DISCONNECT")

    assert came["type"] == "io.nats.server.advisory.v1.client_connect"
    assert left["type"] == "io.nats.server.advisory.v1.client_disconnect"
    for event in (came, left):
        check_server(event["server"])
        event["server"].pop("feature_flags", None)
        assert TIME.match(event["timestamp"])
        assert len(event["id"]) == 22
        told = event["client"]
        assert (told["id"], told["acc"], told["user"], told["name"]) == (client_id, "A", "a", "guest")
        assert (told["kind"], told["client_type"], told["name_tag"]) == ("Client", "nats", "A")
    assert_shape(came, {**ADVISORY, "client": CLIENT})
    figures = {"sent": MESSAGES, "received": MESSAGES, "reason": str}
    assert_shape(left, {**ADVISORY, "client": {**CLIENT, "rtt": int, "stop": str}, **figures})
    assert (left["reason"], left["sent"]) == ("Client Closed", {"msgs": 1, "bytes": 5})


async def test_refused_clients_are_told(server: ServerProcess, admin: Client, listener: Listener) -> None:
    with server.client() as stranger:
        stranger.send(b'CONNECT {"user":"a","pass":"wrong"}\r\n')
        refused = await listener.wait_for(f"$SYS.SERVER.{await server_id_of(admin)}.CLIENT.AUTH.ERR")

    assert refused["type"] == "io.nats.server.advisory.v1.client_disconnect"
    assert (refused["reason"], refused["client"]["acc"]) == ("Authentication Failure", "$G")
    assert "wrong" not in json.dumps(refused)


@pytest.mark.parametrize("subject", ["$SYS.ACCOUNT.A.SERVER.CONNS", "$SYS.SERVER.ACCOUNT.A.CONNS"])
async def test_counts_are_told_when_they_change(admin: Client, connect: Connect, subject: str) -> None:
    listener = Listener()
    await listener.listen(admin, subject)

    client = await connect("a")
    more = await listener.wait_for(subject, lambda event: event["conns"] == 1)
    await client.close()
    fewer = await listener.wait_for(subject, lambda event: event["conns"] == 0)

    check_server(more.pop("server"))
    assert_shape(more, {"type": str, "id": str, "timestamp": str, **ACCOUNT_FIGURES})
    assert (more["acc"], fewer["acc"]) == ("A", "A")


async def test_statistics_are_told_soon_after_the_start(admin: Client, listener: Listener) -> None:
    told = await listener.wait_for(f"$SYS.SERVER.{await server_id_of(admin)}.STATSZ")

    check_server(told["server"])
    assert_shape(told["statsz"], STATSZ)


@pytest.mark.parametrize(("number", "event"), [(signal.SIGTERM, "SHUTDOWN"), (signal.SIGUSR2, "LAMEDUCK")])
def test_end_is_told(server: ServerProcess, number: signal.Signals, event: str) -> None:
    """To a raw client: a library that sees the end of its connection may drop what came before it."""
    with server.client() as client:
        client.connect(user="admin", **{"pass": "admin"})
        subject = f"$SYS.SERVER.{client.info['server_id']}.{event}"
        client.send(f"SUB {subject} 1\r\n".encode())
        client.expect_pong()

        server.signal(number)
        frame = client.read_line()
        while not frame.startswith(b"MSG "):
            frame = client.read_line()

    head, _, body = frame.partition(b"\r\n")
    assert head.split()[1] == subject.encode()
    check_server(json.loads(body))
