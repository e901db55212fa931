"""Shipped pipelines whose driver is killed three times, each time elsewhere: the tables are what they must be.

Those of fleets and devices are in `test_fleet_restarts` and `test_devices`.
"""

import json
import random
from collections import Counter

import pytest

from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines.runner import Runner
from tests.spark.pipelines.driver_kills import AFTER, BEFORE, die_at
from tests.spark.pipelines.shipped_crash_runner import small_batches
from tests.spark.pipelines.test_adapter import request
from tests.spark.pipelines.test_dead_letters import Letters, check

pytestmark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(3600)]

REQUESTS = 400
LINES = 1200
ROWS_PER_TRIGGER = 100
LETTERS_PER_TRIGGER = 30
"""Few, because three queries run side by side and each kill must find its own still at work."""


def finish(spark, lake, url, pipeline, settings=None):
    made = small_batches(pipeline, ROWS_PER_TRIGGER, settings)
    (state,) = Runner(spark, lake, url, once=True).run([made])
    assert (state.error, state.state) == ("", "finished")


def test_documents_are_published_and_kept_once_after_three_kills(spark, fresh_shore, tmp_path):
    shore, lake = fresh_shore, Lake(tmp_path / "lake")
    raw, output = shore.create("RAW"), shore.create("DOCUMENTS")
    for payload in [*map(request, range(REQUESTS)), b"no request"]:
        shore.publish(f"{raw}.discovery", payload)
    settings = {"stream": raw, "subjects": f"{raw}.>", "output": output, "topic": f"{output}.documents"}

    # The stream has the documents of the batch, and the table has not.
    die_at(shore.url, lake, "adapter", ROWS_PER_TRIGGER, "node_metadata", 0, BEFORE, settings)
    die_at(shore.url, lake, "adapter", ROWS_PER_TRIGGER, "node_metadata", 1, AFTER, settings)
    die_at(shore.url, lake, "adapter", ROWS_PER_TRIGGER, "node_metadata", 3, BEFORE, settings)
    finish(spark, lake, shore.url, "adapter", settings)

    wanted = [f"{number:032}" for number in range(REQUESTS)]
    read = spark.read.format("jetlake").options(url=shore.url, stream=output).load()
    published = [json.loads(row.data)["requestid"] for row in read.collect()]
    rows = lake.existing("node_metadata").to_arrow(["requestid"])["requestid"].to_pylist()
    assert sorted(published) == wanted
    assert sorted(rows) == wanted
    assert len(lake.existing("adapter_bad").to_arrow()) == 1


def test_dead_letters_are_counted_once_after_three_kills(spark, fresh_shore, tmp_path):
    letters, lake = Letters(450), Lake(tmp_path / "lake")
    letters.give_up(fresh_shore.url)

    die_at(fresh_shore.url, lake, "dead", LETTERS_PER_TRIGGER, "dead_reasons", 0, AFTER)
    die_at(fresh_shore.url, lake, "dead", LETTERS_PER_TRIGGER, "dead_letters", 1, BEFORE)
    die_at(fresh_shore.url, lake, "dead", LETTERS_PER_TRIGGER, "dead_trends", 2, AFTER)
    finish(spark, lake, fresh_shore.url, "dead")

    check(lake, letters)


def test_log_lines_are_counted_once_after_three_kills(spark, fresh_shore, tmp_path):
    shore, lake, chance = fresh_shore, Lake(tmp_path / "lake"), random.Random(4)
    shore.create("LOGS", subjects=["logs.>"])
    truth = Counter()
    for number in range(LINES):
        source, level = f"web{chance.randrange(3)}", chance.choice(("info", "error", "debug"))
        truth[source, level] += 1
        shore.publish(f"logs.{source}", f"{level.upper()} line {number}".encode())

    die_at(shore.url, lake, "logs", ROWS_PER_TRIGGER, "log_lines", 1, AFTER)
    die_at(shore.url, lake, "logs", ROWS_PER_TRIGGER, "log_rates", 4, AFTER)
    die_at(shore.url, lake, "logs", ROWS_PER_TRIGGER, "log_rates", 8, BEFORE)
    finish(spark, lake, shore.url, "logs")

    counted = Counter()
    for row in lake.existing("log_rates").to_arrow().to_pylist():
        counted[row["source"], row["level"]] += row["lines"]
    lines = lake.existing("log_lines").to_arrow(["source", "level", "message"]).to_pylist()
    assert counted == truth
    assert Counter((row["source"], row["level"]) for row in lines) == truth
    assert len({row["message"] for row in lines}) == LINES
