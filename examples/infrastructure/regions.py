"""Streams made in a loop. Python runs only when it is named: `jetlake plan examples/infrastructure/regions.py`."""

from jetlake.iac import resources

REGIONS = ("eu", "us")


@resources
def regions() -> dict[str, object]:
    """Return one stream per region, and one that gathers them."""
    streams: dict[str, object] = {
        f"METRICS_{region}": {"subjects": [f"metrics.{region}.>"], "max_age": "7d"} for region in REGIONS
    }
    return {"streams": {**streams, "METRICS": {"sources": list(streams)}}}
