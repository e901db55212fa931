"""The sender of messages that programs put into a spool, which a server runs as a process of its own."""

import msgspec

MODULE = "jetlake.submission.hosted"
"""What the process runs. It is named and not imported: the server knows nothing of what is built on NATS."""


class SubmissionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A spool, and how its sender reaches a server. They cross to the process as one JSON object."""

    spool: str
    collective: str = "mcollective"
    messages_max: int = 500
    # Empty = this server, on the loopback address.
    url: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    credentials_file: str = ""
    nkey_file: str = ""
    authority_file: str = ""
    metrics_port: int | None = None
    seed_file: str = ""
    token_file: str = ""

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; a password must not.
        return f"SubmissionOptions(spool={self.spool!r})"
