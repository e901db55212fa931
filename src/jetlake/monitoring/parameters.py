"""The parameters after the `?` of a page, read and refused in nats-server's words.

A parameter that is missing or empty has its zero value. Of a parameter given twice the first counts.

Invariant: the only way out, besides a value, is `PageError` with the text of the answer.
"""

from typing import Annotated

import msgspec

from jetlake.shared.go_text import quoted

TRUE_WORDS = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE_WORDS = frozenset({"0", "f", "F", "false", "FALSE", "False"})

INTEGER_MAX = 2**63 - 1
Integer = Annotated[int, msgspec.Meta(ge=-INTEGER_MAX - 1, le=INTEGER_MAX)]
"""A number in the options of a request; a larger one would not fit anywhere later on."""

ConnectionId = Annotated[int, msgspec.Meta(ge=0, le=INTEGER_MAX)]
"""The id of a connection; they are counted from 1, so none will ever be larger."""

UNSIGNED_MAX = 2**64 - 1

DIGITS_MAX = 40
"""Longer numbers are out of range without being read: the time Python takes grows with the square of the digits."""


class PageError(Exception):
    """Is raised when a request asks for something that cannot be given; its text is the answer."""


class UnreadableOptionsError(PageError):
    """Is raised when the options of a request are not JSON of the right shape."""


class QueryParameters:
    """The parameters of one request."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def boolean(self, name: str) -> bool:
        word = self.text(name)
        if word in TRUE_WORDS:
            return True
        if not word or word in FALSE_WORDS:
            return False
        raise _refused("boolean", name, "ParseBool", word, "invalid syntax")

    def integer(self, name: str) -> int:
        word = self.text(name)
        if not word:
            return 0
        sign, digits = (-1, word[1:]) if word[0] == "-" else (1, word.removeprefix("+"))
        if not _is_decimal(digits):
            raise _refused("int", name, "Atoi", word, "invalid syntax")
        number = sign * _number(digits)
        if not -INTEGER_MAX - 1 <= number <= INTEGER_MAX:
            raise _refused("int", name, "Atoi", word, "value out of range")
        return number

    def unsigned(self, name: str) -> int:
        word = self.text(name)
        if not word:
            return 0
        if not _is_decimal(word):
            raise _refused("uint64", name, "ParseUint", word, "invalid syntax")
        number = _number(word)
        if number > UNSIGNED_MAX:
            raise _refused("uint64", name, "ParseUint", word, "value out of range")
        return number

    def subscriptions(self) -> tuple[bool, bool]:
        """Return whether subscriptions are asked for, and whether with their details: `subs=1`, `subs=detail`."""
        if self.text("subs").lower() == "detail":
            return False, True
        return self.boolean("subs"), False


def _is_decimal(digits: str) -> bool:
    return digits.isascii() and digits.isdigit()


def _number(digits: str) -> int:
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= DIGITS_MAX else UNSIGNED_MAX + 1


def _refused(kind: str, name: str, function: str, word: str, reason: str) -> PageError:
    return PageError(f"Error decoding {kind} for '{name}': strconv.{function}: parsing {quoted(word)}: {reason}")
