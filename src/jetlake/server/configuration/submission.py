"""The block `submission`: a spool whose messages a sender of this server delivers."""

from jetlake.server.addresses import PORT_MAX
from jetlake.server.configuration.section import Section
from jetlake.server.options.submission import SubmissionOptions

MESSAGES_MAX_CEILING = 10_000
"""As many files of one priority as a sender looks at."""


def read_submission(section: Section) -> SubmissionOptions | None:
    """Return the options of the sender; None if it is off."""
    inner = section.section("submission")
    if inner is None:
        return None
    spool = inner.path("spool") or ""
    metrics_port = inner.integer("metrics_port", lowest=-1, highest=PORT_MAX)
    options = SubmissionOptions(
        spool=spool,
        collective=inner.text("collective") or "mcollective",
        messages_max=inner.integer("max_spool_size", lowest=1, highest=MESSAGES_MAX_CEILING) or 500,
        url=inner.text("url") or "",
        user=inner.text("user", "username") or "",
        password=inner.text("password", "pass") or "",
        token=inner.text("token") or "",
        credentials_file=inner.path("credentials", "creds") or "",
        nkey_file=inner.path("nkey") or "",
        authority_file=inner.path("ca_file") or "",
        metrics_port=None if metrics_port is None else max(metrics_port, 0),
        seed_file=inner.path("seed_file") or "",
        token_file=inner.path("token_file") or "",
    )
    if not spool:
        inner.error(inner.node("spool"), '"submission" names no spool: write spool: /var/spool/jetlake')
    logins = (options.user or options.password, options.token, options.credentials_file, options.nkey_file)
    if sum(bool(login) for login in logins) > 1:
        inner.error(None, '"submission" has several logins: keep one of user, token, nkey, credentials')
    inner.finish()
    return options
