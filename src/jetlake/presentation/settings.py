"""`Setting`: a field of a configuration as a flag or a form asks for it."""

from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """What the value of a flag is."""

    TEXT = auto()
    NUMBER = auto()
    SIZE = auto()
    TIME = auto()
    SWITCH = auto()
    # A switch whose field means the opposite.
    OPPOSITE = auto()
    TEXTS = auto()
    # Key=value, any number of them.
    PAIRS = auto()
    CHOICE = auto()
    # A switch that takes a field away.
    REMOVE = auto()


class Setting(NamedTuple):
    """One flag, and the field it sets; dots lead to fields of fields."""

    flag: str
    field: str
    kind: Kind
    help: str
    # What may be written for a choice, and what the field then is.
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def parameter(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")


STORAGES = (("file", "file"), ("f", "file"), ("memory", "memory"), ("m", "memory"))
"""What may be written for the storage of a bucket or an object store."""
