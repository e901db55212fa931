"""Declarations in Python."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.reader import read
from tests.iac.servers import declared

REGIONS = """
from jetlake.iac import resources


@resources
def regions():
    return {"streams": [{"name": f"ORDERS_{region}", "max_age": "1d"} for region in ("eu", "us")]}
"""


def titles(declaration):
    return [resource.title for resource in declaration.resources]


def test_marked_functions_declare(tmp_path):
    assert titles(declared(tmp_path, REGIONS, "regions.py")) == ["stream ORDERS_eu", "stream ORDERS_us"]


def test_a_function_called_resources_declares_without_a_mark(tmp_path):
    text = "def resources():\n    return [{'kind': 'stream', 'name': 'A'}, {'key_value': {'b': {}}}]\n"

    assert titles(declared(tmp_path, text, "things.py")) == ["stream A", "bucket b"]


def test_python_in_a_folder_is_not_run(tmp_path):
    (tmp_path / "bad.py").write_text("raise SystemExit('it ran')")
    (tmp_path / "a.yaml").write_text("streams: {A: {}}")

    assert titles(read([tmp_path], {}, {})) == ["stream A"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "has no function `resources`"),
        ("def resources():\n    return 1 / 0\n", "things.py:2: the file failed: ZeroDivisionError"),
        ("def resources(:\n", "things.py:1: the file failed: SyntaxError"),
        ("def resources():\n    return 5\n", "returns int: return a dict"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("def resources():\n    return {'streams': {'A': {'max_aeg': 1}}}\n", "did you mean max_age?"),
    ],
)
def test_what_fails_is_refused(tmp_path, text, message):
    with pytest.raises(ConfigurationError) as refused:
        declared(tmp_path, text, "things.py")

    assert message in str(refused.value)
