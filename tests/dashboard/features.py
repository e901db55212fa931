"""Shared by the tests of buckets, objects, governors and dead letters: work on the server, posts past the pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from playwright.sync_api import Page

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api

T = TypeVar("T")

HOSTILE = "'\"><img src=x onerror=alert(1)><script>alert(2)</script>"

POST = """async ([path, fields]) => {
  const token = JSON.parse(document.body.getAttribute("hx-headers"))["X-Form-Token"];
  const body = new URLSearchParams(fields);
  const answer = await fetch(path, { method: "POST", body, headers: { "X-Form-Token": token, "HX-Request": "true" } });
  return [answer.status, await answer.text()];
}"""


def do(server: Access | str, work: Callable[[Api], Awaitable[T]]) -> T:
    """Do something on a server, in a thread of its own: the browser has the event loop of this one."""

    async def connected() -> T:
        async with open_api(server) as api:
            return await work(api)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, connected()).result()


def post(page: Page, path: str, **fields: Any) -> tuple[int, str]:
    """Send a form that the open page does not offer, with the token of its session."""
    status, text = page.evaluate(POST, [path, {name: str(value) for name, value in fields.items()}])
    return status, text


def confirm(page: Page, word: str, button: str) -> None:
    """Type the word into the open dialog and press its button."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill(word)
    dialog.get_by_role("button", name=button, exact=True).click()
