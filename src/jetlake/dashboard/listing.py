"""`Listing`: one page of a long list, cut on the server, with its filter, order and position in the address.

```python
query = ListQuery.of(request, sorts=("name", "messages"))
names = await cached(session, "streams", session.api.stream_names)
listing = await query.page_of_names(names, read_row)
```

The macros of `templates/lists.html` show it.

Invariant: a page never reads more than `ROWS_MAX` rows of detail; what it costs does not grow with the length of the
list.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Self, TypeVar
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from jetlake.dashboard.sessions import Session

__all__ = ["ListQuery", "Listing", "cached", "forget", "is_unchanged"]

ROWS_MAX = 25
"""Fits on a screen; each row may cost one request."""

REQUESTS_AT_ONCE = 16
"""Requests for rows under way for one page."""

FILTER_LETTERS_MAX = 200
"""No name of a stream is longer."""

CACHED_S = 5.0
"""How old a list of names may be: paging through it reads it once."""

Row = TypeVar("Row")
T = TypeVar("T")


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a list a page shows, as its address says."""

    path: str
    text: str = ""
    sort: str = ""
    is_descending: bool = False
    number: int = 1

    @classmethod
    def of(cls, request: web.Request, *, sorts: Sequence[str] = ()) -> Self:
        """Read the address; what makes no sense there is as if it were not there."""
        words = request.query
        sort = words.get("sort", "")
        number = words.get("page", "1")
        return cls(
            path=request.path,
            text=words.get("filter", "").strip()[:FILTER_LETTERS_MAX],
            sort=sort if sort in sorts else (sorts[0] if sorts else ""),
            is_descending=words.get("order") == "down",
            number=max(1, int(number)) if number.isdecimal() and len(number) < 10 else 1,
        )

    @property
    def offset(self) -> int:
        return (self.number - 1) * ROWS_MAX

    def address(self, **changes: object) -> str:
        """Return the address of the same list with something changed."""
        other = msgspec.structs.replace(self, **changes)
        words = {
            "filter": other.text,
            "sort": other.sort,
            "order": "down" if other.is_descending else "",
            "page": "" if other.number == 1 else str(other.number),
        }
        text = urlencode({key: value for key, value in words.items() if value})
        return f"{self.path}?{text}" if text else self.path

    def sort_address(self, column: str) -> str:
        """Return the address of the list in the order of a column, or reversed if it is in that order."""
        return self.address(sort=column, is_descending=self.sort == column and not self.is_descending, number=1)

    def matching(self, names: Sequence[str]) -> list[str]:
        """Return the names that contain the filter's text, whatever their case."""
        text = self.text.casefold()
        return [name for name in names if text in name.casefold()]

    async def page_of_names(self, names: Sequence[str], read: Callable[[str], Awaitable[Row | None]]) -> "Listing[Row]":
        """Filter names, cut the page out and read the rows of it; a row that is gone meanwhile is None."""
        found = self.matching(names)
        if self.is_descending:
            found.reverse()
        gate = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def one(name: str) -> Row | None:
            async with gate:
                return await read(name)

        wanted = found[self.offset : self.offset + ROWS_MAX]
        rows = [row for row in await asyncio.gather(*map(one, wanted)) if row is not None]
        return Listing(query=self, rows=rows, count=len(found), total=len(names))

    def page_of_rows(self, rows: Sequence[Row], *, total: int) -> "Listing[Row]":
        """Cut the page out of rows that are all known, filtered and in order."""
        return Listing(query=self, rows=list(rows[self.offset : self.offset + ROWS_MAX]), count=len(rows), total=total)


class Listing(msgspec.Struct, Generic[Row], frozen=True, kw_only=True):
    """One page of a list."""

    query: ListQuery
    rows: list[Row]
    # Rows that match the filter, and rows in all.
    count: int
    total: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.count // ROWS_MAX))

    @property
    def first(self) -> int:
        return min(self.query.offset + 1, self.count)

    @property
    def last(self) -> int:
        return min(self.query.offset + len(self.rows), self.count)


async def cached(session: Session, key: str, load: Callable[[], Awaitable[T]]) -> T:
    """Return what `load` returned for this session a moment ago, or load it."""
    now_s = time.monotonic()
    known = session.cache.get(key)
    if known is not None and now_s - known[0] < CACHED_S:
        return known[1]  # type: ignore[return-value]  # a key is used with one function only
    value = await load()
    for old in [name for name, (made_s, _) in session.cache.items() if now_s - made_s >= CACHED_S]:
        del session.cache[old]
    session.cache[key] = (now_s, value)
    return value


def forget(session: Session, key: str) -> None:
    """Have the next page load a list again, after a change to it."""
    session.cache.pop(key, None)


def is_unchanged(request: web.Request, mark: str) -> bool:
    """Tell whether an open list that asks again (`lists.refresh`) shows this state already; then answer with 204."""
    return request.query.get("mark") == mark
