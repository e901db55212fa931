"""Pages of servers for commands: from a monitoring port, or as the answers of a whole system over NATS."""

import json
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import urlencode

import msgspec

from jetlake.errors import ClientError

if TYPE_CHECKING:
    from jetlake.client.api import Api

Page = dict[str, Any]

ANSWER_S_MAX = 5.0

COLLECT_S = 1.0
"""How long answers are collected: how many servers there are is not known."""

REASON_LETTERS_MAX = 100
"""Of the text that came instead of a page."""

NO_SERVER = "No server answered. Connect as a user of the system account: --user, or --context."


def monitor_address(text: str) -> str:
    """Return the address of the monitoring pages: a port is one of this machine."""
    if text.isdecimal():
        return f"http://127.0.0.1:{text}"
    return (text if "://" in text else f"http://{text}").rstrip("/")


def read_page(address: str, name: str, options: dict[str, Any]) -> Page:
    """Read a monitoring page such as `connz`. Raises `ClientError`."""
    from urllib.request import urlopen

    if not address.startswith(("http://", "https://")):
        raise ClientError(f"{address} is not an address of monitoring pages: write 8222 or http://host:8222")
    try:
        with urlopen(f"{address}/{name}?{urlencode(options)}", timeout=ANSWER_S_MAX) as answer:  # noqa: S310
            page: Page = json.load(answer)
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = str(error)[:REASON_LETTERS_MAX]
        raise ClientError(f"cannot read {address}/{name}: {reason}; start the server with -m 8222") from error
    return page


async def collect_answers(api: "Api", subject: str, payload: bytes = b"") -> list[Page]:
    """Ask all servers of a system, and return what they answer, by their names. Raises `ClientError` if none does."""
    import asyncio

    found: list[Page] = []

    async def collect(message: Any) -> None:
        try:
            answer = msgspec.json.decode(message.data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if isinstance(answer.get("server"), dict):
            found.append(answer)

    inbox = api.connection.new_inbox()
    await api.connection.subscribe(inbox, cb=collect)
    await api.connection.publish(subject, payload, reply=inbox)
    await api.flush()
    await asyncio.sleep(COLLECT_S)
    if not found:
        raise ClientError(NO_SERVER)
    return sorted(found, key=lambda each: str(each["server"].get("name")))
