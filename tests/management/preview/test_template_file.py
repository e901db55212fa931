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


@pytest.mark.parametrize("copy", COPIES)
def test_copy_that_cannot_be_read_counts_as_damaged(tmp_path, copy):
    template_file.write(str(tmp_path), TEMPLATES)
    # Reading a folder fails as reading from a broken disk does, also for root.
    (tmp_path / FOLDER / copy).unlink()
    (tmp_path / FOLDER / copy).mkdir()

    assert template_file.read(str(tmp_path)) == TEMPLATES

    for other in COPIES:
        if other != copy:
            (tmp_path / FOLDER / other).write_bytes(b"junk")
    with pytest.raises(TemplateFileError, match=r"neither .*is a directory.*remove both, and restart"):
        template_file.read(str(tmp_path))


def test_two_damaged_copies_are_told(tmp_path):
    template_file.write(str(tmp_path), TEMPLATES)
    for copy in COPIES:
        (tmp_path / FOLDER / copy).write_bytes(b"junk")

    with pytest.raises(TemplateFileError, match="neither copy of the templates can be read"):
        template_file.read(str(tmp_path))
