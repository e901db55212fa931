"""One delivery: a message of a spool published with Choria's headers, and what became of it.

The id of a message is its `Nats-Msg-Id`, so that a stream keeps it once however often it is sent within its duplicate
window. For what comes later there is `is_stored`: messages of a subject are sent in order, so a message that may have
been sent before is in the stream exactly if it is the last one of its subject.

Invariant: nothing here touches a file.
"""

import base64
from typing import Any

import msgspec

from jetlake.client.api import Api
from jetlake.errors import ClientError, ConfigurationError
from jetlake.submission.message import SpoolMessage
from jetlake.submission.signing import Signer

ANSWER_S_MAX = 2.0
"""How long a stream may take to acknowledge, as in Choria."""

HEADER_OVERHEAD_BYTES = 64
"""The version line and the blank line of a block of headers, and some for the ends of lines."""

MESSAGE_ID = "Nats-Msg-Id"


class StoredInStream(msgspec.Struct, frozen=True):
    """A stream has it."""

    is_duplicate: bool = False


class Failed(msgspec.Struct, frozen=True):
    """It was not acknowledged; `may_be_stored` if nobody said that it was refused."""

    reason: str
    may_be_stored: bool


class Undeliverable(msgspec.Struct, frozen=True):
    """It never will be."""

    reason: str


Outcome = StoredInStream | Failed | Undeliverable


class Delivery:
    """Publishes messages over one connection."""

    def __init__(self, api: Api, collective: str, signer: Signer | None = None) -> None:
        self._api = api
        self._collective = collective
        self._signer = signer

    def subject_of(self, message: SpoolMessage) -> str:
        return f"{self._collective}.submission.in.{message.subject}"

    async def send(self, message: SpoolMessage) -> Outcome:
        """Publish a reliable message, and wait for a stream to acknowledge it."""
        from nats.errors import Error, NoRespondersError

        prepared = self._prepare(message)
        if isinstance(prepared, Undeliverable):
            return prepared
        subject = self.subject_of(message)
        try:
            answer = await self._api.connection.request(
                subject, message.payload, timeout=ANSWER_S_MAX, headers=prepared
            )
        except NoRespondersError:
            return Failed(f"no stream is listening on subject {subject!r}", may_be_stored=False)
        except (TimeoutError, Error, OSError) as error:
            return Failed(str(error) or type(error).__name__, may_be_stored=True)
        return _read_acknowledgement(answer.data, subject)

    async def send_once(self, message: SpoolMessage) -> Outcome:
        """Publish an unreliable message, and do not wait."""
        from nats.errors import Error

        prepared = self._prepare(message)
        if isinstance(prepared, Undeliverable):
            return prepared
        try:
            await self._api.connection.publish(self.subject_of(message), message.payload, headers=prepared)
        except (Error, OSError) as error:
            return Failed(str(error) or type(error).__name__, may_be_stored=False)
        return StoredInStream()

    async def is_stored(self, message: SpoolMessage) -> bool:
        """Tell whether a stream has this message as the last one of its subject; False if nobody says."""
        subject = self.subject_of(message)
        try:
            for stream in await self._api.stream_names(subject):
                answer = await self._api.find(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
                if answer is not None and _has_id(answer["message"], message.id):
                    return True
        except ClientError:
            # Not permitted, or not answered: the duplicate window has to do.
            return False
        return False

    def _prepare(self, message: SpoolMessage) -> dict[str, str] | Undeliverable:
        headers = {
            MESSAGE_ID: message.id,
            "Choria-Priority": str(message.priority),
            "Choria-Created": str(message.created_ns),
            "Choria-Sender": message.sender,
            **({"Choria-Reliable": "1"} if message.reliable else {}),
            **({"Choria-Tries": str(message.tries)} if message.tries else {}),
            "Choria-Identity": message.identity,
            **message.headers,
        }
        if message.sign:
            if self._signer is None:
                return Undeliverable("it is to be signed, and the sender has no seed: give it one with --seed")
            try:
                headers |= self._signer.headers_for(message.payload)
            except ConfigurationError as error:
                return Undeliverable(str(error))
        size = len(message.payload) + HEADER_OVERHEAD_BYTES
        size += sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())
        limit = self._api.connection.max_payload
        if limit and size > limit:
            return Undeliverable(f"it has {size:,} bytes with its headers, and the server takes {limit:,} at most")
        return headers


def _read_acknowledgement(payload: bytes, subject: str) -> Outcome:
    try:
        answer = msgspec.json.decode(payload, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Failed(f"{subject!r} was not answered by a stream", may_be_stored=True)
    error = answer.get("error")
    if isinstance(error, dict):
        return Failed(f"{error.get('description', 'refused')} ({error.get('err_code', 0)})", may_be_stored=False)
    if not answer.get("stream") or not answer.get("seq"):
        return Failed(f"{subject!r} was not answered by a stream", may_be_stored=True)
    return StoredInStream(is_duplicate=bool(answer.get("duplicate", False)))


def _has_id(message: dict[str, Any], message_id: str) -> bool:
    block = base64.b64decode(message.get("hdrs", "")).decode(errors="replace")
    pairs = (line.partition(":") for line in block.split("\r\n")[1:])
    return any(name.lower() == MESSAGE_ID.lower() and value.strip() == message_id for name, _, value in pairs)
