"""`ApiContext`: everything that answers requests, as the dispatchers of today's API and of the old dialects use it."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from jetlake.management.archives.endpoints import ArchiveEndpoints
from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.endpoints.account import AccountEndpoints
from jetlake.management.endpoints.consumers import ConsumerEndpoints
from jetlake.management.endpoints.forks import ForkEndpoint
from jetlake.management.endpoints.messages import MessageEndpoints
from jetlake.management.endpoints.scans import ScanEndpoints
from jetlake.management.endpoints.streams import StreamEndpoints
from jetlake.management.endpoints.why import WhyEndpoints
from jetlake.management.settings import ManagementSettings


class ApiContext(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoints of one server, the streams they answer about, and what they share."""

    catalog: StreamCatalog
    streams: StreamEndpoints
    consumers: ConsumerEndpoints
    messages: MessageEndpoints
    accounts: AccountEndpoints
    archives: ArchiveEndpoints
    forks: ForkEndpoint
    why: WhyEndpoints
    scans: ScanEndpoints
    # Returns those in force.
    settings: Callable[[], ManagementSettings]
    # Keeps other threads from deciding for an account while a request of another account does.
    alone_with: Callable[[str], AbstractContextManager[None]]
    # Takes lines for the log.
    warn: Callable[[str], None]
