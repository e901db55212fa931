"""`jetlake shims FOLDER`: small executables under the names of NATS' own tools, so that old transcripts run as printed.

Nothing is installed unasked, and the folder comes before a real `nats` only if the user puts it first on the PATH.

Invariant: a file that is not one of ours is never replaced.
"""

import os
import shlex
import sys
from pathlib import Path

MARK = "# written by jetlake shims"
"""By which our own files are known."""

EXECUTABLES: dict[str, tuple[str, ...]] = {
    "nats-server": ("jetlake.server.main",),
    "nats": ("jetlake.cli.nats",),
    "nats-pub": ("jetlake.cli.preview.tools", "nats-pub"),
    "nats-sub": ("jetlake.cli.preview.tools", "nats-sub"),
    "nats-req": ("jetlake.cli.preview.tools", "nats-req"),
    "nats-bench": ("jetlake.cli.preview.tools", "nats-bench"),
    "choria": ("jetlake.cli.choria",),
    "jsm": ("jetlake.cli.jsm",),
    "next": ("jetlake.cli.jsm", "next"),
}
"""The module that each runs, and the words it gets before those of the user."""

USAGE = f"""Usage: jetlake shims FOLDER

Writes {", ".join(EXECUTABLES)} into FOLDER.
Put the folder first on your PATH to use them:  export PATH="FOLDER:$PATH"
"""

EXECUTABLE_MODE = 0o755


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if len(words) != 1 or words[0].startswith("-"):
        is_help = words in (["-h"], ["--help"])
        print(USAGE, end="", file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 2
    folder = Path(words[0])
    try:
        strangers = [name for name in EXECUTABLES if not _is_free(folder / name)]
        if strangers:
            print(
                f"jetlake shims: {folder} holds {', '.join(strangers)}, which is not ours: choose another folder",
                file=sys.stderr,
            )
            return 1
        folder.mkdir(parents=True, exist_ok=True)
        for name, words_before in EXECUTABLES.items():
            _write(folder / name, words_before)
    except OSError as error:
        print(f"jetlake shims: cannot write to {folder}: {error.strerror}; choose another folder", file=sys.stderr)
        return 1
    print(f'Wrote {len(EXECUTABLES)} executables. Use them with: export PATH="{folder.resolve()}:$PATH"')
    return 0


def _is_free(path: Path) -> bool:
    if not path.is_symlink() and not path.exists():
        return True
    return path.is_file() and MARK.encode() in path.read_bytes()


def _write(path: Path, words: tuple[str, ...]) -> None:
    command = " ".join(map(shlex.quote, (sys.executable, "-m", *words)))
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.write_text(f'#!/bin/sh\n{MARK}\nexec {command} "$@"\n', encoding="utf-8")
    unfinished.chmod(EXECUTABLE_MODE)
    os.replace(unfinished, path)


if __name__ == "__main__":
    sys.exit(main())
