"""`jetlake.connect`."""

import pytest

import jetlake


async def test_connects_to_a_server_object_and_to_its_url(jetlake_server):
    for address in (jetlake_server, jetlake_server.url, [jetlake_server.url]):
        connection = await jetlake.connect(address, name="test")

        assert connection.is_connected
        await connection.close()


async def test_server_that_is_not_there_is_a_client_error_with_what_to_do():
    with jetlake.Server() as server:
        gone = server.url

    with pytest.raises(jetlake.ClientError, match=rf"cannot connect to {gone}: .*; check that a server runs there"):
        await jetlake.connect(gone, max_reconnect_attempts=1, reconnect_time_wait=0.01, error_cb=ignore)


async def test_refused_credentials_are_a_client_error():
    async with jetlake.Server(token="right") as server:
        with pytest.raises(jetlake.ClientError, match=r"(?i)authorization violation"):
            await jetlake.connect(server, token="wrong", allow_reconnect=False, error_cb=ignore)


async def test_credentials_are_not_sent_in_the_clear_when_tls_is_wanted(jetlake_server):
    address = jetlake_server.url.replace("nats://", "tls://")

    with pytest.raises(jetlake.ClientError, match="TLS is wanted, and the server has none"):
        await jetlake.connect(address, user="ada", password="pw", allow_reconnect=False, error_cb=ignore)


async def ignore(_error):
    """nats-py reports refused logins here as well as by the exception."""
