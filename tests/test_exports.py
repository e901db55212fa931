"""What `import jetlake` offers."""

import subprocess
import sys

import pytest

import jetlake
from jetlake import errors


def test_every_exported_name_exists():
    for name in jetlake.__all__:
        assert getattr(jetlake, name) is not None


def test_every_error_is_exported():
    names = {name for name, value in vars(errors).items() if isinstance(value, type)}

    assert names <= set(jetlake.__all__)


def test_exported_names_are_listed_before_they_are_loaded():
    assert set(jetlake.__all__) <= set(dir(jetlake))


def test_unknown_name_is_an_attribute_error_that_lists_the_known_ones():
    with pytest.raises(AttributeError, match="it exports ApiError, "):
        _ = jetlake.bogus


def test_import_loads_nothing_else():
    program = "import sys, jetlake; print(*[name for name in sys.modules if name.startswith('jetlake')])"

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert answer.stdout.split() == ["jetlake"]
