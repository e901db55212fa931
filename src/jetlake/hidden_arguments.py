"""Passwords and tokens of the command line are overwritten, so that `ps` does not show them to every user.

They are seen for the moments until this has run, and they stay in the history of a shell: files of credentials,
contexts and variables of the environment are better. Linux keeps the arguments of a process in its own memory, and
shows what is there now; on other systems nothing is done.

Invariant: what the process itself knows of its arguments, `sys.argv`, stays as it was; only secrets are overwritten.
"""

import re
import sys

SECRET_FLAG = re.compile(rb"--?(password|pass|auth|token)(=.*)?", re.DOTALL)
PASSWORD_IN_URL = re.compile(rb"(?<=://)[^/@\s]+(?=@)")
COVER = b"x"

_STAT_FIELD_OF_START = 48
_STAT_FIELD_OF_END = 49
"""Of `proc(5)`, counted from 1: where the arguments begin and end in memory."""


def hide() -> None:
    """Overwrite the secrets among the arguments of this process, if there are any."""
    if sys.platform != "linux" or not any(_is_suspicious(argument) for argument in sys.argv[1:]):
        return
    # Few command lines need it.
    import ctypes

    try:
        start, end = _place_of_arguments()
        given = ctypes.string_at(start, end - start)
        covered = cover(given)
        if covered != given and len(covered) == len(given):
            ctypes.memmove(start, covered, len(covered))
    except (OSError, ValueError, IndexError):
        # A system that shows it otherwise, or not at all.
        return


def cover(given: bytes) -> bytes:
    """Return arguments, each ended by a zero, with every secret covered; the length stays."""
    arguments = given.split(b"\0")
    for index, argument in enumerate(arguments):
        flag = SECRET_FLAG.fullmatch(argument)
        if flag is not None and flag[2]:
            arguments[index] = argument[: flag.start(2) + 1] + COVER * (len(flag[2]) - 1)
        elif flag is not None and index + 1 < len(arguments):
            arguments[index + 1] = COVER * len(arguments[index + 1])
        else:
            arguments[index] = PASSWORD_IN_URL.sub(lambda found: COVER * len(found[0]), argument)
    return b"\0".join(arguments)


def _is_suspicious(argument: str) -> bool:
    return argument.startswith(("--pass", "-pass", "--auth", "-auth", "--token", "-token")) or "@" in argument


def _place_of_arguments() -> tuple[int, int]:
    with open("/proc/self/stat", "rb") as file:
        # The name of the program, in parentheses, may have blanks and parentheses of its own.
        fields = file.read().rpartition(b")")[2].split()
    # The first field after the name is the third.
    return int(fields[_STAT_FIELD_OF_START - 3]), int(fields[_STAT_FIELD_OF_END - 3])
