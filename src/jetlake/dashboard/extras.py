"""What a page needs besides the dashboard's own packages, and the line that installs it."""

from enum import Enum
from importlib.util import find_spec

__all__ = ["Extra", "install_command"]


class Extra(Enum):
    """An extra of the package, with the modules that come with it."""

    DEVICES = ("devices", ("google.protobuf", "cbor2", "cramjam"))
    SQL = ("sql", ("duckdb", "pyarrow"))
    LAKE = ("spark", ("deltalake", "pyarrow"))


def install_command(extra: Extra) -> str:
    """Return the command that installs what is missing; empty if nothing is."""
    name, modules = extra.value
    return "" if all(map(_is_there, modules)) else f"pip install 'jetlake[{name}]'"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package around it is missing.
        return False
