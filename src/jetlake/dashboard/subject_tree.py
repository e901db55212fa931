"""`Level`: the subjects of a stream as a tree, one level below one prefix at a time.

```python
level = await read_level(api, "ORDERS", "orders.eu")     # orders.eu.paris, orders.eu.rome, …
```

Servers list whole subjects, in answers of 100,000, and sort all that match for each answer; they have no request for
tokens. So a level is one answer while one answer holds all of it. Below a prefix with more, which would keep a server
busy for seconds, the branches are those of a sample of messages, and the server counts each of them.

Invariant: a level costs one answer, or `SAMPLES + 2 * BRANCHES_MAX` small requests, however many subjects there are.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from jetlake.client.api import Api, token
from jetlake.dashboard.stored_messages import count_from, next_message

__all__ = ["Branch", "Level", "read_level", "sample_level"]

BRANCHES_MAX = 100
"""Branches shown at once; more are asked for by their number."""

SUBJECTS_MAX = 100_000
"""Subjects that one answer holds."""

SAMPLES = 60
"""Messages looked at for a level that is too large to be listed, over the whole of the stream."""

FEW = 10
"""Messages of a sample below its prefix that are too few; then messages below the prefix are looked for."""

COUNTED_MAX = 30
"""Branches that are counted for a sample; a level of more has ids for tokens, and their numbers tell nothing."""

REQUESTS_AT_ONCE = 8
"""Requests under way for one level."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One token below a prefix."""

    token: str
    # Prefix and token.
    subject: str
    # Messages of it and of the subjects that begin with it, and the number of those subjects; None = not counted.
    messages: int | None
    subjects: int | None
    # Whether messages have exactly this subject, and whether there are longer ones.
    is_subject: bool
    has_more: bool


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the branches below one prefix."""

    prefix: str
    branches: tuple[Branch, ...]
    # Position of the first of them, and how many there are.
    first: int
    count: int
    # Of all subjects of the stream; what is below a large prefix is a sample.
    subjects: int
    is_sample: bool

    @property
    def next_first(self) -> int | None:
        """Where the next branches begin."""
        end = self.first + len(self.branches)
        return end if end < self.count else None


async def read_level(api: Api, stream: str, prefix: str = "", *, first: int = 0) -> Level:
    """Read the branches below a prefix; those of the whole stream if it is empty."""
    state = (await api.request(f"STREAM.INFO.{token(stream)}"))["state"]
    subjects = int(state.get("num_subjects") or 0)
    pattern = f"{prefix}.>" if prefix else ">"
    if subjects > SUBJECTS_MAX:
        # There are no more subjects than messages, and those can be counted.
        messages = await count_from(api, stream, 1, [pattern]) if prefix else int(state["messages"])
        if messages is None or messages > SUBJECTS_MAX:
            return await sample_level(api, stream, prefix)
    answer = await api.request(f"STREAM.INFO.{token(stream)}", {"subjects_filter": pattern})
    found: dict[str, int] = answer["state"].get("subjects") or {}
    depth = len(prefix) + 1 if prefix else 0
    # Of each token: messages, subjects, whether it is one, whether there are longer ones.
    sums: dict[str, list[int]] = {}
    for subject, messages in found.items():
        name, dot, _ = subject[depth:].partition(".")
        known = sums.setdefault(name, [0, 0, 0, 0])
        known[0] += messages
        known[1] += 1
        known[3 if dot else 2] = 1
    names = sorted(sums)
    branches = tuple(
        Branch(
            token=name,
            subject=_below(prefix, name),
            messages=sums[name][0],
            subjects=sums[name][1],
            is_subject=bool(sums[name][2]),
            has_more=bool(sums[name][3]),
        )
        for name in names[first : first + BRANCHES_MAX]
    )
    return Level(prefix=prefix, branches=branches, first=first, count=len(names), subjects=subjects, is_sample=False)


async def sample_level(api: Api, stream: str, prefix: str = "") -> Level:
    """Return the branches of some messages below a prefix, spread over the stream."""
    state = (await api.request(f"STREAM.INFO.{token(stream)}"))["state"]
    low, high = int(state["first_seq"]), int(state["last_seq"])
    places = sorted({low + (high - low) * number // (SAMPLES - 1) for number in range(SAMPLES)})
    gate = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def subjects_at(places: list[int], pattern: str) -> list[str]:
        async def subject_at(place: int) -> str:
            async with gate:
                message = await next_message(api, stream, place, pattern)
            return "" if message is None else message.subject

        begin = f"{prefix}." if prefix else ""
        return [each for each in await asyncio.gather(*map(subject_at, places)) if each and each.startswith(begin)]

    found = await subjects_at(places, "")
    if len(found) < FEW:
        # Finding the next message of a pattern that matches very many subjects is slow, so this is asked rarely.
        found += await subjects_at(places[:: SAMPLES // FEW], f"{prefix}.>" if prefix else ">")
    # Of each token: whether it is a subject, whether there are longer ones.
    kinds = _kinds(found, prefix)

    async def branch(name: str) -> Branch:
        is_subject, has_more = kinds[name]
        subject = _below(prefix, name)
        patterns = ([subject] if is_subject else []) + ([f"{subject}.>"] if has_more else [])
        async with gate:
            messages = await count_from(api, stream, 1, patterns) if len(kinds) <= COUNTED_MAX else None
        return Branch(
            token=name, subject=subject, messages=messages, subjects=None, is_subject=is_subject, has_more=has_more
        )

    branches = await asyncio.gather(*map(branch, sorted(kinds)))
    return Level(
        prefix=prefix,
        branches=tuple(branches),
        first=0,
        count=len(branches),
        subjects=int(state.get("num_subjects") or 0),
        is_sample=True,
    )


def _kinds(subjects: Iterable[str], prefix: str) -> dict[str, tuple[bool, bool]]:
    depth = len(prefix) + 1 if prefix else 0
    kinds: dict[str, tuple[bool, bool]] = {}
    for subject in subjects:
        name, dot, _ = subject[depth:].partition(".")
        is_subject, has_more = kinds.get(name, (False, False))
        kinds[name] = (is_subject or not dot, has_more or bool(dot))
    return kinds


def _below(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
