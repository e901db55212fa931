"""Which part of a long list an answer shows. Pages have a fixed size; the caller says only where one begins.

Invariant: a page is a part of the list, in its order, and `offset` lies within the list or at its end.
"""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec

NAMES_MAX = 1_024
"""nats-server's own sizes, for names and for whole descriptions."""
DESCRIPTIONS_MAX = 256
SUBJECTS_MAX = 100_000
"""Subjects of one stream with their counts in one answer."""

Item = TypeVar("Item")


class ListPage(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    """One page of a list, and where in the list it stands."""

    total: int
    offset: int
    limit: int
    items: Sequence[Item]

    @property
    def fields(self) -> dict[str, Any]:
        """The numbers as they stand in an answer."""
        return {"total": self.total, "offset": self.offset, "limit": self.limit}


def page_of(items: Sequence[Item], offset: int, limit: int) -> ListPage[Item]:
    """Return the page that begins at this offset; one outside of the list is moved to its nearer end."""
    first = min(max(offset, 0), len(items))
    return ListPage(total=len(items), offset=first, limit=limit, items=items[first : first + limit])
