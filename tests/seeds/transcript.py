"""From a document to the commands it prints, each with what it printed and what was typed.

A command stands in a fenced block behind `$ `, `> ` or `< `; a backslash at its end continues it. What follows up to
the next command is its output. Lines that begin with `# ` are comments. A block of shell without any of these marks is
a list of commands without output.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

DOCUMENTS = Path(__file__).parent / "documents"

SHELL_LANGUAGES = ("bash", "nohighlight")

_FENCE = re.compile(r"^```\s*(\w*)\s*$")
_COMMAND = re.compile(r"^[$><] +(.*)$")

PROMPTS = (
    "Name:",
    "Subjects:",
    "Limits (msgs, bytes, age):",
    "Storage:",
    "Message Set Name:",
    "Durable Name:",
    "Push or Pull:",
    "Delivery Subject:",
    "Deliver All? (Y|n):",
    "AckPolicy (None|all|explicit):",
    "Replay Policy (Instant|original):",
    "Ack? (Y|n)",
)
"""What is asked at the beginning of a line; behind it stands what was typed."""

CONFIRMED = re.compile(r"^\? .* Yes$")
"""A question that was answered with yes."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One command as it is printed."""

    line: int
    command: str
    output: tuple[str, ...] = ()

    @property
    def typed(self) -> str:
        """What was typed, a line for each prompt."""
        answers = []
        for line in self.output:
            prompt = next((prompt for prompt in PROMPTS if line.startswith(prompt)), None)
            if prompt is not None:
                answers.append(line.removeprefix(prompt).strip())
            elif CONFIRMED.match(line):
                answers.append("y")
        return "".join(f"{answer}\n" for answer in answers)


def read_document(name: str) -> list[Step]:
    """Return the commands of a document in the order in which they are printed."""
    steps: list[Step] = []
    block: list[tuple[int, str]] | None = None
    language = ""
    for number, line in enumerate((DOCUMENTS / name).read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line.strip())
        if fence is None:
            if block is not None:
                block.append((number, line))
        elif block is None:
            block, language = [], fence[1]
        else:
            steps += _read_block(block) if language in SHELL_LANGUAGES else []
            block = None
    assert block is None, f"{name} has a block without an end"
    return steps


def _read_block(lines: list[tuple[int, str]]) -> list[Step]:
    has_marks = any(_COMMAND.match(line) for _, line in lines)
    steps: list[Step] = []
    waiting = iter(lines)
    for number, line in waiting:
        if line.startswith("# "):
            continue
        marked = _COMMAND.match(line)
        if marked is None and has_marks:
            assert steps, f"line {number} is printed before any command"
            steps[-1] = msgspec.structs.replace(steps[-1], output=(*steps[-1].output, line))
            continue
        command = marked[1] if marked else line
        while command.endswith("\\"):
            command += "\n" + next(waiting)[1]
        if command.strip():
            steps.append(Step(line=number, command=command.strip()))
    return [msgspec.structs.replace(step, output=_without_edges(step)) for step in steps]


def _without_edges(step: Step) -> tuple[str, ...]:
    """Return the output without empty lines around it, and without the command where it is printed twice."""
    lines = [line.rstrip() for line in step.output if line.strip() != step.command]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)
