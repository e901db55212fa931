"""`jetlake.connect`: at once or refused at once, with the cause."""

import asyncio
import gc
import logging
import socket

import pytest

import jetlake


async def test_connects_to_a_server_object_and_to_its_url(jetlake_server):
    for address in (jetlake_server, jetlake_server.url, [jetlake_server.url]):
        connection = await jetlake.connect(address, name="test")

        assert connection.is_connected
        await connection.close()


async def test_port_without_a_server_is_refused_with_what_to_do(caplog):
    with jetlake.Server() as server:
        gone = server.url

    with pytest.raises(jetlake.ClientError) as refusal:
        await jetlake.connect(gone)

    address = gone.removeprefix("nats://")
    assert str(refusal.value) == (
        f"cannot connect to {gone}: Nothing is listening at {address}. Start a server with `jetlake dev`."
    )
    assert not caplog.records


async def test_refused_login_is_named_and_nothing_is_logged(start_server, caplog):
    server = start_server(["--auth", "right"])

    with pytest.raises(jetlake.ClientError, match=r"rejected the login\. Pass `user` and `password`, or `token`"):
        await jetlake.connect(server.url, token="wrong")

    assert not caplog.records


async def test_port_that_speaks_another_protocol_is_named(monkeypatch):
    # The connection of the second look may take its time on a busy machine.
    monkeypatch.setattr("jetlake.client.first_connect.PROBE_S_MAX", 5.0)
    with jetlake.Server(monitor_port=0) as server:
        pages = server.monitor_url.replace("http://", "nats://")
        with pytest.raises(jetlake.ClientError, match="answers, but not as a NATS server"):
            await jetlake.connect(pages, connect_timeout=0.2)


async def test_host_that_does_not_exist_is_named():
    with pytest.raises(jetlake.ClientError, match=r"There is no host named no-such-host\.invalid"):
        await jetlake.connect("nats://no-such-host.invalid:4222")


async def test_second_server_is_taken_when_the_first_is_not_there(jetlake_server):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"nats://127.0.0.1:{unused.getsockname()[1]}"

        connection = await jetlake.connect([nobody, jetlake_server.url])

    assert connection.is_connected
    await connection.close()


async def test_connection_that_was_there_reconnects_as_its_options_say(jetlake_server):
    connection = await jetlake.connect(jetlake_server, max_reconnect_attempts=7, reconnect_time_wait=0.5)

    assert connection.options["allow_reconnect"] is True
    assert connection.options["max_reconnect_attempts"] == 7
    assert connection.options["reconnect_time_wait"] == 0.5
    await connection.close()


async def test_credentials_are_not_sent_in_the_clear_when_tls_is_wanted(jetlake_server):
    address = jetlake_server.url.replace("nats://", "tls://")

    with pytest.raises(jetlake.ClientError, match="TLS is wanted, and the server has none"):
        await jetlake.connect(address, user="ada", password="pw")


PERMISSIONS = "authorization { users: [ {user: ada, password: pw, permissions: {publish: 'a.>'}} ] }"


async def test_refused_subject_keeps_its_case(caplog):
    caplog.set_level(logging.WARNING, "jetlake.client")
    async with jetlake.Server(config=PERMISSIONS) as server:
        heard = []

        async def hear(error):
            heard.append(str(error))

        connection = await jetlake.connect(server, user="ada", password="pw", error_cb=hear)
        await connection.publish("$JS.API.STREAM.List", b"")
        await connection.flush()
        silent = await jetlake.connect(server, user="ada", password="pw")
        await silent.publish("B", b"")
        await silent.flush()
        await connection.close()
        await silent.close()

    assert heard == ['Permissions Violation for Publish to "$JS.API.STREAM.List"']
    own = [record.getMessage() for record in caplog.records if record.name == "jetlake.client"]
    assert own == ['the connection reports: Permissions Violation for Publish to "B"']


# What nats-py had just opened it forgets, and Python then closes it with a warning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_task_that_is_cancelled_while_it_connects_ends(jetlake_server):
    """nats-py swallows a cancellation that comes in some moments of a connection's beginning."""

    async def connected_for_ever() -> None:
        connection = await jetlake.connect(jetlake_server)
        try:
            await asyncio.Event().wait()
        finally:
            await connection.close()

    for number in range(60):
        task = asyncio.create_task(connected_for_ever())
        await asyncio.sleep(number * 0.0003)

        task.cancel()

        done, _ = await asyncio.wait((task,), timeout=60)
        assert done, f"it goes on after a cancellation {number * 0.3:.1f} ms after its beginning"
        assert task.cancelled()
    gc.collect()
