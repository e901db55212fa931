"""The pipeline `fleet`: its tables say what a simulated fleet really did, whatever comes late, twice or broken.

Drivers that are killed, and clusters, are in `test_fleet_restarts`.
"""

import pytest

from jetlake.simulation.fleet import Fleet, FleetOptions
from jetlake.spark.pipelines import catalog
from jetlake.spark.pipelines.state import PipelineFiles
from tests.spark.pipelines.fleet_truth_check import differences

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

START_S = 1_767_225_600


def simulate(**options):
    """Return the messages of a fleet and what really happened."""
    fleet = Fleet(FleetOptions(seed=5, start_s=START_S, restarts_per_hour=3, crashes_per_hour=3, **options))
    pairs = [(event.subject, event.payload) for event in fleet.events()]
    return pairs, fleet.truth.as_json()


def test_the_tables_say_what_the_fleet_did_though_events_come_late_and_twice(stream, lake, run_once, rows_in):
    pairs, truth = simulate(nodes=40, seconds=1800, late_share=0.1, duplicate_share=0.1)
    third = len(pairs) // 3
    pipeline = catalog.shipped("fleet", "fleet", {})
    for part in (pairs[:third], pairs[third : 2 * third]):
        stream.publish_all(part, seconds=60)
    run_once(pipeline)
    # As if the process had died after the commits of all tables and before Spark's.
    commits = PipelineFiles(lake.folder, "fleet").checkpoint("fleet.changes") / "commits"
    for path in [commits / "1", commits / ".1.crc"]:
        path.unlink(missing_ok=True)
    stream.publish_all([*pairs[2 * third :], ("choria.machine.odd", b"no json")], seconds=60)
    (state,) = run_once(pipeline)

    assert differences(lake, truth) == []
    assert [query.name for query in state.queries] == ["fleet.changes"]
    assert state.queries[0].batch == 2
    assert rows_in("fleet_bad", "reason", "subject", "CAST(data AS STRING)") == [
        ("the payload is not JSON", "choria.machine.odd", "no json")
    ]
