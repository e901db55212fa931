"""The reader of documents, and the comparison: they must find what is there, and what differs."""

from tests.seeds.masks import differences
from tests.seeds.transcript import Step, read_document


def test_what_was_typed_stands_behind_the_prompts():
    add = read_document("choria_jetstream.md")[0]

    assert add.typed == "choria_fleet_metadata\nchoria.node_metadata\n-1 -1 1w\nfile\n"


def test_a_command_is_continued_behind_a_backslash():
    commands = [step.command for step in read_document("nats_messaging_part_7.md")]
    (add,) = [command for command in commands if command.startswith("nats str add")]

    assert add.splitlines()[-1].strip() == "--max-msg-size=-1"


def test_a_yes_is_typed_where_a_question_was_answered_so():
    step = Step(line=1, command="c", output=("? Really edit Stream LOGS Yes",))

    assert step.typed == "y\n"


def test_every_difference_that_is_not_masked_is_found():
    printed = ("11:35:11 Received on [_INBOX.a.b]: '+OK'", "Messages: 2")

    assert differences(printed, "10:00:00 Received on [_INBOX.c.d]: '+OK'\nMessages: 2\n\n") == ""
    for ours in ("10:00:00 Received on [_INBOX.c.d]: '-ERR'\nMessages: 2", "", "Messages: 2", "Messages: 3"):
        assert "we print:" in differences(printed, ours)


def test_a_line_of_dots_stands_for_any_lines():
    assert differences(("a", "...", "d"), "a\nb\nc\nd\n") == ""
    assert differences(("a", "...", "d"), "a\nb\nc\n") != ""
