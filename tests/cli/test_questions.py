"""What is asked on a terminal, and what the answers do, against both servers."""

import os
import pty
import re
import select
import subprocess
import sys
import time

ANSWER_S_MAX = 60.0
COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_a_terminal(url, *words, answers=(), keep_colours=False, columns="100"):
    """Run a command on a terminal, give an answer to each question, and return the exit code and what was printed."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jetlake", *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=os.environ | {"NATS_URL": url, "TERM": "xterm-256color", "COLUMNS": columns, "LINES": "50"},
    )
    os.close(terminal)
    left, printed, deadline = list(answers), "", time.monotonic() + ANSWER_S_MAX
    try:
        while time.monotonic() < deadline:
            readable, _, _ = select.select([controller], [], [], 0.2)
            if not readable:
                continue
            try:
                printed += os.read(controller, 65536).decode(errors="replace")
            except OSError:
                # The last one that had the terminal open is gone.
                break
            if left and COLOURS.sub("", printed).endswith(": "):
                os.write(controller, f"{left.pop(0)}\n".encode())
        code = process.wait(timeout=ANSWER_S_MAX)
    finally:
        process.kill()
        process.wait()
        os.close(controller)
    assert not left, f"not asked: {left}; printed: {printed}"
    return code, (printed if keep_colours else COLOURS.sub("", printed)).replace("\r\n", "\n")


def test_name_and_subjects_that_are_missing_are_asked_for(url, read):
    code, printed = on_a_terminal(url, "stream", "add", answers=["ASKED", "asked.>, more"])

    assert code == 0, printed
    assert "Name of the stream: ASKED" in printed
    assert read("stream", "info", "ASKED")["config"]["subjects"] == ["asked.>", "more"]


def test_what_is_given_is_not_asked_for(url):
    code, printed = on_a_terminal(url, "stream", "add", "GIVEN", "--subjects", "given")

    assert code == 0, printed
    assert ":" not in printed.splitlines()[0]


def test_difference_is_coloured_and_no_changes_nothing(url, done, read):
    done("stream", "add", "COLOUR", "--subjects", "colour")

    code, printed = on_a_terminal(url, "stream", "edit", "COLOUR", "--max-msgs", "5", answers=["n"], keep_colours=True)

    assert code == 1
    assert "\x1b[31m- max_msgs: unlimited" in printed
    assert "\x1b[32m+ max_msgs: 5" in printed
    assert read("stream", "info", "COLOUR")["config"]["max_msgs"] == -1


def test_yes_changes_and_deletes(url, done, read):
    done("stream", "add", "YES", "--subjects", "yes")

    assert on_a_terminal(url, "stream", "edit", "YES", "--max-msgs", "5", answers=["y"])[0] == 0
    assert read("stream", "info", "YES")["config"]["max_msgs"] == 5
    code, printed = on_a_terminal(url, "stream", "rm", "YES", answers=["y"])
    assert (code, "Really delete YES (0 messages)?" in printed) == (0, True)
    assert "YES" not in read("stream", "ls", "--names")


def test_stream_that_is_not_named_can_be_chosen_by_number_or_name(url, done):
    done("stream", "add", "CHOOSE", "--subjects", "choose")

    code, printed = on_a_terminal(url, "stream", "state", answers=["CHOOSE"])
    assert code == 0, printed
    code, printed = on_a_terminal(url, "stream", "state", answers=["1"])
    assert code == 0, printed
    assert on_a_terminal(url, "stream", "state", answers=["nothing"])[0] == 1


def test_messages_are_shown_page_by_page(url, done):
    done("stream", "add", "PAGES", "--subjects", "pages")
    done("pub", "pages", "message {{Count}}", "--count", "5", "-J", "-q")

    code, printed = on_a_terminal(url, "stream", "view", "PAGES", "2", answers=["y", "n"])

    assert code == 0
    assert "message 4" in printed
    assert "message 5" not in printed


def test_name_of_a_consumer_that_is_missing_is_asked_for(url, done, read):
    done("stream", "add", "ASKED_C", "--subjects", "nameless")

    code, printed = on_a_terminal(url, "consumer", "add", "ASKED_C", answers=["worker"])

    assert code == 0, printed
    assert read("consumer", "ls", "ASKED_C", "--names") == ["worker"]


def test_table_has_totals_on_a_terminal(url, done):
    done("stream", "add", "TOTALS", "--subjects", "totals")

    code, printed = on_a_terminal(url, "stream", "report")

    assert code == 0
    assert re.search(r"│ \d+ streams\s+│", printed)


def test_rates_are_drawn_on_a_terminal(url, done):
    done("stream", "add", "DRAWN", "--subjects", "drawn")

    code, printed = on_a_terminal(url, "stream", "graph", "DRAWN", "--interval", "50ms", "--count", "2")

    assert code == 0
    assert "DRAWN: 0 messages" in printed


def test_rate_of_a_subscription_is_drawn_on_a_terminal(url):
    code, printed = on_a_terminal(url, "sub", "quiet", "--graph", "--wait", "1500ms")

    assert code == 0
    assert "quiet: 0 messages" in printed
