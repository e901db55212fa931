"""TOML as values with lines."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.toml_text import read_toml

TEXT = """project = "shop"

[[streams]]
name = "ORDERS"

[[streams.consumers]]
name = "worker"

[[streams]]
name = "LOGS"
start = 2026-01-31T12:00:00Z

[streams.metadata]
"team.name" = "core"
"""


def test_values_know_the_line_of_their_name():
    (document,) = read_toml(TEXT, "f.toml")

    first, second = document.mapping["streams"].items
    assert str(first.mapping["consumers"].items[0].mapping["name"].location) == "f.toml:7"
    assert str(second.mapping["name"].location) == "f.toml:10"
    assert str(second.mapping["metadata"].mapping["team.name"].location) == "f.toml:14"
    assert second.mapping["start"].value == "2026-01-31T12:00:00+00:00"


def test_bad_toml_is_refused_with_its_line():
    with pytest.raises(ConfigurationError, match=r"^f:2: this is not TOML"):
        read_toml('a = 1\nb = "x\n', "f")
