"""Every line of `jetlake …` in a code block names a command and flags that exist, also where a test cannot run it."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

from jetlake.cli.commands import COMMAND_OF_WORD
from jetlake.cli.invocation import FLAGS as COMMON_FLAGS
from jetlake.cli.lazy import SERVER_VIEWS, load
from jetlake.server.flags import FLAGS as SERVER_FLAGS
from tests.docs import pages

LANGUAGES = {"", "bash", "console", "sh", "shell"}
LINE = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:sudo )?(?:\S*/)?jetlake (?P<words>.*)$")
END = {"|", "||", "&&", "&", ";", ">", ">>", "<", "2>"}
COMMON = {name for flag in COMMON_FLAGS for name in flag.names}
RECORDS = ("docs/decisions/",)


def lines_of(page: str) -> list[tuple[int, list[str]]]:
    """Return the words of every line of a page that runs `jetlake`, up to a pipe or a redirection."""
    found = []
    for block in pages.blocks(page):
        if block.language not in LANGUAGES:
            continue
        text = re.sub(r"\\\n\s*", " ", block.text)
        for offset, line in enumerate(text.splitlines(), 1):
            if not (match := LINE.match(line)):
                continue
            try:
                words = shlex.split(match["words"], comments=True)
            except ValueError:
                # A quoted text that goes on in the next line; what stands before it is enough.
                words = match["words"].partition(" '")[0].split()
            ends = [number for number, word in enumerate(words) if word in END or word.startswith(">")]
            found.append((block.line + offset, words[: ends[0]] if ends else words))
    return found


@cache
def loaded(name: str) -> Any:
    return load(COMMAND_OF_WORD[name])


def mistake_of(words: list[str]) -> str:
    """Return what is wrong with a line; nothing if it could be run."""
    while words and words[0].startswith("-"):
        takes_value = next((flag.metavar for flag in COMMON_FLAGS if words[0] in flag.names), None)
        if words[0] not in COMMON | {"--help", "--version"}:
            return f"there is no flag {words[0]}"
        words = words[2:] if takes_value else words[1:]
    if not words or words[0] in {"help", "COMMAND", "…"}:
        return ""
    name, rest = words[0], words[1:]
    if name == "server" and not (rest and rest[0] in SERVER_VIEWS):
        known = {each for flag in SERVER_FLAGS for each in flag.names}
        given = [word.lstrip("-").partition("=")[0] for word in rest if re.match(r"--?[A-Za-z]", word)]
        return "".join(f"jetlake server has no flag {each}" for each in given if each not in known)
    if name not in COMMAND_OF_WORD:
        return f"there is no command {name}"
    if COMMAND_OF_WORD[name].raw and name != "server":
        return ""
    return _mistake_of_flags(loaded("server-view" if name == "server" else name), name, rest)


def _mistake_of_flags(command: Any, path: str, rest: list[str]) -> str:
    while rest and (below := getattr(command, "commands", None)):
        if rest[0] in {"--help", "help", "…"}:
            return ""
        if rest[0] not in below:
            return f"jetlake {path} has no command {rest[0]}"
        command, path, rest = below[rest[0]], f"{path} {rest[0]}", rest[1:]
    rest = rest[: rest.index("--")] if "--" in rest else rest
    known = (
        COMMON | {"--help", "--json"} | {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    )
    given = [word.partition("=")[0] for word in rest if re.match(r"--[a-z]", word)]
    return "; ".join(f"jetlake {path} has no flag {each}" for each in given if each not in known)


def test_every_line_could_be_run():
    wrong = [
        f"{page}:{line}: {mistake}: jetlake {' '.join(words)}"
        for page in pages.documentation()
        if not page.startswith(RECORDS)
        for line, words in lines_of(page)
        if (mistake := mistake_of(words))
    ]

    assert not wrong, "correct these lines:\n" + "\n".join(wrong)


def test_lines_are_found_where_they_are():
    assert sum(len(lines_of(page)) for page in pages.documentation()) > 150


def test_a_wrong_line_is_noticed():
    assert mistake_of(["stream", "ad", "ORDERS"]) == "jetlake stream has no command ad"
    assert mistake_of(["stream", "add", "ORDERS", "--subject", "x"]) == "jetlake stream add has no flag --subject"
    assert mistake_of(["--server", "nats://a", "stream", "ls", "--names"]) == ""
    assert mistake_of(["server", "--jss"]) == "jetlake server has no flag jss"
