r"""Texts of Puppet: what a backslash means depends on the quotes."""

import pytest

from jetlake.adapters.puppet import parse_manifest
from jetlake.errors import ConfigurationError


def read(text):
    return parse_manifest(f'class{{"x": value => {text} }}')["value"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"a\nb\tc\rd\se"', "a\nb\tc\rd e"),
        (r'"\"quoted\" \'text\' C:\\new"', "\"quoted\" 'text' C:\\new"),
        (r'"\u00e9\u{1F600}"', "é😀"),
        (r'"\$HOME costs 5$, or $ 6"', "$HOME costs 5$, or $ 6"),
        ('"one \\\nline"', "one line"),
        (r'"\d+\.\q"', r"\d+\.\q"),
        (r"'C:\new\table'", r"C:\new\table"),
        (r"'it\'s \\ a \"text\" with $signs'", r"it's \ a \"text\" with $signs"),
        (r"'^\d+\.\d+$'", r"^\d+\.\d+$"),
        ("'two\\\nlines'", "two\\\nlines"),
        (r"'\\\\server'", r"\\server"),
    ],
)
def test_texts_mean_what_they_mean_to_puppet(written, meant):
    assert read(written) == meant


@pytest.mark.parametrize("variable", ["$y", "${y}", "$::y", r"\\$y", "a$1"])
def test_variables_are_refused(variable):
    with pytest.raises(ConfigurationError, match="variables are not understood"):
        read(f'"{variable}"')


@pytest.mark.parametrize("character", [r"\u{110000}", r"\ud800"])
def test_character_that_does_not_exist_is_refused(character):
    with pytest.raises(ConfigurationError, match="is not a character"):
        read(f'"{character}"')
