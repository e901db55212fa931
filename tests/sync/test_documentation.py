"""Every example in Python of the guides for Python and for Kafka users runs."""

import re

import pytest

from tests.conftest import REPOSITORY

EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
GUIDES = ("python_client.md", "kafka.md")
BLOCKS = [block for guide in GUIDES for block in EXAMPLE.findall((REPOSITORY / "docs" / "guides" / guide).read_text())]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_example_prints_what_it_says(number, capsys):
    if "to_pandas" in BLOCKS[number]:
        pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")

    exec(compile(BLOCKS[number], "example", "exec"), {"__name__": "__main__"})

    printed = capsys.readouterr().out
    for wanted in re.findall(r"print\(.*  # (.+)$", BLOCKS[number], re.MULTILINE):
        assert wanted in printed
