"""The nearest name there is: whoever mistypes one should not have to search for it."""

import difflib
from collections.abc import Iterable

NEARNESS = 0.5
"""From 0, anything, to 1, equal: below this a suggestion is more puzzling than helpful."""


def nearest(name: str, there: Iterable[str]) -> str:
    """Return the most similar name, without regard to case; empty when none is similar."""
    names = {candidate.lower(): candidate for candidate in there}
    found = difflib.get_close_matches(name.lower(), names, 1, NEARNESS)
    return names[found[0]] if found else ""


def hint(name: str, there: Iterable[str]) -> str:
    """Return the end of a sentence that says a name is not there: the nearest one, or all of them."""
    names = list(there)
    near = nearest(name, names)
    if near:
        return f"; did you mean {near}?"
    return f"; there are {', '.join(sorted(names))}" if names else "; there are none"
