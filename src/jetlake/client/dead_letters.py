"""Dead letters: messages that a consumer has given up on, in the stream that its own stream names.

A stream names it in its metadata, `jetlake.dead_letters`. Each dead letter has the payload and the headers of the
message, and says in headers of its own who gave it up, why, and after how many deliveries.

```python
async with DeadLetters(server, "DEAD") as dead:
    async for letter in dead.each():
        await dead.redrive(letter)
```

Everything here speaks the protocol of NATS, so letters can be read and redriven on any server that keeps the stream.

A Jetlake server takes these headers out of whatever others publish, so that a letter is one that the server has
written. What a service of ours could not read it publishes itself, in headers of its own: such a letter is shown,
and not redriven.

Invariant: a letter is removed only after the server has acknowledged that the message is stored again.
"""

import base64
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import msgspec

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api, token
from jetlake.client.channel import HEADER_LINE, Channel
from jetlake.client.connection import HasUrl
from jetlake.client.ordered import OrderedReader, position_of
from jetlake.client.pulls import Start
from jetlake.client.timestamps import datetime_of
from jetlake.errors import ClientError

OPTION = "jetlake.dead_letters"
"""The key in a stream's metadata that names where its dead letters are kept."""

SUBJECTS = "dead.*.*.>"
"""The subjects of dead letters: of a stream, of a consumer, and the message's own."""

CAUSE_CHARACTERS_MAX = 200
"""Characters of a cause that count: later differences are details."""

CHANGING = r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|0x[0-9a-fA-F]+|\d+(?:\.\d+)*"
"""Ids and numbers, which differ between dead letters of one cause."""

_OWN = "Jetlake-Dead-"
_OF_CLIENTS = "Jetlake-Client-Dead-"
_NEEDED = {"Stream", "Consumer", "Subject", "Sequence"}
_VERSION = "NATS/1.0"
_MESSAGE_ID = "Nats-Msg-Id"


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One message that was given up."""

    # In the stream of dead letters.
    sequence: int
    time: str
    # The stream and the consumer it comes from.
    stream: str
    consumer: str
    reason: str
    deliveries: int
    # As it was in its own stream.
    original_subject: str
    original_sequence: int
    headers: list[tuple[str, str]]
    payload: bytes
    # Nobody but the server has written it.
    is_of_server: bool = True

    @property
    def cause(self) -> str:
        """The reason without what differs from letter to letter."""
        return re.sub(CHANGING, "#", self.reason, flags=re.ASCII)[:CAUSE_CHARACTERS_MAX]


class DeadLetters:
    """The dead letters in one stream of a server. Every method raises `ClientError`."""

    def __init__(self, server: Api | Access | str | HasUrl, stream: str) -> None:
        self._server = server
        self._stream = token(stream)
        self._opened = AsyncExitStack()
        self._api: Api

    async def __aenter__(self) -> Self:
        server = self._server
        # An `Api` that is open already stays so.
        self._api = server if isinstance(server, Api) else await self._opened.enter_async_context(open_api(server))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._opened.aclose()

    async def all(self, *, stream: str = "", consumer: str = "") -> list[DeadLetter]:
        """Return the letters that `each` yields; all their payloads are in memory then."""
        return [letter async for letter in self.each(stream=stream, consumer=consumer)]

    async def each(self, *, stream: str = "", consumer: str = "") -> AsyncIterator[DeadLetter]:
        """Yield the letters in order, those of one stream or consumer if one is named; one is in memory at a time.

        Whatever else was published into the stream is passed over, and what comes meanwhile is left for the next time.
        """
        info = await self._api.request(f"STREAM.INFO.{self._stream}")
        sequence = int(info["state"]["first_seq"])
        last = int(info["state"]["last_seq"])
        pattern = f"dead.{stream or '*'}.{consumer or '*'}.>"
        while sequence <= last:
            answer = await self._api.find(f"STREAM.MSG.GET.{self._stream}", {"seq": sequence, "next_by_subj": pattern})
            if answer is None:
                break
            letter = _letter(answer["message"])
            if letter is not None:
                yield letter
            sequence = int(answer["message"]["seq"]) + 1

    async def heads(self, letters_max: int) -> list[DeadLetter]:
        """Return letters without their payloads, the oldest first, as many as are wanted at most.

        Much faster than `all`, because nothing is asked for each letter.
        """
        found: list[DeadLetter] = []
        reader = OrderedReader(self._api, self._stream, subjects=[SUBJECTS], start=Start(), headers_only=True)
        try:
            await reader.open()
            while len(found) < letters_max and (raw := await reader.initial()):
                for _, reply, headers, _ in raw:
                    position = position_of(reply)
                    time = datetime_of(position.created_ns).isoformat()
                    letter = _letter_of(position.sequence, time, headers, b"")
                    if letter is not None:
                        found.append(letter)
        finally:
            await reader.close()
        return found[:letters_max]

    async def get(self, sequence: int) -> DeadLetter:
        """Return one letter by its sequence in the stream of dead letters."""
        answer = await self._api.find(f"STREAM.MSG.GET.{self._stream}", {"seq": sequence})
        if answer is None:
            raise ClientError(f"{self._stream} has no dead letter {sequence}; `jetlake dead list` shows those it has")
        letter = _letter(answer["message"])
        if letter is None:
            raise ClientError(
                f"message {sequence} of {self._stream} is not a dead letter: it does not say where it comes from"
            )
        return letter

    async def redrive(self, letter: DeadLetter) -> int:
        """Publish the message again where it came from, remove the dead letter, and return the new sequence.

        Redriving twice stores the message once: it has an id, which the stream remembers for its duplicate window.

        The user who redrives may have more permissions than the author of the dead letter. So a dead letter goes only
        to the stream that it names, and only on a subject of that stream; never to the server's own subjects.
        """
        await self._check_origin(letter)
        own = (_OWN, _OF_CLIENTS)
        # A list, because a name may be there several times.
        headers = [(name, value) for name, value in letter.headers if not name.startswith(own) and name != _MESSAGE_ID]
        headers.append((_MESSAGE_ID, f"redrive/{self._stream}/{letter.sequence}"))
        sequence, is_duplicate = await self._publish(letter.original_subject, letter.payload, headers)
        if is_duplicate:
            await self._check_stored(letter, sequence)
        await self.remove(letter)
        return sequence

    async def remove(self, letter: DeadLetter) -> None:
        """Remove a letter for good."""
        await self._api.request(f"STREAM.MSG.DELETE.{self._stream}", {"seq": letter.sequence})

    async def _check_stored(self, letter: DeadLetter, sequence: int) -> None:
        # Anybody can publish with any id, and the letter is all that is left of its message.
        answer = await self._api.find(f"STREAM.MSG.GET.{letter.stream}", {"seq": sequence})
        message = answer["message"] if answer is not None else {}
        stored = (message.get("subject"), base64.b64decode(message.get("data", "")))
        if stored != (letter.original_subject, letter.payload):
            raise ClientError(
                f"message {sequence} of {letter.stream} has the id of letter {letter.sequence} and is another message; "
                "the letter stays where it is: redrive it again when the duplicate window is over"
            )

    async def _check_origin(self, letter: DeadLetter) -> None:
        if not letter.is_of_server:
            raise ClientError(
                f"letter {letter.sequence} was written by a client and not by the server, so nothing vouches for where "
                "it came from; look at it with `jetlake dead show`, and publish its payload yourself"
            )
        subject = letter.original_subject
        if subject.startswith("$"):
            raise ClientError(
                f"letter {letter.sequence} wants to go to {subject!r}: subjects that begin with '$' belong to the "
                "server, and no message came from there; look at it with `jetlake dead show`, and remove it"
            )
        answer = await self._api.request("STREAM.NAMES", {"subject": subject})
        if letter.stream not in (answer.get("streams") or []):
            raise ClientError(
                f"stream {letter.stream} is not listening on {subject!r}, which letter {letter.sequence} names; "
                f"let {letter.stream} listen on it, and redrive again"
            )

    async def _publish(self, subject: str, payload: bytes, headers: list[tuple[str, str]]) -> tuple[int, bool]:
        from nats.errors import Error

        block = HEADER_LINE + "".join(f"{name}: {value}\r\n" for name, value in headers).encode() + b"\r\n"
        channel = Channel.of(self._api.connection)
        try:
            reply = await channel.request(subject, payload, headers=block, timeout_s=self._api.access.timeout_s)
        except (TimeoutError, Error) as error:
            raise ClientError(f"nobody acknowledged {subject!r}; the letter stays where it is") from error
        if reply.nobody_answers:
            raise ClientError(f"nobody listens on {subject!r}; the letter stays where it is")
        answer = msgspec.json.decode(reply.data, type=dict[str, Any])
        if "error" in answer:
            raise ClientError(
                f"{subject!r} was refused: {answer['error']['description']}; the letter stays where it is"
            )
        return int(answer["seq"]), bool(answer.get("duplicate"))


def _letter(message: dict[str, Any]) -> DeadLetter | None:
    block, payload = (base64.b64decode(message.get(field, "")) for field in ("hdrs", "data"))
    return _letter_of(message["seq"], message["time"], block, payload)


def _letter_of(sequence: int, time: str, block: bytes, payload: bytes) -> DeadLetter | None:
    headers = _headers(block)
    own = _named(headers, _OWN)
    is_of_server = own.keys() >= _NEEDED
    if not is_of_server:
        own = _named(headers, _OF_CLIENTS)
    is_counted = own.get("Deliveries", "0").isdecimal() and own.get("Sequence", "").isdecimal()
    if not (own.keys() >= _NEEDED and is_counted):
        return None
    return DeadLetter(
        sequence=sequence,
        time=time,
        stream=own["Stream"],
        consumer=own["Consumer"],
        reason=own.get("Reason", ""),
        deliveries=int(own.get("Deliveries", "0")),
        original_subject=own["Subject"],
        original_sequence=int(own["Sequence"]),
        headers=headers,
        payload=payload,
        is_of_server=is_of_server,
    )


def _named(headers: list[tuple[str, str]], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in headers if name.startswith(prefix)}


def _headers(block: bytes) -> list[tuple[str, str]]:
    lines = block.decode(errors="replace").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if ":" in line)
    return [(name, value.lstrip(" ")) for name, _, value in pairs]
