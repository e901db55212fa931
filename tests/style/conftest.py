"""What the style tests look at: the repository's own files, as they would be committed."""

import functools
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

TEXT_SUFFIXES = {
    ".cfg",
    ".conf",
    ".go",
    ".html",
    ".ini",
    ".js",
    ".json",
    ".lock",
    ".md",
    ".mjs",
    ".mod",
    ".py",
    ".pyi",
    ".rs",
    ".sh",
    ".sum",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
}
TEXT_NAMES = {".gitignore", "LICENSE", "Makefile", "run"}


class SourceTree:
    """All text files of the repository, by their path from its root."""

    def __init__(self) -> None:
        # Tracked files and those about to be; what .gitignore names is not ours.
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        paths = sorted({path for path in listed.split("\0") if path})
        self.root = REPOSITORY
        self.paths = [path for path in paths if is_text(path) and (REPOSITORY / path).is_file()]

    @functools.cache  # noqa: B019 - there is one tree
    def read(self, path: str) -> str:
        return (REPOSITORY / path).read_text(encoding="utf-8")

    def under(self, *folders: str, suffix: str) -> list[str]:
        """Return the files below these folders whose names end in the suffix."""
        starts = tuple(f"{folder}/" for folder in folders)
        return [path for path in self.paths if path.startswith(starts) and path.endswith(suffix)]


def is_text(path: str) -> bool:
    name = Path(path).name
    return name in TEXT_NAMES or Path(name).suffix in TEXT_SUFFIXES


@pytest.fixture(scope="session")
def tree() -> SourceTree:
    return SourceTree()
