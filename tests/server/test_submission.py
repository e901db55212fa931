"""A server that runs the sender of a spool: as a process of its own, watched, and gone with the server."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

import jetlake
from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_file
from jetlake.server.options.submission import SubmissionOptions
from jetlake.submission import submit
from jetlake.submission.hosted import HostedOptions
from jetlake.submission.statistics import read
from tests.compatibility.certificates import Authority

WAIT_S_MAX = 60.0

CONFIGURATION = """
listen: 127.0.0.1:-1
jetstream {{ store_dir: "{store}" }}
authorization {{ users: [{{ user: ada, password: secret }}] }}
submission {{ spool: "{spool}", user: ada, password: secret }}
"""


def wait_until(is_true, what):
    deadline = time.monotonic() + WAIT_S_MAX
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def stored(url):
    async def ask():
        async with open_api(Access(url=url, user="ada", password="secret")) as api:
            if "S" not in await api.stream_names():
                await api.request("STREAM.CREATE.S", {"name": "S", "subjects": ["mcollective.submission.in.>"]})
            return (await api.request("STREAM.INFO.S"))["state"]["messages"]

    return asyncio.run(ask())


def sender_pid(spool):
    """Return the process that has the lock of a spool, as its statistics say."""
    figures = read(spool)
    return figures.pid if figures else 0


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def spool(tmp_path):
    return tmp_path / "spool"


@pytest.fixture
def config(tmp_path, spool):
    path = tmp_path / "server.conf"
    path.write_text(CONFIGURATION.format(store=tmp_path / "store", spool=spool))
    return path


def test_a_server_delivers_what_is_in_its_spool_and_ends_its_sender(start_process, config, spool):
    server = start_process("-c", str(config))
    wait_until(lambda: sender_pid(spool), "no sender runs")
    pid = sender_pid(spool)
    stored(server.url)
    submit("app", "x", spool=spool, reliable=True)

    wait_until(lambda: stored(server.url) == 1, "nothing is delivered")
    command_line, environment = (Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    server.send(signal.SIGTERM)
    code = server.wait()

    assert code == 0
    assert not is_alive(pid)
    assert b"secret" not in command_line + environment
    assert "Starting the sender of the spool" in server.log()
    assert "[INF] Sender: connected to nats://127.0.0.1" in server.log()


def test_a_sender_that_is_killed_is_started_again(start_process, config, spool):
    server = start_process("-c", str(config))
    wait_until(lambda: sender_pid(spool), "no sender runs")
    first = sender_pid(spool)

    os.kill(first, signal.SIGKILL)
    wait_until(lambda: sender_pid(spool) != first, "no other sender is started")
    stored(server.url)
    submit("app", "x", spool=spool, reliable=True)
    wait_until(lambda: stored(server.url) == 1, "nothing is delivered")

    assert f"[ERR] Sender: process {first} ended with exit code -9; starting it again in" in server.log()


def test_a_server_that_is_killed_takes_its_sender_along(start_process, config, spool):
    server = start_process("-c", str(config))
    wait_until(lambda: sender_pid(spool), "no sender runs")
    pid = sender_pid(spool)

    server.send(signal.SIGKILL)
    server.wait()

    wait_until(lambda: not is_alive(pid), "the sender lives on")


def test_a_spool_that_cannot_be_stops_the_sender_and_not_the_server(tmp_path, start_process):
    (tmp_path / "file").write_text("")
    path = tmp_path / "server.conf"
    path.write_text(f'submission {{ spool: "{tmp_path}/file/spool" }}')

    server = start_process("-c", str(path))
    server.wait_for_line("cannot be made: not a directory")
    server.wait_for_line("ended with exit code 1; starting it again in")

    server.send(signal.SIGTERM)
    assert server.wait() == 0


def test_a_server_in_a_program_runs_a_sender_too(tmp_path, spool):
    with jetlake.Server(config=CONFIGURATION.format(store=tmp_path / "store", spool=spool)) as server:
        stored(server.url)
        submit("app", "x", spool=spool, reliable=True)
        wait_until(lambda: stored(server.url) == 1, "nothing is delivered")
        wait_until(lambda: sender_pid(spool), "no sender says who it is")
        pid = sender_pid(spool)

    assert not is_alive(pid)


def test_a_sender_speaks_tls_to_a_server_with_tls(tmp_path, start_process, spool):
    authority = Authority(tmp_path)
    certificate = authority.server()
    text = CONFIGURATION.format(store=tmp_path / "store", spool=spool)
    text = text.replace("submission { ", f'submission {{ ca_file: "{authority.file}", ')
    text += f'tls {{ cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}" }}\n'
    path = tmp_path / "server.conf"
    path.write_text(text)

    server = start_process("-c", str(path))

    server.wait_for_line("Sender: connected to tls://127.0.0.1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("submission { collective: eu }", 'server.conf:1:1: "submission" names no spool'),
        ('submission { spool: "/s", user: a, token: b }', "several logins"),
        ('submission { spool: "/s", spoool: "/t" }', 'unknown field "spoool"'),
        ('submission { spool: "/s", max_spool_size: 0 }', "at least 1"),
        ("submission: true", '"submission" must be a map'),
    ],
)
def test_a_block_that_cannot_be_is_refused_with_its_line(tmp_path, text, reason):
    path = tmp_path / "server.conf"
    path.write_text(text)

    with pytest.raises(ConfigurationError) as refused:
        load_file(str(path))

    assert reason in str(refused.value)


def test_the_options_of_server_and_sender_are_the_same():
    """They are named on both sides, because neither may import the other."""
    assert set(SubmissionOptions.__struct_fields__) == set(HostedOptions.__struct_fields__)


def test_a_password_is_not_shown():
    assert "secret" not in repr(SubmissionOptions(spool="/s", password="secret"))
