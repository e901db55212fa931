"""A declaration that comes as a text, such as one from a browser, sees nothing of the machine that reads it."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.reader import read_text


def test_text_is_read_by_the_ending_of_its_name():
    yaml = read_text("streams:\n  ORDERS: {subjects: [orders.>]}\n", "declaration.yaml")
    toml = read_text('[streams.ORDERS]\nsubjects = ["orders.>"]\n', "declaration.toml")

    assert [each.key for each in yaml.resources] == [each.key for each in toml.resources] == [("stream", "", "ORDERS")]


@pytest.mark.parametrize("name", ["evil.py", "main.tf", "declaration", "@choria_streams"])
def test_program_and_unknown_format_are_refused(name):
    with pytest.raises(ConfigurationError, match="its name must end in"):
        read_text("def resources(): return {}", name)


def test_variables_of_the_environment_are_not_seen(monkeypatch):
    monkeypatch.setenv("SECRET", "hidden")

    with pytest.raises(ConfigurationError, match="SECRET"):
        read_text('streams:\n  A: {subjects: [a], description: "${SECRET}"}\n', "declaration.yaml")
