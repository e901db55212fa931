"""`kill -9` while claims are pushed: what was acknowledged is there, and each file is whole, old or new.

`JETLAKE_KILLS` is the number of kills (5 unless told).
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from threading import Thread

from tests.compatibility.claims import Account, make_user
from tests.compatibility.operator_site import UPDATE, Admin, Site

KILLS = int(os.environ.get("JETLAKE_KILLS", "5"))
LIFE_SECONDS_MAX = 0.4
ACCOUNTS = 4


class Pusher(Thread):
    """Pushes claims of some accounts in turn until the server dies; knows what was sent and what acknowledged."""

    def __init__(self, admin: Admin, accounts: list[Account], first: int) -> None:
        super().__init__(daemon=True)
        self.admin = admin
        self.accounts = accounts
        self.number = first
        self.sent: dict[str, list[str]] = {account.public: [] for account in accounts}
        self.acknowledged: dict[str, str] = {}

    def run(self) -> None:
        while True:
            account = self.accounts[self.number % len(self.accounts)]
            token = account.jwt(name=f"{self.number}-" + "x" * 200)
            self.number += 1
            self.sent[account.public].append(token)
            try:
                reply = self.admin.ask(UPDATE, token)
            except AssertionError:
                # The server is gone.
                return
            assert reply["data"]["message"] == "jwt updated"
            self.acknowledged[account.public] = token
            self.sent[account.public] = [token]


def test_claims_that_were_acknowledged_survive(tmp_path: Path) -> None:
    generator = random.Random(23)
    site = Site("jetlake", tmp_path)
    accounts = [site.operator.add_account() for _ in range(ACCOUNTS)]
    known: dict[str, str] = {}
    number = 0
    try:
        for _ in range(KILLS):
            pusher = Pusher(site.admin(), accounts, number)
            pusher.start()
            pusher.join(generator.uniform(0.05, LIFE_SECONDS_MAX))
            site.server.signal(signal.SIGKILL)
            site.server.wait_for_exit()
            pusher.join()
            number = pusher.number
            known |= pusher.acknowledged

            for account in accounts:
                possible = {*pusher.sent[account.public], *([known[account.public]] if account.public in known else [])}
                if possible:
                    path = site.file_of(account)
                    found = path.read_text() if path.exists() else ""
                    assert found in possible or (not found and account.public not in known)
                    if found:
                        known[account.public] = found
            site.start()
            for account in accounts:
                if account.public in known:
                    site.client(make_user(account)).expect_pong()
    finally:
        site.close()
    assert known
