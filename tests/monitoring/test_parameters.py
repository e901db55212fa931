"""Parameters of pages; the error texts are nats-server's, word for word."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.monitoring.parameters import PageError as RefusedError
from jetlake.monitoring.parameters import QueryParameters


def read(kind, word):
    return getattr(QueryParameters({"x": word}), kind)("x")


def test_missing_parameters_have_their_zero_value():
    parameters = QueryParameters({})

    assert parameters.text("x") == ""
    assert parameters.boolean("x") is False
    assert parameters.integer("x") == 0
    assert parameters.unsigned("x") == 0
    assert parameters.subscriptions() == (False, False)


@pytest.mark.parametrize("word", ["1", "t", "T", "true", "TRUE", "True"])
def test_words_for_true(word):
    assert read("boolean", word) is True


@pytest.mark.parametrize("word", ["0", "f", "F", "false", "FALSE", "False", ""])
def test_words_for_false(word):
    assert read("boolean", word) is False


@pytest.mark.parametrize(
    ("kind", "word", "text"),
    [
        ("boolean", "maybe", """Error decoding boolean for 'x': strconv.ParseBool: parsing "maybe": invalid syntax"""),
        ("boolean", "tRUE", """Error decoding boolean for 'x': strconv.ParseBool: parsing "tRUE": invalid syntax"""),
        ("integer", "x", """Error decoding int for 'x': strconv.Atoi: parsing "x": invalid syntax"""),
        ("integer", "1_0", """Error decoding int for 'x': strconv.Atoi: parsing "1_0": invalid syntax"""),
        ("integer", "--1", """Error decoding int for 'x': strconv.Atoi: parsing "--1": invalid syntax"""),
        ("integer", "-", """Error decoding int for 'x': strconv.Atoi: parsing "-": invalid syntax"""),
        ("integer", " 1", """Error decoding int for 'x': strconv.Atoi: parsing " 1": invalid syntax"""),
        ("integer", "²", """Error decoding int for 'x': strconv.Atoi: parsing "²": invalid syntax"""),
        (
            "integer",
            "9223372036854775808",
            """Error decoding int for 'x': strconv.Atoi: parsing "9223372036854775808": value out of range""",
        ),
        ("unsigned", "-1", """Error decoding uint64 for 'x': strconv.ParseUint: parsing "-1": invalid syntax"""),
        ("unsigned", "+1", """Error decoding uint64 for 'x': strconv.ParseUint: parsing "+1": invalid syntax"""),
        (
            "unsigned",
            "18446744073709551616",
            """Error decoding uint64 for 'x': strconv.ParseUint: parsing "18446744073709551616": value out of range""",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_words_of_nats_server(kind, word, text):
    with pytest.raises(RefusedError) as refusal:
        read(kind, word)

    assert str(refusal.value) == text


def test_numbers_go_to_the_ends_of_their_range():
    assert read("integer", "-9223372036854775808") == -(2**63)
    assert read("integer", "+9223372036854775807") == 2**63 - 1
    assert read("unsigned", "18446744073709551615") == 2**64 - 1
    assert read("integer", "0" * 10_000 + "7") == 7


def test_endless_digits_are_out_of_range_at_once():
    with pytest.raises(RefusedError, match="value out of range"):
        read("unsigned", "9" * 1_000_000)


@pytest.mark.parametrize(("word", "expected"), [("1", (True, False)), ("0", (False, False)), ("DeTail", (False, True))])
def test_subscriptions_are_asked_for_plainly_or_in_detail(word, expected):
    assert QueryParameters({"subs": word}).subscriptions() == expected


@given(st.sampled_from(["boolean", "integer", "unsigned"]), st.text())
def test_any_text_is_read_or_refused(kind, word):
    # Any other exception is a failure.
    with contextlib.suppress(RefusedError):
        read(kind, word)
