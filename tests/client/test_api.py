"""Requests of the JetStream API on both servers."""

import pytest

import jetlake
from jetlake.client.access import Access
from jetlake.client.api import Api, open_api, token
from jetlake.errors import ApiError, ClientError

STREAMS = 300
"""More than one page of descriptions has."""


async def test_request_is_answered(api: Api):
    made = await api.request("STREAM.CREATE.API", {"name": "API", "subjects": ["api"]})

    assert made["config"]["name"] == "API"
    assert (await api.request("STREAM.INFO.API"))["state"]["messages"] == 0


async def test_refusal_has_its_numbers(api: Api):
    with pytest.raises(ApiError, match=r"^stream not found \(10059\)$") as caught:
        await api.request("STREAM.INFO.NOWHERE")

    error = caught.value
    assert (error.code, error.error_code, error.description) == (404, 10059, "stream not found")


async def test_what_need_not_be_there_is_none(api: Api):
    assert await api.find("STREAM.INFO.NOWHERE") is None
    with pytest.raises(ApiError, match="10"):
        await api.find("STREAM.CREATE.BAD", {"name": "BAD", "subjects": [".."]})


async def test_lists_are_read_to_their_end(api: Api):
    for number in range(STREAMS):
        name = f"PAGE{number:03}"
        await api.request(f"STREAM.CREATE.{name}", {"name": name, "subjects": [name], "storage": "memory"})
    for number in range(3):
        config = {"durable_name": f"c{number}", "ack_policy": "explicit"}
        await api.request(f"CONSUMER.DURABLE.CREATE.PAGE000.c{number}", {"stream_name": "PAGE000", "config": config})

    names = [name for name in await api.stream_names() if name.startswith("PAGE")]
    streams = [
        stream["config"]["name"] for stream in await api.streams() if stream["config"]["name"].startswith("PAGE")
    ]

    assert names == streams == [f"PAGE{number:03}" for number in range(STREAMS)]
    assert await api.stream_names("PAGE007") == ["PAGE007"]
    assert await api.consumer_names("PAGE000") == ["c0", "c1", "c2"]
    assert [consumer["name"] for consumer in await api.consumers("PAGE000")] == ["c0", "c1", "c2"]


async def test_server_without_jetstream_is_told(jetlake_server: jetlake.Server):
    async with open_api(jetlake_server) as api:
        with pytest.raises(
            ClientError, match=r"JetStream is off on this server, or for this account\. Restart it with `-js`"
        ):
            await api.request("INFO")


async def test_request_nobody_answers_ends_in_time(url: str):
    async with open_api(url) as api:
        await api.connection.subscribe("silence")
        # Not before: the connection may take longer.
        api.access = Access(url=url, timeout_s=0.2)

        with pytest.raises(ClientError, match=r"did not answer silence within 0\.2 s"):
            await api.ask("silence", b"")


async def test_answer_that_is_no_json_is_told(url: str):
    async with open_api(url) as api:

        async def respond(message) -> None:
            await message.respond(b"hello")

        await api.connection.subscribe("words", cb=respond)
        with pytest.raises(ClientError, match="not a JSON object"):
            await api.ask("words", b"")


async def test_what_a_user_may_not_do_is_told():
    config = "authorization { users: [ {user: a, password: b, permissions: {publish: {deny: secret}}} ] }"
    with jetlake.Server(config=config) as server:
        async with open_api(Access(url=server.url, user="a", password="b")) as api:
            await api.connection.publish("secret", b"")
            with pytest.raises(ClientError, match=r"(?i)permissions violation for publish"):
                await api.flush()


@pytest.mark.parametrize("name", ["", "a.b", "a b", "*", ">", "a\n"])
def test_name_that_is_no_token_is_refused(name: str):
    with pytest.raises(ClientError, match="is not a name"):
        token(name)
