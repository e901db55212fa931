"""The post about the API of March 2020: its requests and its `nats` commands."""

import asyncio
import json
import re

import pytest

import jetlake
from jetlake.client.preview import PreviewClient
from tests.conftest import REQUEST_S_MAX
from tests.seeds.runner import Reader
from tests.seeds.transcript import DOCUMENTS, Step, read_document

DOCUMENT = "nats_messaging_part_7.md"

ADD = 'nats str add LOGS --subjects "logs.>" '

COMMANDS = [
    "nats req '$JS.ENABLED' '.'",
    "nats req '$JS.ENABLED' '.'",
    "nats req '$JS.INFO' '.'",
    "nats str add LOGS",
    "nats stream info LOGS -j",
    "nats stream rm LOGS -f",
    "nats stream info LOGS",
    "cat LOGS.json",
    "cat LOGS.json | nats req '$JS.STREAM.LOGS.CREATE'",
    "nats str info LOGS",
    "nats consumer info LOGS TAIL -j> LOGS_TAIL.json",
    "nats consumer rm LOGS TAIL -f",
    "cat LOGS_TAIL.json",
    "cat LOGS_TAIL.json|nats request '$JS.STREAM.LOGS.CONSUMER.TAIL.CREATE'",
    "nats stream edit LOGS --config LOGS.json",
]
"""Every command that is printed; of the fourth, only the beginning. The block in Terraform's language is no command:
`jetlake plan` reads it, see `tests/iac/test_terraform.py`."""

WITHOUT_JETSTREAM = 1
"""The step that shows what happens where JetStream is off."""

YESTERDAY_STREAM = {"name": "LOGS", "subjects": ["logs.>"], "max_age": 86_400 * 10**9, "max_msgs": -1}
YESTERDAY_CONSUMER = {
    "stream_name": "LOGS",
    "config": {"delivery_subject": "out.tail", "durable_name": "TAIL", "deliver_all": True, "ack_policy": "none"},
}
"""What the reader has from the post of the day before."""


@pytest.fixture
def server():
    with jetlake.Server(jetstream=True) as server:
        yield server


def steps_of_document() -> list[Step]:
    steps = read_document(DOCUMENT)
    assert [step.command for step in steps if not step.command.startswith(ADD)] == COMMANDS[:3] + COMMANDS[4:]
    assert steps[3].command.startswith(ADD)
    return steps


@pytest.mark.slow
def test_every_command_is_run_as_printed(server, tmp_path):
    steps = steps_of_document()
    reader = Reader(tmp_path, server.url)
    ask(server.url, "$JS.STREAM.LOGS.CREATE", YESTERDAY_STREAM)

    for number, step in enumerate(steps):
        if number == WITHOUT_JETSTREAM:
            continue
        if step.command.startswith("nats consumer info"):
            ask(server.url, "$JS.STREAM.LOGS.CONSUMER.TAIL.CREATE", YESTERDAY_CONSUMER)
        if step.command.startswith("nats stream edit"):
            file = reader.work / "LOGS.json"
            file.write_text(file.read_text().replace('"max_bytes": -1', '"max_bytes": 10737418240'))
        assert reader.follow(step) == "", f"line {step.line}: {step.command}"

    assert json.loads(ask(server.url, "$JS.STREAM.LOGS.INFO"))["config"]["max_bytes"] == 10 * 2**30
    tail = json.loads(ask(server.url, "$JS.STREAM.LOGS.CONSUMER.TAIL.INFO"))
    assert tail["config"] == json.loads((reader.work / "LOGS_TAIL.json").read_text())["config"]


def test_without_jetstream_a_request_times_out(tmp_path):
    step = steps_of_document()[WITHOUT_JETSTREAM]

    with jetlake.Server(jetstream=False) as server:
        assert Reader(tmp_path, server.url).follow(step) == ""


def test_a_consumer_is_made_of_a_file(server, tmp_path):
    command = "nats consumer create --config LOGS_TAIL.json"
    assert f"`{command}`" in (DOCUMENTS / DOCUMENT).read_text()
    reader = Reader(tmp_path, server.url)
    ask(server.url, "$JS.STREAM.LOGS.CREATE", YESTERDAY_STREAM)
    (reader.work / "LOGS_TAIL.json").write_text(json.dumps(YESTERDAY_CONSUMER))

    done = reader.run(command)

    assert done.returncode == 0, done.stdout
    assert "Information for Consumer LOGS > TAIL" in done.stdout


def test_every_subject_of_the_table_answers(server):
    table = re.findall(r"^\|`(\$JS\.[^`]+)`\|", (DOCUMENTS / DOCUMENT).read_text(), re.MULTILINE)
    assert len(table) == 14
    config = {**YESTERDAY_STREAM, "storage": "memory"}
    ephemeral = {"stream_name": "LOGS", "config": {"ack_policy": "explicit", "deliver_all": True}}
    bodies = {"CREATE": config, "UPDATE": config}
    # Deletions come last, so that all others have something to work on.
    table.sort(key=lambda subject: (subject.count(".") == 3, subject.endswith("STREAM.<stream>.DELETE")))
    table.sort(key=lambda subject: subject.endswith("DELETE") and "MSG" not in subject)
    table.sort(key=lambda subject: not subject.endswith("<stream>.CREATE"))

    for subject in table:
        body = bodies.get(subject.rpartition(".")[2])
        if "CONSUMER" in subject:
            body = ephemeral if "EPHEMERAL" in subject else YESTERDAY_CONSUMER
        if subject.endswith("MSG.DELETE"):
            assert ask(server.url, "logs.x", {}) == "+OK"
            body = 1
        if "INFO" in subject or "LIST" in subject or "CONSUMERS" in subject:
            body = None
        answer = ask(server.url, subject.replace("<stream>", "LOGS").replace("<consumer>", "TAIL"), body)
        assert not answer.startswith("-ERR"), (subject, answer)


def ask(url: str, subject: str, body: object = None) -> str:
    """Send a request and return the answer."""

    async def request() -> str:
        async with PreviewClient(url) as client:
            encoded = b"" if body is None else json.dumps(body).encode()
            return (await client.request(subject, encoded, timeout_s=REQUEST_S_MAX)).data.decode()

    return asyncio.run(request())
