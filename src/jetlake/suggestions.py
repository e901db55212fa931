"""Suggests the nearest existing name, so that a user who mistypes one need not search for it."""

from collections.abc import Iterable

NEARNESS = 0.5
"""From 0, anything, to 1, equal: below this a suggestion is more puzzling than helpful."""


def nearest(name: str, there: Iterable[str]) -> str:
    """Return the most similar name, without regard to case; empty when none is similar."""
    # Mistakes are rare, and loading this is not free.
    from difflib import get_close_matches

    names = {candidate.lower(): candidate for candidate in there}
    found = get_close_matches(name.lower(), names, 1, NEARNESS)
    return names[found[0]] if found else ""


def suggestion(name: str, there: Iterable[str]) -> str:
    """Return the end of a sentence that says a name is not there: the nearest one, or nothing."""
    near = nearest(name, there)
    return f"; did you mean {near}?" if near else ""


def hint(name: str, there: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a sentence that says a name is not there: the nearest one, or else what to look at.

    Unless given, that is a list of all of them.
    """
    names = list(there)
    everything = f"there are {', '.join(sorted(names))}" if names else "there are none"
    return suggestion(name, names) or f"; {otherwise or everything}"
