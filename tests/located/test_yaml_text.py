"""YAML as values with lines."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.located.yaml_text import read_yaml


def test_every_value_knows_its_line():
    (document,) = read_yaml("a: 1\nb:\n  - x\n  - c: 2\n", "f.yaml")

    inner = document.mapping["b"].items[1].mapping["c"]
    assert (inner.value, str(inner.location)) == (2, "f.yaml:4")


def test_a_file_may_hold_several_documents_and_empty_ones():
    assert [node.plain() for node in read_yaml("a: 1\n---\n---\n# nothing\n---\nb: 2\n", "f")] == [{"a": 1}, {"b": 2}]


def test_words_are_those_of_the_current_yaml():
    text = "[no, on, yes, 1:30, 2026-01-01T00:00:00Z, 1_000, true, ~, 0x10, '5', 1e3]"

    values = read_yaml(text, "f")[0].plain()

    assert values == ["no", "on", "yes", "1:30", "2026-01-01T00:00:00Z", 1000, True, None, 16, "5", 1000.0]


def test_anchors_and_merges_are_followed():
    text = "base: &b {x: 1, y: 2}\nmade:\n  <<: *b\n  y: 3\n"

    assert read_yaml(text, "f")[0].plain()["made"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\n", "f:2: this is not YAML"),
        ("a: 1\na: 2\n", "f:2: 'a' stands twice"),
        ("? [a]\n: 1\n", "where a name belongs"),
        ("a: \x01\n", "not YAML"),
        ("[" * 600, "nested too deeply"),
        ("a: !!python/object/apply:os.system [ls]\nb: *x", "not YAML"),
    ],
)
def test_bad_yaml_is_refused_with_its_line(text, message):
    with pytest.raises(ConfigurationError, match="f") as refused:
        read_yaml(text, "f")

    assert message in str(refused.value)


def test_a_small_file_cannot_fill_the_memory():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(ConfigurationError, match="aliases included"):
        read_yaml("\n".join(lines), "f")
