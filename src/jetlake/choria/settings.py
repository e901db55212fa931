"""Choria's configuration files: `key = value` lines.

A line is split at its first `=`, both halves are trimmed, `#` begins a comment line, the last of several equal keys
counts. Files `plugin.d/NAME.cfg` beside the file are read as if each line began with `plugin.NAME.`. Durations without
a unit are seconds; switches are 1, y, yes, true, t and on, or their opposites, in any case.

```python
settings = read_settings(Path("/etc/choria/server.conf"))
settings.text("registration")
```
"""

from pathlib import Path

from jetlake.errors import ConfigurationError, reason_of
from jetlake.shared.durations import duration_ns

__all__ = ["ChoriaSettings", "parse_settings", "read_settings"]

FILE_BYTES_MAX = 4 * 1024 * 1024
"""Of one file: a real one has some kilobytes."""

PLUGIN_FOLDER = "plugin.d"
TRUE_WORDS = frozenset({"1", "y", "yes", "true", "t", "on"})
FALSE_WORDS = frozenset({"0", "n", "no", "false", "f", "off", ""})
NANOSECONDS_PER_SECOND = 1_000_000_000


class ChoriaSettings:
    """The keys of one configuration. Every method raises `ConfigurationError` for a value that has the wrong form."""

    def __init__(self, values: dict[str, str], source: str = "the configuration") -> None:
        self.values = values
        self.source = source

    def text(self, key: str, default: str = "") -> str:
        return self.values.get(key, default)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list with commas."""
        return tuple(part.strip() for part in self.text(key).split(",") if part.strip())

    def switch(self, key: str, default: bool) -> bool:
        word = self.values.get(key)
        if word is None:
            return default
        if word.lower() not in TRUE_WORDS | FALSE_WORDS:
            raise self.refusal(key, "write true or false")
        return word.lower() in TRUE_WORDS

    def number(self, key: str, default: int) -> int:
        word = self.values.get(key)
        if word is None:
            return default
        if not word.removeprefix("-").isdecimal():
            raise self.refusal(key, "write a whole number")
        return int(word)

    def seconds(self, key: str, default: float) -> float:
        word = self.values.get(key)
        if word is None or not word:
            return default
        nanoseconds = duration_ns(f"{word}s" if word.replace(".", "", 1).isdecimal() else word)
        if nanoseconds is None or nanoseconds < 0:
            raise self.refusal(key, "write seconds, or a time such as 5m")
        return nanoseconds / NANOSECONDS_PER_SECOND

    def refusal(self, key: str, instead: str) -> ConfigurationError:
        """Return the error for a value that cannot be used."""
        return ConfigurationError(f"{self.source}: {key} is {self.text(key)!r}: {instead}")


def parse_settings(text: str, source: str = "the configuration", prefix: str = "") -> dict[str, str]:
    """Return the keys and values of a text; `prefix` goes before every key. Raises `ConfigurationError`."""
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        key, separator, value = stripped.partition("=")
        if not separator or not key.strip():
            raise ConfigurationError(f"{source}:{number}: {stripped[:60]!r} is not a setting: write key = value")
        values[prefix + key.strip()] = value.strip()
    return values


def read_settings(path: Path) -> ChoriaSettings:
    """Read a file and the files of plugins beside it. Raises `ConfigurationError`."""
    values = parse_settings(read_text(path), str(path))
    folder = path.parent / PLUGIN_FOLDER
    if folder.is_dir():
        for plugin in sorted(folder.glob("*.cfg")):
            values |= parse_settings(read_text(plugin), str(plugin), prefix=f"plugin.{plugin.stem}.")
    return ChoriaSettings(values, str(path))


def read_text(path: Path) -> str:
    """Return the text of a configuration file. Raises `ConfigurationError`."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ConfigurationError(f"{path} is larger than {FILE_BYTES_MAX:,} bytes: it is not a configuration")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {reason_of(error)}; check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: give a configuration file") from error
