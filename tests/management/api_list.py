"""Every request that the server answers, with the rights it needs, from the tables that answer them.

```sh
python -m tests.management.api_list          # show the table
python -m tests.management.api_list --write  # put it into the documents
```
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec

from jetlake import _engine
from jetlake.management.dispatch import Dispatcher
from jetlake.management.preview.dispatch import PreviewDispatcher
from jetlake.management.requests.calls import API_PREFIX
from tests.management.api_twin import ApiTwin

ROOT = Path(__file__).parents[2]
ALL_ROWS = ROOT / "docs" / "reference" / "api_rights.md"
FURTHER_ROWS = ROOT / "docs" / "guides" / "secure_a_server.md"

BEGIN = "<!-- made by `python -m tests.management.api_list --write`: change the tables in the source instead -->"
END = "<!-- end of what is made -->"

NOTHING = "-"
NAMES = ("<stream>", "<consumer>", "<filter>")


class Row(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One request."""

    subject: str
    # What the sender must also be allowed to publish to.
    needs: tuple[str, ...] = ()
    condition: str = ""
    targets: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the right to its own subject is all it needs."""
        return not (self.needs or self.condition or self.targets)

    def as_line(self) -> str:
        needs = [f"`{each}`" for each in self.needs] + ([self.condition] if self.condition else [])
        return f"| `{self.subject}` | {'; '.join(needs) or NOTHING} | {', '.join(self.targets) or NOTHING} |"


class _OwnRequest(msgspec.Struct, frozen=True, kw_only=True):
    pattern: str
    needs: tuple[str, ...]
    condition: str
    targets: tuple[str, ...]


def rows() -> list[Row]:
    """Return all requests: those that Python answers, in all dialects, and those that the engine does."""
    manager = ApiTwin().manager
    return sorted([*_of_today(manager._dispatcher), *_of_old_dialects(manager._preview_dispatcher()), *_of_engine()])


def _of_today(dispatcher: Dispatcher) -> list[Row]:
    made = []
    for words, endpoint in dispatcher._endpoints.items():
        names = NAMES[: endpoint.names]
        tails = ["", ".<consumer>", ".<consumer>.<filter>"] if endpoint.takes_rest else [""]
        made += [
            Row(
                subject=API_PREFIX + ".".join([*words, *names]) + tail,
                needs=tuple(API_PREFIX + needed.format(*names) for needed in endpoint.needs),
                condition=endpoint.condition,
                targets=tuple(sorted(target.value for target in endpoint.targets)),
            )
            for tail in tails
        ]
    return [*made, Row(subject=f"{API_PREFIX}ACCOUNT.PURGE.<account>", condition="the system account")]


def _of_old_dialects(dispatcher: PreviewDispatcher) -> list[Row]:
    return [
        Row(
            subject="$JS." + _named(endpoint.pattern),
            needs=tuple(API_PREFIX + needed.format(*_names_of(endpoint.pattern)) for needed in endpoint.needs.patterns),
            targets=tuple(sorted(target.value for target in endpoint.targets)),
        )
        for endpoint in dispatcher._endpoints
    ]


def _of_engine() -> list[Row]:
    requests = msgspec.json.decode(_engine.own_requests(), type=list[_OwnRequest])
    return [
        Row(
            subject=_named(request.pattern),
            needs=tuple(needed.format(*NAMES) for needed in request.needs),
            condition=request.condition,
            # Every request may have an answer; only other targets are worth telling.
            targets=tuple(target for target in request.targets if target != "reply subject"),
        )
        for request in requests
    ]


def _names_of(pattern: str) -> tuple[str, ...]:
    kinds = {"TEMPLATE": ("<template>",), "$JS.SNAPSHOT.RESTORE": ("<stream>", "<id>")}
    return next((names for start, names in kinds.items() if pattern.startswith(start)), NAMES)


def _named(pattern: str) -> str:
    names = iter(_names_of(pattern))
    return re.sub(r"\*", lambda _: next(names), pattern)


def table(chosen: list[Row]) -> str:
    """Return a table of requests."""
    head = "| request | needs the right to publish to, too | sends to |\n|---|---|---|\n"
    unique = dict.fromkeys(row.as_line() for row in chosen)
    return head + "\n".join(unique) + "\n"


def replaced(text: str, made: str) -> str:
    """Return a document with another table between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{made}\n{END}{after}"


def documents() -> dict[Path, str]:
    """Return the documents as they should be."""
    every = rows()
    chosen = {ALL_ROWS: every, FURTHER_ROWS: [row for row in every if not row.is_plain]}
    return {path: replaced(path.read_text(), table(kept)) for path, kept in chosen.items()}


def main() -> None:
    """Show the table, or write it."""
    if "--write" in sys.argv[1:]:
        for path, text in documents().items():
            path.write_text(text)
        return
    sys.stdout.write(table(rows()))


if __name__ == "__main__":
    main()
