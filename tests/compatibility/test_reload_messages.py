"""Messages that are under way while the configuration is read again: none is lost, and none comes twice."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_imports import clients
from tests.compatibility.test_reload import reload  # noqa: F401
from tests.compatibility.wire import RawClient

RELOADS = 12

BURST = 10
"""Messages between two looks at what has come, so that no receiver falls behind."""

SIDS = range(100, 400)
"""So many subscriptions take a while to be looked at again, and each must have every message."""

TIMEOUT_S = 60.0

QUIET_S = 5.0
"""After so long nothing more is under way."""

MESSAGE = re.compile(rb"MSG \S+ \d+ 8\r\n\d{8}")

Reload = Callable[[ServerProcess, str], str]


@pytest.fixture
def keep_reloading(reload: Reload) -> Iterator[Callable[[ServerProcess, str, str], threading.Thread]]:  # noqa: F811
    """Have a thread put two configurations in force by turns, for a number of times."""
    started: list[threading.Thread] = []

    def begin(server: ServerProcess, one: str, other: str) -> threading.Thread:
        def work() -> None:
            for number in range(RELOADS):
                reload(server, other if number % 2 == 0 else one)

        thread = threading.Thread(target=work, name="reloads")
        started.append(thread)
        thread.start()
        return thread

    yield begin
    for thread in started:
        thread.join()


def subscribe_often(receiver: RawClient, subject: str) -> None:
    receiver.send(b"".join(b"SUB %s %d\r\n" % (subject.encode(), sid) for sid in SIDS))
    receiver.expect_pong()


def expect_all(sender: RawClient, receiver: RawClient, reloading: threading.Thread, subject: str, heard: str) -> None:
    """Publish numbers for as long as the server reloads, and expect each of them once for each subscription."""
    number = 0
    while reloading.is_alive() or number == 0:
        bodies = [(b"%08d" % (number + each)) for each in range(BURST)]
        sender.send(b"".join(b"PUB %s 8\r\n%s\r\n" % (subject.encode(), body) for body in bodies))
        wanted = Counter(b"MSG %s %d 8\r\n%s" % (heard.encode(), sid, body) for sid in SIDS for body in bodies)
        data = read_exactly(receiver, sum(len(message) + 2 for message in wanted))
        found = Counter(MESSAGE.findall(data))
        assert found == wanted, (wanted - found, found - wanted)
        number += BURST


def read_exactly(client: RawClient, count: int) -> bytes:
    """Return so many bytes; fewer if no more come, which is what a test is about."""
    data, deadline = b"", time.monotonic() + TIMEOUT_S
    client._socket.settimeout(QUIET_S)
    while len(data) < count and time.monotonic() < deadline:
        try:
            data += client._socket.recv(1 << 20).replace(b"PING\r\n", b"")
        except TimeoutError:
            break
    return data


def users_with(rules: str) -> str:
    return f"""accounts {{ A {{ users: [
      {{user: a, password: a}}
      {{user: b, password: b, permissions: {{subscribe: {{deny: [{rules}]}}}}}}
    ] }} }}"""


@pytest.mark.parametrize(("one", "other"), [('"x.>"', '"x.>", "y.>"'), ('"x.>"', '"x.>", "words.no"')])
def test_nothing_is_lost_by_a_change_of_permissions(start_server, keep_reloading, one: str, other: str) -> None:
    server = start_server(config=users_with(one))
    with clients(server, "a", "b") as (sender, receiver):
        subscribe_often(receiver, "words.*")

        reloading = keep_reloading(server, users_with(one), users_with(other))

        expect_all(sender, receiver, reloading, "words.yes", "words.yes")


def test_nothing_is_lost_by_a_change_of_another_user(start_server, keep_reloading) -> None:
    def config(password: str) -> str:
        return f"""accounts {{ A {{ users: [
          {{user: a, password: a}}, {{user: b, password: b}}, {{user: c, password: {password}}}
        ] }} }}"""

    server = start_server(config=config("one"))
    with clients(server, "a", "b") as (sender, receiver):
        subscribe_often(receiver, "words.*")

        reloading = keep_reloading(server, config("one"), config("other"))

        expect_all(sender, receiver, reloading, "words.yes", "words.yes")


def sharing(further: str) -> str:
    return f"""accounts {{
      A {{ users: [ {{user: a, password: a}} ], exports: [ {{stream: "words.>"}}, {{stream: "further.>"}} ] }}
      B {{ users: [ {{user: b, password: b}} ], imports: [
        {{stream: {{account: A, subject: "words.>"}}, prefix: from_a}} {further}
      ] }}
    }}"""


def test_nothing_is_lost_by_a_change_of_imports(start_server, keep_reloading, server_kind: str) -> None:
    if server_kind == "nats-server":
        pytest.skip("nats-server delivers some messages twice")
    one, other = sharing(""), sharing(', {stream: {account: A, subject: "further.>"}}')
    server = start_server(config=one)
    with clients(server, "a", "b") as (sender, receiver):
        subscribe_often(receiver, "from_a.words.>")

        reloading = keep_reloading(server, one, other)

        expect_all(sender, receiver, reloading, "words.yes", "from_a.words.yes")
