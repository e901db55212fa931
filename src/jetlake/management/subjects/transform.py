"""What a subject transform means, and which ones are legal.

A transform has a source with wildcards and a destination whose tokens may be functions of what the wildcards matched:

| destination token                           | becomes                                                      |
|---------------------------------------------|--------------------------------------------------------------|
| `{{wildcard(2)}}`, `$2`                     | what the second `*` matched                                  |
| `{{partition(10,1,2)}}`, `{{partition(10)}}` | a number below 10, by those tokens, or by the whole subject |
| `{{split(1,-)}}`                            | a token for each part between dashes                         |
| `{{splitFromLeft(1,3)}}`, `…FromRight`      | two tokens, the first (or the last) of three bytes           |
| `{{sliceFromLeft(1,3)}}`, `…FromRight`      | tokens of three bytes, a shorter one last (or first)         |
| `{{left(1,3)}}`, `{{right(1,3)}}`           | the first (or the last) three bytes                          |
| `{{random(10)}}`                            | a random number below 10                                     |

A wildcard number below one means the first token of the subject, as on nats-server.

Invariant: a `Transform` that exists maps every subject its source matches; lengths are of bytes, because subjects are.
"""

import random
import re
from bisect import bisect_left
from collections.abc import Callable

import msgspec

from jetlake.management.subjects.names import ALL_THE_REST, ANY_ONE

_BLANKS = r"[\t\n\f\r ]*+"
_CLOSING = re.compile(r"\)" + _BLANKS + r"\}\}")
_ARGUMENT_SEPARATOR = re.compile(r",[\t\n\f\r ]*")
_WHITE_SPACE = re.compile(r"[ \t\r\n\f]")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1

_INVALID = "invalid transform"
_UNKNOWN = "unknown function"
_NOT_ENOUGH = "not enough arguments passed to the function"
_TOO_MANY = "too many arguments passed to the function"
_BAD_ARGUMENT = "function argument is invalid or in the wrong format"
_OUT_OF_RANGE = "wildcard index out of range"


class TransformError(Exception):
    """Is raised when a transform is not legal; the message says why, as nats-server does."""


class _Function(msgspec.Struct, frozen=True):
    """A destination token: a literal, or a function with its arguments."""

    name: str
    text: str
    wildcards: tuple[int, ...] = ()
    number: int = 0
    delimiter: str = ""


class Transform(msgspec.Struct, frozen=True):
    """A legal transform. Make it with `make_transform`."""

    source: tuple[str, ...]
    destination: tuple[_Function, ...]

    def apply(self, subject: str) -> str | None:
        """Return what a subject becomes, or None when the source does not match it."""
        tokens = subject.split(".")
        if not _matches(tokens, self.source):
            return None
        wildcards = [tokens[index] for index, token in enumerate(self.source) if token == ANY_ONE]
        rest = tokens[len(self.source) - 1 :]
        mapped = []
        for function in self.destination:
            if function.name == ALL_THE_REST:
                mapped += rest
            else:
                taken = [wildcards[index - 1] if index > 0 else tokens[0] for index in function.wildcards]
                mapped.append(_MAPPINGS[function.name](function, taken, subject))
        return ".".join(mapped)


def check_mapping(source: str, destination: str) -> None:
    """Raise `TransformError` unless a stream may map its subjects like this. No destination is none to check."""
    if not destination:
        return
    is_after_rest = False
    for token in destination.split("."):
        if not token:
            raise _destination_error(_INVALID, "")
        if is_after_rest:
            raise _destination_error(_INVALID, token)
        if _looks_like_a_function(token):
            if _find_call(token) is None:
                raise _destination_error(_UNKNOWN, token)
        elif token == ALL_THE_REST:
            is_after_rest = True
        elif _WHITE_SPACE.search(token):
            raise _destination_error(_INVALID, "")
    make_transform(source, destination)


def make_transform(source: str, destination: str) -> Transform:
    """Return the transform of these two, or raise `TransformError`. An empty source is everything."""
    source_tokens = (source or ALL_THE_REST).split(".")
    destination_tokens = destination.split(".")
    for tokens in (source_tokens, destination_tokens):
        if not all(tokens) or ALL_THE_REST in tokens[:-1]:
            raise TransformError("invalid subject")
    takes_rest = source_tokens[-1] == ALL_THE_REST
    if ANY_ONE in destination_tokens or takes_rest != (destination_tokens[-1] == ALL_THE_REST):
        raise TransformError("invalid subject")
    wildcard_count = source_tokens.count(ANY_ONE)
    has_wildcards = wildcard_count > 0 or takes_rest
    functions = []
    for token in destination_tokens:
        function = _read_function(token)
        if has_wildcards:
            _check_wildcards(function, wildcard_count)
        elif function.name not in ("literal", "partition", "random"):
            raise _destination_error(_OUT_OF_RANGE, token)
        else:
            # Without wildcards there is nothing to choose from: the numbers are allowed and not looked at.
            function = msgspec.structs.replace(function, wildcards=())
        functions.append(function)
    return Transform(tuple(source_tokens), tuple(functions))


def _destination_error(problem: str, token: str) -> TransformError:
    return TransformError(f"invalid mapping destination: {problem}{' in ' + token if token else ''}")


def _check_wildcards(function: _Function, wildcard_count: int) -> None:
    for index in function.wildcards:
        if index > wildcard_count:
            raise _destination_error(_OUT_OF_RANGE, f"{function.text}: [{index}]")


def _looks_like_a_function(token: str) -> bool:
    return len(token.encode()) > 4 and token.startswith("{{") and token.endswith("}}")


def _read_function(token: str) -> _Function:
    if token == ALL_THE_REST:
        return _Function(ALL_THE_REST, token)
    if token.startswith("$"):
        index = _whole_number(token[1:])
        return _Function("literal", token) if index is None else _Function("wildcard", token, (index,))
    if not _looks_like_a_function(token):
        return _Function("literal", token)
    call = _find_call(token)
    if call is None:
        raise _destination_error(_UNKNOWN, token)
    name, arguments = call
    return _ARGUMENTS[name](name, token, _ARGUMENT_SEPARATOR.split(arguments))


def _find_call(token: str) -> tuple[str, str] | None:
    """Return the name and the arguments of the first function that is called anywhere in the token.

    The arguments end at the last closing bracket on the line they begin on. They are found without going back, so
    that a token of a megabyte takes no longer than it should.
    """
    closings = [closing.start() for closing in _CLOSING.finditer(token)]
    for name, opening in _OPENINGS.items():
        for opened in opening.finditer(token):
            line_end = token.find("\n", opened.end())
            before = bisect_left(closings, line_end if line_end >= 0 else len(token))
            if before and closings[before - 1] >= opened.end():
                return name, token[opened.end() : closings[before - 1]]
    return None


def _whole_number(text: str) -> int | None:
    number = int(text) if _WHOLE_NUMBER.fullmatch(text) else None
    return number if number is not None and -_INT64_MAX - 1 <= number <= _INT64_MAX else None


def _number_argument(token: str, argument: str, most: int = _INT64_MAX) -> int:
    number = _whole_number(argument.strip(" "))
    if number is None or number > most:
        raise _destination_error(_BAD_ARGUMENT, token)
    return number


def _wildcard_arguments(name: str, token: str, arguments: list[str]) -> _Function:
    if arguments == [""]:
        raise _destination_error(_NOT_ENOUGH, token)
    if len(arguments) > 1:
        raise _destination_error(_TOO_MANY, token)
    return _Function(name, token, (_number_argument(token, arguments[0]),))


def _partition_arguments(name: str, token: str, arguments: list[str]) -> _Function:
    count = _number_argument(token, arguments[0], _INT32_MAX)
    return _Function(name, token, tuple(_number_argument(token, index) for index in arguments[1:]), count)


def _split_arguments(name: str, token: str, arguments: list[str]) -> _Function:
    _check_count(token, arguments)
    index = _number_argument(token, arguments[0])
    if " " in arguments[1]:
        raise _destination_error(_BAD_ARGUMENT, token)
    return _Function(name, token, (index,), delimiter=arguments[1])


def _length_arguments(name: str, token: str, arguments: list[str]) -> _Function:
    _check_count(token, arguments)
    index = _number_argument(token, arguments[0])
    return _Function(name, token, (index,), _number_argument(token, arguments[1], _INT32_MAX))


def _random_arguments(name: str, token: str, arguments: list[str]) -> _Function:
    if len(arguments) > 1:
        # The server says it the wrong way round, and this is its text.
        raise _destination_error(_NOT_ENOUGH, token)
    return _Function(name, token, number=_number_argument(token, arguments[0], _INT32_MAX))


def _check_count(token: str, arguments: list[str]) -> None:
    if len(arguments) != 2:
        raise _destination_error(_NOT_ENOUGH if len(arguments) < 2 else _TOO_MANY, token)


def _opening(name: str) -> re.Pattern[str]:
    return re.compile(r"\{\{" + _BLANKS + name + _BLANKS + r"\(")


# The order in which a token is tried.
_OPENINGS = {
    "wildcard": _opening("[wW]ildcard"),
    "partition": _opening("[pP]artition"),
    "splitFromLeft": _opening("[sS]plit[fF]rom[lL]eft"),
    "splitFromRight": _opening("[sS]plit[fF]rom[rR]ight"),
    "sliceFromLeft": _opening("[sS]lice[fF]rom[lL]eft"),
    "sliceFromRight": _opening("[sS]lice[fF]rom[rR]ight"),
    "right": _opening("[rR]ight"),
    "left": _opening("[lL]eft"),
    "split": _opening("[sS]plit"),
    "random": _opening("[rR]andom"),
}
_ARGUMENTS: dict[str, Callable[[str, str, list[str]], _Function]] = {
    "wildcard": _wildcard_arguments,
    "partition": _partition_arguments,
    "split": _split_arguments,
    "random": _random_arguments,
    **dict.fromkeys(
        ("splitFromLeft", "splitFromRight", "sliceFromLeft", "sliceFromRight", "right", "left"), _length_arguments
    ),
}


def _matches(tokens: list[str], source: tuple[str, ...]) -> bool:
    if len(tokens) < len(source) or (len(tokens) > len(source) and source[-1] != ALL_THE_REST):
        return False
    return all(wanted in (token, ANY_ONE, ALL_THE_REST) for token, wanted in zip(tokens, source, strict=False))


def _partition(function: _Function, taken: list[str], subject: str) -> str:
    if function.number == 0:
        return "0"
    text = "".join(taken) if function.wildcards else subject
    hashed = 2_166_136_261
    for byte in text.encode("utf-8", "surrogateescape"):
        hashed = ((hashed ^ byte) * 16_777_619) & 0xFFFFFFFF
    # A negative number of partitions is taken for the large one with the same bits.
    return str(hashed % (function.number & 0xFFFFFFFF))


def _split(function: _Function, taken: list[str], _: str) -> str:
    parts = taken[0].split(function.delimiter) if function.delimiter else taken[0]
    return ".".join(part for part in parts if part)


def _cuts(function: _Function, taken: list[str], _: str) -> str:
    """Cut a token at every place its function names. A place outside of it cuts nothing."""
    token = taken[0].encode("utf-8", "surrogateescape")
    length, count = function.number, len(token)
    if not 0 < length < count:
        return taken[0]
    first = count % length or length
    places = {
        "splitFromLeft": [length],
        "splitFromRight": [count - length],
        "sliceFromLeft": list(range(length, count, length)),
        "sliceFromRight": list(range(first, count, length)),
    }[function.name]
    parts = [token[start:end] for start, end in zip([0, *places], [*places, count], strict=True)]
    return b".".join(parts).decode("utf-8", "surrogateescape")


def _side(function: _Function, taken: list[str], _: str) -> str:
    token = taken[0].encode("utf-8", "surrogateescape")
    if not 0 < function.number < len(token):
        return taken[0]
    part = token[: function.number] if function.name == "left" else token[-function.number :]
    return part.decode("utf-8", "surrogateescape")


_MAPPINGS: dict[str, Callable[[_Function, list[str], str], str]] = {
    "literal": lambda function, _, __: function.text,
    "wildcard": lambda _, taken, __: taken[0],
    "partition": _partition,
    "split": _split,
    "splitFromLeft": _cuts,
    "splitFromRight": _cuts,
    "sliceFromLeft": _cuts,
    "sliceFromRight": _cuts,
    "left": _side,
    "right": _side,
    "random": lambda function, _, __: str(random.randrange(max(function.number, 1))),
}
