"""`Survey`: the letters of one stream of dead letters, without their payloads, in groups of one cause.

Invariant: a letter is in exactly one group, and the groups together hold all letters that were read.
"""

import hashlib
from collections import defaultdict

import msgspec

from jetlake.client.dead_letters import DeadLetter, DeadLetters
from jetlake.dashboard.listing import cached
from jetlake.dashboard.sessions import Session
from jetlake.errors import NotFoundError

__all__ = ["Group", "Survey", "find_group", "survey"]

PATH = "/dead"

LETTERS_MAX = 20_000
"""Letters that are read for one page, some tens of megabytes; the oldest ones."""

LIVE_LETTERS_MAX = 2_000
"""Pages about more letters are not read again while they are open."""

KEY_LETTERS = 16
"""Of the name of a group in an address: enough that no two groups of a stream share it."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Letters of one stream and consumer with one cause, oldest first."""

    # Names the group in addresses.
    key: str
    stream: str
    consumer: str
    cause: str
    letters: list[DeadLetter]

    @property
    def can_redrive(self) -> bool:
        """Whether the server has written one of them; others are refused."""
        return any(letter.is_of_server for letter in self.letters)


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream of dead letters holds."""

    # The largest group first.
    groups: list[Group]
    letters: int
    # There are more letters than were read.
    is_cut: bool
    # Names the state of the stream that was read.
    mark: str

    @property
    def is_live(self) -> bool:
        """Whether open pages ask again for what has changed."""
        return self.letters <= LIVE_LETTERS_MAX


async def survey(session: Session, stream: str) -> Survey:
    """Read the letters of a stream, or return what was read if nothing has changed since. Raises `NotFoundError`."""
    info = await session.api.find(f"STREAM.INFO.{stream}")
    if info is None:
        raise NotFoundError(f"There is no stream {stream}. It was deleted, or the name is misspelt.")
    state = info["state"]
    mark = f"{state['first_seq']}.{state['last_seq']}.{state['messages']}"

    async def read() -> Survey:
        async with DeadLetters(session.api, stream) as dead:
            letters = await dead.heads(LETTERS_MAX)
        return Survey(groups=_grouped(letters), letters=len(letters), is_cut=len(letters) >= LETTERS_MAX, mark=mark)

    return await cached(session, f"dead letters of {stream} {mark}", read)


def find_group(found: Survey, key: str) -> Group:
    """Return a group by its key. Raises `NotFoundError`."""
    for group in found.groups:
        if group.key == key:
            return group
    raise NotFoundError("This group has no letters any more: they were redriven or deleted.")


def _grouped(letters: list[DeadLetter]) -> list[Group]:
    by_cause: dict[tuple[str, str, str], list[DeadLetter]] = defaultdict(list)
    for letter in letters:
        by_cause[letter.stream, letter.consumer, letter.cause].append(letter)
    groups = [
        Group(
            key=hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()[:KEY_LETTERS],
            stream=words[0],
            consumer=words[1],
            cause=words[2],
            letters=members,
        )
        for words, members in by_cause.items()
    ]
    return sorted(groups, key=lambda group: (-len(group.letters), group.stream, group.consumer, group.cause))
