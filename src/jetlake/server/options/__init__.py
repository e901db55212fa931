"""Everything a server needs to know, whether it came from flags, a configuration file or a program.

Small frozen values, grouped as the parts of the server use them; the code that uses them never reads flags or files.

- `server`      `ServerOptions`: one server, completely described
- `accounts`    accounts, and the users who may log in
- `imports`     what accounts show to each other
- `mappings`    what becomes of subjects that clients publish to
- `users`       users and their permissions
- `callout`     a service that decides about clients
- `trust`       operator mode: whom the server trusts
- `tls`         certificates
- `websocket`   the listener for WebSocket clients
- `leafnodes`   the listener for leaf nodes, and the hubs that the server is a leaf node of
- `jetstream`   what JetStream may use
- `remotes`     other servers and accounts that streams may be copied from
- `remote_files` certificates and credentials for connections to other servers
- `submission`  a spool, and the sender that the server runs for it
- `dashboard`   the dashboard that the server runs
- `choria`      what a server does for Choria
- `from_flags`  a command line turned into options, over those of a file
"""

from jetlake.server.options.accounts import AccessOptions, Account, Credentials, JetStreamAccountLimits
from jetlake.server.options.from_flags import from_flags
from jetlake.server.options.jetstream import JetStreamOptions, default_store_directory
from jetlake.server.options.leafnodes import LeafListenerOptions, LeafOptions, LeafRemote, LeafUrl
from jetlake.server.options.remote_files import RemoteTls
from jetlake.server.options.remotes import Remote
from jetlake.server.options.server import LameDuckOptions, LogOptions, MonitoringOptions, ServerOptions
from jetlake.server.options.submission import SubmissionOptions
from jetlake.server.options.tls import TlsOptions
from jetlake.server.options.users import (
    Permissions,
    ResponsePermissions,
    SubjectPermissions,
    User,
)
from jetlake.server.options.websocket import WebSocketOptions

__all__ = [
    "AccessOptions",
    "Account",
    "Credentials",
    "JetStreamAccountLimits",
    "JetStreamOptions",
    "LameDuckOptions",
    "LeafListenerOptions",
    "LeafOptions",
    "LeafRemote",
    "LeafUrl",
    "LogOptions",
    "MonitoringOptions",
    "Permissions",
    "Remote",
    "RemoteTls",
    "ResponsePermissions",
    "ServerOptions",
    "SubjectPermissions",
    "SubmissionOptions",
    "TlsOptions",
    "User",
    "WebSocketOptions",
    "default_store_directory",
    "from_flags",
]
