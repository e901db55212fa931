"""`AdapterHost`: many adapters in one process, each started, failing and stopped by itself.

```python
with AdapterHost(configuration, access, report):
    signal.pause()
```
"""

import socket
from threading import Thread
from types import TracebackType
from typing import Self

from jetlake.adapters.adapter import Adapter
from jetlake.adapters.configuration import AdaptersConfiguration
from jetlake.adapters.metrics import render
from jetlake.adapters.monitor import MetricsPage
from jetlake.adapters.worker import Report
from jetlake.client.access import Access
from jetlake.client.raw_connection import RawConnection
from jetlake.client.raw_settings import settings_of
from jetlake.errors import ConfigurationError

__all__ = ["AdapterHost"]


class AdapterHost:
    """The adapters of one process. Raises `ConfigurationError` when not one of them can run."""

    def __init__(self, configuration: AdaptersConfiguration, access: Access, report: Report) -> None:
        self._access = access
        self._report = report
        self.adapters: list[Adapter] = []
        problems = list(configuration.problems)
        for options in configuration.adapters:
            try:
                self.adapters.append(Adapter(options, self._connect, report))
            except ConfigurationError as error:
                problems.append(str(error))
        for problem in problems:
            report("error", problem)
        if not self.adapters:
            raise ConfigurationError("no adapter can run: " + "; ".join(problems))
        identity = configuration.identity or socket.getfqdn()
        self.page: MetricsPage | None = None
        if configuration.metrics_port is not None:
            self.page = MetricsPage(configuration.metrics_port, lambda: render(self.adapters, identity))

    def start(self) -> None:
        for adapter in self.adapters:
            adapter.start()
        if self.page is not None:
            self.page.start()
            self._report("info", f"metrics are at {self.page.url}")

    def stop(self) -> int:
        """Stop all adapters side by side, and return how many messages could not be delivered."""
        lost: list[int] = []
        threads = [Thread(target=lambda each=adapter: lost.append(each.stop())) for adapter in self.adapters]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.page is not None:
            self.page.stop()
        return sum(lost)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _connect(self, servers: tuple[str, ...], name: str) -> RawConnection:
        return RawConnection(settings_of(self._access, servers, name))
