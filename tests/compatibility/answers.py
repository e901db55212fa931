"""Runs a script against a server and returns its answer in a form two servers can be compared by.

What may differ between two right servers is taken out:

- the contents of INFO, and the server's PING, which may come at any time;
- how often a pedantic connection is told of one publish subject: nats-server repeats itself when it reads a message in
  several pieces;
- which of several own inboxes gets the answer that there are no responders;
- the order in which several subscriptions get one message, and which member of a queue group gets it: within a run of
  messages they are sorted by subscription, and all members of all groups count as one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.compatibility.frames import split_frames
from tests.compatibility.operations import Script
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient, connect_line, shown

# This publish is refused with its own text whatever the connection's options are, so its answer ends the script's.
SENTINEL = b"PUB _GR_.end.of.script 0\r\n\r\n"
SENTINEL_ANSWER = b"-ERR 'Permissions Violation for Publish to \"_GR_.end.of.script\"'\r\n"

INVALID_PUBLISH_SUBJECT = b"-ERR 'Invalid Publish Subject'\r\n"
NO_RESPONDERS = b"NATS/1.0 503\r\nNats-Subject: "

# Enough for a server that is not busy to read what came before.
PAUSE_SECONDS = 0.001


@dataclass(frozen=True)
class Answer:
    """What came back, how the connection was left, and what a subscriber to everything saw."""

    frames: tuple[bytes, ...]
    end: str
    observed: tuple[bytes, ...]

    def __str__(self) -> str:
        lines = [f"    {shown(frame)}" for frame in self.frames] + [f"    ({self.end})"]
        lines += [f"    observer: {shown(frame)}" for frame in self.observed]
        return "\n".join(lines)


class Run:
    """One script under way at one server: first `start` at both servers, then `finish`, so that they work at once."""

    def __init__(self, server: ServerProcess, script: Script, quiet_seconds: float) -> None:
        self._client = server.client()
        self._quiet_seconds = quiet_seconds
        self._observer = server.client() if script.observed else None
        self._script = script

    def start(self) -> None:
        if self._observer is not None:
            self._observer.connect()
            self._observer.send(b"SUB > 1\r\n")
            self._observer.expect_pong()
        if self._script.connect is not None:
            self._client.send(connect_line(**self._script.connect))
        for piece in self._script.pieces:
            self._client.send(piece)
            if self._script.paused:
                time.sleep(PAUSE_SECONDS)
        self._client.send(SENTINEL)

    def finish(self) -> Answer:
        with self._client:
            frames, end = read_answer(self._client, self._quiet_seconds)
        observed: list[bytes] = []
        if self._observer is not None:
            with self._observer:
                observed = read_observed(self._observer)
        return Answer(tuple(normalise(frames)), end, tuple(observed))


def read_answer(client: RawClient, quiet_seconds: float) -> tuple[list[bytes], str]:
    """Read up to the sentinel, the end of the connection, or silence (the server waits for more input)."""
    frames: list[bytes] = []
    while True:
        try:
            frame = client.read_frame(quiet_seconds)
        except TimeoutError:
            return frames + split_frames(client.take_buffer()), "waiting for more"
        if not frame:
            return frames + split_frames(client.take_buffer()), "closed"
        if frame == SENTINEL_ANSWER:
            return frames, "open"
        frames.append(frame)


def read_observed(observer: RawClient) -> list[bytes]:
    observer.send(b"PUB end.of.observation 0\r\n\r\n")
    frames = []
    while not (frame := observer.read_line()).startswith(b"MSG end.of.observation "):
        frames.append(frame)
    return frames


def normalise(frames: list[bytes]) -> list[bytes]:
    normal: list[bytes] = []
    run: list[tuple[bytes, bytes]] = []
    for frame in frames:
        if frame.startswith((b"MSG ", b"HMSG ")):
            run.append(normalise_message(frame))
            continue
        normal += [message for _, message in sorted(run, key=lambda pair: pair[0])]
        run = []
        if frame == INVALID_PUBLISH_SUBJECT and normal[-1:] == [frame]:
            continue
        normal.append(b"INFO ..." if frame.startswith(b"INFO ") else frame)
    return normal + [message for _, message in sorted(run, key=lambda pair: pair[0])]


def normalise_message(frame: bytes) -> tuple[bytes, bytes]:
    """Return the subscription id, the same for all that a server may choose from, and the frame with it."""
    line, _, rest = frame.partition(b"\r\n")
    words = line.split(b" ")
    if words[2].startswith(b"q"):
        words[2] = b"q"
    if rest.startswith(NO_RESPONDERS):
        words[2] = b"inbox"
    return words[2], b" ".join(words) + b"\r\n" + rest
