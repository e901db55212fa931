"""A home for Spark in which its Python processes start four times as fast.

Spark has its Python processes import PySpark from a zip file in its home, which each process compiles again: 1.5
seconds of work for each of the many processes of a query, and Spark gives up on some of them after ten seconds. The
installed package is already compiled. So Spark gets a home that is the package without the zip files, made of links;
Python imports what it does not find there from the installed package.

Only for the package that pip has installed: a SPARK_HOME that the user has set is left alone.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from jetlake.spark.java import cache_folder

VARIABLE = "SPARK_HOME"
PARTS = ("bin", "jars", "sbin", "data", "licenses")
"""The parts of the package that belong to Spark's home and are not Python."""


@contextmanager
def spark_home() -> Iterator[None]:
    """Have a Spark that is started in this block use the faster home, if there can be one."""
    folder = None if os.environ.get(VARIABLE) else make_home()
    if folder is None:
        yield
        return
    os.environ[VARIABLE] = str(folder)
    try:
        yield
    finally:
        # For this Spark only: other programs of the package want their own files beside them.
        os.environ.pop(VARIABLE, None)


def installed_package() -> Path | None:
    """Return the folder of the Spark that pip has installed, without importing it; None if there is none."""
    found = find_spec("pyspark")
    package = Path(found.origin).parent if found is not None and found.origin else None
    is_whole = package is not None and (package / "jars").is_dir() and (package / "bin").is_dir()
    return package if is_whole else None


def make_home() -> Path | None:
    """Return a folder with links to the parts of the installed package; None where that cannot be."""
    package = installed_package()
    if package is None:
        return None
    folder = cache_folder() / f"spark-{zlib.crc32(str(package).encode()):08x}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            if (package / part).is_dir() and not (folder / part).exists():
                # Several processes may do this at once.
                with suppress(FileExistsError):
                    (folder / part).symlink_to(package / part)
    except OSError:
        return None
    return folder
