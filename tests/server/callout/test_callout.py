"""Requests to services: none is forgotten, and how many are under way is bounded."""

import threading
import time
from dataclasses import dataclass

import pytest

from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.gate import Gate
from jetlake.server.callout import callout as module
from jetlake.server.callout.authorization_request import ServerDescription
from jetlake.server.callout.callout import Callout
from jetlake.server.nkeys import CURVE_PREFIX, KEY_BYTES, encode_public_key
from jetlake.server.options import AccessOptions
from jetlake.server.options.accounts import Account
from jetlake.server.options.callout import CalloutOptions
from jetlake.server.options.users import User
from jetlake.server.python_log import PythonLog
from tests.compatibility.callout_service import Asked, CalloutService, read_token
from tests.compatibility.claims import Key


@dataclass
class Request:
    connection_id: int
    connect: bytes = b'{"user":"ada"}'
    nonce: str = ""
    tls: bytes = b""
    again: bool = False
    connection_type: str = "STANDARD"
    remote_address: str = "127.0.0.1:4711"


class Engine:
    """Takes what is published, and the verdicts."""

    server_seed = b"s" * 32

    def __init__(self):
        self.asked, self.admitted, self.refused, self.gone = [], [], [], set()
        self.listeners = 1

    def subscribe(self, account, subject):
        assert (account, subject[:12]) == ("AUTH", "$SYS._INBOX.")
        return 7

    def publish(self, account, subject, payload, reply, header):
        assert (account, subject, header) == ("AUTH", "$SYS.REQ.USER.AUTH", None)
        if self.listeners:
            self.asked.append(Asked(read_token(payload.decode()), reply))
        return self.listeners

    def admit(self, connection_id, verdict):
        assert b'"account":"A' in verdict
        self.admitted.append(connection_id)
        return True

    def refuse(self, connection_id, cause):
        assert cause == ""
        self.refused.append(connection_id)
        return True

    def address_of(self, connection_id):
        return None if connection_id in self.gone else "127.0.0.1"


class Site:
    """A gate whose clients a service decides about."""

    def __init__(self, timeout_s=60.0, xkey=""):
        self.engine = Engine()
        self.xkey = xkey
        self.issuer = Key("account")
        self.broken, self.refusals = [], []
        self.gate = Gate(self.engine, self.authenticator(), self.broken.append, self.make_callout)
        self.timeout_s = timeout_s
        self.service = CalloutService.__new__(CalloutService)
        self.service.issuer, self.service.xkey = self.issuer, None

    def authenticator(self):
        return Authenticator(
            AccessOptions(
                accounts=(Account(name="AUTH"), Account(name="APP")),
                users=(
                    User(name="auth", password="pwd", account="AUTH"),
                    User(name="bob", password="pwd", account="APP"),
                ),
                callout=CalloutOptions(issuer=self.issuer.public, account="AUTH", auth_users=("auth",), xkey=self.xkey),
            )
        )

    def make_callout(self, gate):
        return Callout(
            self.engine,
            server=lambda: ServerDescription(name="harbour", host="h", version="2"),
            timeout_s=lambda: self.timeout_s,
            conclude=gate.conclude,
            on_refused=lambda _pending, reason: self.refusals.append(reason),
            log=PythonLog(debug=False, trace=False),
            on_broken=self.broken.append,
        )

    def admit(self, asked):
        token = self.service.user_token(asked, "APP")
        self.hear(asked, self.service.response(asked, jwt=token).encode())

    def hear(self, asked, payload):
        assert self.gate.hears(7)
        self.gate.hear(asked.reply, payload)


@pytest.fixture
def site():
    site = Site()
    yield site
    site.gate.close()
    site.gate.join()
    assert not site.broken


@pytest.fixture
def site_with_a_weak_key():
    """The service's curve key is well-formed, and nothing can be sealed for it."""
    site = Site(xkey=encode_public_key(CURVE_PREFIX, bytes(KEY_BYTES)))
    yield site
    site.gate.close()
    site.gate.join()
    assert not site.broken


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


def test_client_waits_until_the_service_answers(site):
    site.gate.receive(Request(1))
    wait_until(lambda: site.engine.asked)

    assert not site.engine.admitted
    site.admit(site.engine.asked[0])

    wait_until(lambda: site.engine.admitted == [1])


def test_nothing_is_loaded_or_started_for_auth_users(site):
    before = set(threading.enumerate())

    site.gate.receive(Request(1, b'{"user":"auth","pass":"pwd"}'))
    site.gate.receive(Request(2, b'{"user":"auth","pass":"wrong"}'))

    assert (site.engine.admitted, site.engine.refused) == ([1], [2])
    assert set(threading.enumerate()) <= before
    assert not site.gate.hears(7)


def test_second_answer_has_no_effect(site):
    site.gate.receive(Request(1))
    wait_until(lambda: site.engine.asked)

    site.admit(site.engine.asked[0])
    site.hear(site.engine.asked[0], b"no")
    site.gate.receive(Request(2))
    wait_until(lambda: len(site.engine.asked) == 2)
    site.admit(site.engine.asked[1])

    wait_until(lambda: site.engine.admitted == [1, 2])
    assert not site.engine.refused


def test_answer_that_nobody_waits_for_has_no_effect(site):
    site.gate.receive(Request(1))
    wait_until(lambda: site.engine.asked)

    site.gate.hear("$SYS._INBOX.x.unknown", b"no")
    site.admit(site.engine.asked[0])

    wait_until(lambda: site.engine.admitted == [1])


def test_nobody_who_listens_is_a_refusal_at_once(site):
    site.engine.listeners = 0

    site.gate.receive(Request(1))

    wait_until(lambda: site.engine.refused == [1])
    assert site.refusals == ['Nobody listens to $SYS.REQ.USER.AUTH in account "AUTH": start the service']


def test_service_that_does_not_answer_is_a_refusal(site):
    site.timeout_s = 0.05

    site.gate.receive(Request(1))

    wait_until(lambda: site.engine.refused == [1])
    assert site.refusals == ['Authorization callout response not received in time on account "AUTH"']


def test_answer_that_comes_too_late_has_no_effect(site):
    site.timeout_s = 0.05
    site.gate.receive(Request(1))
    wait_until(lambda: site.engine.refused == [1])

    site.admit(site.engine.asked[0])
    site.timeout_s = 60.0
    site.gate.receive(Request(2))
    wait_until(lambda: len(site.engine.asked) == 2)
    site.admit(site.engine.asked[1])

    wait_until(lambda: site.engine.admitted == [2])


def test_nobody_is_asked_about_a_client_that_has_gone(site):
    site.engine.gone.add(1)

    site.gate.receive(Request(1))
    site.gate.receive(Request(2))

    wait_until(lambda: len(site.engine.asked) == 1)
    site.admit(site.engine.asked[0])
    wait_until(lambda: site.engine.admitted == [2])


@pytest.mark.parametrize(
    ("limit", "address"),
    [("WAITING_MAX", "10.0.0.{}:1"), ("WAITING_OF_ADDRESS_MAX", "127.0.0.1:{}")],
    ids=["in all", "from one address"],
)
def test_clients_beyond_a_limit_are_refused_and_room_is_made_again(site, monkeypatch, limit, address):
    monkeypatch.setattr(module, limit, 3)

    for number in range(5):
        site.gate.receive(Request(number, remote_address=address.format(number)))
    wait_until(lambda: len(site.engine.asked) == 3)

    assert site.engine.refused == [3, 4]
    for asked in site.engine.asked:
        site.admit(asked)
    wait_until(lambda: site.engine.admitted == [0, 1, 2])
    site.gate.receive(Request(9, remote_address=address.format(9)))
    wait_until(lambda: len(site.engine.asked) == 4)


def test_clients_of_other_addresses_are_not_kept_out(site, monkeypatch):
    monkeypatch.setattr(module, "WAITING_OF_ADDRESS_MAX", 1)

    for number in range(4):
        site.gate.receive(Request(number))
    site.gate.receive(Request(9, remote_address="10.0.0.1:1"))

    wait_until(lambda: len(site.engine.asked) == 2)
    assert site.engine.refused == [1, 2, 3]


def test_clients_that_are_in_are_asked_about_some_at_a_time_and_all_of_them(site, monkeypatch):
    monkeypatch.setattr(module, "REVIEWS_AT_ONCE_MAX", 2)
    monkeypatch.setattr(module, "WAITING_MAX", 1)

    for number in range(7):
        site.gate.receive(Request(number, again=True))

    for count in range(7):
        wait_until(lambda count=count: len(site.engine.asked) > count)
        assert len(site.engine.asked) - count <= 2
        site.admit(site.engine.asked[count])
    wait_until(lambda: sorted(site.engine.admitted) == list(range(7)))
    assert not site.engine.refused


def test_client_is_asked_about_anew_if_the_rules_change_meanwhile(site):
    site.gate.receive(Request(1))
    wait_until(lambda: site.engine.asked)

    site.gate.replace_authenticator(site.authenticator())
    site.admit(site.engine.asked[0])

    wait_until(lambda: len(site.engine.asked) == 2)
    assert not site.engine.admitted
    site.admit(site.engine.asked[1])
    wait_until(lambda: site.engine.admitted == [1])


def test_key_in_the_place_of_a_name_does_not_stand_for_an_auth_user(site):
    site.gate.receive(Request(1, b'{"nkey":"auth","user":"bob","pass":"pwd"}'))
    site.gate.receive(Request(2, b'{"nkey":"auth","user":"bob","pass":"wrong"}'))

    wait_until(lambda: len(site.engine.asked) == 1)
    assert site.engine.refused == [2]
    assert not site.engine.admitted


def test_bug_in_a_thread_is_told():
    site = Site()
    site.engine.address_of = None

    site.gate.receive(Request(1))

    wait_until(lambda: site.broken)
    assert "TypeError" in site.broken[0]


def test_service_with_a_key_for_which_nothing_can_be_sealed_lets_nobody_in(site_with_a_weak_key):
    site = site_with_a_weak_key

    site.gate.receive(Request(1))
    site.gate.receive(Request(2))

    wait_until(lambda: site.engine.refused == [1, 2])
    assert site.engine.asked == []
    assert "nothing can be sealed" in site.refusals[0]
