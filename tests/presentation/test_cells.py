"""Values of strangers: what they contain is shown and changes nothing on a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.presentation.cells import plain, safe, shown
from jetlake.presentation.changes import shown_value


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("\x1b]0;owned\x07\x1b[2J", r"\x1b]0;owned\x07\x1b[2J"),
        ("\x9b2J", r"\x9b2J"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("invoice_\u202efdp.exe", r"invoice_\u202efdp.exe"),
        ("\u2066left\u2069", r"\u2066left\u2069"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("Größe 10\xa0km, 東京\u3000駅, 🙂", "Größe 10\xa0km, 東京\u3000駅, 🙂"),
        ("", ""),
    ],
)
def test_what_is_not_printable_is_shown_as_an_escape(text, visible):
    assert safe(text) == shown(text) == plain(text) == visible


def test_texts_of_a_configuration_that_changes_are_shown_too():
    assert shown_value("description", "a\x1b[2J") == r"a\x1b[2J"
    assert shown_value("subjects", ["a\nb", "c"]) == r"[a\nb, c]"


@given(st.text(st.characters(codec=None)))
def test_no_control_character_is_left(text):
    assert not any(unicodedata.category(character)[0] == "C" for character in safe(text))
    assert safe(text).splitlines() in ([safe(text)], [])
