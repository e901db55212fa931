"""Envelopes: a message in Choria's transport format, versions 1 and 2, taken apart and put together.

```text
transport ─ base64 ─► secure request or reply ─ JSON text (1) or base64 (2) ─► request or reply ─► the body
```

Taking apart checks what the published schemas check: the protocols, the required fields and their types. It does not
check signatures, see `signatures`, nor the age of a message: what a node said stays true when it arrives late.

Everything is a pure function of its arguments. Invariant: `parse` either returns a whole `Received` or raises
`EnvelopeError`, whatever bytes it is given.
"""

import base64
import hashlib
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from jetlake.choria.times import rfc3339_ns, rfc3339_s

__all__ = ["EnvelopeError", "Protocol", "Received", "Signed", "make_reply", "make_request", "parse", "parse_raw"]

Protocol: TypeAlias = Literal["request", "reply", "raw"]

TRANSPORT_1 = "choria:transport:1"
TRANSPORT_2 = "io.choria.protocol.v2.transport"

INSECURE = "insecure"
"""What stands in place of a signature and a certificate when a node has none."""

NO_REPLY = "dev.null"
"""A subject without subscribers: registration wants no answer."""

REGISTRATION_AGENT = "registration"

REASON_LETTERS_MAX = 200
"""Of a reason: it may repeat what was received, and goes into log lines and headers."""

Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
RequestId1: TypeAlias = Annotated[str, msgspec.Meta(min_length=32, max_length=32)]
Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class EnvelopeError(ValueError):
    """Is raised when a message is not in the format that was expected; the text says why."""


class Signed(msgspec.Struct, frozen=True, gc=False):
    """What a signature covers, and the proof: a certificate (version 1) or a token (version 2)."""

    version: int
    content: bytes
    signature: bytes
    proof: str
    # Of a delegated signer; version 2 only.
    signer: str = ""


class Received(msgspec.Struct, frozen=True, gc=False):
    """What an envelope says. `sender` is what the message claims; without a checked signature nobody vouches for it."""

    data: str
    sender: str
    # RFC 3339 in UTC, by the sender's clock.
    time: str
    request_id: str
    signed: Signed | None = None


# What is inside, as the schemas have it. Fields that nobody reads are declared where the schema requires them.


class _Headers(msgspec.Struct, gc=False):
    """An object whose fields nobody reads."""


class _Transport(msgspec.Struct, gc=False):
    protocol: str
    data: bytes
    headers: _Headers


class _FactFilter(msgspec.Struct, gc=False):
    fact: Text
    operator: Literal[">=", "<=", "<", ">", "!=", "==", "=~"]
    value: Text


class _Filter(msgspec.Struct, gc=False):
    fact: list[_FactFilter]
    cf_class: list[str]
    identity: list[str]
    # Texts in version 1, lists of objects in version 2.
    compound: list[Any]
    agent: list[str] = []


class _RequestEnvelope1(msgspec.Struct, gc=False):
    requestid: RequestId1
    senderid: str
    callerid: Text
    collective: Text
    agent: Text
    ttl: int
    time: int
    filter: _Filter


class _ReplyEnvelope1(msgspec.Struct, gc=False):
    requestid: RequestId1
    senderid: str
    agent: Text
    time: int


class _Request1(msgspec.Struct, gc=False):
    protocol: Literal["choria:request:1"]
    message: Text
    envelope: _RequestEnvelope1


class _Reply1(msgspec.Struct, gc=False):
    protocol: Literal["choria:reply:1"]
    message: Text
    envelope: _ReplyEnvelope1


class _SecureRequest1(msgspec.Struct, gc=False):
    protocol: Literal["choria:secure:request:1"]
    message: Text
    signature: Text
    pubcert: Text


class _SecureReply1(msgspec.Struct, gc=False):
    protocol: Literal["choria:secure:reply:1"]
    message: Text
    hash: Text


class _Request2(msgspec.Struct, gc=False):
    protocol: Literal["io.choria.protocol.v2.request"]
    message: bytes
    id: Text
    sender: Text
    caller: Text
    collective: Text
    agent: Text
    ttl: Positive
    time: Positive
    filter: _Filter | None = None


class _Reply2(msgspec.Struct, gc=False):
    # The published schema names the request's protocol here, which no reply has.
    protocol: Literal["io.choria.protocol.v2.reply"]
    message: bytes
    request: Text
    sender: Text
    agent: Text
    time: Positive


class _SecureRequest2(msgspec.Struct, gc=False):
    protocol: Literal["io.choria.protocol.v2.secure_request"]
    request: bytes
    signature: bytes
    caller: str
    signer: str = ""


class _SecureReply2(msgspec.Struct, gc=False):
    protocol: Literal["io.choria.protocol.v2.secure_reply"]
    reply: bytes
    hash: Text
    signature: bytes = b""
    sender: str = ""


_decode_transport = msgspec.json.Decoder(_Transport).decode
_decode_secure_request_1 = msgspec.json.Decoder(_SecureRequest1).decode
_decode_secure_reply_1 = msgspec.json.Decoder(_SecureReply1).decode
_decode_request_1 = msgspec.json.Decoder(_Request1).decode
_decode_reply_1 = msgspec.json.Decoder(_Reply1).decode
_decode_secure_request_2 = msgspec.json.Decoder(_SecureRequest2).decode
_decode_secure_reply_2 = msgspec.json.Decoder(_SecureReply2).decode
_decode_request_2 = msgspec.json.Decoder(_Request2).decode
_decode_reply_2 = msgspec.json.Decoder(_Reply2).decode


def parse(payload: bytes, protocol: Protocol, *, keep_signature: bool = False) -> Received:
    """Take a message apart. Raises `EnvelopeError`.

    With `keep_signature` the result has what a signature covers, to be checked by `signatures`; the hash of a reply is
    then checked here.
    """
    step = "transport"
    try:
        transport = _decode_transport(payload)
        step = f"secure {protocol}"
        if transport.protocol == TRANSPORT_1:
            parse_inner = _parse_request_1 if protocol == "request" else _parse_reply_1
        elif transport.protocol == TRANSPORT_2:
            parse_inner = _parse_request_2 if protocol == "request" else _parse_reply_2
        else:
            raise EnvelopeError(f"unknown transport protocol {transport.protocol[:80]!r}")
        return parse_inner(transport.data, keep_signature)
    except EnvelopeError:
        raise
    except (ValueError, RecursionError) as error:
        # Everything msgspec raises is a ValueError, broken UTF-8 and base64 included.
        raise EnvelopeError(f"not a {step}: {str(error)[:REASON_LETTERS_MAX]}") from error


def _parse_request_1(data: bytes, keep_signature: bool) -> Received:
    secure = _decode_secure_request_1(data)
    request = _decode_request_1(secure.message)
    envelope = request.envelope
    signed = None
    if keep_signature:
        signed = Signed(1, secure.message.encode(), _signature_bytes(secure.signature), secure.pubcert)
    return Received(request.message, envelope.senderid, rfc3339_s(envelope.time), envelope.requestid, signed)


def _parse_reply_1(data: bytes, keep_signature: bool) -> Received:
    secure = _decode_secure_reply_1(data)
    if keep_signature:
        _check_hash(secure.message.encode(), secure.hash)
    reply = _decode_reply_1(secure.message)
    envelope = reply.envelope
    return Received(reply.message, envelope.senderid, rfc3339_s(envelope.time), envelope.requestid)


def _parse_request_2(data: bytes, keep_signature: bool) -> Received:
    secure = _decode_secure_request_2(data)
    request = _decode_request_2(secure.request)
    signed = None
    if keep_signature:
        signed = Signed(2, secure.request, secure.signature, secure.caller, secure.signer)
    return Received(_body_text(request.message), request.sender, rfc3339_ns(request.time), request.id, signed)


def _parse_reply_2(data: bytes, keep_signature: bool) -> Received:
    secure = _decode_secure_reply_2(data)
    signed = None
    if keep_signature:
        _check_hash(secure.reply, secure.hash)
        signed = Signed(2, secure.reply, secure.signature, secure.sender) if secure.signature else None
    reply = _decode_reply_2(secure.reply)
    return Received(_body_text(reply.message), reply.sender, rfc3339_ns(reply.time), reply.request, signed)


def parse_raw(payload: bytes, *, sender: str, time_ns: int, request_id: str) -> Received:
    """Take a message that has no envelope as it is. Raises `EnvelopeError` for one that is not text."""
    return Received(_body_text(payload), sender, rfc3339_ns(time_ns), request_id)


def _body_text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise EnvelopeError("the body is not UTF-8 text: an output document could not repeat it exactly") from error


def _signature_bytes(text: str) -> bytes:
    if text == INSECURE:
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise EnvelopeError("the signature is not base64") from error


def _check_hash(content: bytes, stated: str) -> None:
    digest = hashlib.sha256(content).digest()
    if stated not in (base64.b64encode(digest).decode(), digest.hex()):
        raise EnvelopeError("the hash of the reply does not match its content")


# Putting together: for node agents, the simulator and tests. Only version 1 can go without keys, so it is the default.


def make_request(
    body: str,
    *,
    sender: str,
    request_id: str,
    time_s: int,
    collective: str = "mcollective",
    agent: str = REGISTRATION_AGENT,
    ttl_s: int = 60,
    sign: "RequestSigner | None" = None,
    version: int = 1,
) -> bytes:
    """Return a request in its transport envelope; without `sign` it is marked as insecure."""
    if version == 2:
        return _make_request_2(body, sender, request_id, time_s, collective, agent, ttl_s, sign)
    request = {
        "protocol": "choria:request:1",
        "message": body,
        "envelope": {
            "requestid": request_id,
            "senderid": sender,
            "callerid": f"choria={sender}",
            "collective": collective,
            "agent": agent,
            "ttl": ttl_s,
            "time": time_s,
            "filter": _empty_filter(),
        },
    }
    message = msgspec.json.encode(request)
    signature, proof = (INSECURE, INSECURE) if sign is None else (_base64(sign.sign(message)), sign.proof)
    secure = {
        "protocol": "choria:secure:request:1",
        "message": message.decode(),
        "signature": signature,
        "pubcert": proof,
    }
    headers = {"reply-to": NO_REPLY, "mc_sender": sender}
    return _make_transport(TRANSPORT_1, secure, headers)


def make_reply(
    body: str, *, sender: str, request_id: str, time_s: int, agent: str = "rpcutil", version: int = 1
) -> bytes:
    """Return a reply in its transport envelope, as nodes answer requests."""
    if version == 2:
        reply = msgspec.json.encode(
            {
                "protocol": "io.choria.protocol.v2.reply",
                "message": body.encode(),
                "request": request_id,
                "sender": sender,
                "agent": agent,
                "time": time_s * 1_000_000_000,
            }
        )
        digest = _base64(hashlib.sha256(reply).digest())
        secure = {"protocol": "io.choria.protocol.v2.secure_reply", "reply": reply, "hash": digest}
        return _make_transport(TRANSPORT_2, secure, {"sender": sender})
    envelope = {"requestid": request_id, "senderid": sender, "agent": agent, "time": time_s}
    message = msgspec.json.encode({"protocol": "choria:reply:1", "message": body, "envelope": envelope})
    digest = _base64(hashlib.sha256(message).digest())
    secure = {"protocol": "choria:secure:reply:1", "message": message.decode(), "hash": digest}
    return _make_transport(TRANSPORT_1, secure, {"mc_sender": sender})


class RequestSigner(ABC):
    """How requests are signed: `sign` returns the signature of bytes, `proof` is the certificate or the token."""

    proof = ""

    @abstractmethod
    def sign(self, content: bytes) -> bytes:
        """Return the signature."""


def _make_request_2(
    body: str,
    sender: str,
    request_id: str,
    time_s: int,
    collective: str,
    agent: str,
    ttl_s: int,
    sign: RequestSigner | None,
) -> bytes:
    request = msgspec.json.encode(
        {
            "protocol": "io.choria.protocol.v2.request",
            "message": body.encode(),
            "id": request_id,
            "sender": sender,
            "caller": f"choria={sender}",
            "collective": collective,
            "agent": agent,
            "ttl": ttl_s,
            "time": time_s * 1_000_000_000,
            "filter": _empty_filter(),
        }
    )
    secure = {
        "protocol": "io.choria.protocol.v2.secure_request",
        "request": request,
        "signature": INSECURE.encode() if sign is None else sign.sign(request),
        "caller": INSECURE if sign is None else sign.proof,
    }
    return _make_transport(TRANSPORT_2, secure, {"reply": NO_REPLY, "sender": sender})


def _make_transport(protocol: str, secure: dict[str, Any], headers: dict[str, str]) -> bytes:
    return msgspec.json.encode({"protocol": protocol, "data": msgspec.json.encode(secure), "headers": headers})


@lru_cache(maxsize=1)
def _empty_filter() -> dict[str, list[str]]:
    return {"fact": [], "cf_class": [], "agent": [], "identity": [], "compound": []}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
