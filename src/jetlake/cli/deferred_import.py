"""Loads a package on its first use, although a library that commands need imports it at once.

nats-py imports aiohttp, if it is installed, for connections over WebSocket. Few commands make one, and all of them
would wait for it: it takes a third of the time of a short command.

Invariant: a package that is not installed stays missing, and one that is used is the real one.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class DeferredModule(ModuleType):
    """Stands for a package in `sys.modules` until an attribute of it is used, or a module of it is imported."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        self.__dict__.update(import_module(self.__name__).__dict__)
        if name in self.__dict__:
            return self.__dict__[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def defer_import(name: str) -> None:
    """Have the package of this name loaded on its first use, unless it is loaded already or not installed."""
    if name in sys.modules:
        return
    specification = find_spec(name)
    if specification is None:
        return
    module = DeferredModule(name)
    module.__spec__ = specification
    sys.modules[name] = module
