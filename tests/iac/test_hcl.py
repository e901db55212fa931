"""Terraform's language: what is read, and what is refused because its value cannot be known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.errors import ConfigurationError
from jetlake.iac.hcl import evaluate, read_blocks
from jetlake.iac.hcl_tokens import tokens
from jetlake.located.nodes import Node

NAMES = {("var", "region"): "eu", ("var", "count"): 3}


def value_of(expression):
    words = [word for word in tokens(expression, "f") if word.kind not in ("line", "end")]
    return evaluate(words, lambda path, location: Node(NAMES[tuple(path)], location)).plain()


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("60 * 60 * 24 * 365", 31536000),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 / 4", 2.5),
        ("10 / 5 - -2", 4),
        ("10 % 4", 2),
        ('"a${var.region}b"', "aeub"),
        ('"${var.count}"', 3),
        ('"a${1e3}"', "a1000"),
        ('"$${x} \\"q\\" \\u00e9\\n"', '${x} "q" é\n'),
        ("[1, 2,\n 3]", [1, 2, 3]),
        ('{ a = 1\n "b.c" = "x", d : true }', {"a": 1, "b.c": "x", "d": True}),
        ("null", None),
        ("1.5e3", 1500.0),
        ("<<-END\n    one\n      two\n    END\n", "one\n  two\n"),
    ],
)
def test_expressions_are_computed(expression, value):
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('file("x")', "functions (file) are not read"),
        ("var.count == 3 ? 1 : 2", "conditions"),
        ("!true", "conditions"),
        ("1 / 0", "divided by 0"),
        ('"a" + 1', "needs numbers"),
        ("[1, 2", "ended"),
        ("var.region[0]", "not read"),
        ('"abc', "never ends"),
        ('"a${var.region"', "never ends"),
        ("<<END\nx", "never ends"),
        ('"\\q"', "not an escape sequence"),
        ("@", "not valid HCL"),
        ('"A\\ud800"', "is not text that can be written"),
        ('{ "A\\ud800" = 1 }', "is not text that can be written"),
        ("(" * 500 + "1" + ")" * 500, "inside each other"),
        ("1 2", "has ended"),
        ('{ a = "1", b = 1, "a" = "2" }', "a stands twice in one object"),
        ("9" * 5_000, "digits"),
        (" * ".join(["9" * 90] * 20), "larger than anything"),
    ],
)
def test_what_cannot_be_known_is_refused(expression, message):
    with pytest.raises(ConfigurationError) as refused:
        value_of(expression)

    assert message in str(refused.value)
    assert str(refused.value).startswith("f:")


def test_blocks_have_labels_attributes_and_blocks():
    source = """
    # a comment
    resource "jetstream_stream" "A" { // another
      name = "A" /* and
      another */
      source { name = "B" }
    }
    """

    (block,) = read_blocks(source, "f")

    assert (block.kind, block.labels) == ("resource", ["jetstream_stream", "A"])
    assert list(block.attributes) == ["name"]
    assert [inner.kind for inner in block.blocks] == ["source"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('resource "a" "b" {\n name = "x"\n', "never ends"),
        ("a = 1", "outside of all blocks"),
        ("b {\n a = 1\n a = 2\n}", "f:3: a stands twice"),
        ("b {\n a =\n}", "a has no value"),
        ("}", "where a name belongs"),
        ("b 5", "neither"),
        ("b {" * 500, "inside each other"),
    ],
)
def test_bad_blocks_are_refused(source, message):
    with pytest.raises(ConfigurationError) as refused:
        read_blocks(source, "f")

    assert message in str(refused.value)


@settings(deadline=None)
@given(st.text(alphabet='ab{}[]()"$<>=.,\n\\*/-#1 ', max_size=60))
def test_any_text_is_read_or_refused(source):
    try:
        kinds = [block.kind for block in read_blocks(source, "f")]
    except ConfigurationError as error:
        kinds = [str(error)]

    assert all(kinds)
