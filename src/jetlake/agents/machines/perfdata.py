"""Performance data of checks: `OK: fine | load=0.5;1;2 time=12ms`, as Nagios has it.

Thresholds are left out, as in the original; labels may stand between quotation marks. Pure functions.
"""

import re
from typing import Any

__all__ = ["parse_performance_data"]

VALUES_MAX = 1_000
"""Values of one check."""

_VALUE = re.compile(
    r"(?:'((?:[^']|'')+)'|([^\s'=|]+))=([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[-+]?\.\d+)(us|ms|s|%|B|KB|MB|GB|TB|c)?(?=;|\s|$)"
)


def parse_performance_data(output: str) -> list[dict[str, Any]]:
    """Return the values behind the bar, in the original's form."""
    _, bar, text = output.partition("|")
    if not bar:
        return []
    # Further lines have text of their own, and may have another bar before more values.
    first, _, rest = text.partition("\n")
    values = first + " " + rest.partition("|")[2]
    found = []
    for quoted, bare, number, unit in _VALUE.findall(values)[:VALUES_MAX]:
        label = (quoted.replace("''", "'") or bare).replace(" ", "_")
        found.append({"unit": unit, "label": label, "value": float(number)})
    return found
