"""Templates on disk: twice, so that one copy may be damaged."""

import pytest

from jetlake.management.preview import template_file
from jetlake.management.preview.template_file import COPIES, FOLDER, StreamTemplate, TemplateFileError

TEMPLATES = {"$G": {"t": StreamTemplate(name="t", config={"subjects": ["a.*"]}, max_streams=3)}}


def test_what_was_written_is_read_again(tmp_path):
    assert template_file.read(str(tmp_path)) == {}

    template_file.write(str(tmp_path), TEMPLATES)

    assert template_file.read(str(tmp_path)) == TEMPLATES
    assert TEMPLATES["$G"]["t"].subjects == ("a.*",)


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("damage", [b"", b"junk", b"0" * 64 + b"\n{}"])
def test_one_good_copy_is_enough(tmp_path, copy, damage):
    template_file.write(str(tmp_path), TEMPLATES)

    (tmp_path / FOLDER / copy).write_bytes(damage)

    assert template_file.read(str(tmp_path)) == TEMPLATES


def test_two_damaged_copies_are_told(tmp_path):
    template_file.write(str(tmp_path), TEMPLATES)
    for copy in COPIES:
        (tmp_path / FOLDER / copy).write_bytes(b"junk")

    with pytest.raises(TemplateFileError, match="both copies"):
        template_file.read(str(tmp_path))
