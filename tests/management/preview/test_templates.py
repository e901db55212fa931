"""Templates: the first message of a subject makes its stream, in order, within a limit, and after a restart too."""

import asyncio

import pytest

import jetlake
from jetlake.client.preview import PreviewTimeoutError
from jetlake.management.preview.template_file import COPIES, FOLDER
from tests.management.preview.conftest import run_on

ORDERS = {"name": "orders", "config": {"subjects": ["orders.*"], "storage": "file"}, "max_streams": 2}

PUBLISHERS = 4
MESSAGES = 500


def template(**changes):
    return {**ORDERS, **changes}


def test_a_message_that_no_stream_takes_makes_one(run):
    async def work(asker):
        assert await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS) == "+OK"
        assert await asker.json("$JS.TEMPLATE.LIST") == ["orders"]

        assert await asker.text("orders.new", "first") == "+OK"
        assert await asker.text("orders.new", "second") == "+OK"

        info = await asker.json("$JS.STREAM.orders_new.INFO")
        assert info["config"]["subjects"] == ["orders.new"]
        assert info["config"]["template_owner"] == "orders"
        assert info["state"]["messages"] == 2
        described = await asker.json("$JS.TEMPLATE.orders.INFO")
        assert described == {"config": ORDERS, "streams": ["orders_new"]}

    run(work)


def test_a_stream_that_is_there_keeps_its_messages(run):
    async def work(asker):
        await asker.text("$JS.STREAM.OWN.CREATE", {"name": "OWN", "subjects": ["orders.own"]})
        await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS)

        assert await asker.text("orders.own", "x") == "+OK"

        assert await asker.json("$JS.STREAM.LIST") == ["OWN"]
        assert (await asker.json("$JS.STREAM.OWN.INFO"))["state"]["messages"] == 1

    run(work)


def test_beyond_the_limit_a_publisher_is_refused(run):
    async def work(asker):
        await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS)
        answers = [await asker.text(f"orders.{number}", "x") for number in range(4)]
        refusal = "-ERR 'maximum number of streams of the template reached'"
        assert answers == ["+OK", "+OK", refusal, refusal]
        await asker.text("$JS.STREAM.orders_0.DELETE")
        assert await asker.text("orders.2", "x") == "+OK"

    run(work)


def test_a_name_that_is_taken_is_not_taken_twice(run):
    async def work(asker):
        await asker.text("$JS.STREAM.orders_a.CREATE", {"name": "orders_a", "subjects": ["elsewhere"]})
        await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS)

        assert await asker.text("orders.a", "x") == "+OK"

        assert await asker.json("$JS.STREAM.LIST") == ["orders_a", "orders_a_2"]

    run(work)


def test_a_template_is_deleted_with_its_streams(run):
    async def work(asker):
        await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS)
        await asker.text("$JS.STREAM.OWN.CREATE", {"name": "OWN", "subjects": ["own"]})
        await asker.text("orders.a", "x")

        assert await asker.text("$JS.TEMPLATE.orders.DELETE") == "+OK"

        assert await asker.json("$JS.STREAM.LIST") == ["OWN"]
        assert await asker.text("$JS.TEMPLATE.orders.INFO") == "-ERR 'template not found'"
        with pytest.raises(PreviewTimeoutError):
            await asker.request("orders.a", "x")

    run(work)


def test_a_stream_of_a_template_is_not_changed(run):
    async def work(asker):
        await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS)
        await asker.text("orders.a", "x")
        config = (await asker.json("$JS.STREAM.orders_a.INFO"))["config"]
        answer = await asker.text("$JS.STREAM.orders_a.UPDATE", {**config, "max_msgs": 5})
        assert answer == "-ERR 'stream configuration update not allowed on template owned stream'"

    run(work)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"max_streams": 0}, "template needs max_streams of at least 1"),
        ({"name": "other"}, "template name in subject does not match request"),
        ({"config": {"subjects": []}}, "template needs subjects"),
        ({"config": {"name": "x", "subjects": ["a.*"]}}, "template config name should be empty"),
        ({"config": {"subjects": ["a..b"]}}, "invalid subject"),
        ({"config": {"subjects": ["a.*"], "max_consumers": -1, "num_replicas": 3}}, "replicas > 1 not supported"),
        (
            {"config": {"subjects": ["*.a"]}},
            "template subjects can not begin with a wildcard: every answer would become a stream",
        ),
        ({"config": {"subjects": ["items.>"]}}, "subjects overlap with template items"),
    ],
)
def test_a_template_that_makes_no_sense_is_refused(run, wrong, reason):
    async def work(asker):
        items = {"name": "items", "config": {"subjects": ["items.*"]}, "max_streams": 1}
        assert await asker.text("$JS.TEMPLATE.items.CREATE", items) == "+OK"
        answer = await asker.text("$JS.TEMPLATE.orders.CREATE", template(**wrong))
        assert reason in answer
        assert answer.startswith("-ERR '")
        assert await asker.json("$JS.TEMPLATE.LIST") == ["items"]

    run(work)


def test_messages_of_each_publisher_are_stored_in_their_order(run, server):
    async def work(asker):
        await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS)
        connections = [await jetlake.connect(server) for _ in range(PUBLISHERS)]

        async def publish(number, connection):
            for message in range(MESSAGES):
                await connection.publish("orders.many", f"{number} {message}".encode())
            await connection.flush()

        await asyncio.gather(*(publish(number, connection) for number, connection in enumerate(connections)))
        # Stored behind everything that was published before.
        assert await asker.text("orders.many", "last") == "+OK"
        js = connections[0].jetstream()
        sequences = range(1, PUBLISHERS * MESSAGES + 1)
        stored = [(await js.get_msg("orders_many", sequence)).data.decode() for sequence in sequences]
        for connection in connections:
            await connection.close()

        for number in range(PUBLISHERS):
            own = [text for text in stored if text.startswith(f"{number} ")]
            assert own == [f"{number} {message}" for message in range(MESSAGES)]

    run(work)


def test_templates_survive_a_restart(tmp_path):
    async def before(asker):
        await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS)
        await asker.text("orders.a", "x")

    async def after(asker):
        assert await asker.json("$JS.TEMPLATE.LIST") == ["orders"]
        assert await asker.text("orders.a", "x") == "+OK"
        assert await asker.text("orders.b", "x") == "+OK"
        assert (await asker.json("$JS.STREAM.orders_a.INFO"))["state"]["messages"] == 2
        assert await asker.text("orders.c", "x") != "+OK"

    for work in (before, after):
        with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
            run_on(server.url, work)


def test_templates_that_could_not_be_read_are_not_written_over(tmp_path):
    async def create(asker):
        assert await asker.text("$JS.TEMPLATE.orders.CREATE", ORDERS) == "+OK"

    async def refused(asker):
        other = {"name": "items", "config": {"subjects": ["items.*"]}, "max_streams": 1}
        answer = await asker.text("$JS.TEMPLATE.items.CREATE", other)
        assert answer.startswith("-ERR 'the templates cannot be changed: ")
        assert "put a good one back from a backup" in answer

    async def back(asker):
        assert await asker.json("$JS.TEMPLATE.LIST") == ["orders"]

    copies = [tmp_path / "jetstream" / FOLDER / copy for copy in COPIES]
    with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
        run_on(server.url, create)
    good = copies[0].read_bytes()
    for copy in copies:
        copy.write_bytes(b"torn " + good)

    with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
        run_on(server.url, refused)

    assert [copy.read_bytes() for copy in copies] == [b"torn " + good] * 2
    copies[1].write_bytes(good)
    with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
        run_on(server.url, back)
