"""The pipeline `dead`: dead letters into tables, compared with a plain count, and redriven from there."""

import asyncio
import dataclasses
import json
import random
import re
import shlex
import subprocess
import sys
from collections import Counter

import nats
import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.catalog import Catalog
from jetlake.spark.pipelines.dead_report import redrive_command, report
from jetlake.spark.pipelines.runner import Runner
from jetlake.spark.pipelines.sections import Rows, Tables
from tests.cluster import start_cluster
from tests.spark.standalone import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

COUNT = 150
WORKERS = (("JOBS", "worker"), ("JOBS", "mailer"), ("PAY", "teller"))
REASONS = ("max_deliver", "order {} not found", "card 4711 refused for user {}")


class Letters:
    """Messages that the workers of two streams give up, and what must be in the tables."""

    def __init__(self, count=COUNT, seed=5):
        chance = random.Random(seed)
        self.messages = []
        self.causes, self.subjects = Counter(), Counter()
        for number in range(1, count + 1):
            stream, consumer = chance.choice(WORKERS)
            reason = chance.choice(REASONS).format(number)
            subject = f"{stream.lower()}.kind{chance.randrange(4)}"
            self.messages.append((stream, consumer, reason, subject))
            self.causes[stream, consumer, re.sub(r"\d+", "#", reason)] += 1
            self.subjects[stream, subject] += 1

    def create(self, connection, replicas=1):
        streams = Streams(connection)
        streams.ask("STREAM.CREATE.DEAD", {"name": "DEAD", "subjects": ["dead.>"], "num_replicas": replicas})
        for name in ("JOBS", "PAY"):
            config = {"name": name, "subjects": [f"{name.lower()}.>"], "num_replicas": replicas}
            streams.ask(f"STREAM.CREATE.{name}", config | {"metadata": {"jetlake.dead_letters": "DEAD"}})

    def give_up(self, url):
        """Have workers of a Jetlake server give the messages up, each with its reason."""
        connection = RawConnection(ConnectionSettings(url=url, name="test"))
        self.create(connection)
        for _, consumer, reason, subject in self.messages:
            answer = connection.request(subject, json.dumps({"by": consumer, "reason": reason}).encode()).json()
            assert "error" not in answer
        asyncio.run(self._work(url))
        connection.request("dead.nothing", b"no letter")
        connection.close()

    async def _work(self, url):
        client = await nats.connect(url)
        for stream, consumer in WORKERS:
            subscription = await client.jetstream().pull_subscribe(f"{stream.lower()}.>", consumer)
            waiting = sum(message[0] == stream for message in self.messages)
            while waiting:
                for message in await subscription.fetch(min(waiting, 100), timeout=60):
                    wanted = json.loads(message.data)
                    answer = f"+TERM {wanted['reason']}" if wanted["by"] == consumer else "+ACK"
                    await client.request(message.reply, answer.encode(), timeout=60)
                    waiting -= 1
        await client.close()

    def publish(self, url, replicas):
        """Store the letters as they are, on a server that has no dead letters of its own."""
        connection = RawConnection(ConnectionSettings(url=url, name="test"))
        self.create(connection, replicas)
        for number, (stream, consumer, reason, subject) in enumerate(self.messages, 1):
            said = {"Reason": reason, "Stream": stream, "Sequence": number, "Subject": subject, "Consumer": consumer}
            lines = "".join(f"Jetlake-Dead-{name}: {value}\r\n" for name, value in said.items())
            block = f"NATS/1.0\r\n{lines}Jetlake-Dead-Deliveries: 1\r\n\r\n"
            answer = connection.request(f"dead.{stream}.{consumer}.{subject}", b"", headers=block.encode()).json()
            assert "error" not in answer
        connection.request("dead.nothing", b"no letter")
        connection.close()


def run(spark, lake, url, rows_per_trigger=1000):
    made = Catalog().find("dead")
    options = {"maxRowsPerTrigger": str(rows_per_trigger)}
    given = made.inputs["messages"]
    made = dataclasses.replace(made, inputs={"messages": dataclasses.replace(given, options=options)})
    (state,) = Runner(spark, lake, url, once=True).run([made])
    assert (state.error, state.state) == ("", "finished")


def rows(lake, table):
    return lake.existing(table).to_arrow().to_pylist()


def check(lake, letters):
    assert len(rows(lake, "dead_letters")) == len(letters.messages)
    assert sorted(row["letter"] for row in rows(lake, "dead_letters")) == list(range(1, len(letters.messages) + 1))
    found = {(row["stream"], row["consumer"], row["cause"]): row["letters"] for row in rows(lake, "dead_reasons")}
    assert found == letters.causes
    assert {(row["stream"], row["subject"]): row["letters"] for row in rows(lake, "dead_offenders")} == letters.subjects
    trends = Counter()
    for row in rows(lake, "dead_trends"):
        trends[row["stream"], row["consumer"]] += row["letters"]
    expected = Counter()
    for (stream, consumer, _), count in letters.causes.items():
        expected[stream, consumer] += count
    assert trends == expected
    (bad,) = rows(lake, "dead_bad")
    assert "not a dead letter" in bad["reason"]


def test_letters_are_counted_by_cause_subject_and_time_and_redriven_from_the_table(spark, fresh_shore, tmp_path):
    letters = Letters()
    letters.give_up(fresh_shore.url)
    lake = Lake(tmp_path / "lake")

    run(spark, lake, fresh_shore.url, rows_per_trigger=80)

    check(lake, letters)
    redrive_one_cause(fresh_shore.url, lake, letters)


def redrive_one_cause(url, lake, letters):
    """Run the command that the report prints for a cause, and see where the messages are."""
    sections = report(Tables(lake, ["dead_letters", "dead_reasons", "dead_offenders", "dead_trends"]))
    printed = [
        part.rows
        for section in sections
        for part in section.parts
        if isinstance(part, Rows) and part.title == "Redrive"
    ]
    chosen = next(row for row in rows(lake, "dead_reasons") if (row["stream"], row["consumer"]) == ("PAY", "teller"))
    command = redrive_command(str(lake.folder / "dead_letters"), chosen)
    assert (chosen["letters"], command) in [tuple(row) for row in printed[0]]

    connection = RawConnection(ConnectionSettings(url=url))
    before = Streams(connection).state("PAY").messages
    connection.close()
    arguments = shlex.split(command)[1:]
    first = CliRunner().invoke(create(), [*arguments, "--json", "--server", url])
    again = CliRunner().invoke(create(), [*arguments, "--json", "--server", url])

    assert first.exit_code == 0, first.output
    assert first.stdout.count('"sequence"') == chosen["letters"]
    assert again.stdout.strip() == "[]"
    connection = RawConnection(ConnectionSettings(url=url))
    assert Streams(connection).state("PAY").messages == before + chosen["letters"]
    assert Streams(connection).state("DEAD").messages == len(letters.messages) + 1 - chosen["letters"]
    connection.close()


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_letters_in_a_cluster_of_nats_servers_are_counted(spark, tmp_path):
    letters = Letters()
    lake = Lake(tmp_path / "lake")

    with start_cluster(tmp_path / "cluster") as cluster:
        letters.publish(cluster.urls[0], 3)
        run(spark, lake, cluster.url, rows_per_trigger=120)

    check(lake, letters)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_letters_are_counted_on_a_cluster_of_two_workers(fresh_shore, tmp_path):
    letters = Letters()
    letters.give_up(fresh_shore.url)
    lake = Lake(tmp_path / "lake")
    command = [sys.executable, "-m", "jetlake", "pipeline", "run", "dead", "--once", "--server", fresh_shore.url]

    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        flags = cluster.flags(spark__sql__shuffle__partitions="2")
        arguments = [*command, "--lake", str(lake.folder), *flags]
        ended = subprocess.run(arguments, capture_output=True, text=True, timeout=5000, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr[-3000:]
    check(lake, letters)


def test_what_to_redrive_is_named_in_one_way():
    for arguments in (
        ["1", "--all"],
        [],
        ["--all", "--from-table", "x"],
        ["--cause", "x", "--all"],
        ["1", "--stream", "A"],
    ):
        refused = CliRunner().invoke(create(), ["dead", "redrive", "DEAD", *arguments])
        assert refused.exit_code == 2, arguments


def test_a_table_that_is_not_there_is_refused(fresh_shore, tmp_path):
    Letters(1).give_up(fresh_shore.url)
    where = ["--from-table", str(tmp_path / "nothing"), "--server", fresh_shore.url]

    refused = CliRunner().invoke(create(), ["dead", "redrive", "DEAD", *where])

    assert refused.exit_code == 1
    assert "there is no table nothing" in refused.output
