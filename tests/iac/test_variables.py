"""`${NAME}` in declarations."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.variables import Variables
from jetlake.located.nodes import SourceLocation, locate

LOCATION = SourceLocation("f", 3)


def filled(text, given=None, environment=None, declared=None):
    return Variables(given or {}, environment or {}, declared or {}).fill(locate(text, LOCATION)).plain()


def test_the_command_line_wins_over_the_environment_and_that_over_files():
    places = [{"A": "1"}, {"A": "2", "B": "2"}, {"A": "3", "B": "3", "C": "3"}]

    assert filled("${A}${B}${C}${D:-4}", *places) == "1234"


def test_references_are_found_at_any_depth():
    assert filled({"a": ["x-${N}", 5]}, {"N": "1"}) == {"a": ["x-1", 5]}


def test_references_are_found_in_names_too():
    assert filled({"ORDERS_${R}": {"$${R}": 1}}, {"R": "eu"}) == {"ORDERS_eu": {"${R}": 1}}


def test_two_names_that_become_one_are_refused():
    with pytest.raises(ConfigurationError, match=r"f:3: 'eu' stands twice in one mapping, as 'eu' and as '\$\{A\}'"):
        filled({"eu": 1, "${A}": 2}, {"A": "eu"})


def test_a_dollar_alone_means_nothing_and_two_keep_one():
    assert filled(["$KV.b.>", "$${A}", "${A:-}"]) == ["$KV.b.>", "${A}", ""]


def test_one_without_a_value_is_refused_with_its_place():
    with pytest.raises(ConfigurationError, match=r"^f:3: \$\{REGION\} has no value: set it in the environment"):
        filled("orders.${REGION}")


def test_one_without_a_name_is_refused():
    with pytest.raises(ConfigurationError, match="without a name"):
        filled("${}")
