"""`msg_trace` of an account: where messages with a trace context are reported, and how many of them.

It is a subject, or a map of `dest` and `sampling`: a whole number of percent, 1 to 100, with or without the sign.
"""

from jetlake.server.configuration.document import kind_of
from jetlake.server.configuration.quantities import percent_of
from jetlake.server.configuration.section import Section
from jetlake.server.options.accounts import MessageTrace

NAMES = ("msg_trace", "trace_dest")


def read_message_trace(section: Section) -> MessageTrace | None:
    """Return what the account wants to know; None = nothing."""
    node = section.node(*NAMES)
    if node is None:
        return None
    if isinstance(node.data, str):
        return _with_destination(section, node.data, 100)
    if not isinstance(node.data, dict):
        section.error(
            node,
            f"Expected account message trace to be a subject or a map of dest and sampling, not {kind_of(node.data)}",
        )
        return None
    inner = Section(node, section.problems)
    destination = inner.text("dest")
    percent = _read_sampling(inner)
    inner.finish()
    if destination is None:
        if percent is not None and inner.node("dest") is None:
            section.problems.warning(node.position, "Trace destination sampling ignored since no destination was set")
        return None
    return _with_destination(inner, destination, percent or 100)


def _with_destination(section: Section, destination: str, percent: int) -> MessageTrace | None:
    tokens = destination.split(".")
    if not all(tokens) or "*" in tokens or ">" in tokens or any(character.isspace() for character in destination):
        section.error(
            section.node("dest", *NAMES),
            f'Trace destination "{destination}" is not valid: name a subject without wildcards and blanks',
        )
        return None
    return MessageTrace(destination=destination, sampling_percent=percent)


def _read_sampling(section: Section) -> int | None:
    node = section.node("sampling")
    if node is None:
        return None
    given = percent_of(node.data.removesuffix("%")) if isinstance(node.data, str) else node.data
    if isinstance(given, bool) or not isinstance(given, int):
        section.error(node, f"Trace destination sampling must be a whole number of percent, not {kind_of(node.data)}")
        return None
    if not 1 <= given <= 100:
        section.error(node, f"Trace destination sampling value {given} is invalid, needs to be [1..100]")
        return None
    return given
