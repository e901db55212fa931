"""From what a file says to what the API takes."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.conversion import SECONDS, read_fields
from jetlake.iac.fields import CONSUMER, KEY_VALUE, OBJECT_STORE, STREAM, TEMPLATE, by_word
from jetlake.iac.json_text import read_json
from jetlake.iac.toml_text import read_toml
from jetlake.located.yaml_text import read_yaml

SECOND_NS = 1_000_000_000


def converted(text, fields=STREAM, **options):
    return read_fields(read_yaml(text, "f")[0], fields, "a stream", **options)


@pytest.mark.parametrize("name", ["max_age", "maxAge", "MaxAge", "max-age"])
def test_names_may_be_spelled_as_in_go_and_kubernetes(name):
    assert converted(f"{name}: 1d") == {"max_age": 86400 * SECOND_NS}


def test_words_of_other_worlds_are_understood():
    text = (
        "{Replicas: 3, Duplicates: 1m, MaxMsgsPer: 5, RollupAllowed: true, retention: WorkQueuePolicy, storage: file}"
    )

    assert converted(text) == {
        "num_replicas": 3,
        "duplicate_window": 60 * SECOND_NS,
        "max_msgs_per_subject": 5,
        "allow_rollup_hdrs": True,
        "retention": "workqueue",
        "storage": "file",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max_bytes: 10GiB", 10 * 1024**3),
        ("max_bytes: unlimited", -1),
        ("max_bytes: 4096", 4096),
        ("max_msgs: '100'", 100),
        ("max_age: 86400000000000", 86400 * SECOND_NS),
        ("max_age: '86400000000000'", 86400 * SECOND_NS),
        ("subjects: orders.>", ["orders.>"]),
        ("mirror: ORDERS", {"name": "ORDERS"}),
        ("sources: [A, {name: B, start_seq: 5}]", [{"name": "A"}, {"name": "B", "opt_start_seq": 5}]),
        ("metadata: {a: 1, b: true, c: x}", {"a": "1", "b": "true", "c": "x"}),
        (
            "metadata: {a: 007, b: 1.10, c: 1e3, d: 0x10, e: 1_000, f: +5}",
            {"a": "007", "b": "1.10", "c": "1e3", "d": "0x10", "e": "1_000", "f": "+5"},
        ),
    ],
)
def test_values_become_those_of_the_api(text, value):
    assert list(converted(text).values()) == [value]


def test_numbers_are_seconds_where_a_format_says_so():
    assert converted("max_age: 60", numbers=SECONDS) == {"max_age": 60 * SECOND_NS}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_aeg: 1d", "f:1: a stream has no field 'max_aeg'; did you mean max_age?"),
        ("a: 1\nwhatever: 2", "has no field 'a'"),
        ("max_age: 1d\nmaxAge: 2d", "f:2: a stream says max_age twice, here as 'maxAge'"),
        ("max_age: 30", "30 nanoseconds: write the unit, such as 30s"),
        ("max_age: soon", "write a duration such as 30s"),
        ("max_bytes: much", "write a size such as 10GiB"),
        ("max_msgs: 1.5", "must be a whole number"),
        ("max_msgs: true", "must be a whole number"),
        ("max_msgs: 99999999999999999999999", "64 bits"),
        (f"max_msgs: {'9' * 5000}", "must be a whole number"),
        (f"max_age: {'9' * 5000}", "write a duration"),
        (f"max_age: {'9' * 5000}s", "64 bits"),
        ("max_bytes: 99999999TiB", "64 bits"),
        ("no_ack: 1", "must be true or false"),
        ("storage: flie", "must be one of file, memory; did you mean file?"),
        ("subjects: [1]", "where text belongs"),
        ("subjects: {a: 1}", "where a list belongs"),
        ("placement: [a]", "where names with values belong"),
        ("placement: {tag: [a]}", "placement has no field 'tag'; did you mean tags?"),
        ("mirror: {name: A, opt_start_time: later}", "write a timestamp"),
    ],
)
def test_mistakes_are_refused_with_their_place(text, message):
    with pytest.raises(ConfigurationError) as refused:
        converted(text)

    assert message in str(refused.value)
    assert str(refused.value).startswith("f:")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("AckPolicy: AckExplicitPolicy", "explicit"),
        ("DeliverPolicy: DeliverByStartSequencePolicy", "by_start_sequence"),
        ("deliverPolicy: lastPerSubject", "last_per_subject"),
        ("ReplayPolicy: ReplayInstantPolicy", "instant"),
    ],
)
def test_constants_of_go_are_understood(text, value):
    assert list(converted(text, CONSUMER).values()) == [value]


def test_a_number_of_json_or_toml_stays_as_it_was_written_where_text_is_wanted():
    (json_node,), (toml_node,) = (
        read_json('{"metadata": {"v": 1.10, "e": 1e3}}', "f"),
        read_toml("[metadata]\nv = 1.10\ne = 1e3\n", "f"),
    )

    wanted = {"metadata": {"v": "1.10", "e": "1e3"}}
    assert read_fields(json_node, STREAM, "a stream") == read_fields(toml_node, STREAM, "a stream") == wanted


def test_a_percentage_is_a_number_however_it_is_written():
    assert converted("sample_freq: 025", CONSUMER) == {"sample_freq": "25"}
    assert converted("sample_freq: 00%", CONSUMER) == {"sample_freq": ""}


def test_percentages_lose_their_sign():
    assert converted("sample_freq: 25%", CONSUMER) == converted("sample_freq: 25", CONSUMER) == {"sample_freq": "25"}


@pytest.mark.parametrize("fields", [STREAM, CONSUMER, KEY_VALUE, OBJECT_STORE, TEMPLATE])
def test_no_two_fields_answer_to_one_word(fields):
    words = by_word(fields)

    assert {field.name for field in words.values()} == {field.name for field in fields}
