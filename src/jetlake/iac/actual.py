"""What a server has: its streams, consumers and templates, as configurations and a little of their state.

Invariant: every consumer here is one of a stream here.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

from jetlake.client.api import Api
from jetlake.errors import ClientError
from jetlake.iac.declaration import OWNER_KEY, Key
from jetlake.iac.normal import own_metadata

TEMPLATES = "$JS.TEMPLATE"
"""The subject of requests for templates; servers without templates have no responder there."""

REQUESTS_MAX = 16
"""Lists of consumers that are asked for at the same time."""


@dataclass(frozen=True)
class ActualResource:
    """One thing a server has."""

    key: Key
    config: dict[str, Any]
    created: str = ""
    # Of a stream: how many messages and bytes there are, and when the first one came; of a consumer those messages too.
    messages: int = 0
    size_bytes: int = 0
    first_time: str = ""
    # Of a consumer: one that goes when nobody uses it.
    is_ephemeral: bool = False

    @property
    def owner(self) -> str:
        return str((self.config.get("metadata") or {}).get(OWNER_KEY, ""))


@dataclass
class Actual:
    """Everything a server has; `has_templates` is None before it was requested."""

    found: dict[Key, ActualResource] = field(default_factory=dict)
    has_templates: bool | None = None

    def stream(self, name: str) -> ActualResource | None:
        return self.found.get(("stream", "", name))

    def consumers(self, stream: str) -> list[ActualResource]:
        return [found for key, found in self.found.items() if key[0] == "consumer" and key[1] == stream]

    def consumers_by_stream(self) -> dict[str, list[ActualResource]]:
        found: dict[str, list[ActualResource]] = {}
        for key, each in self.found.items():
            if key[0] == "consumer":
                found.setdefault(key[1], []).append(each)
        return found

    def fingerprint(self, keys: list[Key]) -> str:
        """Return a digest of these things' configurations and of when they were made; absent ones count too."""
        parts: list[Any] = []
        for key in sorted(keys):
            found = self.found.get(key)
            if found is None:
                parts.append([key, None])
                continue
            config = {**found.config, "metadata": own_metadata(found.config.get("metadata")), "owner": found.owner}
            parts.append([key, config, found.created])
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


async def read_actual(api: Api, *, with_templates: bool = False) -> Actual:
    """Ask a server for everything it has. Raises `ClientError`."""
    actual = Actual()
    for info in await api.streams():
        found = _stream(info)
        actual.found[found.key] = found
    limit = asyncio.Semaphore(REQUESTS_MAX)

    async def consumers_of(name: str) -> list[ActualResource]:
        async with limit:
            messages = actual.found["stream", "", name].messages
            return [_consumer(name, messages, info) for info in await api.consumers(name)]

    names = [key[2] for key in actual.found]
    for consumers in await asyncio.gather(*(consumers_of(name) for name in names)):
        actual.found |= {found.key: found for found in consumers}
    if with_templates:
        await _read_templates(api, actual)
    return actual


async def ask_template(api: Api, request: str, body: object | None = None) -> bytes | None:
    """Send a request about templates and return the answer; None from a server that has none."""
    from nats.errors import Error, NoRespondersError

    payload = b"" if body is None else msgspec.json.encode(body)
    try:
        message = await api.connection.request(f"{TEMPLATES}.{request}", payload, timeout=api.access.timeout_s)
    except NoRespondersError:
        return None
    except (TimeoutError, Error) as error:
        raise ClientError(f"the server did not answer {TEMPLATES}.{request}") from error
    answer: bytes = message.data
    if answer.startswith(b"-ERR"):
        reason = answer.removeprefix(b"-ERR").decode(errors="replace").strip().strip("'")
        raise ClientError(f"{TEMPLATES}.{request} was refused: {reason}")
    return answer


async def _read_templates(api: Api, actual: Actual) -> None:
    listed = await ask_template(api, "LIST")
    actual.has_templates = listed is not None
    if listed is None:
        return
    for name in _decoded(listed, list[str]) or []:
        answer = await ask_template(api, f"{name}.INFO")
        info = _decoded(answer or b"{}", dict[str, Any])
        # The answer holds the template's configuration, which holds its stream's.
        outer = info.get("config", info)
        template = outer if "config" in outer else info
        config = {"name": name, "max_streams": template.get("max_streams", 0), "config": template.get("config", {})}
        actual.found["template", "", name] = ActualResource(("template", "", name), config)


def _decoded(answer: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.DecodeError as error:
        raise ClientError("an answer about templates is not as it should be: is this a Jetlake server?") from error


def _stream(info: dict[str, Any]) -> ActualResource:
    state = info.get("state", {})
    return ActualResource(
        ("stream", "", info["config"]["name"]),
        info["config"],
        info.get("created", ""),
        messages=state.get("messages", 0),
        size_bytes=state.get("bytes", 0),
        first_time=state.get("first_ts", ""),
    )


def _consumer(stream: str, messages: int, info: dict[str, Any]) -> ActualResource:
    config = info["config"]
    return ActualResource(
        ("consumer", stream, info["name"]),
        config,
        info.get("created", ""),
        messages=messages,
        is_ephemeral=not config.get("durable_name"),
    )
