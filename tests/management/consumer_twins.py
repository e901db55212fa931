"""The two sides of a comparison of consumers: nats-server behind a socket, and our API on an engine of dictionaries."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable

from jetlake.management.settings import ManagementSettings
from tests.compatibility.wire import RawClient
from tests.management.api_cases import ApiStep
from tests.management.api_twin import ApiTwin
from tests.management.consumer_cases import STREAMS, Case

# What differs from run to run: the time of day, names and identities made by chance.
_CHANGING = [
    (re.compile(rb'"%d-\d\d-\d\dT[^"]*Z"' % time.gmtime().tm_year), b'"now"'),
    (re.compile(rb'"pause_remaining":\d+'), b'"pause_remaining":1'),
    (re.compile(rb'"name":"[0-9A-Za-z]{8}"'), b'"name":"made up"'),
    (re.compile(rb'(JS_\w+)-[0-9A-Za-z]{8}"'), rb'\1-made up"'),
    (re.compile(rb"(Nats-Stream-Identity: |identity does not match: )[0-9A-Za-z]{8}"), rb"\1same"),
    (re.compile(rb'"id":"[0-9A-Za-z]{22}"'), b'"id":"made up"'),
]
ATTEMPTS_MAX = 600
_QUESTIONS = ("CONSUMER.INFO", "CONSUMER.LIST", "STREAM.INFO")
# What nats-server says when the folder of a stream that was just deleted is still there.
_NOT_YET = b"error creating store for stream"


def masked(answer: bytes) -> bytes:
    for pattern, replacement in _CHANGING:
        answer = pattern.sub(replacement, answer)
    return answer.strip()


def stream_body(name: str) -> bytes:
    return json.dumps({"name": name, "storage": "memory", **STREAMS[name]}).encode()


class NatsServerSide:
    """A connection to a nats-server, as one account."""

    def __init__(self, client: RawClient, user: str = "") -> None:
        self.client = client
        self.client.connect(headers=True, no_responders=True, **({"user": user, "pass": "x"} if user else {}))
        self.client.send(b"SUB answers 1\r\n")

    def request(self, step: ApiStep) -> bytes:
        is_message = step.subject.startswith("@")
        subject = step.subject[1:] if is_message else f"$JS.API.{step.subject}"
        sizes = (
            b"%d %d" % (len(step.header), len(step.header) + len(step.body)) if step.header else b"%d" % len(step.body)
        )
        verb = b"HPUB" if step.header else b"PUB"
        self.client.send(b"%s %s answers %s\r\n%s%s\r\n" % (verb, subject.encode(), sizes, step.header, step.body))
        answer = self.client.read_frame().partition(b"\r\n")[2].removesuffix(b"\r\n")
        return b"" if is_message else answer

    def begin(self, streams: Iterable[str]) -> None:
        for name in streams:
            for _ in range(ATTEMPTS_MAX):
                answer = self.request(ApiStep(f"STREAM.CREATE.{name}", stream_body(name)))
                if _NOT_YET not in answer:
                    break
                time.sleep(0.02)
            assert b'"error"' not in answer, answer

    def end(self) -> None:
        for name in json.loads(self.request(ApiStep("STREAM.NAMES")))["streams"] or []:
            self.request(ApiStep(f"STREAM.DELETE.{name}"))


class OurSide:
    """Our API."""

    def __init__(self, settings: ManagementSettings, account: str = "$G") -> None:
        self.settings = settings
        self.account = account
        self.api = ApiTwin(settings)

    def request(self, step: ApiStep) -> bytes:
        if step.subject.startswith("@"):
            self.api.publish(step.body.decode(), step.subject[1:], account=self.account)
            return b""
        answer = self.api.request(step.subject, step.body, step.header, account=self.account)
        return b"nothing" if answer is None else answer

    def begin(self, streams: Iterable[str]) -> None:
        for name in streams:
            answer = self.request(ApiStep(f"STREAM.CREATE.{name}", stream_body(name)))
            assert b'"error"' not in answer, answer

    def end(self) -> None:
        for name in list(self.api.catalog.streams_of(self.account).names):
            self.request(ApiStep(f"STREAM.DELETE.{name}"))
        self.api.engine.published.clear()


Side = NatsServerSide | OurSide


def differences(theirs: Side, ours: Side, cases: Iterable[Case]) -> list[str]:
    """Play all cases on both sides and return what was answered differently."""
    different = []
    for case in cases:
        for side in (theirs, ours):
            side.begin(case.streams)
        for step in case.steps:
            expected, answer = _answers_of((theirs, ours), step)
            if answer != expected:
                where = f"{step.subject} {step.header!r} {step.body[:300]!r} (step {case.steps.index(step)})"
                different.append(f"{where}\n    nats-server: {expected[:900]!r}\n    ours:        {answer[:900]!r}")
        for side in (theirs, ours):
            side.end()
    return different


def _answers_of(sides: tuple[Side, Side], step: ApiStep) -> list[bytes]:
    """Return both answers. A question is asked again: servers count a message only a while after it is stored."""
    answers = [_masked_of(step, side.request(step)) for side in sides]
    for _ in range(ATTEMPTS_MAX if step.subject.startswith(_QUESTIONS) else 0):
        if answers[0] == answers[1]:
            break
        time.sleep(0.05)
        answers = [_masked_of(step, side.request(step)) for side in sides]
    return answers


def _masked_of(step: ApiStep, answer: bytes) -> bytes:
    answer = masked(answer)
    # How often was asked before differs with the retries above.
    return re.sub(rb'"total":\d+,"errors":\d+', b"", answer) if step.subject == "INFO" else answer
