"""Reading the last message of a subject while it is replaced: there is always one."""

import asyncio
import json

import nats
import pytest
from nats.js.api import StorageType, StreamConfig

from tests.compatibility.fixtures import url  # noqa: F401 - a server with JetStream, for this file alone

READS = 400

REPLACED_PER_READ = 8
"""Messages that are on their way whenever one is asked for."""


@pytest.mark.parametrize("storage", list(StorageType))
async def test_subject_that_always_has_a_message_is_never_answered_as_without(url, storage):  # noqa: F811
    name = f"REPLACED-{storage.value}"
    writer, reader = await nats.connect(url), await nats.connect(url)
    config = StreamConfig(
        name=name, subjects=[name], storage=storage, max_msgs_per_subject=1, allow_direct=True, num_replicas=1
    )
    await writer.jetstream().add_stream(config)
    await writer.jetstream().publish(name, b"first")
    missing = []
    for _ in range(READS):
        for _ in range(REPLACED_PER_READ):
            await writer.publish(name, b"next")
        body = json.dumps({"last_by_subj": name}).encode()
        asked, direct, by_subject = await asyncio.gather(
            reader.request(f"$JS.API.STREAM.MSG.GET.{name}", body, timeout=60),
            reader.request(f"$JS.API.DIRECT.GET.{name}", body, timeout=60),
            reader.request(f"$JS.API.DIRECT.GET.{name}.{name}", timeout=60),
        )
        answer = json.loads(asked.data)
        if "error" in answer:
            missing.append(answer["error"])
        missing += [answer.headers for answer in (direct, by_subject) if "Nats-Sequence" not in (answer.headers or {})]

    assert missing == []
    await writer.close()
    await reader.close()
