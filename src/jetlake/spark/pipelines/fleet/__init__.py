"""The pipeline `fleet`: what nodes say about themselves, as the state of the fleet and how it came about.

Registrations, lifecycle, machine and check events of all streams go through one query, which keeps the state of every
node once. Events may come late, twice and in any order.

- `events`     messages as flat events, decoded by Spark
- `timelines`  events of one thing in the order of their time, whenever they come
- `nodes`      the state of one node, event by event
- `folding`    the state of many nodes over a batch: events in, changed rows out
- `processor`  the same inside Spark's state
- `tables`     which changed rows go to which table
- `report`     the page about the fleet
"""

from jetlake.spark.pipelines.fleet.report import report
from jetlake.spark.pipelines.fleet.tables import ABOUT, Parameters, build

__all__ = ["ABOUT", "Parameters", "build", "report"]
