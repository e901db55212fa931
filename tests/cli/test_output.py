"""What commands print: for people on a terminal, for programs in a pipe."""

import os
import pty
import subprocess
import sys

import pytest

from jetlake.cli import output
from jetlake.cli.output import ask, confirm, print_facts, print_list, print_note, print_table
from jetlake.presentation.cells import Bytes, Nanoseconds, Percent, plain, shown

PROGRAM = """
from jetlake.cli.output import print_table
from jetlake.presentation.cells import Bytes
print_table(("name", "bytes"), [("a[b]", Bytes(1536)), ("c", Bytes(3))], totals=("2", Bytes(1539)))
"""


def on_a_terminal(program: str, **variables: str) -> str:
    """Run a program with a terminal for its output, and return what it wrote there."""
    controller, terminal = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", program],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            check=True,
            timeout=60,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **variables},
        )
        return os.read(controller, 100_000).decode()
    finally:
        os.close(terminal)
        os.close(controller)


def test_values_are_readable_for_people_and_bare_for_programs():
    values = (Bytes(1536), Nanoseconds(90_000_000_000), Percent(12.34), 1000, True, None, "a\tb")

    assert [shown(value) for value in values] == ["1.5 KiB", "1m30s", "12.3 %", "1,000", "yes", "", r"a\tb"]
    assert [plain(value) for value in values] == ["1536", "1m30s", "12.34", "1000", "yes", "", r"a\tb"]


def test_table_in_a_pipe_is_fields_with_tabs(capsys):
    print_table(("name", "bytes"), [("a", Bytes(1536))], totals=("1", Bytes(1536)))

    assert capsys.readouterr().out == "name\tbytes\na\t1536\n"


def test_table_on_a_terminal_has_a_frame_and_totals():
    text = on_a_terminal(PROGRAM)

    assert "╭" in text
    assert "1.5 KiB" in text
    assert "a[b]" in text


def test_what_strangers_have_named_does_nothing_to_a_terminal():
    hostile = r"evil\x1b]0;owned\x07\x1b[2Jx\rOK\u202e"
    program = f"""
from jetlake.cli.output import print_facts, print_list, print_note, print_table
name = "{hostile}"
print_table((name, name), [(name, name)], title=name, totals=(name, name))
print_facts(name, {{name: {{name: name}}}})
print_note(name)
print_list([name], str, str, names=True, as_json=False)
"""

    text = on_a_terminal(program, NO_COLOR="1", COLUMNS="400")

    for forbidden in ("\x1b]", "\x1b[2J", "\x07", "\u202e", "x\r"):
        assert forbidden not in text, (forbidden, text)
    assert text.count(hostile) == 13


def test_name_with_a_line_break_stays_one_line_in_a_pipe(capsys):
    print_list(["a\nb", "c"], str, str, names=True, as_json=False)
    print_facts("", {"": {"a\nb": "c\nd: e"}})
    print_note("Deleted a\nb")

    assert capsys.readouterr().out == "a\\nb\nc\na\\nb: c\\nd: e\nDeleted a\\nb\n"


def test_no_color_takes_the_colours_away():
    program = "from jetlake.cli.output import print_note; print_note('text', style='red')"

    assert "\x1b[31m" in on_a_terminal(program)
    assert "\x1b[3" not in on_a_terminal(program, NO_COLOR="1")


def test_facts_that_are_none_are_left_out(capsys):
    print_facts("title", {"": {"a": 1000, "b": None}})

    assert capsys.readouterr().out == "a: 1,000\n"


def test_nothing_is_asked_where_nobody_can_answer(monkeypatch):
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115

    with pytest.raises(output.UsageError, match=r"Not a terminal: add --force to delete ORDERS \(18 messages\)\."):
        confirm("Really delete ORDERS (18 messages)?", force=False)
    with pytest.raises(output.UsageError, match="Not a terminal: give --subjects"):
        ask("Subjects", flag="--subjects")

    confirm("Really delete ORDERS?", force=True)
    assert ask("Subjects", flag="--subjects", default="x") == "x"
    sys.stdin.close()
