"""`jetlake events` against both servers."""

import json
import os
import subprocess
import sys
import threading

import pytest

from jetlake.cli.events import words

EVENT_S_MAX = 60.0


@pytest.fixture
def changing(done, url):
    """Make and delete streams, again and again, until the test ends."""
    stop = threading.Event()

    def change():
        while not stop.is_set():
            for line in (["stream", "add", "EVENTS", "--defaults"], ["stream", "rm", "EVENTS", "--force"]):
                subprocess.run(
                    [sys.executable, "-m", "jetlake", *line],
                    check=True,
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                    timeout=EVENT_S_MAX,
                    env=os.environ | {"NATS_URL": url},
                )

    thread = threading.Thread(target=change)
    thread.start()
    yield
    stop.set()
    thread.join()


def test_advisories_are_told_in_words(done, changing):
    text = done("events", "--js-advisory", "--filter", "stream_action", "--count", "2")

    assert sorted(line.partition(" ")[2] for line in text.splitlines()) == [
        "[stream action] EVENTS: create",
        "[stream action] EVENTS: delete",
    ]


def test_json_is_what_the_server_sent(done, changing):
    line = done("events", "--filter", "stream_action", "--count", "1", "--json")

    assert json.loads(line)["type"] == "io.nats.jetstream.advisory.v1.stream_action"


def test_wrong_expression_is_wrong_usage(cli):
    assert cli("events", "--filter", "(").exit_code == 2


@pytest.mark.parametrize(
    ("kind", "event", "sentence"),
    [
        (
            "max_deliver",
            {"stream": "S", "consumer": "c", "stream_seq": 7, "deliveries": 3},
            "c of S gave up message 7 after 3 deliveries",
        ),
        ("consumer_pause", {"stream": "S", "consumer": "c", "paused": False}, "c of S: goes on"),
        (
            "consumer_ack",
            {"stream": "S", "consumer": "c", "stream_seq": 7, "deliveries": 1, "ack_time": 1_500_000},
            "c of S: message 7 was acknowledged after 1.5ms, delivery 1",
        ),
        ("something_new", {"type": "x", "id": "y", "stream": "S", "weight": 3}, "stream: S, weight: 3"),
    ],
)
def test_events_become_sentences(kind, event, sentence):
    assert words(kind, event) == sentence
