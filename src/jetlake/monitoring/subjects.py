"""The two questions monitoring asks about subjects. Routing itself is the engine's.

Wildcards count only as whole tokens, as everywhere.
"""


def is_literal(subject: str) -> bool:
    """Return whether one may publish to it: no empty token, no wildcard, no white space."""
    tokens = subject.split(".")
    return all(tokens) and not {"*", ">"} & set(tokens) and not any(letter.isspace() for letter in subject)


def collide(first: str, second: str) -> bool:
    """Return whether some subject matches both; either may have wildcards."""
    left, right = first.split("."), second.split(".")
    for one, other in zip(left, right, strict=False):
        if ">" in (one, other):
            return True
        if one != other and "*" not in (one, other):
            return False
    return len(left) == len(right)
