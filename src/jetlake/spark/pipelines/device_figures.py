"""Names and numbers that the sections about devices share."""

import json
from typing import Any

from jetlake.spark.pipelines.sections import Tables

DEVICE_HREF = "/oic/d"
"""The resource in which a device says what it is."""


def names_of(tables: Tables) -> dict[str, str]:
    """Return the names of devices, as they call themselves."""
    found = tables.find("resources", ["device_id", "href", "value"])
    names: dict[str, str] = {}
    for row in found.to_pylist() if found is not None else ():
        if row["href"] == DEVICE_HREF and row["value"]:
            value = json.loads(row["value"])
            if isinstance(value, dict) and value.get("n"):
                names[row["device_id"]] = str(value["n"])
    return names


def named(names: dict[str, str], row: dict[str, Any]) -> str:
    device_id = str(row["device_id"])
    return names.get(device_id, device_id)


def quantile(values: list[float], share_below: float) -> float:
    """Return the quantile of these sorted values at `share_below`; 0 without values."""
    return values[min(len(values) - 1, int(len(values) * share_below))] if values else 0.0


def duration(milliseconds: float) -> str:
    """Return a duration for people."""
    if milliseconds < 1000:
        return f"{milliseconds:,.0f} ms"
    if milliseconds < 120_000:
        return f"{milliseconds / 1000:,.1f} s"
    return f"{milliseconds / 60_000:,.0f} min" if milliseconds < 7_200_000 else f"{milliseconds / 3_600_000:,.1f} h"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""
