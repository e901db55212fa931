"""Envelopes taken apart and put together, checked against the published schemas."""

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.choria.envelopes import EnvelopeError, make_reply, make_request, parse, parse_raw
from jetlake.client.schemas import problems, read

REQUEST_ID = "b1946ac92492d2347c6235b4d2611184"
TIME_S = 1_520_088_557


def request(body="hello", version=1, **options):
    fields = {"sender": "web1.ldn.example.net", "request_id": REQUEST_ID, "time_s": TIME_S} | options
    return make_request(body, version=version, **fields)


def reply(body="hello", version=1):
    return make_reply(body, sender="web1.ldn.example.net", request_id=REQUEST_ID, time_s=TIME_S, version=version)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", ["request", "reply"])
@pytest.mark.parametrize("body", ["hello", '{"a": "b\\n"}', "žluťoučký 🐎 \x00 \x7f", "x" * 100_000])
def test_what_was_put_together_is_taken_apart_again(kind, version, body):
    payload = request(body, version) if kind == "request" else reply(body, version)

    received = parse(payload, kind)

    assert received.data == body
    assert received.sender == "web1.ldn.example.net"
    assert received.request_id == REQUEST_ID
    assert received.time == "2018-03-03T14:49:17Z"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", ["request", "reply"])
def test_every_layer_fits_its_published_schema(kind, version):
    transport = json.loads(request(version=version) if kind == "request" else reply(version=version))
    secure = json.loads(base64.b64decode(transport["data"]))
    inner = secure["message"] if version == 1 else base64.b64decode(secure[kind])
    prefix = f"choria.protocol.v{version}"

    assert list(problems(transport, read(f"{prefix}.transport"))) == []
    assert list(problems(secure, read(f"{prefix}.secure_{kind}"))) == []
    assert list(problems(json.loads(inner), read(f"{prefix}.{kind}"))) == []


def test_a_recorded_request_of_version_1_is_understood():
    inner = (
        '{"protocol":"choria:request:1","message":"eyJhIjoxfQ==","envelope":{"requestid":"2d437f2904980ac32d437f2904980ac3",'
        '"senderid":"some.node","callerid":"choria=rip.mcollective","collective":"test","agent":"registration","ttl":120,'
        '"time":1454687723,"filter":{"fact":[{"fact":"country","operator":"==","value":"mt"}],"cf_class":[],'
        '"agent":["registration"],"identity":[],"compound":[]}}}'
    )
    secure = {"protocol": "choria:secure:request:1", "message": inner, "signature": "insecure", "pubcert": "insecure"}
    transport = {
        "protocol": "choria:transport:1",
        "data": base64.b64encode(json.dumps(secure).encode()).decode(),
        "headers": {"reply-to": "dev.null", "mc_sender": "some.node", "seen-by": [["a", "b", "c"]]},
    }

    received = parse(json.dumps(transport).encode(), "request")

    assert (received.data, received.sender, received.time) == ("eyJhIjoxfQ==", "some.node", "2016-02-05T15:55:23Z")


def test_nanoseconds_of_version_2_are_kept_without_trailing_zeros():
    secure = {
        "protocol": "io.choria.protocol.v2.secure_reply",
        "hash": "x",
        "reply": base64.b64encode(
            json.dumps(
                {
                    "protocol": "io.choria.protocol.v2.reply",
                    "message": base64.b64encode(b"hello").decode(),
                    "request": "1",
                    "sender": "n",
                    "agent": "a",
                    "time": 1_520_088_557_120_000_000,
                }
            ).encode()
        ).decode(),
    }
    transport = {
        "protocol": "io.choria.protocol.v2.transport",
        "data": base64.b64encode(json.dumps(secure).encode()).decode(),
        "headers": {},
    }

    assert parse(json.dumps(transport).encode(), "reply").time == "2018-03-03T14:49:17.12Z"


def changed(payload, layer, **fields):
    """Return a message of version 1 with fields of one layer replaced, or removed if None."""
    transport = json.loads(payload)
    secure = json.loads(base64.b64decode(transport["data"]))
    inner = json.loads(secure["message"])
    target = {"transport": transport, "secure": secure, "inner": inner, "envelope": inner["envelope"]}[layer]
    for name, value in fields.items():
        if value is None:
            del target[name]
        else:
            target[name] = value
    if layer in ("inner", "envelope"):
        secure["message"] = json.dumps(inner)
    if layer != "transport":
        transport["data"] = base64.b64encode(json.dumps(secure).encode()).decode()
    return json.dumps(transport).encode()


@pytest.mark.parametrize(
    ("payload", "kind", "reason"),
    [
        (b"", "request", "not a transport"),
        (b"hello", "request", "not a transport"),
        (b"\xff\xfe", "request", "not a transport"),
        (b'{"protocol":"choria:transport:7","data":"","headers":{}}', "request", "unknown transport protocol"),
        (reply(), "request", "not a secure request"),
        (request(), "reply", "not a secure reply"),
        (reply(version=2), "request", "not a secure request"),
        (request(version=2), "reply", "not a secure reply"),
        (changed(request(), "transport", data="%%%"), "request", "not a transport"),
        (changed(request(), "transport", headers=None), "request", "headers"),
        (changed(request(), "secure", message="{"), "request", "not a secure request"),
        (changed(request(), "secure", signature=None), "request", "signature"),
        (changed(request(), "inner", message=""), "request", "length"),
        (changed(request(), "envelope", requestid="short"), "request", "length"),
        (changed(request(), "envelope", senderid=7), "request", "str"),
        (changed(request(), "envelope", time="now"), "request", "int"),
        (changed(request(), "envelope", time=10**18), "request", "outside the years"),
        (changed(request(), "envelope", filter=None), "request", "filter"),
        (b"[" * 100_000, "request", "not a transport"),
        (b'{"protocol":' + b'{"a":' * 100_000, "request", "not a transport"),
    ],
)
def test_what_is_wrong_is_refused_with_a_reason(payload, kind, reason):
    with pytest.raises(EnvelopeError, match=reason):
        parse(payload, kind)


def test_a_reply_whose_hash_is_wrong_is_refused_when_signatures_count():
    payload = changed(reply(), "secure", hash="AAAA")

    assert parse(payload, "reply").data == "hello"
    with pytest.raises(EnvelopeError, match="hash"):
        parse(payload, "reply", keep_signature=True)


def test_a_body_that_is_no_text_is_refused():
    with pytest.raises(EnvelopeError, match="UTF-8"):
        parse_raw(b"\xff", sender="n", time_ns=0, request_id="1")


@given(st.binary(max_size=300))
def test_no_bytes_do_anything_but_raise_an_envelope_error(payload):
    for kind in ("request", "reply"):
        with pytest.raises(EnvelopeError):
            parse(payload, kind)


@given(st.data())
def test_a_message_with_some_bytes_changed_is_understood_or_refused(data):
    payload = bytearray(data.draw(st.sampled_from([request(), request(version=2), reply(), reply(version=2)])))
    for _ in range(data.draw(st.integers(1, 5))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))

    for kind in ("request", "reply"):
        with suppress(EnvelopeError):
            assert parse(bytes(payload), kind, keep_signature=True).time
