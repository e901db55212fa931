"""The pages about config as code agree with the code."""

import re

import pytest

from jetlake.iac.fields import CONSUMER, KEY_VALUE, OBJECT_STORE, STREAM, TEMPLATE
from jetlake.iac.reader import FILES_MAX
from jetlake.located.nodes import FILE_BYTES_MAX, NODES_MAX
from tests.conftest import REPOSITORY
from tests.iac.servers import declared

GUIDE = (REPOSITORY / "docs" / "guides" / "config_as_code.md").read_text()
REFERENCE = (REPOSITORY / "docs" / "reference" / "config_as_code.md").read_text()
BLOCKS = [
    (language, text)
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    if language in ("yaml", "python")
]


def test_every_field_is_in_the_reference():
    fields = {field.name for table in (STREAM, CONSUMER, KEY_VALUE, OBJECT_STORE, TEMPLATE) for field in table}

    assert [name for name in sorted(fields) if f"`{name}`" not in REFERENCE] == []


def test_every_limit_is_in_the_reference():
    for number in (f"{FILE_BYTES_MAX // 1024**2} MiB", f"{NODES_MAX:,} values", f"{FILES_MAX:,} files"):
        assert number in REFERENCE


@pytest.mark.parametrize(("language", "text"), BLOCKS)
def test_every_declaration_of_the_guide_can_be_read(tmp_path, language, text):
    ending = {"yaml": "yaml", "python": "py"}[language]

    assert declared(tmp_path, text, f"block.{ending}").resources
