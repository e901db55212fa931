"""A server whose clients a service decides about by its configuration file, for the tests that compare both servers."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.compatibility.callout_service import Asked, CalloutService, CurveKey
from tests.compatibility.claims import Key
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

ACCOUNTS = """
AUTH { users: [ { user: auth, password: pwd } ] }
APP { users: [ { user: local, password: pwd } ] }
OTHER { users: [ { user: elsewhere, password: pwd } ] }
LIMITED { default_permissions: { publish: "limited.>" }, limits: { max_payload: 2048 } }
SYS { users: [ { user: admin, password: pwd } ] }
"""


class CalloutSite:
    """A server whose clients a service decides about, and that service."""

    def __init__(
        self,
        start: Callable[..., ServerProcess],
        config: str,
        issuer: Key,
        xkey: CurveKey | None,
        flags: tuple[str, ...] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.config = config
        self.server = start(flags=list(flags), config=config)
        self.issuer = issuer
        self.clients: list[RawClient] = []
        service = self.client()
        if tls is not None:
            service.encrypt(tls)
        service.connect(user="auth", headers=True, **{"pass": "pwd"})
        self.service = CalloutService(service, issuer, xkey)

    def client(self) -> RawClient:
        """A client that has said nothing yet; it is closed with the site."""
        self.clients.append(self.server.client())
        return self.clients[-1]

    def ask(self, **presented: Any) -> tuple[RawClient, Asked]:
        """A client that presents something, and what the service is asked about it."""
        client = self.client()
        client.send_connect(verbose=False, **presented)
        return client, self.service.next()

    def come_in(self, account: str = "APP", **claimed: Any) -> RawClient:
        """A client that the service has let into an account."""
        client, asked = self.ask(user="ada", headers=True, **{"pass": "secret"})
        self.service.admit(asked, account, **claimed)
        client.expect_pong()
        return client

    def local(self, user: str, password: str = "pwd") -> RawClient:
        """A client that comes in by the file, about which the service is not asked."""
        client = self.client()
        client.connect(user=user, **{"pass": password})
        self.service.nothing_asked()
        return client

    def close(self) -> None:
        for client in self.clients:
            client.close()


Start = Callable[..., CalloutSite]


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def xkey(request: pytest.FixtureRequest) -> CurveKey | None:
    return CurveKey() if request.param else None


@pytest.fixture
def start_callout(start_server: Callable[..., ServerProcess]) -> Iterator[Start]:
    """A function that starts a server and its service; `callout` and `further` are added to the file."""
    sites: list[CalloutSite] = []

    def start(
        callout: str = "",
        further: str = "",
        xkey: CurveKey | None = None,
        timeout: str = "5s",
        users: str = "",
        flags: tuple[str, ...] = (),
        tls: ssl.SSLContext | None = None,
    ) -> CalloutSite:
        issuer = Key("account")
        encryption = f"xkey: {xkey.public}" if xkey else ""
        config = f"""
        server_name: harbour
        accounts {{ {ACCOUNTS} }}
        system_account: SYS
        authorization {{
            timeout: {timeout}
            {users}
            auth_callout {{
                issuer: {issuer.public}, account: AUTH, auth_users: [ auth, admin ]
                {encryption}
                {callout}
            }}
        }}
        {further}
        """
        sites.append(CalloutSite(start_server, config, issuer, xkey, flags, tls))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


def information(client: RawClient) -> dict[str, Any]:
    """What a client is told about itself."""
    client.send(b"SUB me 99\r\nPUB $SYS.REQ.USER.INFO me 0\r\n\r\n")
    frame = client.read_line()
    assert frame.startswith(b"MSG me 99 "), frame
    data: dict[str, Any] = json.loads(frame.partition(b"\r\n")[2])["data"]
    return data


@contextmanager
def refused(site: CalloutSite, **presented: Any) -> Iterator[Asked]:
    """A client that is refused after what happens inside."""
    client, asked = site.ask(**(presented or {"user": "ada"}))
    yield asked
    client.expect_error_and_closed("Authorization Violation")
