"""Plans carried out on real servers of both kinds."""

from datetime import UTC, datetime

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.actual import read_actual
from jetlake.iac.executor import carry_out, check_allowed
from tests.iac.servers import actual_of, ask, declared, planned, publish, request, steps_of

SECOND_NS = 1_000_000_000

EVERYTHING = """
project: shop
defaults: {consumer: {ack_policy: explicit}}
streams:
  ORDERS:
    subjects: [orders.>]
    max_age: 30d
    max_bytes: 10MiB
    compression: s2
    metadata: {team: core}
    dead_letters: DEAD
    consumers:
      worker: {backoff: [1s, 5s], max_deliver: 5, filter_subjects: [orders.new, orders.paid]}
      pushed: {deliver_subject: push.orders, max_ack_pending: 50, idle_heartbeat: 5s, flow_control: true}
  COPY: {mirror: ORDERS}
  ALL: {sources: [{name: ORDERS, filter_subject: orders.eu}], subject_delete_marker_ttl: 10s}
  QUEUE: {retention: workqueue, storage: memory, consumers: {only: {}}}
  OVER: {sealed: true, subjects: [over.>]}
dead_letters: {DEAD: {max_age: 7d}}
key_value:
  sessions: {history: 5, ttl: 1h}
  copied: {sources: [sessions]}
object_stores: {files: {max_bytes: 1MiB}}
"""


def carried_out(server, declaration, **options):
    done = []
    plan = planned(declaration, actual_of(server), **options)
    outcome = ask(server, lambda api: carry_out(api, plan, done.append, datetime.now(UTC)))
    assert list(done) == outcome.done
    return outcome


def test_everything_is_made_and_then_there_is_nothing_to_do(server, tmp_path):
    declaration = declared(tmp_path, EVERYTHING)

    outcome = carried_out(server, declaration)

    assert (outcome.failed, outcome.differs) == (None, [])
    again = planned(declaration, actual_of(server))
    assert (again.steps, len(again.unchanged)) == ((), len(declaration.resources))


def test_buckets_are_those_of_a_client(server, tmp_path):
    """A client of the ecosystem finds the bucket and can use it."""
    carried_out(server, declared(tmp_path, "key_value: {b: {history: 3}}\nobject_stores: {o: {}}"))

    async def work(api):
        js = api.connection.jetstream()
        bucket = await js.key_value("b")
        await bucket.put("k", b"v")
        status = await bucket.status()
        store = await js.object_store("o")
        await store.put("f", b"data")
        return (await bucket.get("k")).value, status.history, (await store.get("f")).data

    assert ask(server, work) == (b"v", 3, b"data")


def test_buckets_made_by_a_client_are_as_declared(server, tmp_path):
    async def work(api):
        js = api.connection.jetstream()
        await js.create_key_value(bucket="b", history=3, ttl=60, direct=True)
        await js.create_object_store("o")

    ask(server, work)

    text = "key_value: {b: {history: 3, ttl: 1m}}\nobject_stores: {o: {}}"
    assert steps_of(planned(declared(tmp_path, text), actual_of(server))) == []


def test_changes_are_made_in_place(server, tmp_path):
    carried_out(server, declared(tmp_path, EVERYTHING))
    publish(server, "orders.new", 3)
    text = EVERYTHING.replace("max_age: 30d", "max_age: 20d").replace("max_deliver: 5", "max_deliver: 7")

    outcome = carried_out(server, declared(tmp_path, text))

    assert [step.title for step in outcome.done] == ["stream ORDERS", "consumer ORDERS/worker"]
    assert outcome.is_complete
    assert request(server, "STREAM.INFO.ORDERS")["state"]["messages"] == 3


def test_a_hand_made_change_is_undone(server, tmp_path):
    declaration = declared(tmp_path, EVERYTHING)
    carried_out(server, declaration)
    config = request(server, "STREAM.INFO.DEAD")["config"]
    request(server, "STREAM.UPDATE.DEAD", {**config, "max_msgs": 7, "description": "mine"})

    outcome = carried_out(server, declaration)

    assert [(change.field, change.after) for change in outcome.done[0].changes] == [
        ("description", ""),
        ("max_msgs", -1),
    ]
    assert outcome.is_complete


def test_what_cannot_change_is_made_anew_with_its_consumers(server, tmp_path):
    carried_out(server, declared(tmp_path, "streams: {A: {subjects: [a], consumers: {c: {ack_policy: none}}}}"))
    publish(server, "a", 2)
    text = "streams: {A: {subjects: [a], storage: memory, consumers: {c: {ack_policy: explicit}}}}"

    outcome = carried_out(server, declared(tmp_path, text))

    assert [f"{step.action} {step.title}" for step in outcome.done] == ["replace stream A", "create consumer A/c"]
    assert outcome.is_complete
    assert request(server, "STREAM.INFO.A")["state"]["messages"] == 0


def test_one_consumer_is_replaced_and_its_stream_stays(server, tmp_path):
    carried_out(server, declared(tmp_path, "streams: {A: {consumers: {c: {ack_policy: none}}}}"))
    publish(server, "A", 2)

    outcome = carried_out(server, declared(tmp_path, "streams: {A: {consumers: {c: {ack_policy: all}}}}"))

    assert [f"{step.action} {step.title}" for step in outcome.done] == ["replace consumer A/c"]
    assert request(server, "CONSUMER.INFO.A.c")["config"]["ack_policy"] == "all"
    assert request(server, "STREAM.INFO.A")["state"]["messages"] == 2


def test_consumers_may_be_declared_for_a_stream_that_is_not(server, tmp_path):
    request(server, "STREAM.CREATE.MANUAL", {"name": "MANUAL", "consumer_limits": {"max_ack_pending": 7}})
    declaration = declared(tmp_path, "consumers: [{stream: MANUAL, name: c, ack_policy: explicit}]")

    outcome = carried_out(server, declaration)

    assert outcome.is_complete
    assert planned(declaration, actual_of(server)).is_empty


def test_streams_hand_subjects_over(server, tmp_path):
    carried_out(server, declared(tmp_path, "streams: {ALL: {subjects: [orders.>]}}"))

    text = "streams: {US: {subjects: [orders.us.>]}, ALL: {subjects: [orders.eu.>]}}"

    assert carried_out(server, declared(tmp_path, text)).is_complete


def test_a_mirror_becomes_a_stream_of_its_own(server, tmp_path):
    carried_out(server, declared(tmp_path, "streams: {A: {}, B: {mirror: A}}"))

    assert carried_out(server, declared(tmp_path, "streams: {A: {}, B: {subjects: [b.>]}}")).is_complete


def test_pruning_removes_only_what_the_project_has_made(server, tmp_path):
    carried_out(server, declared(tmp_path, EVERYTHING))
    request(server, "STREAM.CREATE.MANUAL", {"name": "MANUAL"})

    text = "project: shop\ndead_letters: {DEAD: {max_age: 7d}}"
    outcome = carried_out(server, declared(tmp_path, text), prune=True)

    assert outcome.is_complete
    assert ask(server, lambda api: api.stream_names()) == ["DEAD", "MANUAL"]


def test_a_pause_is_declared_and_ended(server, tmp_path):
    consumer = "streams: {{A: {{consumers: {{c: {{ack_policy: none, {0}}}}}}}}}"
    carried_out(server, declared(tmp_path, consumer.format("max_batch: 5")))

    paused = carried_out(server, declared(tmp_path, consumer.format("max_batch: 5, pause_until: 2100-01-01T00:00:00Z")))
    is_paused = request(server, "CONSUMER.INFO.A.c").get("paused")
    unsaid = planned(declared(tmp_path, consumer.format("max_batch: 5")), actual_of(server))
    resumed = carried_out(server, declared(tmp_path, consumer.format("max_batch: 5, pause_until: ''")))

    assert paused.is_complete
    assert is_paused
    assert unsaid.is_empty
    assert resumed.is_complete
    assert not request(server, "CONSUMER.INFO.A.c").get("paused")


def test_the_first_refusal_ends_it_and_says_what_was_done(server, tmp_path):
    declaration = declared(tmp_path, "streams: {A: {}, B: {max_msgs: 1, discard_new_per_subject: true}, C: {}}")

    outcome = carried_out(server, declaration)

    assert [step.title for step in outcome.done] == ["stream A"]
    assert outcome.failed.title == "stream B"
    assert "discard new per subject" in outcome.reason
    assert [step.title for step in outcome.left] == ["stream C"]
    assert not outcome.is_complete
    assert steps_of(planned(declaration, actual_of(server))) == ["create stream B", "create stream C"]


def test_a_stream_that_is_gone_meanwhile_is_a_refusal(server, tmp_path):
    declaration = declared(tmp_path, "streams: {A: {}}")
    carried_out(server, declaration)
    plan = planned(declared(tmp_path, "streams: {A: {storage: memory}}"), actual_of(server))
    request(server, "STREAM.DELETE.A")

    outcome = ask(server, lambda api: carry_out(api, plan, lambda _step: None, datetime.now(UTC)))

    assert "stream not found" in outcome.reason


def test_what_destroys_is_refused_unless_it_is_allowed(server, tmp_path):
    carried_out(server, declared(tmp_path, "streams: {A: {subjects: [a]}}"))
    publish(server, "a", 5)
    plan = planned(declared(tmp_path, "streams: {A: {subjects: [a], max_msgs: 2}}"), actual_of(server))

    with pytest.raises(ConfigurationError, match="3 of 5 messages go"):
        check_allowed(plan, allow_destroy=False)
    check_allowed(plan, allow_destroy=True)
    outcome = ask(server, lambda api: carry_out(api, plan, lambda _step: None, datetime.now(UTC)))

    assert outcome.is_complete
    assert request(server, "STREAM.INFO.A")["state"]["messages"] == 2


@pytest.mark.parametrize(
    ("before", "after", "left", "loss"),
    [
        ("max_msgs: 2, discard: new", "max_msgs: 2, discard: old", 2, "discard becomes old: 3 of 5 messages"),
        ("max_msgs: 2, discard: new", "max_msgs: 4, discard: old", 4, "max_msgs becomes 4: 1 of 5 messages"),
    ],
)
def test_what_a_stream_above_its_limit_loses_is_said(server, tmp_path, before, after, left, loss):
    carried_out(server, declared(tmp_path, "streams: {A: {subjects: [a], discard: new}}"))
    publish(server, "a", 5)
    carried_out(server, declared(tmp_path, f"streams: {{A: {{subjects: [a], {before}}}}}"))
    assert request(server, "STREAM.INFO.A")["state"]["messages"] == 5
    declaration = declared(tmp_path, f"streams: {{A: {{subjects: [a], {after}}}}}")

    with pytest.raises(ConfigurationError, match=loss):
        check_allowed(planned(declaration, actual_of(server)), allow_destroy=False)
    carried_out(server, declaration)

    assert request(server, "STREAM.INFO.A")["state"]["messages"] == left


@pytest.mark.parametrize(
    ("before", "after", "left", "deletes"), [("jobs.>", "jobs.eu", 2, True), ("jobs.*", "jobs.>", 5, False)]
)
def test_what_other_filters_of_an_interest_stream_lose_is_said(server, tmp_path, before, after, left, deletes):
    text = "streams: {JOBS: {subjects: [jobs.>], retention: interest, consumers: {w: {filter_subject: %s}}}}"
    text += "\ndefaults: {consumer: {ack_policy: explicit}}"
    carried_out(server, declared(tmp_path, text % before))
    publish(server, "jobs.eu", 2)
    publish(server, "jobs.us", 3)
    plan = planned(declared(tmp_path, text % after), actual_of(server))

    assert [bool(step.destroys) for step in plan.steps] == [deletes]
    carried_out(server, declared(tmp_path, text % after))

    assert request(server, "STREAM.INFO.JOBS")["state"]["messages"] == left


def test_templates_are_made_where_there_are_some(server, tmp_path):
    """On a server that has none, the refusal says so before anything is done."""
    declaration = declared(tmp_path, "templates: {devices: {max_streams: 3, subjects: [device.*], max_age: 1h}}")
    actual = ask(server, lambda api: read_actual(api, with_templates=True))

    if not actual.has_templates:
        with pytest.raises(ConfigurationError, match="this server has no templates, Jetlake does"):
            planned(declaration, actual)
        return
    plan = planned(declaration, actual)
    outcome = ask(server, lambda api: carry_out(api, plan, lambda _step: None, datetime.now(UTC)))
    again = planned(declaration, ask(server, lambda api: read_actual(api, with_templates=True)))

    assert outcome.is_complete
    assert again.is_empty
