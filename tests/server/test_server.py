"""`jetlake.Server`: a server inside a Python program."""

import asyncio
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import nats
import pytest

import jetlake
from jetlake.server.log import StreamLog
from jetlake.server.options import LogOptions, ServerOptions


def read_info(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client, client.makefile("rb") as lines:
        return json.loads(lines.readline().removeprefix(b"INFO "))


async def exchange(url, **options):
    """Send one message through a server and return it."""
    connection = await nats.connect(url, **options)
    subscription = await connection.subscribe("greeting")
    await connection.publish("greeting", b"hello")
    message = await subscription.next_msg(timeout=60)
    await connection.close()
    return message.data


async def test_message_goes_through_a_server_in_this_process(jetlake_server):
    assert await exchange(jetlake_server.url) == b"hello"


async def test_async_context_manager_starts_and_stops():
    async with jetlake.Server() as server:
        assert server.running
        assert await exchange(server.url) == b"hello"

    assert not server.running
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=60)


async def test_several_servers_in_one_process_keep_apart():
    with jetlake.Server() as first, jetlake.Server() as second, jetlake.Server(name="third") as third:
        ports = {server.port for server in (first, second, third)}
        connection = await nats.connect(first.url)
        subscription = await connection.subscribe("greeting")
        other = await nats.connect(second.url)
        await other.publish("greeting", b"not for you")
        await other.flush()

        with pytest.raises(nats.errors.TimeoutError):
            await subscription.next_msg(timeout=0.2)
        assert len(ports) == 3
        assert len({server.server_id for server in (first, second, third)}) == 3
        assert read_info(third)["server_name"] == "third"
        await connection.close()
        await other.close()


def test_stopping_twice_is_harmless(jetlake_server):
    jetlake_server.stop()
    jetlake_server.stop()


def test_clients_see_the_end_of_the_connection_when_it_stops(jetlake_server):
    with socket.create_connection(("127.0.0.1", jetlake_server.port), timeout=60) as client:
        client.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
        received = b""
        while b"PONG" not in received:
            received += client.recv(4096)

        jetlake_server.stop()

        assert client.recv(4096) == b""


def test_server_is_started_once_only(jetlake_server):
    jetlake_server.stop()

    with pytest.raises(jetlake.ServerError, match="make a new Server"):
        jetlake_server.start()


def test_port_of_a_server_that_has_not_started_is_refused():
    with pytest.raises(jetlake.ServerError, match="has not started"):
        _ = jetlake.Server().port


def test_taken_port_is_a_start_error_in_the_words_of_nats_server(jetlake_server):
    port = jetlake_server.port

    with pytest.raises(jetlake.StartError) as refusal:
        jetlake.Server(port=port).start()

    assert str(refusal.value) == (
        f'Error listening on port: 127.0.0.1:{port}, "listen tcp 127.0.0.1:{port}: bind: address already in use"'
    )


def test_port_is_free_again_after_the_stop():
    with jetlake.Server() as first:
        port = first.port

    with jetlake.Server(port=port) as second:
        assert second.port == port


def test_options_that_cannot_work_are_refused_before_anything_starts():
    with pytest.raises(jetlake.ConfigurationError, match="server name cannot contain spaces"):
        jetlake.Server(name="a b")
    with pytest.raises(jetlake.ConfigurationError, match="port is 65536"):
        jetlake.Server(port=65536)


async def test_user_and_password_are_required_where_given():
    async with jetlake.Server(user="ada", password="secret") as server:
        assert await exchange(server.url, user="ada", password="secret") == b"hello"
        assert read_info(server)["auth_required"] is True
        assert try_to_log_in(server, b'{"user":"ada","pass":"wrong"}') == b"-ERR 'Authorization Violation'\r\n"
        assert try_to_log_in(server, b"{}") == b"-ERR 'Authorization Violation'\r\n"


async def test_token_is_required_where_given():
    async with jetlake.Server(token="t0ken") as server:
        assert await exchange(server.url, token="t0ken") == b"hello"
        assert try_to_log_in(server, b'{"auth_token":"wrong"}') == b"-ERR 'Authorization Violation'\r\n"


async def test_client_of_a_server_object_needs_no_credentials_of_its_own():
    for options in ({"user": "ada", "password": "secret"}, {"token": "t0ken"}):
        async with jetlake.Server(**options) as server:
            assert server.login() == options
            connection = await jetlake.connect(server)
            assert connection.is_connected
            await connection.close()
    async with jetlake.Server(config="authorization { user: ada, password: secret }") as server:
        connection = await jetlake.connect(server)
        await connection.close()


def test_login_of_a_server_is_empty_if_nobody_can_know_it():
    with jetlake.Server() as server:
        assert server.login() == {}
    hashed = "$2a$04$abcdefghijklmnopqrstuuJBpYd9ZQYrr8fjQvSnUwP9iQ1Xy1rGe"
    assert jetlake.Server(config=f"authorization {{ user: ada, password: '{hashed}' }}").login() == {}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"user": "ada", "password": "pw", "token": "t"}, "a token or for user and password, not for both"),
        ({"user": "ada"}, "user 'ada' has no password"),
        ({"password": "pw"}, "a password is given without its user"),
        ({"jetstream": False, "store_directory": "data"}, "although jetstream is False"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, reason):
    with pytest.raises(jetlake.ConfigurationError, match=reason):
        jetlake.Server(**options)


def test_jetstream_is_on_unless_it_is_turned_off():
    with jetlake.Server() as server:
        assert read_info(server)["jetstream"] is True
    with jetlake.Server(jetstream=False) as server:
        assert "jetstream" not in read_info(server)
        assert server.store_directory == ""
    with jetlake.Server(config="debug: false") as server:
        assert "jetstream" not in read_info(server)


def test_clock_of_the_day_cannot_be_advanced(jetlake_server):
    with pytest.raises(jetlake.ConfigurationError, match=r'jetlake\.Server\(clock="manual"\)'):
        jetlake_server.advance(1)


async def test_configuration_is_a_file_or_its_text(tmp_path):
    text = "port: 1\nserver_name: harbour\nauthorization { users: [ {user: ada, password: secret} ] }"
    path = tmp_path / "server.conf"
    path.write_text(text)

    for config in (text, path, str(path)):
        async with jetlake.Server(config=config) as server:
            # The address stays a random one of this machine.
            assert (server.host, server.port != 1) == ("127.0.0.1", True)
            assert read_info(server)["server_name"] == "harbour"
            assert await exchange(server.url, user="ada", password="secret") == b"hello"
            assert try_to_log_in(server, b"{}") == b"-ERR 'Authorization Violation'\r\n"


def test_configuration_that_cannot_work_is_refused_before_anything_starts():
    with pytest.raises(jetlake.ConfigurationError, match='<text>:1:1: unknown field "foo"'):
        jetlake.Server(config="foo: 1")
    with pytest.raises(jetlake.ConfigurationError, match=r"open missing\.conf: no such file"):
        jetlake.Server(config="missing.conf")
    with pytest.raises(jetlake.ConfigurationError, match="config decides about users"):
        jetlake.Server(config="debug: true", token="t")


def test_slow_logins_do_not_hold_up_the_others():
    """A server with one slow hash still answers the log and clients that are in while logins are compared."""
    import bcrypt

    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(12)).decode()
    users = f"{{user: slow, password: '{hashed}'}}, {{user: ada, password: plain}}"
    config = f"authorization {{ timeout: 60, users: [ {users} ] }}"
    with jetlake.Server(config=config) as server, contextlib.ExitStack() as stack:
        inside = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
        lines = stack.enter_context(inside.makefile("rb"))
        inside.sendall(b'CONNECT {"verbose":false,"user":"ada","pass":"plain"}\r\nPING\r\n')
        lines.readline()
        assert lines.readline() == b"PONG\r\n"
        wrong = b'CONNECT {"verbose":false,"user":"slow","pass":"wrong"}\r\n'
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60)).sendall(wrong)

        inside.sendall(b"SUB a 1\r\nPUB a 0\r\n\r\n")

        # A PING of the server may come first, if this has taken two seconds.
        assert next(line for line in lines if line != b"PING\r\n") == b"MSG a 1 0\r\n"


def try_to_log_in(server, connect):
    """Return all that a client is told after INFO, until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client, client.makefile("rb") as lines:
        lines.readline()
        client.sendall(b"CONNECT " + connect + b"\r\nPING\r\n")
        return lines.read()


def test_many_logins_at_once_are_all_decided():
    patient = jetlake.Limits(auth_timeout_ms=60_000)
    with jetlake.Server(user="ada", password="secret", limits=patient) as server:
        connect = b'CONNECT {"verbose":false,"user":"ada","pass":"secret"}\r\nPING\r\n'
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(200)]
        for client in clients:
            client.sendall(connect)

        for client in clients:
            received = b""
            while b"PONG\r\n" not in received:
                received += client.recv(4096)
                assert b"-ERR" not in received
            client.close()


def test_limits_hold(jetlake_server):
    with jetlake.Server(limits=jetlake.Limits(max_payload_bytes=100)) as server:
        assert read_info(server)["max_payload"] == 100


def test_temporary_store_is_removed_at_the_stop():
    with jetlake.Server(jetstream=True) as server:
        store = Path(server.store_directory)
        assert store.is_dir()
        assert read_info(server)["jetstream"] is True

    assert not store.parent.exists()


def test_given_store_stays(tmp_path):
    with jetlake.Server(jetstream=True, store_directory=tmp_path / "data") as server:
        assert server.store_directory == str(tmp_path / "data" / "jetstream")

    assert (tmp_path / "data" / "jetstream").is_dir()


class FailingHandler(logging.Handler):
    """A handler of a program that does not bear the last line of a start."""

    def emit(self, record):
        if "Server is ready" in record.getMessage():
            raise RuntimeError("not this one")


def test_whatever_ends_a_start_nothing_of_it_stays_behind():
    handler, log = FailingHandler(), logging.getLogger("jetlake.server")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    before = set(threading.enumerate())
    server = jetlake.Server(jetstream=True)
    try:
        with pytest.raises(RuntimeError, match="not this one"):
            server.start()
    finally:
        log.removeHandler(handler)
        log.setLevel(level)

    assert set(threading.enumerate()) <= before
    assert not server.running
    with pytest.raises(jetlake.ServerError, match="has not started"):
        _ = server.port
    # It was never there, so there is nothing to stop.
    server.stop()


def test_store_that_cannot_be_made_is_a_start_error_and_frees_the_port(tmp_path):
    (tmp_path / "file").write_text("in the way")
    server = jetlake.Server(jetstream=True, store_directory=tmp_path / "file")

    with pytest.raises(jetlake.StartError, match="choose another with -sd"):
        server.start()


def test_log_goes_to_the_logger_of_the_package(caplog):
    caplog.set_level(logging.INFO, "jetlake.server")

    with jetlake.Server():
        pass

    assert "Server is ready" in caplog.messages
    assert "Server Exiting.." in caplog.messages


def test_busy_python_thread_does_not_stop_traffic(jetlake_server):
    """Traffic needs no GIL: while a thread computes without a pause, clients outside Python are served on."""
    stop = threading.Event()

    def compute():
        while not stop.is_set():
            sum(range(10_000))

    busy = [threading.Thread(target=compute) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        from jetlake.client.load import LoadPlan, run

        # The load generator is native too, so nothing here but the start and the end needs Python.
        figures = run(LoadPlan(url=f"127.0.0.1:{jetlake_server.port}", workload="pubsub", messages=100_000))
    finally:
        stop.set()
        for thread in busy:
            thread.join()

    assert figures.delivered == 100_000


@pytest.mark.skipif(sys.platform != "linux", reason="finds the engine's polls in /proc")
def test_engine_that_breaks_makes_the_server_fail():
    polls_before = open_polls()
    server = jetlake.Server().start()

    # Without its poll a worker cannot go on: a failure no engine can hide.
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor in open_polls() - polls_before:
        os.dup2(nothing, descriptor)
    os.close(nothing)
    wake_workers(server.port)
    for _ in range(6_000):
        if not server.running:
            break
        time.sleep(0.01)

    assert not server.running
    with pytest.raises(jetlake.EngineFailedError, match="the engine stopped by itself: "):
        server.stop()


def open_polls():
    """Return the descriptors of all polls of this process."""
    polls = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[eventpoll]":
                polls.add(int(name))
    return polls


def wake_workers(port):
    """A worker notices what it lost when it has something to do."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as client:
        client.sendall(b"PING\r\n")


def test_server_of_a_process_is_told_when_the_engine_stops():
    stopped = threading.Event()
    options = ServerOptions(host="127.0.0.1", port=0)
    server = jetlake.Server.from_options(options, StreamLog(LogOptions(), descriptor=-1), stopped.set).start()

    server.stop()

    assert stopped.is_set()


def test_program_that_forgets_to_stop_its_server_ends_in_order(tmp_path):
    program = "import jetlake; print(jetlake.Server(jetstream=True).start().store_directory)"

    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    assert not Path(answer.stdout.strip()).exists()


def test_program_that_ends_while_logins_wait_ends_in_order():
    """A thread that comes back from native code while the interpreter ends would abort the process."""
    program = """
import bcrypt, jetlake, socket, time

class SlowEnd:
    def __del__(self):
        time.sleep(1)

slow_end = SlowEnd()
hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(12)).decode()
with jetlake.Server(config=f"authorization {{ users: [ {{user: slow, password: '{hashed}'}} ] }}") as server:
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for client in clients:
        client.sendall(b'CONNECT {"user":"slow","pass":"wrong"}\\r\\n')
    time.sleep(0.1)
"""

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)

    assert (answer.returncode, answer.stderr) == (0, "")


async def test_loop_is_not_blocked_by_a_stop():
    ticks = []

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    async with jetlake.Server():
        await asyncio.sleep(0.02)
    ticking.cancel()

    assert len(ticks) > 2
