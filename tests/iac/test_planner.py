"""From what is declared and what a server has to steps: pure, so without a server."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.actual import Actual
from jetlake.iac.actual import ActualResource as Found
from tests.iac.servers import declared, planned, steps_of

SECOND_NS = 1_000_000_000


def server_with(*things):
    return Actual({found.key: found for found in things}, has_templates=False)


def stream(name, messages=0, **config):
    defaults = {"name": name, "subjects": [name], "retention": "limits", "storage": "file"}
    return Found(
        ("stream", "", name),
        {**defaults, **config},
        created="2025-01-01T00:00:00Z",
        messages=messages,
        size_bytes=messages * 100,
        first_time="2025-12-31T00:00:00Z" if messages else "",
    )


def consumer(owner, name, messages=0, **config):
    config = {"durable_name": name, "name": name, **config}
    return Found(("consumer", owner, name), config, messages=messages)


def test_what_is_not_there_is_created_in_order(tmp_path):
    text = """
    streams:
      COPY: {mirror: ORDERS, consumers: {reader: {ack_policy: none}}}
      ORDERS: {dead_letters: DEAD, consumers: {worker: {ack_policy: none}}}
    dead_letters: {DEAD: {}}
    """

    plan = planned(declared(tmp_path, text), server_with())

    assert steps_of(plan) == [
        "create dead letters DEAD",
        "create stream ORDERS",
        "create stream COPY",
        "create consumer COPY/reader",
        "create consumer ORDERS/worker",
    ]


def test_what_is_as_declared_needs_nothing(tmp_path):
    declaration = declared(tmp_path, "streams: {A: {max_age: 0s, consumers: {c: {ack_policy: none}}}}")

    plan = planned(declaration, server_with(stream("A"), consumer("A", "c", ack_policy="none", max_waiting=512)))

    assert (plan.steps, plan.unchanged) == ((), ("stream A", "consumer A/c"))


def test_a_field_that_is_no_longer_declared_goes_back_to_its_default(tmp_path):
    plan = planned(declared(tmp_path, "streams: {A: {}}"), server_with(stream("A", max_msgs=5)))

    (step,) = plan.steps
    assert [(change.field, change.before, change.after) for change in step.changes] == [("max_msgs", 5, -1)]
    assert (step.action, step.destroys) == ("update", ())


def test_what_limits_of_the_server_have_made_is_no_difference(tmp_path):
    found = server_with(
        stream("A", duplicate_window=SECOND_NS),
        consumer("A", "c", ack_policy="explicit", max_ack_pending=10, max_batch=5),
    )

    plan = planned(declared(tmp_path, "streams: {A: {consumers: {c: {ack_policy: explicit}}}}"), found)

    assert plan.is_empty


def test_what_is_left_to_the_server_is_sent_along_with_other_changes(tmp_path):
    found = server_with(stream("A", duplicate_window=SECOND_NS))

    (step,) = planned(declared(tmp_path, "streams: {A: {max_msgs: 5}}"), found).steps

    assert step.config == {"name": "A", "max_msgs": 5, "duplicate_window": SECOND_NS}


@pytest.mark.parametrize(
    ("declaration", "config"),
    [
        ("storage: memory", {}),
        ("retention: workqueue", {}),
        ("{}", {"retention": "workqueue"}),
        ("allow_msg_counter: true", {}),
        ("persist_mode: async", {}),
        ("deny_delete: false", {"deny_delete": True}),
        ("allow_msg_ttl: false", {"allow_msg_ttl": True}),
        ("mirror: B", {"subjects": [], "mirror": {"name": "C"}}),
        ("mirror: B", {}),
    ],
)
def test_what_cannot_change_in_place_is_replaced(tmp_path, declaration, config):
    inner = declaration if declaration == "{}" else f"{{{declaration}}}"

    plan = planned(declared(tmp_path, f"streams: {{A: {inner}}}"), server_with(stream("A", 3, **config)))

    (step,) = plan.steps
    assert (step.action, step.destroys) == ("replace", ("3 messages lost",))
    assert "needs a new stream" in {change.note for change in step.changes}


@pytest.mark.parametrize(
    ("declaration", "config"),
    [
        ("retention: interest", {"retention": "limits"}),
        ("max_age: 1h", {}),
        ("max_age: 1h", {"max_age": 7200 * SECOND_NS}),
        ("max_msgs: 2", {"max_msgs": 10}),
        ("max_bytes: 100", {}),
        ("max_msgs_per_subject: 1", {}),
        ("max_msgs: 2, discard: old", {"max_msgs": 2, "discard": "new"}),
        ("max_bytes: 100, discard: old", {"max_bytes": 100, "discard": "new"}),
        ("max_msgs: 2, discard: old", {"max_msgs": 1, "discard": "new"}),
        ("max_bytes: 200, discard: old", {"max_bytes": 100, "discard": "new"}),
    ],
)
def test_limits_that_delete_messages_are_named(tmp_path, declaration, config):
    plan = planned(declared(tmp_path, f"streams: {{A: {{{declaration}}}}}"), server_with(stream("A", 3, **config)))

    (step,) = plan.steps
    assert (step.action, len(step.destroys)) == ("update", 1)
    assert " go" in step.destroys[0]


@pytest.mark.parametrize(
    ("declaration", "messages", "config"),
    [
        ("max_msgs: 2", 0, {}),
        ("max_msgs: 3", 3, {}),
        ("max_msgs: 20", 3, {"max_msgs": 10}),
        ("max_age: 7d", 3, {}),
        ("max_age: 0s", 3, {"max_age": SECOND_NS}),
        ("max_bytes: 10MiB", 3, {}),
        ("retention: limits", 3, {"retention": "interest"}),
        ("sealed: true", 3, {}),
        ("discard: old", 3, {"discard": "new"}),
        ("max_msgs: 3, discard: old", 3, {"max_msgs": 3, "discard": "new"}),
        ("max_msgs: 5, discard: old", 3, {"max_msgs": 1, "discard": "new"}),
        ("max_msgs: 2, discard: new", 3, {"max_msgs": 2}),
        ("max_msgs: 1, discard: new", 3, {"max_msgs": 2, "discard": "new"}),
    ],
)
def test_limits_that_delete_nothing_are_not_destructive(tmp_path, declaration, messages, config):
    plan = planned(
        declared(tmp_path, f"streams: {{A: {{{declaration}}}}}"), server_with(stream("A", messages, **config))
    )

    (step,) = plan.steps
    assert (step.action, step.destroys) == ("update", ())


def test_a_mirror_that_is_no_longer_declared_becomes_a_stream_of_its_own(tmp_path):
    plan = planned(
        declared(tmp_path, "streams: {A: {}}"), server_with(stream("A", 3, subjects=[], mirror={"name": "B"}))
    )

    (step,) = plan.steps
    assert step.action == "update"
    assert "it becomes a stream of its own" in {change.note for change in step.changes}


@pytest.mark.parametrize(
    ("declaration", "config"),
    [
        ("ack_policy: explicit", {}),
        ("ack_policy: none, deliver_policy: new", {}),
        ("ack_policy: none, deliver_subject: out", {}),
        ("ack_policy: none", {"deliver_subject": "out"}),
        ("ack_policy: none, max_waiting: 5", {}),
        ("ack_policy: none, mem_storage: true", {}),
    ],
)
def test_a_consumer_that_cannot_change_in_place_is_replaced(tmp_path, declaration, config):
    declaration = declared(tmp_path, f"streams: {{A: {{consumers: {{c: {{{declaration}}}}}}}}}")

    plan = planned(declaration, server_with(stream("A"), consumer("A", "c", ack_policy="none", **config)))

    assert steps_of(plan) == ["replace consumer A/c"]
    assert plan.steps[0].destroys == ("what it has delivered and acknowledged is forgotten",)


@pytest.mark.parametrize(
    ("retention", "before", "after", "messages", "deletes"),
    [
        ("interest", ["a.>"], ["a.eu"], 3, True),
        ("interest", [], ["a.eu"], 3, True),
        ("interest", ["a.eu", "a.us"], ["a.us", "a.asia"], 3, True),
        ("interest", ["a.*"], ["a.eu", "b"], 3, True),
        ("interest", ["a.>"], ["a.eu"], 0, False),
        ("interest", ["a.eu"], ["a.*"], 3, False),
        ("interest", ["a.eu"], [], 3, False),
        ("limits", ["a.>"], ["a.eu"], 3, False),
        ("workqueue", ["a.>"], ["a.eu"], 3, False),
    ],
)
def test_filters_that_delete_messages_of_an_interest_stream_are_named(
    tmp_path, retention, before, after, messages, deletes
):
    declaration = f"consumers: {{c: {{ack_policy: explicit, filter_subjects: {after}}}}}"
    found = consumer("A", "c", messages, ack_policy="explicit", filter_subjects=before)

    plan = planned(
        declared(tmp_path, f"streams: {{A: {{retention: {retention}, {declaration}}}}}"),
        server_with(stream("A", messages, retention=retention), found),
    )

    (step,) = plan.steps
    assert (step.action, len(step.destroys)) == ("update", int(deletes))
    assert ("deletes messages" in {change.note for change in step.changes}) == deletes


def test_consumers_of_a_replaced_stream_are_made_again_and_others_are_named(tmp_path):
    declaration = declared(tmp_path, "streams: {A: {storage: memory, consumers: {c: {ack_policy: none}}}}")

    plan = planned(declaration, server_with(stream("A", 3), consumer("A", "c"), consumer("A", "x")))

    assert steps_of(plan) == ["replace stream A", "create consumer A/c"]
    assert plan.steps[0].destroys == (
        "3 messages lost",
        "what was delivered is forgotten by 1 consumer: c",
        "1 undeclared consumer lost: x",
    )
    assert plan.steps[1].notes == ("it goes with its stream, and is made again",)


def test_an_undeclared_consumer_of_a_replaced_stream_goes_with_it_and_is_not_pruned_again(tmp_path):
    mark = {"jetlake.iac": "shop"}
    declaration = declared(tmp_path, "project: shop\nstreams: {A: {storage: memory}, B: {}}")
    found = server_with(
        stream("A", metadata=mark),
        consumer("A", "extra", metadata=mark),
        stream("B", metadata=mark),
        consumer("B", "extra", metadata=mark),
    )

    plan = planned(declaration, found, prune=True)

    assert steps_of(plan) == ["replace stream A", "delete consumer B/extra"]
    assert "1 undeclared consumer lost: extra" in plan.steps[0].destroys


def test_a_field_of_a_newer_server_stays_as_it_is_in_an_update(tmp_path):
    found = server_with(
        stream("A", of_next_year={"on": True}), consumer("A", "c", ack_policy="none", also_of_next_year=5)
    )
    text = "streams: {A: {max_msgs: 5, consumers: {c: {ack_policy: none, description: d}}}}"

    changed, moved = planned(declared(tmp_path, text), found).steps
    replaced = planned(declared(tmp_path, "streams: {A: {storage: memory}}"), found).steps[0]

    assert changed.config["of_next_year"] == {"on": True}
    assert moved.config["also_of_next_year"] == 5
    assert "of_next_year" not in replaced.config


def test_a_project_marks_what_it_makes_and_what_it_finds(tmp_path):
    declaration = declared(tmp_path, "project: shop\nstreams: {A: {}, B: {}}")

    made, found = planned(declaration, server_with(stream("B", metadata={"_nats.ver": "2"}))).steps

    assert made.config["metadata"] == {"jetlake.iac": "shop"}
    assert found.config["metadata"] == {"_nats.ver": "2", "jetlake.iac": "shop"}
    assert (found.action, found.changes[0].field, found.changes[0].after) == ("update", "metadata.jetlake.iac", "shop")


def test_what_another_project_has_made_is_refused_unless_taken_over(tmp_path):
    declaration = declared(tmp_path, "project: shop\nstreams: {A: {}}")
    found = server_with(stream("A", metadata={"jetlake.iac": "other"}))

    with pytest.raises(ConfigurationError, match="stream A belongs to project 'other'"):
        planned(declaration, found)
    assert steps_of(planned(declaration, found, take_over=True)) == ["update stream A"]


def test_only_what_the_project_has_made_is_pruned_in_reverse_order(tmp_path):
    mark = {"jetlake.iac": "shop"}
    found = server_with(
        stream("OLD", 5, metadata=mark),
        stream("COPY", subjects=[], mirror={"name": "OLD"}, metadata=mark),
        consumer("OLD", "gone_with_it", metadata=mark),
        stream("KEPT", metadata=mark),
        consumer("KEPT", "extra", metadata=mark),
        consumer("KEPT", "manual"),
        stream("MANUAL"),
        stream("OTHERS", metadata={"jetlake.iac": "other"}),
    )
    declaration = declared(tmp_path, "project: shop\nstreams: {KEPT: {}}")

    kept, pruned = planned(declaration, found), planned(declaration, found, prune=True)

    assert (kept.steps, kept.orphans) == ((), ("stream OLD", "stream COPY", "consumer KEPT/extra"))
    assert kept.has_differences
    assert steps_of(pruned) == ["delete consumer KEPT/extra", "delete stream COPY", "delete stream OLD"]
    assert pruned.steps[-1].destroys == ("5 messages lost", "1 undeclared consumer lost: gone_with_it")


def test_nothing_is_pruned_without_a_project(tmp_path):
    with pytest.raises(ConfigurationError, match="without a project"):
        planned(declared(tmp_path, "streams: {A: {}}"), server_with(), prune=True)


def test_a_stream_lets_its_subjects_go_before_another_takes_them(tmp_path):
    declaration = declared(tmp_path, "streams: {NEW: {subjects: [orders.us]}, ALL: {subjects: [orders.eu]}}")

    plan = planned(declaration, server_with(stream("ALL", subjects=["orders.>"])))

    assert steps_of(plan) == ["update stream ALL", "create stream NEW"]


def test_a_pruned_stream_goes_before_another_takes_its_subjects(tmp_path):
    found = server_with(stream("OLD", subjects=["orders.>"], metadata={"jetlake.iac": "shop"}))
    declaration = declared(tmp_path, "project: shop\nstreams: {NEW: {subjects: [orders.>]}}")

    assert steps_of(planned(declaration, found, prune=True)) == ["delete stream OLD", "create stream NEW"]
    with pytest.raises(ConfigurationError, match="takes subjects that stream OLD of the server has"):
        planned(declaration, found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "consumers: [{stream: A, name: c, ack_policy: none}]",
            "needs stream A, which is neither declared nor on the server",
        ),
        ("streams: {A: {dead_letters: DEAD}}", "needs stream DEAD"),
        ("streams: {A: {mirror: B}, B: {mirror: A}}", "in a circle"),
        ("streams: {A: {subjects: [a.>]}, B: {subjects: [a.b]}}", "take the same subjects"),
        ("templates: {t: {subjects: [a.*], max_streams: 3}}", "this server has no templates"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_done(tmp_path, text, message):
    with pytest.raises(ConfigurationError) as refused:
        planned(declared(tmp_path, text), server_with())

    assert message in str(refused.value)


def test_a_template_that_changes_is_replaced(tmp_path):
    found = Actual(has_templates=True)
    found.found["template", "", "t"] = Found(
        ("template", "", "t"), {"name": "t", "max_streams": 3, "config": {"subjects": ["a.*"]}}
    )

    same = planned(declared(tmp_path, "templates: {t: {subjects: [a.*], max_streams: 3}}"), found)
    other = planned(declared(tmp_path, "templates: {t: {subjects: [b.*], max_streams: 3}}"), found)

    assert same.is_empty
    assert steps_of(other) == ["replace template t"]
    assert other.steps[0].destroys == ("the streams made from it go with it",)


def test_a_bucket_of_a_client_that_allows_lifetimes_is_no_difference(tmp_path):
    found = stream(
        "KV_b",
        subjects=["$KV.b.>"],
        allow_rollup_hdrs=True,
        allow_direct=True,
        deny_delete=True,
        discard="new",
        max_msgs_per_subject=1,
        allow_msg_ttl=True,
    )

    assert planned(declared(tmp_path, "key_value: {b: {}}"), server_with(found)).is_empty
    (step,) = planned(declared(tmp_path, "key_value: {b: {history: 2}}"), server_with(found)).steps
    assert step.config["allow_msg_ttl"] is True
