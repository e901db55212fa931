"""A lake: a folder with one folder per table.

```python
lake = Lake("lake")
lake.table("orders").read(spark).show()
lake.table("orders").read(spark, as_of=12).show()
```
"""

import re
from pathlib import Path

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.delta_log import is_delta
from jetlake.spark.lake.table import LakeTable
from jetlake.suggestions import hint

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
NAME_LENGTH_MAX = 128


class Lake:
    """See the module. The folder must be one that every machine of a Spark cluster sees under the same path."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()

    def table(self, name: str) -> LakeTable:
        """Return a table, whether it exists or not."""
        check_name(name)
        return LakeTable(self.folder / name)

    def existing(self, name: str) -> LakeTable:
        """Return a table that must be there. Raises `ConfigurationError` with the nearest name there is."""
        table = self.table(name)
        if not table.exists():
            raise ConfigurationError(f"there is no table {name} in {self.folder}{hint(name, self.names())}")
        return table

    def names(self) -> list[str]:
        """Return the names of the tables."""
        if not self.folder.is_dir():
            return []
        found = (path for path in self.folder.iterdir() if NAME.fullmatch(path.name) and path.is_dir())
        return sorted(path.name for path in found if is_delta(path))


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a table everywhere. Raises `ConfigurationError`."""
    if not NAME.fullmatch(name) or len(name) > NAME_LENGTH_MAX:
        raise ConfigurationError(
            f"{name!r} is not a name for a table: use letters, digits, _ and -, at most {NAME_LENGTH_MAX}"
        )
