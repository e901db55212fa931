"""A plan as people read it."""

from jetlake.iac.actual import Actual
from jetlake.iac.declaration import label_of
from jetlake.iac.plan import Change, Plan, Step
from jetlake.iac.render import render, shown
from tests.iac.servers import declared, planned

SECOND_NS = 1_000_000_000


def test_a_plan_shows_what_is_added_changed_replaced_and_removed():
    plan = Plan(
        project="shop",
        steps=(
            Step(
                action="create",
                key=("stream", "", "A"),
                label="stream",
                changes=(Change(field="max_age", after=86400 * SECOND_NS),),
            ),
            Step(
                action="update",
                key=("consumer", "A", "c"),
                label="consumer",
                changes=(
                    Change(field="ack_wait", before=30 * SECOND_NS, after=60 * SECOND_NS),
                    Change(field="metadata.a", before="x", after=None),
                    Change(field="metadata.b", before=None, after="y"),
                ),
            ),
            Step(
                action="replace",
                key=("stream", "", "B"),
                label="stream",
                changes=(Change(field="storage", before="file", after="memory", note="needs a new stream"),),
                destroys=("3 messages go",),
            ),
            Step(action="delete", key=("stream", "", "C"), label="stream", destroys=("1 messages go",)),
        ),
        unchanged=("stream D",),
        orphans=("stream E",),
    )

    lines = render(plan)

    assert [line.text for line in lines] == [
        "+ stream A",
        "    + max_age: 1d",
        "",
        "~ consumer A/c",
        "    ~ ack_wait: 30s → 1m",
        "    - metadata.a: x",
        "    + metadata.b: y",
        "",
        "-/+ stream B",
        "    ~ storage: file → memory  (needs a new stream)",
        "    ! 3 messages go",
        "",
        "- stream C",
        "    ! 1 messages go",
        "",
        "? stream E was made by shop and is no longer declared; --prune removes it",
        "",
        "1 to create, 1 to change, 1 to replace, 1 to remove, 1 unchanged; 2 of them destroy something.",
    ]
    assert [line.style for line in lines[:2]] == ["add", "add"]
    assert lines[9].style == "danger"


def test_an_empty_plan_says_so():
    assert [line.text for line in render(Plan(unchanged=("stream A",)))] == ["Nothing to do, 1 unchanged."]


def test_values_are_shown_as_they_would_be_written():
    assert shown("max_bytes", 1024**3) == "1GiB"
    assert shown("backoff", [SECOND_NS, 90 * SECOND_NS]) == "[1s, 1m30s]"
    assert shown("max_msgs", -1) == "unlimited"
    assert shown("description", "") == "''"
    assert shown("description", "a\n\x1b[31m") == r"'a\n\x1b[31m'"
    assert shown("mirror", {"name": "A"}) == "{name: A}"
    assert shown("subjects", [str(number) for number in range(30)]).endswith("19, and 10 more]")


def test_what_is_a_stream_to_the_server_has_the_words_of_the_file_that_declares_it(tmp_path):
    text = """
key_value: {sessions: {ttl: 1h, history: 3}}
object_stores: {files: {ttl: 1d}}
governors: {PUPPET: {capacity: 50, expires: 20m}}
"""
    plan = planned(declared(tmp_path, text), Actual())

    lines = [line.text for line in render(plan)]

    assert lines[:-1] == [
        "+ bucket sessions",
        "    + ttl: 1h",
        "    + history: 3",
        "",
        "+ object store files",
        "    + ttl: 1d",
        "",
        "+ governor PUPPET",
        "    + capacity: 50",
        "    + expires: 20m",
        "    + num_replicas: 1",
        "",
    ]


def test_a_bucket_that_is_removed_is_called_a_bucket():
    step = Step(action="delete", key=("stream", "", "KV_sessions"), label=label_of(("stream", "", "KV_sessions")))

    assert render(Plan(steps=(step,)))[0].text == "- bucket sessions"
