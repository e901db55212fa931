"""What stands in a credentials file: the JWT of a user between lines of dashes, and the seed of its key.

Invariant: nothing is found in a text that a JWT only seems to hold; letters of a JWT are not taken for a seed.
"""

import re

_JWT = re.compile(r"-+BEGIN NATS USER JWT-+\s+([A-Za-z0-9_.\-]+)\s+-+END")
_SEED = re.compile(r"\bS[A-Z][A-Z2-7]{56}\b")


def find_user_jwt(text: str) -> str | None:
    """Return the JWT of a credentials file."""
    found = _JWT.search(text)
    return None if found is None else found[1]


def find_seed(text: str, prefix: str = "S") -> str | None:
    """Return the first seed in a text, be it alone there or beside a JWT. A seed of a user begins with SU."""
    # A JWT may hold letters that look like a seed.
    return next((seed for seed in _SEED.findall(_JWT.sub("", text)) if seed.startswith(prefix)), None)
