"""Node names as parts of subjects.

A node chooses its own name, and nobody has checked it: put into a subject as it is, it could be a wildcard, end the
line of the protocol, or leave a token empty. Pure functions.

Invariant: what `expand` returns is a valid subject to publish to, whatever the node is called.
"""

import re
from functools import lru_cache

PLACE = "%s"
"""Where the sender stands in a topic."""

EXPANSIONS_KEPT_MAX = 65_536
"""Subjects kept: a fleet of this size has each of them made once."""

SUBJECT_BYTES_MAX = 1_024
"""Of one name in a subject; a protocol line holds at most 4,096 bytes, with the inbox and the sizes."""

_FORBIDDEN = re.compile(r"[\s*>\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]")


def token_text(name: str) -> str:
    """Return a name as one or more tokens: dots stay, whatever a subject cannot have becomes `_`."""
    cleaned = _FORBIDDEN.sub("_", name)
    tokens = [token or "_" for token in cleaned.split(".")]
    text = ".".join(tokens)
    shortened = text.encode()[:SUBJECT_BYTES_MAX].decode(errors="ignore")
    # Cutting may have left a dot at the end.
    return f"{shortened}_" if shortened.endswith(".") else shortened


@lru_cache(maxsize=EXPANSIONS_KEPT_MAX)
def expand(topic: str, sender: str) -> str:
    """Return the topic with every `%s` replaced by the sender's name, made safe."""
    return topic.replace(PLACE, token_text(sender)) if PLACE in topic else topic


def is_publishable(subject: str) -> bool:
    """Tell whether a subject can be published to: tokens that are not empty, no blanks, no wildcards."""
    if not subject or _FORBIDDEN.search(subject):
        return False
    return all(subject.split("."))


def is_subscribable(subject: str) -> bool:
    """Tell whether a subject can be subscribed to: wildcards are whole tokens, `>` the last one."""
    tokens = subject.split(".")
    for position, part in enumerate(tokens):
        if not part or any(character.isspace() or ord(character) < 0x20 for character in part):
            return False
        if ("*" in part or ">" in part) and len(part) > 1:
            return False
        if part == ">" and position != len(tokens) - 1:
            return False
    return True
