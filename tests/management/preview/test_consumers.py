"""Consumers of 2020: the ways to begin, pulls, acknowledgements, and how far they are."""

import pytest

from jetlake.client.preview import PreviewTimeoutError

LOGS = {"name": "LOGS", "subjects": ["logs.*"], "storage": "memory"}


def request(**config):
    return {"stream_name": "LOGS", "config": config}


async def make_logs(asker, *messages):
    await asker.text("$JS.STREAM.LOGS.CREATE", LOGS)
    for number, message in enumerate(messages):
        await asker.text(f"logs.{number}", message)


def test_a_pull_gives_the_message_with_its_subject_and_a_reply_of_three_numbers(run):
    async def work(asker):
        await make_logs(asker, "first", "second")
        pull = request(durable_name="P", deliver_all=True, ack_policy="explicit")
        assert await asker.text("$JS.STREAM.LOGS.CONSUMER.P.CREATE", pull) == "+OK"

        message = await asker.request("$JS.STREAM.LOGS.CONSUMER.P.NEXT")

        assert (message.subject, message.data, message.reply) == ("logs.0", b"first", "$JS.ACK.LOGS.P.1.1.1")

    run(work)


@pytest.mark.parametrize("acknowledgement", ["", "+ACK", "+OK"])
def test_an_acknowledgement_moves_the_floor(run, acknowledgement):
    async def work(asker):
        await make_logs(asker, "first")
        pull = request(durable_name="P", deliver_all=True, ack_policy="explicit")
        await asker.text("$JS.STREAM.LOGS.CONSUMER.P.CREATE", pull)
        message = await asker.request("$JS.STREAM.LOGS.CONSUMER.P.NEXT", "1")
        before = (await asker.json("$JS.STREAM.LOGS.CONSUMER.P.INFO"))["state"]
        assert (before["ack_floor"]["stream_seq"], list(before["pending"])) == (0, ["1"])

        await asker.request(message.reply, acknowledgement)

        after = (await asker.json("$JS.STREAM.LOGS.CONSUMER.P.INFO"))["state"]
        assert (after["ack_floor"]["stream_seq"], after["pending"]) == (1, None)

    run(work)


def test_a_refused_message_comes_again_and_the_next_is_asked_for_with_the_acknowledgement(run):
    async def work(asker):
        await make_logs(asker, "first", "second")
        pull = request(durable_name="P", deliver_all=True, ack_policy="explicit")
        await asker.text("$JS.STREAM.LOGS.CONSUMER.P.CREATE", pull)
        first = await asker.request("$JS.STREAM.LOGS.CONSUMER.P.NEXT")
        await asker.request(first.reply, "-NAK")

        again = await asker.request("$JS.STREAM.LOGS.CONSUMER.P.NEXT")
        second = await asker.request(again.reply, "+NXT")

        assert again.reply == "$JS.ACK.LOGS.P.2.1.2"
        assert (second.data, second.reply) == (b"second", "$JS.ACK.LOGS.P.1.2.3")

    run(work)


def test_a_pull_waits_for_a_message(run):
    async def work(asker):
        await make_logs(asker)
        pull = request(durable_name="P", deliver_all=True, ack_policy="explicit")
        await asker.text("$JS.STREAM.LOGS.CONSUMER.P.CREATE", pull)
        received = []

        async def keep(message):
            received.append(message.data)

        await asker.client.client.subscribe("inbox.pull", cb=keep)
        await asker.client.publish("$JS.STREAM.LOGS.CONSUMER.P.NEXT", b"2", reply="inbox.pull")
        for text in ("first", "second", "third"):
            await asker.text("logs.a", text)
        await asker.text("$JS.STREAM.LOGS.INFO")

        assert received == [b"first", b"second"]

    run(work)


def test_a_pull_of_a_consumer_that_is_not_there_is_answered_by_nobody(run):
    async def work(asker):
        await make_logs(asker)
        with pytest.raises(PreviewTimeoutError):
            await asker.request("$JS.STREAM.LOGS.CONSUMER.NONE.NEXT")

    run(work)


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ({"deliver_all": True}, b"0"),
        ({"deliver_last": True}, b"2"),
        ({"stream_seq": 2}, b"1"),
        ({"start_time": "2100-01-01T00:00:00Z"}, b"later"),
        ({}, b"later"),
        ({"start_time": "0001-01-01T00:00:00Z", "deliver_all": True}, b"0"),
    ],
)
def test_a_consumer_begins_where_it_is_told(run, server, start, first):
    async def work(asker):
        await make_logs(asker, "0", "1", "2")
        pull = request(durable_name="P", ack_policy="explicit", **start)
        assert await asker.text("$JS.STREAM.LOGS.CONSUMER.P.CREATE", pull) == "+OK"
        # By then it is after the time that one of them begins at.
        server.advance(100 * 366 * 86_400)
        await asker.text("logs.later", "later")

        assert (await asker.request("$JS.STREAM.LOGS.CONSUMER.P.NEXT")).data == first

    run(work)


def test_two_ways_to_begin_are_refused(run):
    async def work(asker):
        await make_logs(asker)
        pull = request(durable_name="P", ack_policy="explicit", deliver_all=True, deliver_last=True)
        answer = await asker.text("$JS.STREAM.LOGS.CONSUMER.P.CREATE", pull)
        assert answer == "-ERR 'only one of stream_seq, start_time, deliver_all and deliver_last can be set'"
        pull = request(durable_name="P", ack_policy="none", deliver_all=True)
        answer = await asker.text("$JS.STREAM.LOGS.CONSUMER.P.CREATE", pull)
        assert answer == "-ERR 'consumer in pull mode requires explicit ack policy'"

    run(work)


def test_a_configuration_is_shown_in_the_words_it_was_made_with(run):
    async def work(asker):
        await make_logs(asker)
        config = {
            "delivery_subject": "out.tail",
            "durable_name": "TAIL",
            "start_time": "0001-01-01T00:00:00Z",
            "deliver_all": True,
            "ack_policy": "none",
            "max_deliver": -1,
            "replay_policy": "instant",
        }
        await asker.text("$JS.STREAM.LOGS.CONSUMER.TAIL.CREATE", {"stream_name": "LOGS", "config": config})

        info = await asker.json("$JS.STREAM.LOGS.CONSUMER.TAIL.INFO")

        assert list(info["config"].items()) == list(config.items())
        assert await asker.json("$JS.STREAM.LOGS.CONSUMERS") == ["TAIL"]
        assert await asker.text("$JS.STREAM.LOGS.CONSUMER.TAIL.DELETE") == "+OK"
        assert await asker.text("$JS.STREAM.LOGS.CONSUMER.TAIL.INFO") == "-ERR 'consumer not found'"

    run(work)


def test_an_ephemeral_consumer_is_told_its_name(run):
    async def work(asker):
        await make_logs(asker, "first")
        ephemeral = request(deliver_all=True, ack_policy="explicit")
        ok, name = (await asker.text("$JS.STREAM.LOGS.EPHEMERAL.CONSUMER.CREATE", ephemeral)).split()

        assert ok == "+OK"
        assert (await asker.request(f"$JS.STREAM.LOGS.CONSUMER.{name}.NEXT")).data == b"first"

    run(work)
