"""What a server does for Choria: makes the broker's streams, tells when it starts and stops, runs adapters beside it.

```python
choria = Choria(options, engine, log)
choria.make_streams(jetstream)       # before the engine starts
choria.start(url)
choria.stop()                        # while the engine still serves: adapters deliver what they hold
```
"""

import socket
from typing import TYPE_CHECKING, Any

from jetlake._engine import Engine, EngineError, __version__
from jetlake.choria.events import encode, lifecycle_body, subject_of
from jetlake.choria.streams import broker_streams
from jetlake.errors import StartError
from jetlake.management.wire.error_codes import RequestError
from jetlake.server.children import Child, Children
from jetlake.server.options.choria import ChoriaOptions

if TYPE_CHECKING:
    from jetlake.server.jetstream import JetStream
    from jetlake.server.log import Log


class Choria:
    """The block `choria` of one server, at work."""

    def __init__(self, options: ChoriaOptions, engine: Engine, log: "Log", server_name: str) -> None:
        self._options = options
        self._engine = engine
        self._log = log
        self._identity = options.identity or server_name or socket.getfqdn()
        self._children: Children | None = None
        self._stopped = False

    def make_streams(self, jetstream: "JetStream | None") -> None:
        """Make the streams, or give those that are there the wanted retention. Raises `StartError`."""
        retention = self._options.streams
        if retention is None:
            return
        if jetstream is None:
            raise StartError('choria: "streams" needs JetStream: add jetstream { store_dir: "…" }, or start with -js')
        for config in broker_streams(retention):
            try:
                done = jetstream.manager.ensure_stream(self._options.account, config)
            except RequestError as error:
                raise StartError(f"choria: the stream {config['name']} cannot be made: {error}") from error
            if done:
                self._log.info(f"Choria stream {config['name']} {done}")

    def start(self, url: str) -> None:
        """Tell that the server has started, and start the adapters; `url` is where they find it."""
        self._tell("startup", version=__version__)
        if not self._options.adapters:
            return
        settings: dict[str, Any] = {"server": url, **self._options.connection, "adapters": self._options.adapters}
        settings["identity"] = self._identity
        if self._options.metrics_port is not None:
            settings["metrics_port"] = self._options.metrics_port
        self._children = Children(
            [Child(name="adapters", words=("adapter", "run", "--hosted"), settings=settings)], self._log
        )
        self._children.start()

    def stop(self) -> None:
        """Stop the adapters, and tell that the server stops; harmless when repeated."""
        if self._stopped:
            return
        self._stopped = True
        if self._children is not None:
            self._children.stop()
        self._tell("shutdown")

    def _tell(self, kind: str, **fields: Any) -> None:
        if not self._options.lifecycle_events:
            return
        body = lifecycle_body(kind, identity=self._identity, component=self._options.component, **fields)
        try:
            self._engine.publish(self._options.account, subject_of(body), encode(body, raw=self._options.raw_events))
        except EngineError as error:
            self._log.warning(f"The {kind} event could not be sent: {error.args[-1]}")
