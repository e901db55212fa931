"""What both dialects are told about an account, and who is told nothing."""

import pytest

import jetlake
from jetlake.client.preview import PreviewTimeoutError
from tests.management.preview.conftest import run_on

TWO_ACCOUNTS = """
jetstream { store_dir: "%s" }
accounts {
  STORES { users: [ { user: a, password: a } ], jetstream: { max_streams: 7, max_memory: 1000 } }
  NOTHING { users: [ { user: b, password: b } ] }
}
"""


def test_an_account_is_told_what_it_uses_in_the_words_of_both_years(run):
    async def work(asker):
        assert await asker.text("$JS.ENABLED", ".") == "+OK"
        await asker.text("$JS.STREAM.S.CREATE", {"name": "S", "subjects": ["s"]})
        await asker.text("s", "x")
        info = await asker.json("$JS.INFO", ".")
        assert (info["streams"], info["msg_sets"], info["memory"], info["storage"]) == (1, 1, 0, 32)
        limits = info["limits"]
        assert limits["max_memory"] > 0
        assert limits["max_storage"] > 0
        unlimited = {limits[key] for key in ("max_streams", "max_consumers", "max_msg_sets", "max_observables")}
        assert unlimited == {-1}

    run(work)


def test_an_account_that_may_not_store_is_told_so(tmp_path):
    async def stores(asker):
        assert await asker.text("$JS.ENABLED") == "+OK"
        limits = (await asker.json("$JS.INFO"))["limits"]
        assert (limits["max_streams"], limits["max_msg_sets"], limits["max_memory"]) == (7, 7, 1000)

    async def stores_nothing(asker):
        for subject in ("$JS.ENABLED", "$JS.INFO", "$JS.STREAM.LIST"):
            assert await asker.text(subject) == "-ERR 'jetstream not enabled for account'"
        assert await asker.text("$JS.MSGSETS") == "-ERR jetstream not enabled for account"

    with jetlake.Server(config=TWO_ACCOUNTS % tmp_path) as server:
        address = server.url.removeprefix("nats://")
        run_on(f"nats://a:a@{address}", stores)
        run_on(f"nats://b:b@{address}", stores_nothing)


def test_without_jetstream_nobody_answers():
    async def work(asker):
        with pytest.raises(PreviewTimeoutError):
            await asker.request("$JS.ENABLED", ".")

    with jetlake.Server(jetstream=False) as server:
        run_on(server.url, work)
