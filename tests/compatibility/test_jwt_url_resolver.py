"""Operator mode: claims at a web address, as an account server has them."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.compatibility.claims import Account, Operator, User, make_user
from tests.compatibility.server_process import ServerProcess

PATH = "/jwt/v1/accounts/"


class AccountServer:
    """Serves claims by the key of their account, and notes what it was asked for."""

    def __init__(self) -> None:
        self.claims = {"": "ok"}
        self.asked: list[str] = []
        outer = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                key = self.path.removeprefix(PATH)
                outer.asked.append(key)
                found = outer.claims.get(key)
                self.send_response(404 if found is None else 200)
                self.end_headers()
                self.wfile.write((found or "").encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}{PATH}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def add(self, *accounts: Account) -> None:
        self.claims |= {account.public: account.jwt() for account in accounts}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def accounts() -> Iterator[AccountServer]:
    server = AccountServer()
    yield server
    server.close()


def come_in(server: ServerProcess, user: User) -> None:
    with server.client() as client:
        client.connect(**user.presented(client.info["nonce"]))


def refuse(server: ServerProcess, user: User) -> None:
    with server.client() as client:
        client.send_connect(verbose=False, **user.presented(client.info["nonce"]))
        client.expect_error_and_closed("Authorization Violation")


def test_account_is_fetched_once_when_its_first_user_comes(
    start_server: Callable[..., ServerProcess], accounts: AccountServer
) -> None:
    operator = Operator()
    account = operator.add_account()
    accounts.add(operator.system, account)
    server = start_server(config=operator.configuration(f"URL({accounts.url})", preload=""))
    assert account.public not in accounts.asked

    for _ in range(3):
        come_in(server, make_user(account))

    assert accounts.asked.count(account.public) == 1


def test_account_that_is_not_there_is_asked_for_again(
    start_server: Callable[..., ServerProcess], accounts: AccountServer
) -> None:
    operator = Operator()
    account = operator.add_account()
    accounts.add(operator.system)
    server = start_server(config=operator.configuration(f"URL({accounts.url})", preload=""))
    refuse(server, make_user(account))

    accounts.add(account)

    come_in(server, make_user(account))


@pytest.mark.parametrize("answer", ["", "nonsense", "x" * 3_000_000])
def test_answer_that_is_no_claims_lets_nobody_in(
    start_server: Callable[..., ServerProcess], accounts: AccountServer, answer: str
) -> None:
    operator = Operator()
    account = operator.add_account()
    accounts.add(operator.system)
    accounts.claims[account.public] = answer
    server = start_server(config=operator.configuration(f"URL({accounts.url})", preload=""))

    refuse(server, make_user(account))


def test_account_signed_by_another_operator_lets_nobody_in(
    start_server: Callable[..., ServerProcess], accounts: AccountServer
) -> None:
    """Who can change what the web address says cannot let anybody in."""
    operator, stranger = Operator(), Operator()
    account = operator.add_account()
    accounts.add(operator.system)
    accounts.claims[account.public] = account.jwt(issuer=stranger.key)
    server = start_server(config=operator.configuration(f"URL({accounts.url})", preload=""))

    refuse(server, make_user(account))


def test_address_in_the_claims_of_the_operator_is_used(
    start_server: Callable[..., ServerProcess], accounts: AccountServer
) -> None:
    operator = Operator(account_server_url=accounts.url.removesuffix("/accounts/"))
    account = operator.add_account()
    accounts.add(operator.system, account)
    server = start_server(config=f"operator: {operator.jwt()}\nsystem_account: {operator.system.public}\n")

    come_in(server, make_user(account))
