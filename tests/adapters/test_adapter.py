"""One adapter on both servers: what comes in goes out as documents, once each, and nothing is lost on the way."""

import json
import urllib.error
import urllib.request

import pytest

from jetlake.choria.envelopes import make_reply, make_request
from jetlake.client.schemas import problems, read
from tests.adapters.conftest import wait_until
from tests.choria.keys import Authority


def test_a_request_becomes_the_document_that_is_printed(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    adapters.start_one(name)
    body = "...the data received exactly as it was received...."

    fleet.publish(
        f"{name}.in",
        make_request(body, sender="web1.ldn.example.net", request_id="a" * 32, time_s=1_520_088_557),
    )
    wait_until(lambda: stored.count(name) == 1)

    message = stored.message(name, 1)
    document = json.loads(message["data"])
    assert document == {
        "protocol": "choria:adapters:jetstream:output:1",
        "data": body,
        "sender": "web1.ldn.example.net",
        "time": "2018-03-03T14:49:17Z",
        "requestid": "a" * 32,
    }
    assert list(problems(document, read("choria.adapters.jetstream.v1.output"))) == []
    assert f"Nats-Msg-Id: {'a' * 32}.web1.ldn.example.net\r\n" in message["hdrs"]


@pytest.mark.parametrize("version", [1, 2])
def test_replies_of_many_nodes_to_one_request_are_all_kept(adapters, stored, fleet, name, version):
    stored.create(name, f"{name}.out")
    adapters.start_one(name, type="choria_streams", ingest={"protocol": "reply"})

    fleet.publish(
        f"{name}.in",
        *(
            make_reply("pong", sender=f"n{number}", request_id="b" * 32, time_s=1, version=version)
            for number in range(20)
        ),
    )
    wait_until(lambda: stored.count(name) == 20)

    documents = stored.documents(name)
    assert {document["sender"] for document in documents} == {f"n{number}" for number in range(20)}
    assert {document["protocol"] for document in documents} == {"choria:adapters:choria_streams:output:1"}


def test_raw_messages_are_taken_as_they_are(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    adapters.start_one(name, ingest={"protocol": "raw", "topic": f"{name}.in.>"})

    fleet.publish(f"{name}.in.load.web1", b"load 0.5")
    wait_until(lambda: stored.count(name) == 1)

    document = stored.documents(name)[0]
    assert document["data"] == "load 0.5"
    assert document["sender"] == f"{name}.in.load.web1"
    assert document["requestid"]


def test_thousands_of_messages_arrive_once_each(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    adapter = adapters.start_one(name)

    fleet.register(f"{name}.in", 5_000)
    wait_until(lambda: adapter.total("messages", "output") == 5_000)

    assert stored.count(name) == adapter.total("messages", "input") == 5_000
    assert adapter.total("errors") == 0


def test_a_message_that_comes_twice_is_stored_once(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    adapter = adapters.start_one(name)
    payload = make_request("again", sender="n", request_id="c" * 32, time_s=1)

    fleet.publish(f"{name}.in", payload, payload)
    wait_until(lambda: adapter.total("messages", "output") == 2)

    assert stored.count(name) == 1
    assert adapter.total("duplicates") == 1


def test_the_sender_in_the_topic_is_made_safe(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out.>")
    adapters.start_one(name, stream={"topic": f"{name}.out.%s"})
    names = ["web1.ldn.example.net", "a b", "*", ">", "", "x\r\nPUB y 0\r\n\r\n", "..."]

    fleet.publish(
        f"{name}.in",
        *(make_request("x", sender=sender, request_id=f"{n:032d}", time_s=1) for n, sender in enumerate(names)),
    )
    wait_until(lambda: stored.count(name) == len(names))

    subjects = {json.loads(m["data"])["sender"]: m["subject"] for m in (stored.message(name, n + 1) for n in range(7))}
    assert subjects["web1.ldn.example.net"] == f"{name}.out.web1.ldn.example.net"
    assert subjects["*"] == f"{name}.out._"
    assert subjects["..."] == f"{name}.out._._._._"


def test_what_cannot_be_parsed_becomes_a_dead_letter(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    stored.create(f"{name}_dead", f"{name}.dead")
    adapter = adapters.start_one(name, dead_letters=f"{name}.dead")
    bad = [b"", b"nonsense", b"\xff\x00", b'{"protocol":"choria:transport:1"}', b"[" * 5_000]

    fleet.publish(f"{name}.in", *bad)
    fleet.register(f"{name}.in", 10)
    wait_until(lambda: stored.count(f"{name}_dead") == len(bad) and stored.count(name) == 10)

    letters = [stored.message(f"{name}_dead", sequence) for sequence in range(1, len(bad) + 1)]
    assert sorted(letter["data"] for letter in letters) == sorted(bad)
    for letter in letters:
        assert f"Jetlake-Adapter: {name}\r\n" in letter["hdrs"]
        assert f"Jetlake-Adapter-Subject: {name}.in\r\n" in letter["hdrs"]
        assert "Jetlake-Adapter-Reason: not a transport" in letter["hdrs"]
    assert adapter.total("dead_letters") == adapter.total("errors") == len(bad)


def test_without_dead_letters_bad_messages_are_counted_and_reported_briefly(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    adapter = adapters.start_one(name)

    fleet.publish(f"{name}.in", *[b"nonsense"] * 1_000)
    fleet.register(f"{name}.in", 1)
    wait_until(lambda: stored.count(name) == 1 and adapter.total("errors") == 1_000)

    assert len([line for line in adapters.lines if "discarding" in line]) <= 2


def test_only_what_its_sender_has_signed_passes_if_asked_for(adapters, stored, fleet, name, tmp_path):
    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    stored.create(name, f"{name}.out")
    stored.create(f"{name}_dead", f"{name}.dead")
    adapters.start_one(name, ingest={"verify": {"ca": str(tmp_path / "ca.pem")}}, dead_letters=f"{name}.dead")
    good = authority.node("web1")

    fleet.publish(
        f"{name}.in",
        make_request("good", sender="web1", request_id="1" * 32, time_s=1, sign=good),
        make_request("liar", sender="web2", request_id="2" * 32, time_s=1, sign=good),
        make_request("mute", sender="web1", request_id="3" * 32, time_s=1),
    )
    wait_until(lambda: stored.count(f"{name}_dead") == 2 and stored.count(name) == 1)

    assert stored.documents(name)[0]["data"] == "good"


def test_two_processes_share_the_messages(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    first, second = adapters.start_one(name), adapters.start_one(name)

    fleet.register(f"{name}.in", 1_000)
    wait_until(lambda: stored.count(name) == 1_000)

    assert first.total("messages", "input") + second.total("messages", "input") == 1_000
    assert first.total("messages", "input") > 0
    assert second.total("messages", "input") > 0


def test_a_stop_loses_nothing_that_was_received(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    adapter = adapters.start_one(name, queue_len=10_000)

    fleet.register(f"{name}.in", 5_000)
    # In the middle of it: nothing was waited for.
    lost = adapter.stop()

    assert lost == 0
    assert adapter.total("messages", "input") == adapter.total("messages", "output") == stored.count(name) == 5_000
    adapters.hosts.clear()


def test_a_document_that_no_stream_takes_is_given_up_after_its_tries(adapters, stored, fleet, name):
    stored.create(f"{name}_dead", f"{name}.dead")
    adapter = adapters.start_one(name, stream={"tries": 2}, dead_letters=f"{name}.dead")

    fleet.register(f"{name}.in", 3)
    wait_until(lambda: stored.count(f"{name}_dead") == 3)

    letter = stored.message(f"{name}_dead", 1)
    assert "Jetlake-Adapter-Reason: no stream is listening on this subject, 2 tries" in letter["hdrs"]
    assert json.loads(letter["data"])["protocol"] == "choria:adapters:jetstream:output:1"
    assert adapter.total("retried") == 3


def test_a_stream_that_is_created_late_gets_everything(adapters, stored, fleet, name):
    adapter = adapters.start_one(name)

    fleet.register(f"{name}.in", 10)
    wait_until(lambda: adapter.total("errors", "output") > 0)
    stored.create(name, f"{name}.out")
    wait_until(lambda: stored.count(name) == 10)

    assert adapter.total("failed") == 0


def test_a_document_that_the_stream_refuses_for_good_is_not_tried_again(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out", max_msg_size=400)
    adapter = adapters.start_one(name)

    fleet.register(f"{name}.in", 1, body="x" * 2_000)
    wait_until(lambda: adapter.total("failed") == 1)

    assert adapter.total("retried") == 0
    assert any("maximum" in line for line in adapters.lines)


def test_a_full_stream_holds_documents_back_until_there_is_room(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out", max_msgs=5, discard="new")
    adapter = adapters.start_one(name)

    fleet.register(f"{name}.in", 10)
    wait_until(lambda: adapter.total("errors", "output") >= 5)
    stored.streams.purge(name)
    wait_until(lambda: adapter.total("messages", "output") == 10)

    assert adapter.total("failed") == 0


def test_metrics_show_what_happened(adapters, stored, fleet, name):
    stored.create(name, f"{name}.out")
    host = adapters.start(
        {
            name: {
                "type": "jetstream",
                "ingest": {"topic": f"{name}.in", "protocol": "request", "workers": 1},
                "stream": {"topic": f"{name}.out", "workers": 1},
            }
        },
        metrics_port=0,
        identity='broker "1"',
    )
    wait_until(lambda: host.adapters[0].total("connections", "input") == 1)
    fleet.publish(f"{name}.in", b"nonsense")
    fleet.register(f"{name}.in", 7)
    wait_until(lambda: stored.count(name) == 7 and host.adapters[0].total("messages", "output") == 7)

    pages = [
        urllib.request.urlopen(host.page.url.replace("/metrics", path), timeout=60).read().decode()
        for path in ("/metrics", "/choria/prometheus", "/choria/metrics")
    ]

    labels = f'name="{name}.0",role="input",identity="broker \\"1\\""'
    for page in pages:
        assert f"choria_adapter_received_msgs{{{labels}}} 8\n" in page
        assert f"choria_adapter_errors{{{labels}}} 1\n" in page
        assert f"choria_adapter_published_msgs{{{labels.replace('input', 'output')}}} 7\n" in page
        assert f'choria_adapter_queue_capacity{{name="{name}",identity="broker \\"1\\""}} 1000\n' in page
        assert f'choria_adapter_queue_length{{name="{name}",identity="broker \\"1\\""}} 0\n' in page
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(host.page.url.replace("/metrics", "/nothing"), timeout=60)
