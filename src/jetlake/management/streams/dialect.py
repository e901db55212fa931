"""The dialect a stream or a consumer was asked for in, remembered in its metadata; today's where there is none.

| key                | value            | of a               | meaning                                              |
|--------------------|------------------|--------------------|------------------------------------------------------|
| `jetlake.dialect`  | `2019` or `2020` | stream or consumer | how publishers are answered, and deliveries named    |
| `jetlake.template` | a name           | stream             | the template that made it, with which it is deleted  |

Invariant: without these keys nothing here changes what a stream or a consumer does.
"""

from collections.abc import Mapping

DIALECT_KEY = "jetlake.dialect"
TEMPLATE_KEY = "jetlake.template"

OF_2019 = "2019"
OF_2020 = "2020"


def dialect_of(metadata: Mapping[str, str] | None) -> str:
    """Return the dialect; empty = today's."""
    return (metadata or {}).get(DIALECT_KEY, "")


def template_of(metadata: Mapping[str, str] | None) -> str:
    """Return the template that made a stream; empty = none."""
    return (metadata or {}).get(TEMPLATE_KEY, "")
