"""`jetlake.connect_sync`: publish, subscribe, request, key-value and objects without asyncio."""

import asyncio
import subprocess
import sys
import threading

import pytest

import jetlake


def test_message_reaches_a_subscription(client):
    with client.subscribe("greet.*") as subscription:
        client.publish("greet.ada", "hello", headers={"Kind": "test"})
        client.publish("greet.json", {"id": 1})
        first, second = subscription.next(), subscription.next()

    assert (first.subject, first.text(), first.headers) == ("greet.ada", "hello", {"Kind": "test"})
    assert second.json() == {"id": 1}
    assert first.sequence == 0


def test_loop_over_a_subscription_yields_messages_in_order(client):
    with client.subscribe("loop") as subscription:
        assert client.publish_many([("loop", str(number)) for number in range(3)]) == 3
        seen = [message.text() for _, message in zip(range(3), subscription, strict=False)]

    assert seen == ["0", "1", "2"]


def test_callback_may_use_the_client_to_answer_a_request(client):
    with client.subscribe("double", callback=lambda request: request.respond(request.json() * 2)):
        assert client.request("double", 21).json() == 42


def test_request_without_a_listener_is_refused(client):
    with pytest.raises(jetlake.ClientError, match="cannot get an answer from 'nobody': no service is listening"):
        client.request("nobody")


def test_subscription_without_a_message_says_so(client):
    with (
        client.subscribe("silence") as subscription,
        pytest.raises(jetlake.ClientError, match="cannot get a message on 'silence': no answer came in time"),
    ):
        subscription.next(timeout_s=0.01)


def test_answer_to_a_message_that_is_no_request_is_refused(client):
    with client.subscribe("plain") as subscription:
        client.publish("plain")
        with pytest.raises(jetlake.ClientError, match="is not a request"):
            subscription.next().respond(b"")


def test_payload_that_has_no_json_is_refused(client):
    with pytest.raises(jetlake.ClientError, match="a payload of type object cannot be sent"):
        client.publish("a", object())
    with client.subscribe("text") as subscription:
        client.publish("text", "{")
        with pytest.raises(jetlake.ClientError, match="is not JSON"):
            subscription.next().json()


def test_buckets_and_object_stores_share_the_connection(client):
    bucket = client.kv.create("SETTINGS", str)
    bucket.put("theme", "dark")
    store = client.objects.create("FILES")
    store.put("a", b"content")

    assert bucket.get("theme").value == "dark"
    assert store.get("a") == b"content"
    assert client.kv.names() == ["SETTINGS"]


def test_missing_key_is_a_refusal_of_the_server(client):
    bucket = client.kv.create("EMPTY", str)

    with pytest.raises(jetlake.ApiError) as refusal:
        bucket.get("nothing")
    assert isinstance(refusal.value, jetlake.NotFoundError)
    assert refusal.value.code == 404


async def test_works_where_a_loop_is_running_as_in_a_notebook(url):
    assert asyncio.get_running_loop().is_running()

    with jetlake.connect_sync(url) as client, client.subscribe("notebook") as subscription:
        client.publish("notebook", "cell")

        assert subscription.next().text() == "cell"


def test_threads_share_a_client(client):
    with client.subscribe("threads") as subscription:
        threads = [threading.Thread(target=client.publish, args=("threads", str(number))) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(subscription.next().text() for _ in range(8)) == [str(number) for number in range(8)]


def test_closed_client_says_so_and_ends_its_thread(url):
    before = set(threading.enumerate())
    client = jetlake.connect_sync(url)
    client.close()
    client.close()

    assert set(threading.enumerate()) <= before
    assert repr(client).endswith(", closed>")


def test_server_that_is_not_there_is_refused_at_once():
    before = set(threading.enumerate())

    with pytest.raises(jetlake.ClientError, match=r"Nothing is listening at 127\.0\.0\.1:1\."):
        jetlake.connect_sync("nats://127.0.0.1:1")

    assert set(threading.enumerate()) <= before


def test_unknown_option_is_refused(url):
    with pytest.raises(jetlake.ClientError, match=r"an option is wrong: .*colour"):
        jetlake.connect_sync(url, colour="blue")


def test_script_that_forgets_to_close_ends_in_order(url):
    program = f"import jetlake; client = jetlake.connect_sync({url!r}); client.publish('a'); print(client)"

    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert (answer.returncode, answer.stderr) == (0, "")


def test_credentials_of_a_server_object_are_used():
    with jetlake.Server(user="ada", password="pw") as server, jetlake.connect_sync(server) as client:
        client.publish("a")
        assert client.streams.names() == []


def test_client_closes_in_order_when_its_server_has_gone():
    server = jetlake.Server().start()
    client = jetlake.connect_sync(server)
    server.stop()

    client.close()
