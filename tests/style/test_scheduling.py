"""The files that the tests begin with are there."""

from tests.scheduling import PARTS_OF_FOLDERS, SLOW_FILES


def test_files_that_come_first_are_there(tree):
    missing = [name for name in (*PARTS_OF_FOLDERS, *SLOW_FILES) if not (tree.root / name).exists()]

    assert not missing, f"tests/scheduling.py names what is gone: {missing}"
