"""What the test suites of client libraries found: each test is the smallest case of one of their failures.

The suites stay with their authors. A case stands here when nats-server passed it and Jetlake once did not, so that it
can not come back unseen; the name of the suite is in the docstring.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compatibility import consumers, jetstream
from tests.compatibility.consumers import EXPIRES_NS, NO_MESSAGES, Puller, create, sequences, statuses
from tests.compatibility.jetstream import MILLISECOND_NS
from tests.compatibility.server_process import run_to_end

js, js_server, stream = consumers.js, jetstream.js_server, jetstream.stream

HEARTBEAT_NS = 100 * MILLISECOND_NS

# A life with time for heartbeats though the server comes late with some of them.
IDLE_NS = 40 * HEARTBEAT_NS

# How many consumers a stream has at most that names no number itself.


def test_pull_that_does_not_wait_ends_at_its_heartbeat_while_too_much_is_unacknowledged(
    js: Puller, stream: str
) -> None:
    """From nats.py: `fetch` with a heartbeat at a consumer with few places for unacknowledged messages."""
    consumer = create(js, stream, "abcd", max_ack_pending=2)

    answers = consumer.pull({"batch": 9, "expires": EXPIRES_NS, "idle_heartbeat": HEARTBEAT_NS, "no_wait": True})

    assert sequences(answers[:-1]) == [1, 2]
    assert answers[-1].headers == NO_MESSAGES
    assert consumer.numbers().waiting == 0


def test_pull_that_does_not_wait_gets_nothing_more_after_it_has_ended(js: Puller, stream: str) -> None:
    """From nats.py: what is acknowledged afterwards makes place for the next `fetch`, not for the one before."""
    consumer = create(js, stream, "abcd", max_ack_pending=2)
    impatient = {"batch": 9, "expires": EXPIRES_NS, "idle_heartbeat": HEARTBEAT_NS, "no_wait": True}
    inbox = consumer.request(impatient)
    *messages, _ = consumer.rest(inbox)

    consumer.acknowledge_each(messages)

    assert consumer.is_silent(inbox)
    assert sequences(consumer.pull(impatient)[:-1]) == [3, 4]


def test_pull_that_does_not_wait_ends_at_the_heartbeat_of_another(js: Puller, stream: str) -> None:
    consumer = create(js, stream, "abcd", max_ack_pending=2)
    impatient = consumer.request({"batch": 9, "expires": EXPIRES_NS, "no_wait": True})
    messages = consumer.answers(impatient, 2)

    patient = consumer.request({"batch": 1, "expires": EXPIRES_NS, "idle_heartbeat": HEARTBEAT_NS})

    assert sequences(messages) == [1, 2]
    assert statuses(consumer.answers(patient, 1)) == ["100 Idle Heartbeat"]
    assert consumer.js.next_at(impatient).headers == NO_MESSAGES


def test_pull_that_does_not_wait_but_got_nothing_waits_until_it_expires(js: Puller, stream: str) -> None:
    consumer = create(js, stream)

    answers = consumer.pull({"batch": 2, "expires": IDLE_NS, "idle_heartbeat": HEARTBEAT_NS, "no_wait": True})

    assert "100 Idle Heartbeat" in statuses(answers)
    assert answers[-1].status == "408 Request Timeout"


@pytest.mark.parametrize("name", ["", "jetstream"])
def test_store_folder_that_is_a_file_is_fatal(server_kind: str, tmp_path: Path, name: str) -> None:
    """From the server library of nats.py: either the given folder or the one inside it is a file."""
    folder = tmp_path / "store"
    if name:
        folder.mkdir()
    (folder / name).write_text("")

    completed = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(folder)], tmp_path)

    assert completed.returncode == 1
    assert "[FTL] Can't start JetStream: storage directory is not a directory" in completed.stderr
