"""The pages of the documentation, taken apart: code blocks, headings, links.

A comment right before a code block says how its test treats it:

    <!-- example: background -->          starts a server, or another program that does not end, and goes on
    <!-- example: output -->              each line must be in what the block before it printed
    <!-- example: file server.conf -->    is written to this file, for the blocks that follow
    <!-- example: slow -->                is run by `make test-long` only: it starts a Spark of its own
    <!-- example: not run, needs root --> is not run, for the reason given

and a comment of its own prepares what the page presupposes, or checks what a block has done, with the lines of a shell:

    <!-- example: setup
    jetlake stream add ORDERS --subjects 'orders.>' --defaults
    -->

Invariant: every code block of a page is returned exactly once, in the page's order.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\s*$")
_NOTE = re.compile(r"^\s*<!-- example: (?P<note>[^\n]*?) -->\s*$")
_SETUP = re.compile(r"^\s*<!-- example: setup\s*$")
_HEADING = re.compile(r"^(#{1,6}) +(.*?)\s*$")
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_CODE_SPAN = re.compile(r"`[^`]*`")


class Block(NamedTuple):
    """One code block of a page, or the lines of a setup comment (`note` is `setup`)."""

    page: str
    line: int
    language: str
    text: str
    note: str

    @property
    def is_run(self) -> bool:
        return not self.note.startswith("not run")

    @property
    def is_slow(self) -> bool:
        return self.note == "slow"

    @property
    def file(self) -> str:
        """The file that a reader saves this block to, if there is one."""
        return self.note.removeprefix("file ") if self.note.startswith("file ") else ""


def documentation() -> list[str]:
    """Return all pages, as paths from the root of the repository."""
    top = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
    return top + sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "docs").rglob("*.md"))


def read(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """Return the code blocks of a page and its setup comments, in their order."""
    found: list[Block] = []
    note, begun, language, indent = "", 0, "", 0
    gathered: list[str] = []
    for number, line in enumerate(read(page).splitlines(), 1):
        fence = _FENCE.match(line)
        if begun:
            ends = line.strip() == "-->" if language == "setup" else fence is not None and not fence["language"]
            if ends:
                text = "".join(f"{each[indent:]}\n" for each in gathered)
                is_setup = language == "setup"
                found.append(Block(page, begun, "sh" if is_setup else language, text, "setup" if is_setup else note))
                note, begun, gathered = "", 0, []
            else:
                gathered.append(line)
        elif fence is not None:
            begun, language, indent = number, fence["language"], len(fence["indent"])
        elif _SETUP.match(line):
            begun, language, indent = number, "setup", 0
        elif noted := _NOTE.match(line):
            note = noted["note"]
    assert not begun, f"{page}:{begun}: this block never ends"
    return found


def prose(page: str) -> list[tuple[int, str]]:
    """Return the lines of a page outside its code blocks, with their numbers."""
    lines, inside = [], False
    for number, line in enumerate(read(page).splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            lines.append((number, line))
    return lines


def links(page: str) -> list[tuple[int, str]]:
    """Return the targets of the links of a page, with their lines."""
    return [(number, target) for number, line in prose(page) for target in _LINK.findall(_CODE_SPAN.sub("``", line))]


def anchors(page: str) -> set[str]:
    """Return what a link to a page may have after its #: the headings, spelled as the site spells them."""
    found: set[str] = set()
    for _, line in prose(page):
        if heading := _HEADING.match(line):
            title = re.sub(r"[`*]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[2]))
            anchor = _slug(title)
            # The second heading of the same words gets a number, as Python-Markdown does it.
            found.add(next(each for each in (anchor, *(f"{anchor}_{n}" for n in range(1, 100))) if each not in found))
        found |= set(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
