"""Which devices a stream has events of, by its subjects alone: no event is read.

Invariant: what it costs grows with the number of devices, never with the number of their events.
"""

from typing import Any

from jetlake.client.api import Api, token
from jetlake.devices.subjects import ROOT, Family

SUBJECTS_MAX = 600_000
"""Subjects that are looked at, of each family: three of each device at most, so 200,000 devices."""

__all__ = ["device_ids"]


async def device_ids(api: Api, stream: str) -> list[str]:
    """Return the ids of devices with links or metadata, sorted. Raises `ClientError`."""
    found: set[str] = set()
    for family in (Family.METADATA, Family.LINKS):
        found |= {subject.split(".", 2)[1] for subject in await _subjects(api, stream, f"{ROOT}.*.{family}.>")}
    return sorted(found)


async def _subjects(api: Api, stream: str, pattern: str) -> list[str]:
    found: list[str] = []
    while len(found) < SUBJECTS_MAX:
        body: dict[str, Any] = {"subjects_filter": pattern, "offset": len(found)}
        answer = await api.request(f"STREAM.INFO.{token(stream)}", body)
        page = answer["state"].get("subjects") or {}
        found += page
        if not page or len(found) >= int(answer.get("total", 0)):
            break
    return found
