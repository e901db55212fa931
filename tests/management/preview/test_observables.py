"""Message sets and observables of 2019, and how sequences, redeliveries and acknowledgements show in them."""

import asyncio

import pytest

import jetlake
from jetlake.client.preview import PreviewTimeoutError
from tests.management.preview.conftest import run_on

SET = {"name": "wc", "subjects": ["*"], "storage": "file"}


async def make_set(asker, *messages):
    assert await asker.text("$JS.MSGSET.CREATE", SET) == "+OK"
    for message in messages:
        assert await asker.text("a", message) == "+OK"


def test_enumerations_are_numbers_or_words(run):
    async def work(asker):
        for retention in (0, "limits"):
            config = {**SET, "retention": retention, "storage": "memory", "max_observables": 3}
            assert await asker.text("$JS.MSGSET.CREATE", config) == "+OK"
            info = await asker.json("$JS.MSGSET.INFO", "wc")
            assert (info["config"]["retention"], info["config"]["max_observables"]) == (0, 3)
            assert await asker.text("$JS.MSGSET.DELETE", "wc") == "+OK"
        assert await asker.json("$JS.MSGSETS") == []

    run(work)


def test_message_sets_may_share_subjects_with_each_other_and_with_no_stream(run):
    async def work(asker):
        await make_set(asker)
        assert await asker.text("$JS.MSGSET.CREATE", {"name": "foo", "subjects": ["foo"]}) == "+OK"
        refused = await asker.text("$JS.STREAM.S.CREATE", {"name": "S", "subjects": ["foo"]})
        assert refused == "-ERR 'subjects overlap with an existing stream'"
        answers = asyncio.Queue()
        await asker.client.client.subscribe("inbox.both", cb=answers.put)
        await asker.client.publish("foo", b"x", reply="inbox.both")
        assert [(await answers.get()).data for _ in range(2)] == [b"+OK", b"+OK"]
        await asker.text("$JS.MSGSET.PURGE", "foo")
        counts = [(await asker.json("$JS.MSGSET.INFO", name))["Msgs"] for name in ("wc", "foo")]
        assert counts == [1, 0]

    run(work)


def test_a_message_of_a_set_is_erased(run):
    async def work(asker):
        await make_set(asker, "x")
        assert await asker.text("$JS.MSGSET.MSG.DELETE", "wc 1") == "+OK"
        assert await asker.text("$JS.MSGSET.MSG.DELETE", "wc 1") == "-ERR sequence [1] not found"
        assert await asker.text("$JS.MSGSET.MSG.DELETE", "wc") == "-ERR bad request"
        assert await asker.text("$JS.MSGSET.INFO", "none") == "-ERR stream not found"

    run(work)


def test_delivered_is_what_comes_next_and_a_redelivery_counts_only_for_the_observable(run, server):
    async def work(asker):
        await make_set(asker, "hello")
        observable = {"msg_set_name": "wc", "config": {"durable_name": "p1", "deliver_all": True}}
        assert await asker.text("$JS.OBSERVABLE.CREATE", observable) == "+OK"

        fresh = await asker.json("$JS.OBSERVABLE.INFO", "wc p1")
        first = await asker.request("$JS.RN.wc.p1", "1")
        delivered = await asker.json("$JS.OBSERVABLE.INFO", "wc p1")
        server.advance(31)
        again = await asker.request("$JS.RN.wc.p1")
        redelivered = await asker.json("$JS.OBSERVABLE.INFO", "wc p1")
        await asker.request(again.reply, "+OK")
        acknowledged = await asker.json("$JS.OBSERVABLE.INFO", "wc p1")

        assert fresh == {
            "Delivered": {"ObsSeq": 1, "SetSeq": 1},
            "AckFloor": {"ObsSeq": 0, "SetSeq": 0},
            "Pending": None,
            "Redelivery": None,
        }
        assert (first.subject, first.reply) == ("a", "$JS.A.wc.p1.1.1.1")
        assert delivered["Delivered"] == {"ObsSeq": 2, "SetSeq": 2}
        assert (list(delivered["Pending"]), delivered["Redelivery"]) == (["1"], None)
        assert again.reply == "$JS.A.wc.p1.2.1.2"
        assert redelivered["Delivered"] == {"ObsSeq": 3, "SetSeq": 2}
        assert redelivered["Redelivery"] == {"1": 1}
        assert redelivered["Pending"]["1"] - delivered["Pending"]["1"] == 31 * 10**9
        assert acknowledged["AckFloor"] == {"ObsSeq": 2, "SetSeq": 1}
        assert acknowledged["Pending"] is None

    run(work)


def test_a_push_observable_delivers_with_the_original_subject(run):
    async def work(asker):
        await make_set(asker, "hello")
        received = []

        async def keep(message):
            received.append((message.subject, message.reply, message.data))

        await asker.client.client.subscribe("d.p2", cb=keep)
        config = {"durable_name": "p2", "delivery_subject": "d.p2", "deliver_all": True, "ack_policy": 0}
        await asker.text("$JS.OBSERVABLE.CREATE", {"msg_set_name": "wc", "config": config})
        await asker.text("b", "again")
        await asker.text("$JS.MSGSETS")

        assert received == [("a", "$JS.A.wc.p2.1.1.1", b"hello"), ("b", "$JS.A.wc.p2.1.2.2", b"again")]

    run(work)


def test_observables_are_listed_and_deleted(run):
    async def work(asker):
        await make_set(asker)
        observable = {"msg_set_name": "wc", "config": {"durable_name": "p1", "deliver_all": True, "subject": "a"}}
        await asker.text("$JS.OBSERVABLE.CREATE", observable)
        assert await asker.json("$JS.OBSERVABLES", "wc") == ["p1"]
        assert await asker.text("$JS.OBSERVABLE.DELETE", "wc p1") == "+OK"
        assert await asker.text("$JS.OBSERVABLE.INFO", "wc p1") == "-ERR consumer not found"
        with pytest.raises(PreviewTimeoutError):
            await asker.request("$JS.RN.wc.p1")

    run(work)


def test_old_acknowledgements_survive_a_restart(tmp_path):
    async def before(asker):
        await make_set(asker, "first", "second")
        observable = {"msg_set_name": "wc", "config": {"durable_name": "p1", "deliver_all": True}}
        await asker.text("$JS.OBSERVABLE.CREATE", observable)
        message = await asker.request("$JS.RN.wc.p1")
        await asker.request(message.reply, "+OK")

    async def after(asker):
        message = await asker.request("$JS.RN.wc.p1")
        assert (message.data, message.reply) == (b"second", "$JS.A.wc.p1.1.2.2")
        assert await asker.text("a", "third") == "+OK"

    for work in (before, after):
        with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
            run_on(server.url, work)
