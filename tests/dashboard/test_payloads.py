"""Payloads on pages: what they are shown as, and that editing one changes nothing else."""

from __future__ import annotations

import random

import pytest

from jetlake.dashboard.payloads import (
    EDITED_BYTES_MAX,
    SHOWN_LETTERS_MAX,
    differences,
    edit_of,
    preview_of,
    read_edited,
    view_of,
)
from jetlake.errors import ConfigurationError


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"hello", "text"),
        (b"", "text"),
        (b'{"a": 1}', "json"),
        (b" [1, 2]\n", "json"),
        (b'{"a": ', "text"),
        (b"12", "text"),
        (b"\xff\xfe", "hex"),
        (b"a\x00b", "hex"),
        ("größer".encode(), "text"),
        (b"[" * 100_000, "text"),
    ],
)
def test_kind_of_a_payload_is_detected(payload: bytes, kind: str) -> None:
    assert view_of(payload).kind == kind


def test_numbers_of_json_are_shown_as_they_were_sent() -> None:
    assert '"a": 1.10000000000000000001' in view_of(b'{"a":1.10000000000000000001}').text


def test_control_characters_are_shown_as_pictures() -> None:
    assert view_of(b"a\x00b\x1b[31m", "text").text == "a␀b␛[31m"


def test_large_payload_is_cut() -> None:
    view = view_of(b"x" * 1_000_000)

    assert len(view.text) == SHOWN_LETTERS_MAX
    assert view.is_cut
    assert view.size_bytes == 1_000_000


def test_hex_shows_offsets_and_letters() -> None:
    assert view_of(b"\x00hello", "hex").text == "00000000  00 68 65 6c 6c 6f" + " " * 32 + ".hello"


def test_preview_is_one_line_and_may_cut_a_letter_in_two() -> None:
    assert preview_of(b"a\nb\tc") == "a b c"
    assert preview_of("é".encode() * 1000).startswith("ééé")
    assert preview_of(b"\xff\xfe\x00") == "ff fe 00"
    assert preview_of(b"\xff" * 20).startswith("ff ff")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\n",
        b"\n\nhello",
        b"a\r\nb\r\n",
        b"a\nb\r\nc",
        b"a\rb",
        b"\x00",
        b"\xff",
        "größer".encode(),
        b" a ",
        b"\t",
    ],
)
def test_untouched_form_returns_the_payload_byte_for_byte(payload: bytes) -> None:
    edit = edit_of(payload)
    assert edit is not None

    # A browser sends every line end of a text field as CR LF.
    sent = {"payload": edit.text.replace("\n", "\r\n"), "format": edit.kind}
    if edit.has_carriage_returns:
        sent["line_ends"] = "windows"

    assert read_edited(sent) == payload


def test_untouched_form_returns_any_payload() -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(300):
        payload = bytes(chance.choice(b"a\r\n\t\x00\xc3\xa4{}") for _ in range(chance.randrange(12)))
        edit = edit_of(payload)
        assert edit is not None
        sent = {"payload": edit.text.replace("\n", "\r\n"), "format": edit.kind}
        if edit.has_carriage_returns:
            sent["line_ends"] = "windows"
        assert read_edited(sent) == payload, f"seed {seed}"


def test_payload_that_is_not_what_its_format_says_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not JSON"):
        read_edited({"payload": "{", "format": "json"})
    with pytest.raises(ConfigurationError, match="not hex"):
        read_edited({"payload": "zz", "format": "hex"})
    with pytest.raises(ConfigurationError, match="a form takes"):
        read_edited({"payload": "x" * (EDITED_BYTES_MAX + 1), "format": "text"})
    assert edit_of(b"x" * (EDITED_BYTES_MAX + 1)) is None


def test_json_is_compared_field_by_field() -> None:
    lines, is_whole = differences(b'{"a":1,"b":2}', b'{"a":1,"b":3}')

    assert [(line.mark, line.text) for line in lines if line.mark in "+-"] == [("-", '  "b": 2'), ("+", '  "b": 3')]
    assert is_whole


def test_payloads_of_different_kinds_are_compared_as_hex() -> None:
    lines, _ = differences(b"hello", b"\x00")

    assert any("68 65 6c 6c 6f" in line.text for line in lines)


def test_large_payloads_are_compared_in_part() -> None:
    lines, is_whole = differences(b"x\n" * 100_000, b"y\n" * 100_000)

    assert lines
    assert not is_whole
