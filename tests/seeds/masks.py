"""What of a transcript depends on time, place and chance, and where a document says something else than it means.

This is the only place where what we print may differ from what a document prints.
"""

from __future__ import annotations

import re

MASKS: tuple[tuple[str, str], ...] = (
    # The time of day before a line of `nats`.
    (r"^\d\d:\d\d:\d\d ", "TIME "),
    # When a value was stored.
    (r"(created @) \d\d \w{3} \d\d \d\d:\d\d UTC$", r"\1 TIME"),
    # Inboxes are made up.
    (r"_INBOX\.\w+\.\w+", "INBOX"),
    # When a message was delivered, in nanoseconds.
    (r": \d{19}\b", ": NANOSECONDS"),
    # How much this machine has.
    (r" of [\d.]+ [kMGT]B$", " of SIZE"),
    (r'("max_(?:memory|storage)"): \d+', r"\1: SIZE"),
    # How often others had asked before: the last number of a reply subject.
    (r"^(Reply: \$JS\.A\.\w+\.\w+\.\d+\.\d+)\.\d+$", r"\1.N"),
    # Process, date and time before a line of a server's log.
    (r"^\[\d+\] \d{4}/\d\d/\d\d [\d:.]+ ", ""),
    # Versions, sizes, folders, addresses and ids of a server.
    (r"(Starting nats-server version) \S+", r"\1 V"),
    (r"(Git commit) \[.*\]", r"\1 [C]"),
    (r"(Max (?:Memory|Storage): +).*", r"\1SIZE"),
    (r'(Store Directory: )".*/jetstream"', r'\1"FOLDER/jetstream"'),
    (r"(Listening for client connections on) \S+", r"\1 ADDRESS"),
    (r"(Server id is) \w+", r"\1 ID"),
    # A comma at the end of a line of JSON depends on whether another key follows.
    (r",$", ""),
)
"""Patterns and what stands in their place, on both sides."""

OURS_ALONE = (
    # `$JS.INFO` is one subject of both dialects, so the answer has the words of both.
    r'^\s*"(msg_sets|max_msg_sets|max_observables)": ',
    # On one server there is nowhere to put a second replica.
    r"^WARN: this server is not part of a cluster: ",
    # The document leaves it out once.
    r"^TIME Sending request on \[\$JS\.INFO\]$",
)
"""Lines that we print and a document does not."""

SLIPS = {
    # It was published with another text a few lines before.
    "[#1] Received on [foo]: 'hello world'": "[#1] Received on [foo]: 'hello jetsream'",
}
"""What a document prints, and what it means."""

REST_LEFT_OUT = "..."
"""A line that stands for any number of lines."""


def masked(lines: tuple[str, ...] | list[str]) -> list[str]:
    """Return lines with everything masked that is allowed to differ."""
    result = []
    for line in lines:
        text = SLIPS.get(line, line).rstrip()
        for pattern, place in MASKS:
            text = re.sub(pattern, place, text)
        result.append(text)
    return result


def differences(printed: tuple[str, ...], ours: str) -> str:
    """Return an empty text if we print what the document does, else both."""
    wanted = masked(printed)
    got = [line for line in masked(ours.splitlines()) if not any(re.search(pattern, line) for pattern in OURS_ALONE)]
    while got and not got[0]:
        got.pop(0)
    while got and not got[-1]:
        got.pop()
    # Twice a document has lost the last brace of a JSON object.
    if wanted and wanted[0].endswith("{") and wanted[-1].startswith(" "):
        wanted.append("}")
    if _agree(wanted, got):
        return ""
    return "\n".join(["the document prints:", *wanted, "", "we print:", *got])


def _agree(wanted: list[str], got: list[str]) -> bool:
    if not wanted:
        return not got
    if wanted[0] == REST_LEFT_OUT:
        return any(_agree(wanted[1:], got[start:]) for start in range(len(got) + 1))
    return bool(got) and wanted[0] == got[0] and _agree(wanted[1:], got[1:])
