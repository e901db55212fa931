"""The document about Choria's adapter, from end to end: nodes register, and their data is in the stream as printed.

The configuration is the printed one, with the address of the test's server in place of `js1.example.net:4222`. On
Jetlake the stream is made and shown by `jsm` as printed; nats-server does not know that dialect.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request

import pytest

from jetlake.choria.registration import content_of
from jetlake.client.schemas import problems, read
from tests.adapters.fleet import Stored
from tests.compatibility.server_process import EXECUTABLES, start_server_process
from tests.seeds.runner import Reader
from tests.seeds.transcript import DOCUMENTS, read_document

DOCUMENT = "choria_jetstream.md"
STREAM = "choria_fleet_metadata"
WAIT_S_MAX = 60.0

METADATA_BYTES = 4_100
"""What a node tells about itself: in base64, two documents with it are the 12 kB that are printed."""

CONNECTIONS = 20
"""Of the printed adapter: ten workers at each end."""


def printed(language):
    text = (DOCUMENTS / DOCUMENT).read_text()
    return text.partition(f"```{language}\n")[2].partition("```")[0]


class Machine:
    """Somebody's machine: runs commands of Jetlake, and ends them with the test."""

    def __init__(self, folder, url):
        self.folder = folder
        self.url = url
        self.processes = []

    def start(self, *words):
        log = self.folder / f"process{len(self.processes)}.log"
        with log.open("wb") as file:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "jetlake", *words],
                    stderr=file,
                    stdin=subprocess.DEVNULL,
                    env=os.environ | {"NATS_URL": self.url},
                )
            )
        return self.processes[-1], log

    def start_adapter(self):
        manifest = printed("puppet").replace("js1.example.net:4222", self.url.removeprefix("nats://"))
        (self.folder / "broker.pp").write_text(manifest)
        _, log = self.start("adapter", "run", "-c", str(self.folder / "broker.pp"), "--metrics-port", "0")
        wait_until(lambda: "metrics are at " in log.read_text(), log.read_text)
        page = log.read_text().partition("metrics are at ")[2].split()[0]

        def connections():
            text = urllib.request.urlopen(page, timeout=60).read().decode()
            return [line for line in text.splitlines() if line.startswith("jetlake_adapter_connections{")]

        wait_until(lambda: sum(line.endswith(" 1") for line in connections()) == CONNECTIONS, log.read_text)

    def start_node(self, name, data):
        path = self.folder / f"{name}.conf"
        path.write_text(
            f"identity = {name}\nregistration = file_content\nregistration_splay = false\n"
            f"plugin.choria.registration.file_content.data = {data}\n"
            "plugin.choria.registration.file_content.target = choria.discovery\n"
        )
        return self.start("agent", "run", "-c", str(path))

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("kind", EXECUTABLES)
def test_nodes_register_and_their_data_is_in_the_stream_as_printed(kind, tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    server = start_server_process(kind, folder, ["-js", "-sd", str(folder / "store")])
    machine, reader, stored = Machine(tmp_path, server.url), Reader(tmp_path, server.url), Stored(server.url)
    add, info = read_document(DOCUMENT)
    try:
        if kind == "jetlake":
            assert reader.follow(add) == ""
        else:
            stored.create(STREAM, "choria.node_metadata", max_age=7 * 24 * 3600 * 10**9)
        machine.start_adapter()
        # Random bytes do not become smaller.
        metadata = os.urandom(METADATA_BYTES)
        (tmp_path / "inventory.json").write_bytes(metadata)
        for count, name in enumerate(("web1.ldn.example.net", "web2.ldn.example.net"), start=1):
            _, log = machine.start_node(name, tmp_path / "inventory.json")
            wait_until(lambda: stored.count(STREAM) == count, log.read_text)  # noqa: B023
        if kind == "jetlake":
            assert reader.follow(info) == ""
        documents = stored.documents(STREAM)
    finally:
        stored.close()
        machine.close()
        server.stop()

    assert [document["sender"] for document in documents] == ["web1.ldn.example.net", "web2.ldn.example.net"]
    example, document = json.loads(printed("json")), documents[0]
    assert document.keys() - example.keys() == {"requestid"}
    assert example.keys() - document.keys() == set()
    assert (document["protocol"], document["sender"]) == (example["protocol"], example["sender"])
    for each in (example, document):
        assert time.strptime(each["time"], "%Y-%m-%dT%H:%M:%SZ")
    for each in documents:
        assert list(problems(each, read("choria.adapters.jetstream.v1.output"))) == []
        assert content_of(each["data"]) == metadata


def wait_until(condition, what):
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)
