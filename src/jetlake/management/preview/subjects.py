"""The subjects of both dialects. A word in capitals is itself, `*` is a name.

Acknowledgements (`$JS.A.…`, `$JS.ACK.…`) and requests for messages are the engine's; what of the latter comes here has
no consumer.
"""

PREFIX = "$JS."

SUBSCRIPTIONS = (
    "$JS.ENABLED",
    "$JS.INFO",
    "$JS.STREAM.>",
    "$JS.TEMPLATE.>",
    "$JS.MSGSETS",
    "$JS.MSGSET.>",
    "$JS.OBSERVABLES",
    "$JS.OBSERVABLE.>",
    "$JS.RN.*.*",
)
"""What is subscribed to in every account that is not the system's."""

PULLS = ("RN.*.*", "STREAM.*.CONSUMER.*.NEXT")
"""Requests for messages."""


def names_in(pattern: str, tokens: list[str]) -> tuple[str, ...] | None:
    """Return the names in the places of the stars; None = the pattern is not meant."""
    words = pattern.split(".")
    if len(words) != len(tokens) or any(word not in ("*", token) for word, token in zip(words, tokens, strict=True)):
        return None
    return tuple(token for word, token in zip(words, tokens, strict=True) if word == "*")
