"""Choria's configuration files."""

import pytest

from jetlake.choria.settings import ChoriaSettings, parse_settings, read_settings
from jetlake.errors import ConfigurationError


def test_lines_are_split_at_the_first_equals_sign_and_the_last_one_counts(tmp_path):
    path = tmp_path / "server.conf"
    path.write_text("# a comment\n\n identity = web1=x \nidentity=web2\nregisterinterval = 300\n")

    settings = read_settings(path)

    assert settings.text("identity") == "web2"
    assert settings.number("registerinterval", 0) == 300


def test_files_of_plugins_are_read_under_their_names(tmp_path):
    (tmp_path / "plugin.d").mkdir()
    (tmp_path / "plugin.d" / "choria.cfg").write_text("stats_port = 8222\n")
    (tmp_path / "server.conf").write_text("identity = a\n")

    assert read_settings(tmp_path / "server.conf").number("plugin.choria.stats_port", 0) == 8222


@pytest.mark.parametrize(("text", "seconds"), [("300", 300), ("5m", 300), ("1.5", 1.5), ("1d", 86_400), ("", 7)])
def test_times_without_a_unit_are_seconds(text, seconds):
    assert ChoriaSettings({"x": text}).seconds("x", 7) == seconds


@pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("y", True), ("0", False), ("no", False)])
def test_switches(text, value):
    assert ChoriaSettings({"x": text}).switch("x", default=not value) is value


def test_wrong_values_are_refused_with_their_key():
    settings = ChoriaSettings({"x": "maybe"}, "server.conf")

    for read in (
        lambda: settings.switch("x", default=True),
        lambda: settings.number("x", 1),
        lambda: settings.seconds("x", 1),
    ):
        with pytest.raises(ConfigurationError, match=r"server\.conf: x is 'maybe'"):
            read()


def test_a_line_that_is_no_setting_is_refused_with_its_number():
    with pytest.raises(ConfigurationError, match="f:2: 'what'"):
        parse_settings("a = b\nwhat\n", "f")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="no such file"):
        read_settings(tmp_path / "missing.conf")
    (tmp_path / "binary.conf").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        read_settings(tmp_path / "binary.conf")
