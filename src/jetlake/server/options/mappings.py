"""Mappings: what an account makes of the subjects its clients publish to."""

import msgspec


class MappingDestination(msgspec.Struct, frozen=True, kw_only=True):
    """One of the subjects a message may go to, and how many of a hundred go there."""

    subject: str
    weight_percent: int = 100
    # For the servers of this cluster only; empty = for all. A server that runs alone is in none.
    cluster: str = ""


class Mapping(msgspec.Struct, frozen=True, kw_only=True):
    """A subject or pattern, and what becomes of it.

    Where the weights are less than a hundred, the rest stays on the subject it was published to, unless the source is a
    destination itself: then the rest is lost.
    """

    source: str
    destinations: tuple[MappingDestination, ...]
