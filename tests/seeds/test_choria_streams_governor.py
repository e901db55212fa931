"""The post about Choria Streams: its governor and its message submission, on a cluster of three and on Jetlake.

The cron job is run without cron's five fields; `/bin/choria` is the executable that `jetlake shims` writes, and Puppet
is a script that writes down how it was called.
"""

import asyncio
import base64
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jetlake
from jetlake.client.access import Access
from jetlake.client.api import open_api
from tests.cluster import start_cluster
from tests.seeds.runner import Reader
from tests.seeds.transcript import read_document

DOCUMENT = "choria_streams.md"

ADD = "choria governor add PUPPET 50 20m 3"
CRON_FIELDS = "*/30 * * * * "
PUPPET = "/opt/puppetlabs/bin/puppet"
PAYLOAD_FILE = Path("/tmp/sdslksf.tmp")
PAYLOAD = "task 17 is done\n"

WAIT_S_MAX = 60.0

STREAM = {"name": "TASKS", "subjects": ["mcollective.submission.in.tasks.>"]}


def steps():
    """Return the commands about governors and submission; those before are about buckets."""
    found = [step for step in read_document(DOCUMENT) if "governor" in step.command or "submit" in step.command]
    assert len(found) == 3
    return found


@pytest.fixture(scope="module", params=["cluster", "jetlake"])
def server(request, tmp_path_factory):
    """What the post calls a broker network, and one server of ours."""
    if request.param == "cluster":
        with start_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
            yield request.param, cluster.url
    else:
        with jetlake.Server(jetstream=True) as server:
            yield request.param, server.url


@pytest.fixture
def reader(server, tmp_path):
    return Reader(tmp_path, server[1])


def test_the_governor_is_added_as_printed(server, reader):
    add = steps()[0]
    assert add.command == ADD

    if server[0] == "cluster":
        assert reader.follow(add) == ""
    else:
        # One server has one replica, and says so; everything else is as printed.
        done = reader.run(add.command)
        assert done.returncode == 0
        assert done.stdout.splitlines()[1:-1] == [line.replace(": 3", ": 1") for line in add.output]
        assert done.stdout.startswith("warning: the server is not clustered")


def test_the_cron_job_runs_puppet_under_the_governor(server, reader):
    reader.run(ADD)
    command = steps()[1].command
    assert command.startswith(f"{CRON_FIELDS}/bin/choria governor run \\\n")
    assert PUPPET in command
    puppet = reader.work / "puppet"
    puppet.write_text(
        f'#!/bin/sh\necho "$@" > {reader.work}/called\nchoria governor view PUPPET >> {reader.work}/called\n'
    )
    puppet.chmod(0o755)

    done = reader.run(
        command.removeprefix(CRON_FIELDS).replace("/bin/choria", "choria", 1).replace(PUPPET, str(puppet))
    )

    assert done.returncode == 0, done.stdout
    called = (reader.work / "called").read_text().splitlines()
    assert called[0] == "agent --onetime --no-daemonize --no-usecacheonfailure --no-splay"
    assert "  Active Leases: 1" in called
    assert "  Active Leases: 0" in reader.run("choria governor view PUPPET").stdout


def test_the_message_is_submitted_as_printed_and_delivered(server, reader):
    asyncio.run(make_stream(server[1]))
    spool = reader.work / "spool"
    reader.environment["JETLAKE_SPOOL"] = str(spool)
    PAYLOAD_FILE.write_text(PAYLOAD)
    try:
        done = reader.run(steps()[2].command)
    finally:
        PAYLOAD_FILE.unlink()
    assert done.returncode == 0, done.stdout
    message_id = done.stdout.splitlines()[-1]
    host = reader.run('echo "$HOSTNAME"').stdout.strip()

    with sender(reader):
        message = asyncio.run(last_message(server[1], f"mcollective.submission.in.tasks.status.{host}"))

    headers = base64.b64decode(message["hdrs"]).decode()
    assert base64.b64decode(message["data"]).decode() == PAYLOAD
    assert re.fullmatch(r"[0-9a-f-]{36}", message_id)
    assert f"Nats-Msg-Id: {message_id}\r\n" in headers
    assert f"Choria-Sender: {host} Task Agent\r\n" in headers
    assert "Choria-Reliable: 1\r\n" in headers


class sender:  # noqa: N801 - a context manager
    """A sender on the spool of a reader."""

    def __init__(self, reader):
        self._reader = reader

    def __enter__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jetlake", "submission", "run"],
            env=self._reader.environment,
            stderr=subprocess.DEVNULL,
        )

    def __exit__(self, *_):
        self._process.terminate()
        assert self._process.wait(WAIT_S_MAX) == 0


async def make_stream(url):
    async with open_api(Access(url=url)) as api:
        await api.request("STREAM.CREATE.TASKS", STREAM)


async def last_message(url, subject):
    deadline = time.monotonic() + WAIT_S_MAX
    async with open_api(Access(url=url)) as api:
        while (answer := await api.find("STREAM.MSG.GET.TASKS", {"last_by_subj": subject})) is None:
            assert time.monotonic() < deadline, f"nothing came on {subject}"
            await asyncio.sleep(0.05)
        return answer["message"]


def test_a_configuration_of_choria_is_read_where_there_is_one(server, reader):
    """The file that the post names, with what it would say on a node."""
    spool = reader.work / "node-spool"
    config = reader.work / "server.conf"
    config.write_text(
        f"identity = node1.example.net\ncollectives = dev_mcollective,mcollective\n"
        f"plugin.choria.submission.spool = {spool}\nplugin.choria.submission.max_spool_size = 2\n"
    )
    command = steps()[2].command.replace("/etc/choria/server.conf", str(config)).replace(str(PAYLOAD_FILE), "payload")
    (reader.work / "payload").write_text(PAYLOAD)

    first, second, third = (reader.run(command) for _ in range(3))

    assert [first.returncode, second.returncode, third.returncode] == [0, 0, 1]
    assert "spool is full" in third.stdout
    assert len(list((spool / "P4").iterdir())) == 2
    assert '"identity":"node1.example.net"' in next((spool / "P4").iterdir()).read_text()
    assert os.stat(spool).st_mode & 0o777 == 0o700
