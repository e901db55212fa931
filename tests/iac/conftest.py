"""Gives this suite servers of both kinds."""

from tests.iac.servers import server, server_kind, streams_server  # noqa: F401
