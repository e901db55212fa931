"""What a stream has, and waiting for it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from jetlake.client.api import Api

WAIT_S_MAX = 60.0
POLL_S = 0.02


class StoredMessage(msgspec.Struct, frozen=True):
    subject: str
    payload: bytes
    headers: dict[str, str]


async def messages(api: Api, stream: str) -> list[StoredMessage]:
    """Return everything a stream has, in order."""
    found: list[StoredMessage] = []
    sequence = 1
    while True:
        answer = await api.find(f"STREAM.MSG.GET.{stream}", {"seq": sequence, "next_by_subj": ">"})
        if answer is None:
            return found
        message: dict[str, Any] = answer["message"]
        lines = base64.b64decode(message.get("hdrs", "")).decode().split("\r\n")[1:]
        headers = {name: value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
        found.append(StoredMessage(message["subject"], base64.b64decode(message.get("data", "")), headers))
        sequence = int(message["seq"]) + 1


async def count(api: Api, stream: str) -> int:
    return int((await api.request(f"STREAM.INFO.{stream}"))["state"]["messages"])


async def until(is_true: Callable[[], Awaitable[bool] | bool], what: str) -> None:
    """Wait until it is true."""
    try:
        async with asyncio.timeout(WAIT_S_MAX):
            while True:
                answer = is_true()
                if answer if isinstance(answer, bool) else await answer:
                    return
                await asyncio.sleep(POLL_S)
    except TimeoutError as error:
        raise AssertionError(what) from error


async def until_count(api: Api, stream: str, wanted: int) -> None:
    async def has_all() -> bool:
        return await count(api, stream) >= wanted

    await until(has_all, f"{stream} does not get {wanted} messages")
