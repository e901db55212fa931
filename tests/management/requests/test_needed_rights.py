"""What a request needs besides the right to its own subject: a deny list written for nats-server holds here."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import jetlake
from jetlake.client.preview import PreviewClient, PreviewTimeoutError
from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.dispatch import Dispatcher
from jetlake.management.manager import Manager
from jetlake.management.preview.dispatch import PreviewDispatcher
from jetlake.management.requests.rights import SendTarget
from jetlake.management.streams.config import StreamConfig

CONFIG = """
port: -1
jetstream {{ store_dir: "{folder}"{more} }}
authorization {{
  users: [
    {{ user: all, password: x }}
    {{ user: denied, password: x, permissions: {{ publish: {{ deny: ["$JS.API.>"] }} }} }}
    {{ user: unread, password: x, permissions: {{ publish: {{ deny: ["$JS.API.STREAM.MSG.GET.S"] }} }} }}
    {{ user: uninformed, password: x, permissions: {{
         publish: {{ deny: ["$JS.API.STREAM.INFO.*", "$JS.API.CONSUMER.INFO.>", "$JS.API.STREAM.CREATE.*"] }} }} }}
  ]
}}
"""

STREAM = {"name": "S", "subjects": ["s.>"], "storage": "file"}
OLD_STREAM = {"name": "NEW", "subjects": ["new"], "retention": "stream_limits", "storage": "memory"}
OLD_SET = {"name": "NEW", "subjects": ["new"], "retention": "stream_limits", "storage": "memory"}

# Every request of both old dialects, by its endpoint's pattern, to a server that has a stream S with a consumer C.
OF_OLD_DIALECTS: dict[str, tuple[str, Any]] = {
    "ENABLED": ("$JS.ENABLED", b""),
    "INFO": ("$JS.INFO", b""),
    "STREAM.LIST": ("$JS.STREAM.LIST", b""),
    "STREAM.*.CREATE": ("$JS.STREAM.NEW.CREATE", OLD_STREAM),
    "STREAM.*.UPDATE": ("$JS.STREAM.S.UPDATE", STREAM),
    "STREAM.*.INFO": ("$JS.STREAM.S.INFO", b""),
    "STREAM.*.DELETE": ("$JS.STREAM.S.DELETE", b""),
    "STREAM.*.PURGE": ("$JS.STREAM.S.PURGE", b""),
    "STREAM.*.MSG.DELETE": ("$JS.STREAM.S.MSG.DELETE", b"1"),
    "STREAM.*.MSG.BYSEQ": ("$JS.STREAM.S.MSG.BYSEQ", b"1"),
    "STREAM.*.CONSUMERS": ("$JS.STREAM.S.CONSUMERS", b""),
    "STREAM.*.EPHEMERAL.CONSUMER.CREATE": ("$JS.STREAM.S.EPHEMERAL.CONSUMER.CREATE", {"stream_name": "S"}),
    "STREAM.*.CONSUMER.*.CREATE": ("$JS.STREAM.S.CONSUMER.D.CREATE", {"stream_name": "S"}),
    "STREAM.*.CONSUMER.*.INFO": ("$JS.STREAM.S.CONSUMER.C.INFO", b""),
    "STREAM.*.CONSUMER.*.DELETE": ("$JS.STREAM.S.CONSUMER.C.DELETE", b""),
    "TEMPLATE.LIST": ("$JS.TEMPLATE.LIST", b""),
    "TEMPLATE.*.CREATE": ("$JS.TEMPLATE.T.CREATE", {"name": "T", "config": {"subjects": ["t.*"]}, "max_streams": 1}),
    "TEMPLATE.*.INFO": ("$JS.TEMPLATE.T.INFO", b""),
    "TEMPLATE.*.DELETE": ("$JS.TEMPLATE.T.DELETE", b""),
    "MSGSETS": ("$JS.MSGSETS", b""),
    "MSGSET.CREATE": ("$JS.MSGSET.CREATE", OLD_SET),
    "MSGSET.INFO": ("$JS.MSGSET.INFO", b"S"),
    "MSGSET.DELETE": ("$JS.MSGSET.DELETE", b"S"),
    "MSGSET.PURGE": ("$JS.MSGSET.PURGE", b"S"),
    "MSGSET.MSG.DELETE": ("$JS.MSGSET.MSG.DELETE", b"S 1"),
    "OBSERVABLES": ("$JS.OBSERVABLES", b"S"),
    "OBSERVABLE.CREATE": ("$JS.OBSERVABLE.CREATE", {"msg_set_name": "S", "config": {}}),
    "OBSERVABLE.INFO": ("$JS.OBSERVABLE.INFO", b"S C"),
    "OBSERVABLE.DELETE": ("$JS.OBSERVABLE.DELETE", b"S C"),
    "RN.*.*": ("$JS.RN.S.C", b"1"),
    "STREAM.*.CONSUMER.*.NEXT": ("$JS.STREAM.S.CONSUMER.C.NEXT", b"1"),
}


def start(folder: Path, more: str = "") -> jetlake.Server:
    file = folder / "server.conf"
    file.write_text(CONFIG.format(folder=folder / "store", more=more))
    return jetlake.Server(config=file)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with start(tmp_path_factory.mktemp("needed")) as running:
        made = asyncio.run(ask(running, "all", "$JS.API.STREAM.CREATE.S", STREAM))
        assert "error" not in made
        consumer = {"stream_name": "S", "config": {"durable_name": "C", "ack_policy": "explicit"}}
        asyncio.run(ask(running, "all", "$JS.API.CONSUMER.DURABLE.CREATE.S.C", consumer))
        asyncio.run(ask(running, "all", "s.1", b"secret"))
        yield running


async def ask(server: jetlake.Server, user: str, subject: str, body: Any = b"") -> str:
    """Ask as one of the users, and return the answer."""
    url = server.url.replace("nats://", f"nats://{user}:x@")
    async with PreviewClient(url) as client:
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        return (await client.request(subject, payload)).data.decode()


def endpoints_of(dispatcher: Dispatcher | PreviewDispatcher) -> Any:
    return dispatcher._endpoints


def test_list_of_requests_in_old_dialects_is_complete(server):
    manager: Manager = server._jetstream.manager
    patterns = {endpoint.pattern for endpoint in endpoints_of(manager._preview_dispatcher())}

    assert patterns | {"RN.*.*", "STREAM.*.CONSUMER.*.NEXT"} == set(OF_OLD_DIALECTS)


@pytest.mark.parametrize("pattern", OF_OLD_DIALECTS)
async def test_who_is_denied_the_api_is_denied_its_old_dialects(server, pattern):
    subject, body = OF_OLD_DIALECTS[pattern]

    answer = await ask(server, "denied", subject, body)

    assert "permissions violation: this needs the right to publish to '$JS.API." in answer
    assert "secret" not in answer
    assert '"messages":1' in await ask(server, "all", "$JS.API.STREAM.INFO.S")


@pytest.mark.parametrize(
    ("user", "request_subject", "body", "needed"),
    [
        ("unread", "STREAM.SCAN.PLAN.S", b"", "STREAM.MSG.GET.S"),
        ("unread", "STREAM.SCAN.FILES.S", b"", "STREAM.MSG.GET.S"),
        ("unread", "STREAM.SCAN.ROWS.S", {"deliver_subject": "_INBOX.x"}, "STREAM.MSG.GET.S"),
        ("unread", "STREAM.FORK.S", {"name": "F"}, "STREAM.MSG.GET.S"),
        ("uninformed", "STREAM.FORK.S", {"name": "F"}, "STREAM.CREATE.F"),
        ("uninformed", "STREAM.WHY.S", b"", "STREAM.INFO.S"),
        ("uninformed", "CONSUMER.WHY.S.C", b"", "CONSUMER.INFO.S.C"),
    ],
)
async def test_our_own_requests_need_what_the_same_needs_at_nats_server(server, user, request_subject, body, needed):
    answer = await ask(server, user, f"$JS.API.{request_subject}", body)

    assert f"permissions violation: this needs the right to publish to '$JS.API.{needed}'" in answer
    assert "permissions violation" not in await ask(server, "all", f"$JS.API.{request_subject}", body)
    if "FORK" in request_subject:
        await ask(server, "all", "$JS.API.STREAM.DELETE.F")


# Fields of requests that name where the server sends to, with what they are checked as.
SENDING_FIELDS = {
    "deliver_subject": {SendTarget.DELIVER, SendTarget.SNAPSHOT, SendTarget.SCAN},
    "republish": {SendTarget.REPUBLISH},
    "metadata": {SendTarget.DEAD_LETTER},
}
# Fields whose values are subjects, and that send nothing anywhere but into the stream itself.
HARMLESS_FIELDS = {"subjects", "subject_transform", "subject_delete_marker_ttl", "max_msgs_per_subject"}
HARMLESS_FIELDS |= {"discard_new_per_subject", "filter_subject", "filter_subjects", "deliver_group", "deliver_policy"}


def test_every_field_that_names_a_subject_is_known():
    fields = {field.encode_name for kind in (StreamConfig, ConsumerConfig) for field in msgspec.structs.fields(kind)}
    suspicious = {name for name in fields if any(word in name for word in ("subject", "deliver", "dest", "publish"))}

    assert suspicious <= SENDING_FIELDS.keys() | HARMLESS_FIELDS | {"max_deliver"}


async def test_dialects_can_be_switched_off(tmp_path):
    with start(tmp_path, ", preview_dialects: false") as server, pytest.raises(PreviewTimeoutError):
        await ask(server, "all", "$JS.ENABLED")


@pytest.mark.parametrize("subject", ["_INBOX.>", "$JS.API.>", "$KV.x.>", "_R_.>"])
async def test_template_never_covers_inboxes_or_subjects_of_the_server(server, subject):
    template = {"name": "T", "config": {"subjects": [subject]}, "max_streams": 1}

    answer = await ask(server, "all", "$JS.TEMPLATE.T.CREATE", template)

    assert "template subjects can not cover inboxes or system subjects" in answer
