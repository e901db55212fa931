"""Asking at a terminal, and of a file: what is read from a file is printed, so that both leave the same transcript."""

import sys

LINE_CHARACTERS_MAX = 65_536
"""No answer is longer."""


def ask(prompt: str) -> str:
    """Print a prompt and return what is typed; nothing at the end of the input."""
    sys.stdout.write(f"{prompt} ")
    sys.stdout.flush()
    line = sys.stdin.readline(LINE_CHARACTERS_MAX).rstrip("\r\n")
    if not sys.stdin.isatty():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return line.strip()


def ask_yes(question: str) -> bool:
    """Ask for yes or no, no unless said; the line that stays says which it was."""
    if not sys.stdin.isatty():
        is_yes = _is_yes(sys.stdin.readline(LINE_CHARACTERS_MAX))
    else:
        sys.stdout.write(f"? {question} (y/N) ")
        sys.stdout.flush()
        is_yes = _is_yes(sys.stdin.readline(LINE_CHARACTERS_MAX))
        # One line up, and empty it: the answer takes the place of the question.
        sys.stdout.write("\x1b[1A\x1b[2K\r")
    print(f"? {question} {'Yes' if is_yes else 'No'}", flush=True)
    return is_yes


def _is_yes(line: str) -> bool:
    return line.strip().lower() in ("y", "yes")
