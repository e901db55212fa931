"""The check of a value by a JSON schema."""

import pytest

from jetlake.client.schemas import names, problems, read, require_valid
from jetlake.errors import ConfigurationError

STREAM = "io.nats.jetstream.api.v1.stream_configuration"


def test_every_schema_can_be_read_by_its_name():
    assert len(names()) > 50
    for name in names():
        schema = read(name)
        if name.startswith("choria."):
            # Their titles follow no rule, their addresses do: one file has another name than its address.
            address = (
                schema.get("id", schema.get("$id")).removeprefix("https://choria.io/schemas/").removesuffix(".json")
            )
            assert address.replace("/", ".").removesuffix("_notification") == name
        else:
            assert schema["title"] == name


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (1, {"type": "string"}, ["it is 1: it must be of type string"]),
        (True, {"type": "integer"}, ["it is True: it must be of type integer"]),
        ({"a": 1}, {"type": "object", "properties": {}, "additionalProperties": False}, ["a is unknown"]),
        ({}, {"type": "object", "required": ["a"]}, ["a is missing"]),
        ([1, "x"], {"type": "array", "items": {"type": "integer"}}, ["[1] is 'x': it must be of type integer"]),
        (5, {"minimum": 6}, ["it is 5: it must be at least 6"]),
        (7, {"maximum": 6}, ["it is 7: it must be at most 6"]),
        ("b", {"enum": ["a"]}, ["it is 'b': it must be one of a"]),
        ("b", {"const": "a"}, ["it is 'b': it must be 'a'"]),
        ("b", {"pattern": "^a"}, ["it is 'b': it must match ^a"]),
        ("", {"minLength": 1}, ["it has 0 letters: too few or too many"]),
        (1, {"oneOf": [{"type": "string"}, {"type": "null"}]}, ["it fits none of the 2 forms it may have"]),
        (
            1,
            {"allOf": [{"minimum": 2}, {"maximum": 0}]},
            ["it is 1: it must be at least 2", "it is 1: it must be at most 0"],
        ),
        ({"x1": 1}, {"patternProperties": {"^x": {"type": "string"}}}, ["x1 is 1: it must be of type string"]),
        (
            {"a": {"b": 1}},
            {"properties": {"a": {"properties": {"b": {"type": "null"}}}}},
            ["a.b is 1: it must be of type null"],
        ),
        (None, {"type": ["string", "null"]}, []),
    ],
)
def test_what_is_wrong_is_said(value, schema, expected):
    assert list(problems(value, schema)) == expected


def test_refusal_names_every_problem_with_a_suggestion():
    with pytest.raises(ConfigurationError, match=r"max_agee is unknown; did you mean max_age\?"):
        require_valid({"max_agee": 1}, STREAM)
