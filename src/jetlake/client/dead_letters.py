"""Dead letters: messages that a consumer has given up on, in the stream that its own stream names.

A stream names it in its metadata, `jetlake.dead_letters`. Each dead letter has the payload and the headers of the
message, and says in headers of its own who gave it up, why, and after how many deliveries.

```python
async with DeadLetters(server, "DEAD") as dead:
    for letter in await dead.all():
        await dead.redrive(letter)
```

Everything here speaks the protocol of NATS, so letters can be read and redriven on any server that keeps the stream.

Invariant: a letter is removed only after the server has acknowledged that the message is stored again.
"""

import base64
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import msgspec

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api, token
from jetlake.client.connection import HasUrl
from jetlake.errors import ClientError

OPTION = "jetlake.dead_letters"
"""The key in a stream's metadata that names where its dead letters are kept."""

_OWN = "Jetlake-Dead-"
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


class DeadLetters:
    """The dead letters in one stream of a server. Every method raises `ClientError`."""

    def __init__(self, server: Access | str | HasUrl, stream: str) -> None:
        self._server = server
        self._stream = token(stream)
        self._opened = AsyncExitStack()
        self._api: Api

    async def __aenter__(self) -> Self:
        self._api = await self._opened.enter_async_context(open_api(self._server))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._opened.aclose()

    async def all(self, *, stream: str = "", consumer: str = "") -> list[DeadLetter]:
        """Return the letters in order; those of one stream or consumer if one is named."""
        info = await self._api.request(f"STREAM.INFO.{self._stream}")
        letters = []
        sequence = int(info["state"]["first_seq"])
        last = int(info["state"]["last_seq"])
        pattern = f"dead.{stream or '*'}.{consumer or '*'}.>"
        while sequence <= last:
            answer = await self._api.find(f"STREAM.MSG.GET.{self._stream}", {"seq": sequence, "next_by_subj": pattern})
            if answer is None:
                break
            letters.append(_letter(answer["message"]))
            sequence = letters[-1].sequence + 1
        return letters

    async def get(self, sequence: int) -> DeadLetter:
        """Return one letter by its sequence in the stream of dead letters."""
        answer = await self._api.find(f"STREAM.MSG.GET.{self._stream}", {"seq": sequence})
        if answer is None:
            raise ClientError(f"{self._stream} has no dead letter {sequence}; `jetlake dead list` shows those it has")
        return _letter(answer["message"])

    async def redrive(self, letter: DeadLetter) -> int:
        """Publish the message again where it came from, remove the letter, and return the new sequence.

        Doing it twice stores the message once: it has an id, which the stream remembers for its duplicate window.
        """
        headers = {name: value for name, value in letter.headers if not name.startswith(_OWN) and name != _MESSAGE_ID}
        headers[_MESSAGE_ID] = f"redrive/{self._stream}/{letter.sequence}"
        sequence = await self._publish(letter.original_subject, letter.payload, headers)
        await self.remove(letter)
        return sequence

    async def remove(self, letter: DeadLetter) -> None:
        """Remove a letter for good."""
        await self._api.request(f"STREAM.MSG.DELETE.{self._stream}", {"seq": letter.sequence})

    async def _publish(self, subject: str, payload: bytes, headers: dict[str, str]) -> int:
        from nats.errors import Error, NoRespondersError

        try:
            message = await self._api.connection.request(
                subject, payload, timeout=self._api.access.timeout_s, headers=headers
            )
        except NoRespondersError as error:
            raise ClientError(f"no stream takes {subject!r} any more: create one, and redrive again") from error
        except (TimeoutError, Error) as error:
            raise ClientError(f"nobody acknowledged {subject!r}; the letter stays where it is") from error
        answer = msgspec.json.decode(message.data, type=dict[str, Any])
        if "error" in answer:
            raise ClientError(
                f"{subject!r} was refused: {answer['error']['description']}; the letter stays where it is"
            )
        return int(answer["seq"])


def _letter(message: dict[str, Any]) -> DeadLetter:
    headers = _headers(base64.b64decode(message.get("hdrs", "")))
    own = {name.removeprefix(_OWN): value for name, value in headers if name.startswith(_OWN)}
    if not {"Stream", "Consumer", "Subject", "Sequence"} <= own.keys():
        raise ClientError(f"message {message['seq']} is no dead letter: it does not say where it comes from")
    return DeadLetter(
        sequence=message["seq"],
        time=message["time"],
        stream=own["Stream"],
        consumer=own["Consumer"],
        reason=own.get("Reason", ""),
        deliveries=int(own.get("Deliveries", "0")),
        original_subject=own["Subject"],
        original_sequence=int(own["Sequence"]),
        headers=headers,
        payload=base64.b64decode(message.get("data", "")),
    )


def _headers(block: bytes) -> list[tuple[str, str]]:
    lines = block.decode(errors="replace").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if ":" in line)
    return [(name, value.lstrip(" ")) for name, _, value in pairs]
