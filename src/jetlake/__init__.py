"""Jetlake: a NATS-compatible server that is a Python package with a native engine.

```python
import jetlake

with jetlake.Server() as server:
    print(server.url)
```

The map of the package:

- `config`      the options that cross into the engine, and what makes them valid
- `errors`      every error, as one tree
- `hidden_arguments` covers passwords of the command line, which `ps` shows
- `suggestions` the nearest name there is, for mistyped ones
- `units`       durations and sizes as people write them
- `located`     values of files with their lines, for errors that name them
- `server`      runs a server: flags, log, files, signals, authentication; `Server` for programs, `main` for processes
- `monitoring`  what a server shows of itself: nats-server's pages, and `/metrics`
- `client`      how everything else reaches a server: `connect`, and the load generator
- `choria`      Choria's formats: envelopes, documents, events, configuration files; no sockets
- `adapters`    data adapters: messages in Choria's envelopes become documents in a stream
- `agents`      the agent on a node: registration, lifecycle events, machines
- `simulation`  made-up traffic, with an account of what really happened
- `shared`      leaf modules that every part uses and that know none of them
- `management`  the JetStream API's decisions: what streams and consumers may be, and what answers say
- `crashtest`   what servers keep after kills, power cuts and damage
- `dashboard`   a server in a browser
- `frames`      `table`: a stream as Arrow or pandas, without Spark
- `presentation` streams, consumers and numbers as people read them, for `cli` and `dashboard`
- `sync`        `connect_sync`: a client for scripts and notebooks, without asyncio
- `testing`     a pytest plug-in: a fresh server per test, and what was published to it
- `governor`    how many do something at once, network-wide
- `submission`  messages through a spool, delivered by a sender
- `iac`         config as code: files declare, a plan makes a server so
- `kv`          key-value buckets
- `objects`     object stores: files of any size
- `spark`       every stream is a table: the format `jetlake`, sessions, tables, pipelines
- `sql`         queries over streams and lake tables, answered in this process
- `devices`     the device event bus: aggregates, gRPC and HTTP services, simulator
- `demo`        the whole system at work, each scene checked against the truth
- `cli`         the command `jetlake`
- `_engine`     the native engine: everything that happens once per message

The names below are loaded when they are first used: `import jetlake` alone imports nothing else.
"""

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
        ConflictError,
        DeviceError,
        EngineFailedError,
        JetlakeError,
        MissingDependencyError,
        NotFoundError,
        ServerError,
        SpoolError,
        StartError,
    )
    from jetlake.frames import table
    from jetlake.server.server import Server
    from jetlake.sync import connect_sync

__all__ = [
    "ApiError",
    "ClientError",
    "ConfigurationError",
    "ConflictError",
    "DeviceError",
    "EngineFailedError",
    "JetlakeError",
    "Limits",
    "MissingDependencyError",
    "NotFoundError",
    "Server",
    "ServerError",
    "SpoolError",
    "StartError",
    "__version__",
    "connect",
    "connect_sync",
    "table",
]

_HOME_OF_NAME = {
    "ApiError": "jetlake.errors",
    "ClientError": "jetlake.errors",
    "ConfigurationError": "jetlake.errors",
    "ConflictError": "jetlake.errors",
    "DeviceError": "jetlake.errors",
    "EngineFailedError": "jetlake.errors",
    "JetlakeError": "jetlake.errors",
    "Limits": "jetlake.config",
    "MissingDependencyError": "jetlake.errors",
    "NotFoundError": "jetlake.errors",
    "Server": "jetlake.server.server",
    "ServerError": "jetlake.errors",
    "SpoolError": "jetlake.errors",
    "StartError": "jetlake.errors",
    "__version__": "jetlake._engine",
    "connect": "jetlake.client.connection",
    "connect_sync": "jetlake.sync",
    "table": "jetlake.frames",
}


def __getattr__(name: str) -> object:
    home = _HOME_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
