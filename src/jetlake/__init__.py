"""Jetlake: a NATS-compatible server that is a Python package with a native engine.

```python
import jetlake

with jetlake.Server() as server:
    print(server.url)
```

The map of the package:

- `config`      the options that cross into the engine, and what makes them valid
- `errors`      every error, as one tree
- `suggestions` the nearest name there is, for mistyped ones
- `units`       durations and sizes as people write them
- `server`      runs a server: flags, log, files, signals, authentication; `Server` for programs, `main` for processes
- `monitoring`  what a server shows of itself: nats-server's pages, and `/metrics`
- `client`      how everything else reaches a server: `connect`, and the load generator
- `storage`     what is on a disk, looked at without a server: the check of a store
- `management`  the JetStream API's decisions: what streams and consumers may be, and what answers say
- `iac`         config as code: files declare, a plan makes a server so
- `spark`       every stream is a table: the format `jetlake`, sessions, tables, pipelines
- `cli`         the command `jetlake`
- `_engine`     the native engine: everything that happens once per message

The names below are loaded when they are first used: `import jetlake` alone imports nothing else.
"""

from importlib import import_module

# A type checker takes this name for true; not importing `typing` keeps the start fast.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from jetlake._engine import __version__
    from jetlake.client.connection import connect
    from jetlake.config import Limits
    from jetlake.errors import (
        ApiError,
        ClientError,
        ConfigurationError,
        EngineFailedError,
        JetlakeError,
        MissingDependencyError,
        ServerError,
        StartError,
    )
    from jetlake.server.server import Server
    from jetlake.spark.frame import table

__all__ = [
    "ApiError",
    "ClientError",
    "ConfigurationError",
    "EngineFailedError",
    "JetlakeError",
    "Limits",
    "MissingDependencyError",
    "Server",
    "ServerError",
    "StartError",
    "__version__",
    "connect",
    "table",
]

_HOME_OF_NAME = {
    "ApiError": "jetlake.errors",
    "ClientError": "jetlake.errors",
    "ConfigurationError": "jetlake.errors",
    "EngineFailedError": "jetlake.errors",
    "JetlakeError": "jetlake.errors",
    "Limits": "jetlake.config",
    "MissingDependencyError": "jetlake.errors",
    "Server": "jetlake.server.server",
    "ServerError": "jetlake.errors",
    "StartError": "jetlake.errors",
    "__version__": "jetlake._engine",
    "connect": "jetlake.client.connection",
    "table": "jetlake.spark.frame",
}


def __getattr__(name: str) -> object:
    home = _HOME_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
