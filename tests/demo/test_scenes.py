"""Every scene that needs no Spark holds against a real server, and notices when something is wrong."""

import pytest

from jetlake.demo.run import play
from jetlake.demo.scenes import SCENES
from tests.demo.conftest import SMALLEST

BY_NAME = {script.name: script for script in SCENES}


@pytest.mark.timeout(180)
def test_everything_that_the_scenes_claim_holds(stage, display):
    scripts = [script for script in SCENES if script.name != "pipelines"]

    report = play(stage, display, scripts)

    assert (report.failed, report.failure) == ("", "")
    assert display.begun == display.ended == [script.name for script in scripts]
    assert all(scene.checks and scene.rows for scene in report.scenes)
    assert stage.truths["fleet"]["counts"]["registration"] > 0
    assert stage.truths["devices"]["sessions"] > 0


def test_query_notices_an_order_that_nobody_published_in_the_demo(stage, display):
    pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    play(stage, display, [BY_NAME["streams"]])
    stage.with_api(lambda api: api.ask("orders.at", b'{"order": 7, "country": "at", "amount": 1}'))

    report = play(stage, display, [BY_NAME["sql"]])

    assert report.failed == "SQL over a stream"
    assert "orders counted: expected 1000, found 1001" in report.failure


def test_fleet_notices_a_registration_too_many(stage, display):
    stage.create_stream("CHORIA_REGISTRATION", "choria.node_metadata")
    stage.with_api(lambda api: api.ask("choria.node_metadata", b"{}"))
    stage.with_api(lambda api: api.request("STREAM.UPDATE.CHORIA_REGISTRATION", PLAIN))

    report = play(stage, display, [BY_NAME["fleet"]])

    assert report.failed == "A fleet of nodes"
    assert "messages in CHORIA_REGISTRATION as simulated" in report.failure


PLAIN = {"name": "CHORIA_REGISTRATION", "subjects": ["choria.node_metadata"], "allow_direct": False}
"""As the scene creates it: a stream that is there and is the same is no error."""


def test_server_has_everything_after_it_was_away(stage, display):
    play(stage, display, [BY_NAME["streams"]])

    stage.stop_server()
    stage.start_server()

    assert stage.count_messages("ORDERS", 1000) == 1000


@pytest.mark.parametrize("seconds", [1, 30, 3600])
def test_sizes_stay_within_their_limits_however_long_the_demo_is(seconds):
    scale = type(SMALLEST)(seconds)

    assert 20 <= scale.count(4, 20, 2_000) <= 2_000
    assert scale.fleet_s + scale.devices_s + scale.speed_s + scale.crash_s <= seconds
