"""Named connections in files."""

import pytest

from jetlake.client import contexts
from jetlake.errors import ConfigurationError


def test_folder_is_the_one_of_the_environment(monkeypatch, tmp_path):
    assert contexts.folder() == tmp_path / "config" / "nats"

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert contexts.folder() == tmp_path / ".config" / "nats"


def test_choice_remembers_the_one_before():
    for name in ("a", "b"):
        contexts.write(name, {})
        contexts.choose(name)

    assert (contexts.chosen(), contexts.previous()) == ("b", "a")
    contexts.choose("b")
    assert contexts.previous() == "a"


def test_deleted_context_is_chosen_no_more():
    contexts.write("a", {})
    contexts.choose("a")

    contexts.remove("a")

    assert (contexts.names(), contexts.chosen()) == ([], "")


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", ".hidden", "a\\b"])
def test_name_that_would_be_another_file_is_refused(name):
    with pytest.raises(ConfigurationError, match="cannot be the name of a context"):
        contexts.write(name, {})


def test_value_of_the_wrong_type_is_refused():
    contexts.write("a", {"url": 7})

    with pytest.raises(ConfigurationError, match=r"'url' in .* is 7: it must be a str"):
        contexts.read("a")


def test_unknown_context_is_refused_with_the_known_ones():
    contexts.write("a", {})

    with pytest.raises(ConfigurationError, match="there is no context 'b'; there are: a"):
        contexts.choose("b")
