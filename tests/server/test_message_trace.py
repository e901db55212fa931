"""Dry runs of messages to consumers: nats-server carries them out, Jetlake does not."""

import json

import nats

import jetlake

DRY_RUN = {"Nats-Trace-Dest": "traces", "Nats-Trace-Only": "true"}


async def test_dry_run_of_a_pull_and_of_an_acknowledgement_changes_no_consumer():
    async with jetlake.Server(jetstream=True) as server:
        client = await nats.connect(server.url)
        try:
            stream = client.jetstream()
            await stream.add_stream(name="S", subjects=["s"])
            await stream.publish("s", b"x")
            subscription = await stream.pull_subscribe("s", "C")
            traces = await client.subscribe("traces")

            await client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b"", reply="nobody", headers=DRY_RUN)
            pulled = json.loads((await traces.next_msg(timeout=60)).data)
            untouched = await subscription.consumer_info()
            [message] = await subscription.fetch(1, timeout=60)
            await client.publish(message.reply, b"+ACK", headers=DRY_RUN)
            acknowledged = json.loads((await traces.next_msg(timeout=60)).data)
            pending = await subscription.consumer_info()

            assert [step["type"] for step in pulled["events"] + acknowledged["events"]] == ["in", "in"]
            assert untouched.delivered.stream_seq == 0
            assert pending.num_ack_pending == 1
        finally:
            await client.close()
