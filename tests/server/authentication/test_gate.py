"""Decisions reach the engine, and slow ones hold nobody up."""

import threading
import time
from dataclasses import dataclass

import msgspec
import pytest

from jetlake import _engine
from jetlake.config import EngineOptions
from jetlake.server.authentication import gate as gate_module
from jetlake.server.authentication import login_queue, passwords
from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.gate import Gate
from jetlake.server.authentication.presented import Login
from jetlake.server.authentication.verdict import Refusal, Verdict
from jetlake.server.options import AccessOptions, Credentials
from jetlake.server.options.users import User

HASH = "$2b$04$En96ugxyIhOm3Db1IULX5ObmugSFMtiGfPg.i15/I0xZrVfAZ44Mi"


@dataclass
class Request:
    connection_id: int
    connect: bytes
    nonce: str = ""
    tls: bytes = b""
    again: bool = False
    connection_type: str = "STANDARD"
    remote_address: str = "127.0.0.1"


class Engine:
    def __init__(self):
        self.admitted, self.refused, self.causes, self.gone = {}, [], {}, set()

    def admit(self, connection_id, verdict):
        self.admitted[connection_id] = verdict
        return True

    def refuse(self, connection_id, cause=""):
        self.refused.append(connection_id)
        self.causes[connection_id] = cause
        return True

    def address_of(self, connection_id):
        return None if connection_id in self.gone else "127.0.0.1"


def by_token(token):
    return Authenticator(AccessOptions(credentials=Credentials(token=token)))


@pytest.fixture
def engine():
    return Engine()


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_quick_decision_is_made_at_once(engine):
    gate = Gate(engine, by_token("t"), pytest.fail)

    gate.receive(Request(1, b'{"auth_token":"t"}'))
    gate.receive(Request(2, b'{"auth_token":"x"}'))

    assert engine.admitted == {1: b'{"account":"$G","user":"[REDACTED]"}'}
    assert engine.refused == [2]


def test_slow_decision_is_made_by_another_thread(engine, monkeypatch):
    gate = Gate(engine, by_token(HASH), pytest.fail)
    may_go_on = threading.Event()
    decide = Authenticator.decide
    monkeypatch.setattr(Authenticator, "decide", lambda *args: may_go_on.wait(60) and decide(*args))

    gate.receive(Request(1, b'{"auth_token":"secret"}'))
    assert engine.admitted == {}
    may_go_on.set()

    wait_until(lambda: 1 in engine.admitted)
    gate.close()
    wait_until(lambda: not any(thread.is_alive() for thread in gate._threads))


def test_logins_that_wait_at_the_end_are_not_decided_any_more(engine, monkeypatch):
    gate = Gate(engine, by_token(HASH), pytest.fail)
    may_go_on = threading.Event()
    monkeypatch.setattr(Authenticator, "decide", lambda *_: may_go_on.wait(60) and None)
    for number in range(20):
        gate.receive(Request(number, b"{}"))

    gate.close()
    may_go_on.set()
    gate.join()

    assert len(engine.refused) <= gate_module.SLOW_LOGIN_THREADS
    assert not any(thread.is_alive() for thread in gate._threads)


def test_waiting_logins_have_a_limit(engine, monkeypatch):
    monkeypatch.setattr(login_queue, "WAITING_MAX", 2)
    gate = Gate(engine, by_token(HASH), pytest.fail)
    may_go_on = threading.Event()
    monkeypatch.setattr(Authenticator, "decide", lambda *_: may_go_on.wait(60) and None)

    for number in range(20):
        gate.receive(Request(number, b"{}"))
    refused_at_once = len(engine.refused)
    may_go_on.set()

    # Four are being decided and two wait; a thread that is late to take its first one adds to the refused.
    assert 14 <= refused_at_once < 20
    wait_until(lambda: len(engine.refused) == 20)
    gate.close()


def test_other_users_hold_from_the_next_client_on(engine):
    gate = Gate(engine, by_token("t"), pytest.fail)

    gate.replace_authenticator(by_token("u"))
    gate.receive(Request(1, b'{"auth_token":"t"}'))

    assert engine.refused == [1]


def test_clients_that_are_in_are_not_refused_for_being_many(engine, monkeypatch):
    monkeypatch.setattr(login_queue, "WAITING_MAX", 0)
    gate = Gate(engine, by_token(HASH), pytest.fail)
    may_go_on = threading.Event()
    decide = Authenticator.decide

    def decide_later(authenticator, login):
        may_go_on.wait(60)
        return decide(authenticator, login)

    # Else a password that is remembered by then would let the last one in.
    monkeypatch.setattr(Authenticator, "decide", decide_later)
    for number in range(20):
        gate.receive(Request(number, b'{"auth_token":"secret"}', again=True))
    gate.receive(Request(99, b'{"auth_token":"secret"}'))
    may_go_on.set()

    wait_until(lambda: len(engine.admitted) == 20 and engine.refused)
    assert engine.refused == [99]
    gate.close()


def test_decision_that_a_reload_overtook_is_made_again(engine, monkeypatch):
    """Else a client with a revoked password would come in behind the reload, and nobody would ask about it again."""
    gate = Gate(engine, by_token(HASH), pytest.fail)
    deciding, may_go_on = threading.Event(), threading.Event()
    decide = Authenticator.decide

    def decide_slowly(authenticator, login):
        verdict = decide(authenticator, login)
        deciding.set()
        may_go_on.wait(60)
        return verdict

    monkeypatch.setattr(Authenticator, "decide", decide_slowly)
    gate.receive(Request(1, b'{"auth_token":"secret"}'))
    deciding.wait(60)

    gate.replace_authenticator(by_token("another"))
    may_go_on.set()

    wait_until(lambda: engine.refused == [1])
    assert engine.admitted == {}
    gate.close()


VERDICT = Verdict(account="$G", user="ada")


@pytest.mark.parametrize(
    "verdict",
    [
        msgspec.structs.replace(VERDICT, expires_unix_ms=-5),
        msgspec.structs.replace(VERDICT, expires_unix_ms=2**70),
        msgspec.structs.replace(VERDICT, user="\udc80"),
    ],
    ids=["number of another kind", "number too large", "half a character"],
)
@pytest.mark.parametrize("password", ["t", HASH])
def test_verdict_that_cannot_be_told_refuses_its_client_alone(engine, monkeypatch, verdict, password):
    """One client must not be able to end the server for all others."""
    verdicts = {1: verdict, 2: VERDICT}
    monkeypatch.setattr(Authenticator, "decide", lambda _, login: verdicts[login.connection_id])
    reader, admit, lines = _engine.Engine(EngineOptions(host="127.0.0.1", port=0).to_json()), engine.admit, []
    engine.admit = lambda *told: reader.admit(*told) or admit(*told)
    gate = Gate(engine, by_token(password), pytest.fail, warn=lines.append)

    gate.receive(Request(1, b"{}"))
    gate.receive(Request(2, b"{}", again=True))

    wait_until(lambda: 2 in engine.admitted and engine.refused)
    assert engine.causes == {1: ""}
    assert list(engine.admitted) == [2]
    (line,) = lines
    assert line.startswith("127.0.0.1 - the client is refused")
    gate.close()
    reader.shutdown()


def test_bug_in_a_thread_is_reported(engine, monkeypatch):
    reported = []
    gate = Gate(engine, by_token(HASH), reported.append)

    def break_down(*_):
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(Authenticator, "decide", break_down)
    gate.receive(Request(1, b"{}"))

    wait_until(lambda: reported)
    assert "a bug of ours" in reported[0]
    gate.close()


def test_who_needs_no_hash_does_not_wait_behind_those_who_guess(engine, monkeypatch):
    gate = Gate(engine, by_token(HASH), pytest.fail)
    gate.receive(Request(0, b'{"auth_token":"secret"}'))
    wait_until(lambda: 0 in engine.admitted)
    may_go_on = threading.Event()
    monkeypatch.setattr(passwords, "_match_bcrypt", lambda *_: may_go_on.wait(60) and False)
    for number in range(1, 121):
        gate.receive(Request(number, b'{"auth_token":"wrong"}'))

    gate.receive(Request(500, b'{"auth_token":"secret"}'))

    assert 500 in engine.admitted
    may_go_on.set()
    gate.close()
    gate.join()


def test_nothing_is_computed_for_who_has_gone(engine, monkeypatch):
    gate = Gate(engine, by_token(HASH), pytest.fail)
    may_go_on, computed = threading.Event(), []
    monkeypatch.setattr(passwords, "_match_bcrypt", lambda *_: computed.append(1) or (may_go_on.wait(60) and False))
    for number in range(50):
        gate.receive(Request(number, b'{"auth_token":"wrong"}'))

    engine.gone |= set(range(49))
    may_go_on.set()

    wait_until(lambda: 49 in engine.refused)
    assert len(computed) <= gate_module.SLOW_LOGIN_THREADS + 1
    gate.close()
    gate.join()


@pytest.mark.parametrize(
    "connect",
    [b'{"user":"plain","pass":"wrong"}', b'{"user":"nobody","pass":"x"}', b'{"user":"hashed","pass":"x"}', b"{}"],
)
def test_every_refusal_computes_one_hash(monkeypatch, connect):
    """The time a refusal takes must not tell whether there is such a user, or how its password is kept."""
    users = (User(name="plain", password="p"), User(name="hashed", password=HASH))
    computed = []
    monkeypatch.setattr(passwords, "_match_bcrypt", lambda *_: computed.append(1) and False)

    verdict = Authenticator(AccessOptions(users=users)).decide(Login(connect=connect, nonce="", tls=b""))

    assert verdict is None
    assert len(computed) == 1


def test_cause_is_told_to_those_who_were_in(engine, monkeypatch):
    monkeypatch.setattr(Authenticator, "decide", lambda *_: Refusal("revoked"))
    gate = Gate(engine, by_token("t"), pytest.fail)

    gate.receive(Request(1, b"{}"))
    gate.receive(Request(2, b"{}", again=True))

    assert engine.causes == {1: "", 2: "revoked"}
