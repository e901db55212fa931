"""Decisions reach the engine, and slow ones hold nobody up."""

import threading
import time
from dataclasses import dataclass

import pytest

from jetlake.server.authentication import gate as gate_module
from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.gate import Gate
from jetlake.server.options import AccessOptions, Credentials

HASH = "$2b$04$En96ugxyIhOm3Db1IULX5ObmugSFMtiGfPg.i15/I0xZrVfAZ44Mi"


@dataclass
class Request:
    connection_id: int
    connect: bytes
    nonce: str = ""
    tls: bytes = b""
    again: bool = False


class Engine:
    def __init__(self):
        self.admitted, self.refused = {}, []

    def admit(self, connection_id, verdict):
        self.admitted[connection_id] = verdict
        return True

    def refuse(self, connection_id):
        self.refused.append(connection_id)
        return True


def by_token(token):
    return Authenticator(AccessOptions(credentials=Credentials(token=token)))


@pytest.fixture
def engine():
    return Engine()


def wait_until(condition):
    deadline = time.monotonic() + 10
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
    monkeypatch.setattr(Authenticator, "decide", lambda *args: may_go_on.wait(10) and decide(*args))

    gate.receive(Request(1, b'{"auth_token":"secret"}'))
    assert engine.admitted == {}
    may_go_on.set()

    wait_until(lambda: 1 in engine.admitted)
    gate.close()
    wait_until(lambda: not any(thread.is_alive() for thread in gate._threads))


def test_logins_that_wait_at_the_end_are_not_decided_any_more(engine, monkeypatch):
    gate = Gate(engine, by_token(HASH), pytest.fail)
    may_go_on = threading.Event()
    monkeypatch.setattr(Authenticator, "decide", lambda *_: may_go_on.wait(10) and None)
    for number in range(20):
        gate.receive(Request(number, b"{}"))

    gate.close()
    may_go_on.set()
    gate.join()

    assert len(engine.refused) <= gate_module.SLOW_LOGIN_THREADS
    assert not any(thread.is_alive() for thread in gate._threads)


def test_waiting_logins_have_a_limit(engine, monkeypatch):
    monkeypatch.setattr(gate_module, "SLOW_LOGINS_WAITING_MAX", 2)
    gate = Gate(engine, by_token(HASH), pytest.fail)
    may_go_on = threading.Event()
    monkeypatch.setattr(Authenticator, "decide", lambda *_: may_go_on.wait(10) and None)

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
    monkeypatch.setattr(gate_module, "SLOW_LOGINS_WAITING_MAX", 0)
    gate = Gate(engine, by_token(HASH), pytest.fail)

    for number in range(20):
        gate.receive(Request(number, b'{"auth_token":"secret"}', again=True))
    gate.receive(Request(99, b'{"auth_token":"secret"}'))

    wait_until(lambda: len(engine.admitted) == 20)
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
        may_go_on.wait(10)
        return verdict

    monkeypatch.setattr(Authenticator, "decide", decide_slowly)
    gate.receive(Request(1, b'{"auth_token":"secret"}'))
    deciding.wait(10)

    gate.replace_authenticator(by_token("another"))
    may_go_on.set()

    wait_until(lambda: engine.refused == [1])
    assert engine.admitted == {}
    gate.close()


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
