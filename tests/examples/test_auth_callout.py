"""examples/auth_callout.py decides about the clients of a server, with and without encryption."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import nats
import pytest

import jetlake
from tests.compatibility.wire import RawClient
from tests.conftest import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "auth_callout.py"


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def server(request: pytest.FixtureRequest) -> Iterator[jetlake.Server]:
    printed = subprocess.run([sys.executable, EXAMPLE, "keys"], check=True, capture_output=True, text=True).stdout
    (issuer, issuer_seed), (xkey, xkey_seed) = re.findall(r": (\w+) +seed: (\w+)", printed)
    config = f"""
    accounts {{ AUTH {{ users: [ {{ user: auth, password: pwd }} ] }}, APP {{ }} }}
    authorization {{
        auth_callout {{
            issuer: {issuer}, account: AUTH, auth_users: [ auth ]
            {f"xkey: {xkey}" if request.param else ""}
        }}
    }}
    """
    with jetlake.Server(config=config) as server:
        url = server.url.replace("nats://", "nats://auth:pwd@")
        seeds = [issuer_seed, xkey_seed] if request.param else [issuer_seed]
        command = [sys.executable, EXAMPLE, "serve", url, *seeds]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            try:
                assert service.stdout is not None
                assert issuer in service.stdout.readline()
                yield server
            finally:
                service.kill()


async def test_service_of_the_example_lets_its_users_in_and_nobody_else(server: jetlake.Server) -> None:
    errors: list[str] = []

    async def note(error: Exception) -> None:
        errors.append(str(error))

    client = await nats.connect(server.url, user="ada", password="lovelace", error_cb=note)
    await client.publish("orders.new", b"2 apples")
    await client.publish("invoices.new", b"2 apples")
    await client.flush()
    await client.close()
    with RawClient(server.host, server.port) as stranger:
        stranger.send_connect(verbose=False, user="ada", **{"pass": "wrong"})
        stranger.expect_error_and_closed("Authorization Violation")

    assert any("invoices.new" in error for error in errors)
    assert not any("orders.new" in error for error in errors)
