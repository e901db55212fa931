"""Nobody reads a long file from the top."""

LINES_MAX = 600


def test_source_files_are_short(tree):
    files = tree.under("src", "crates", suffix=".py") + tree.under("crates", suffix=".rs")
    long = {path: len(tree.read(path).splitlines()) for path in files}

    wrong = [f"{path}: {count} lines" for path, count in sorted(long.items()) if count > LINES_MAX]

    assert not wrong, f"split by noun, at most {LINES_MAX} lines each, 100 to 400 is right:\n" + "\n".join(wrong)
