"""Push consumers that are created while messages are published: they take the acknowledgement of what they deliver."""

from __future__ import annotations

from tests.compatibility import consumer_watch, jetstream
from tests.compatibility.consumer_watch import Watch, wait_for_consumer
from tests.compatibility.jetstream import API, JetStream, encode_body

js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream
watch = consumer_watch.watch

CREATED = 25
STORED_BEFORE, STORED_MEANWHILE = 3, 12


def test_first_deliveries_of_a_new_consumer_can_be_acknowledged(js: JetStream, watch: Watch, stream: str) -> None:
    answers = watch.new_inbox()
    for number in range(CREATED):
        name = f"{stream}-{number}"
        js.create(name)
        for _ in range(STORED_BEFORE):
            js.publish(f"{name}.a")
        inbox = watch.subscribe(f"to.{name}")
        acknowledgements = watch.new_inbox()
        config = {"durable_name": "C", "ack_policy": "explicit", "deliver_subject": inbox.subject}
        body = encode_body({"stream_name": name, "config": config})

        # Not flushed: what is published meanwhile has the consumer deliver while it is being created.
        watch.send(f"{API}CONSUMER.CREATE.{name}.C", body, reply=answers.subject)
        for _ in range(STORED_MEANWHILE):
            js.publish(f"{name}.a")

        count = STORED_BEFORE + STORED_MEANWHILE
        for _ in range(count):
            message = inbox.next()
            watch.send(message.reply, b"+ACK", reply=acknowledgements.subject)
        assert {(answer.headers, answer.data) for answer in acknowledgements.take(count)} == {(b"", b"")}
        assert "error" not in answers.next().json()
        info = wait_for_consumer(js, name, "C", lambda info: info["num_ack_pending"] == 0)
        assert info["ack_floor"]["stream_seq"] == count
