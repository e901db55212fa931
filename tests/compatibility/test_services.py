"""Services: `$SRV` discovery and endpoints, with the service framework of nats-py."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.micro import add_service
from nats.micro.request import Request, ServiceError
from nats.micro.service import Service

from tests.compatibility.server_process import ServerProcess

# The framework's own use of a deprecated function of Python's library is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*utcnow:DeprecationWarning")

VERBS = ["PING", "INFO", "STATS"]


async def answer_upper_case(request: Request) -> None:
    await request.respond(request.data.upper(), headers={"Length": str(len(request.data))})


async def answer_error(request: Request) -> None:
    await request.respond_error("422", "no such word")


async def fail(_: Request) -> None:
    raise ServiceError("500", "the handler failed")


async def start_words_service(client: Client, name: str) -> Service:
    service = await add_service(client, name=name, version="1.2.3", description="words")
    await service.add_endpoint(name="upper", subject=f"{name}.upper", handler=answer_upper_case)
    await service.add_endpoint(name="refuse", subject=f"{name}.refuse", handler=answer_error)
    await service.add_endpoint(name="fail", subject=f"{name}.fail", handler=fail)
    return service


@pytest.fixture
def name(subject: bytes) -> str:
    return f"words-{subject.decode()}"


async def request_json(client: Client, subject: str) -> dict[str, Any]:
    response = await client.request(subject, timeout=60)
    return dict(json.loads(response.data))


@pytest.mark.parametrize("verb", VERBS)
async def test_service_answers_discovery_by_name_and_by_id(library_client: Client, name: str, verb: str) -> None:
    async with await start_words_service(library_client, name) as service:
        by_name = await request_json(library_client, f"$SRV.{verb}.{name}")
        by_id = await request_json(library_client, f"$SRV.{verb}.{name}.{service.id}")

        for answer in (by_name, by_id):
            assert answer["type"] == f"io.nats.micro.v1.{verb.lower()}_response"
            assert (answer["name"], answer["id"], answer["version"]) == (name, service.id, "1.2.3")


async def test_every_instance_answers_a_ping_to_all(library_client: Client, name: str) -> None:
    async with (
        await start_words_service(library_client, name) as one,
        await start_words_service(library_client, name) as other,
    ):
        inbox = library_client.new_inbox()
        answers = await library_client.subscribe(inbox)

        await library_client.publish("$SRV.PING", reply=inbox)

        received = [json.loads((await answers.next_msg(timeout=60)).data) for _ in range(2)]
        assert {answer["id"] for answer in received} == {one.id, other.id}


async def test_endpoint_answers_with_headers(library_client: Client, name: str) -> None:
    async with await start_words_service(library_client, name):
        response = await library_client.request(f"{name}.upper", b"hello", timeout=60)

        assert response.data == b"HELLO"
        assert response.headers == {"Length": "5"}


async def test_endpoint_answers_an_error_in_headers(library_client: Client, name: str) -> None:
    async with await start_words_service(library_client, name):
        refused = await library_client.request(f"{name}.refuse", timeout=60)
        failed = await library_client.request(f"{name}.fail", timeout=60)

        assert refused.headers == {"Nats-Service-Error": "no such word", "Nats-Service-Error-Code": "422"}
        assert failed.headers == {"Nats-Service-Error": "the handler failed", "Nats-Service-Error-Code": "500"}


async def test_stats_count_requests_and_errors(library_client: Client, name: str) -> None:
    async with await start_words_service(library_client, name):
        for endpoint in ("upper", "upper", "fail"):
            await library_client.request(f"{name}.{endpoint}", b"x", timeout=60)

        stats = await request_json(library_client, f"$SRV.STATS.{name}")

        counts = {endpoint["name"]: endpoint for endpoint in stats["endpoints"]}
        assert counts["upper"]["num_requests"] == 2
        assert counts["fail"]["num_errors"] == 1


async def test_instances_share_the_requests_of_an_endpoint(
    server: ServerProcess, library_client: Client, name: str
) -> None:
    other_client = await nats.connect(server.url, allow_reconnect=False)
    async with (
        await start_words_service(library_client, name) as one,
        await start_words_service(other_client, name) as other,
    ):
        await asyncio.gather(library_client.flush(), other_client.flush())
        for _ in range(60):
            await library_client.request(f"{name}.upper", b"x", timeout=60)

        counts = [service.stats().endpoints[0].num_requests for service in (one, other)]
        assert sum(counts) == 60
        assert min(counts) > 0
    await other_client.close()


async def test_stopped_service_has_no_responders(library_client: Client, name: str) -> None:
    service = await start_words_service(library_client, name)
    await library_client.request(f"{name}.upper", b"x", timeout=60)
    await service.stop()
    await library_client.flush()

    with pytest.raises(nats.errors.NoRespondersError):
        await library_client.request(f"{name}.upper", b"x", timeout=60)
