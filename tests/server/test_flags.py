"""The command line: Go's flag syntax, nats-server's flags, Go's error texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.server.flags import FALSE_WORDS, FLAGS, TRUE_WORDS, FlagError, parse, spelling, usage


@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.field)
def test_every_name_of_a_flag_works_with_one_and_two_dashes(flag, dashes):
    for name in flag.names:
        words = [f"{dashes}{name}"] if flag.kind == "switch" else [f"{dashes}{name}", "7"]

        parsed = parse(words)

        assert parsed.values == {flag.field: {"switch": True, "number": 7, "text": "7"}[flag.kind]}
        assert parsed.words == ()


def test_no_name_is_given_twice():
    names = [name for flag in FLAGS for name in flag.names]

    assert len(names) == len(set(names))


def test_value_may_follow_an_equals_sign():
    parsed = parse(["-p=4333", "--name=a=b", "-sd=", "-DV"])

    assert parsed.number("port") == 4333
    assert parsed.text("server_name") == "a=b"
    assert parsed.text("store_dir") == ""
    assert parsed.switch("DV")


def test_value_may_begin_with_a_dash():
    assert parse(["-p", "-1"]).number("port") == -1


def test_last_of_a_repeated_flag_counts():
    assert parse(["-p", "1", "--port", "2"]).number("port") == 2


def test_switch_takes_no_second_word():
    parsed = parse(["-D", "false", "-V"])

    assert parsed.switch("debug")
    assert parsed.words == ("false", "-V")


@pytest.mark.parametrize("word", sorted(TRUE_WORDS | FALSE_WORDS))
def test_switch_understands_every_word_go_understands(word):
    assert parse([f"-T={word}"]).switch("logtime", default=True) is (word in TRUE_WORDS)


def test_parsing_stops_at_the_first_word_and_after_two_dashes():
    assert parse(["-D", "help", "-p", "1"]).words == ("help", "-p", "1")
    assert parse(["-D", "--", "-p"]).words == ("-p",)
    assert parse(["-"]).words == ("-",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bogus"], "flag provided but not defined: -bogus"),
        (["-p"], "flag needs an argument: -p"),
        (["-p", "abc"], 'invalid value "abc" for flag -p: parse error'),
        (["-p="], 'invalid value "" for flag -p: parse error'),
        (["-p", "99999999999999999999"], 'invalid value "99999999999999999999" for flag -p: value out of range'),
        (["-D=maybe"], 'invalid boolean value "maybe" for -D: parse error'),
        (["---p", "3"], "bad flag syntax: ---p"),
        (["-=3"], "bad flag syntax: -=3"),
        (["--=3"], "bad flag syntax: --=3"),
    ],
)
def test_unreadable_flags_are_refused_in_the_words_of_go(words, message):
    with pytest.raises(FlagError) as refusal:
        parse(words)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x10b5", 0x10B5),
        ("0X1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("0_17", 15),
        ("1_000", 1000),
        ("+5", 5),
        ("-0x10", -16),
        ("0", 0),
        ("00", 0),
    ],
)
def test_numbers_are_read_as_go_reads_them(text, number):
    assert parse(["-p", text]).number("port") == number


@pytest.mark.parametrize("text", ["08", "1__0", "1_", "_1", " 1", "1 ", "1\n", "--1", "0x", "1e3", "٣", "²"])
def test_what_go_does_not_take_for_a_number_is_refused(text):
    with pytest.raises(FlagError, match="parse error"):
        parse([f"-p={text}"])


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_every_number_of_64_bits_survives(number):
    assert parse(["-p", str(number)]).number("port") == number


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12), max_size=6))
def test_any_words_are_parsed_or_refused_and_nothing_else(words):
    try:
        parsed = parse(words)
    except FlagError:
        return

    assert words[len(words) - len(parsed.words) :] == list(parsed.words)


@given(st.dictionaries(st.sampled_from([flag for flag in FLAGS if flag.kind == "text"]), st.text(max_size=20)))
def test_texts_come_out_as_they_went_in(given_texts):
    words = [word for flag, text in given_texts.items() for word in (f"--{flag.field}", text)]

    assert parse(words).values == {flag.field: text for flag, text in given_texts.items()}


def test_usage_names_every_flag_once():
    words = usage().replace(",", " ").split()

    for flag in FLAGS:
        for name in flag.names:
            assert words.count(spelling(name)) == 1, name
