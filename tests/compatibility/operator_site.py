"""A server in operator mode, with somebody who pushes claims to it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.compatibility.claims import Account, Operator, User
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.compatibility.wire import RawClient

UPDATE, LIST, PACK, DELETE = (f"$SYS.REQ.CLAIMS.{word}" for word in ("UPDATE", "LIST", "PACK", "DELETE"))


REVIEW_SECONDS_MAX = 60.0


class Admin:
    """A user of the system account that asks."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        client.send(b"SUB _INBOX.* 1\r\n")

    def ask_raw(self, subject: str, payload: str | bytes = b"") -> bytes:
        """Return the payload of the reply."""
        body = payload.encode() if isinstance(payload, str) else payload
        self.client.send(b"PUB %s _INBOX.1 %d\r\n%s\r\n" % (subject.encode(), len(body), body))
        return self.read()

    def read(self) -> bytes:
        frame = self.client.read_line()
        assert frame.startswith(b"MSG _INBOX.1 1 "), frame
        return frame.partition(b"\r\n")[2][:-2]

    def ask(self, subject: str, payload: str = "") -> dict[str, Any]:
        reply = json.loads(self.ask_raw(subject, payload))
        del reply["server"]
        return reply

    def push(self, account: Account, **changes: Any) -> dict[str, Any]:
        return self.ask(UPDATE, account.jwt(**changes))


class Site:
    """A server with an operator, a resolver, full unless told otherwise, and the folder of that."""

    def __init__(
        self,
        kind: str,
        folder: Path,
        *,
        further: str = "",
        resolver: str = "type: full",
        flags: tuple[str, ...] = (),
        operator: Operator | None = None,
        preloads: list[Account] | None = None,
    ) -> None:
        self.kind = kind
        self.flags = list(flags)
        self.folder = folder
        self.jwt_folder = folder / "jwt"
        self.resolver = resolver
        self.further = further
        self.operator = operator or Operator()
        self.preloads = preloads or [self.operator.system]
        self._clients: list[RawClient] = []
        self.server = self.start()

    def start(self, preload: str | None = None) -> ServerProcess:
        resolver = self.resolver if self.resolver == "MEMORY" else f'{{ dir: "{self.jwt_folder}", {self.resolver} }}'
        preload = self.operator.preload(*self.preloads) if preload is None else preload
        config = self.operator.configuration(resolver, self.further, preload=preload)
        self.server = start_server_process(self.kind, self.folder, self.flags, config)
        return self.server

    def client(self, user: User, **options: Any) -> RawClient:
        """Return a client that is in; it is closed with the site."""
        client = self.server.client()
        self._clients.append(client)
        client.connect(**user.presented(client.info["nonce"]), **options)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.server.stop()

    def admin(self) -> Admin:
        return Admin(self.client(self.operator.admin))

    def refuse(self, user: User) -> None:
        with self.server.client() as client:
            client.send_connect(verbose=False, **user.presented(client.info["nonce"]))
            client.expect_error_and_closed("Authorization Violation")

    def file_of(self, account: Account) -> Path:
        return self.jwt_folder / f"{account.public}.jwt"


def expect_soon(client: RawClient, operation: bytes, text: str) -> None:
    """Repeat an operation until it is refused: clients that are in are asked about one after another."""
    deadline = time.monotonic() + REVIEW_SECONDS_MAX
    while time.monotonic() < deadline:
        client.send(operation + b"PING\r\n")
        frame = client.read_line()
        if frame != b"PONG\r\n":
            assert frame == f"-ERR '{text}'\r\n".encode(), frame
            return
        time.sleep(0.01)
    raise AssertionError(f"{operation!r} was not refused within {REVIEW_SECONDS_MAX} s")
