"""What this build accepts without serving it: one warning line each, so that nobody is left to guess.

A feature that arrives deletes its entry here; nothing else in the server knows about it.
"""

from jetlake.server.options import CLUSTER_FLAGS, ServerOptions


def warnings(options: ServerOptions) -> list[str]:
    """Return one line for each thing these options ask for in vain."""
    lines = []
    if options.monitoring.http_port is not None or options.monitoring.https_port is not None:
        lines.append("Monitoring is not served by this build yet: /varz and the other pages do not answer")
    if options.jetstream:
        lines.append("JetStream is not served by this build yet: its folder is prepared, streams come later")
    if options.tls is not None:
        lines.append("TLS is not served by this build yet: the client port speaks PLAIN TEXT, do not expose it")
    cluster = [flag for flag in options.unserved_flags if flag in CLUSTER_FLAGS]
    if cluster:
        lines.append(
            f"Clustering is out of scope, the server runs standalone: --{', --'.join(cluster)} "
            "without effect; for a cluster point the same clients at nats-server"
        )
    if "syslog" in options.unserved_flags or "remote_syslog" in options.unserved_flags:
        lines.append("Syslog is not supported: the log goes to stderr, or to a file with -l")
    lines += [
        f"--{flag} is not supported and has no effect"
        for flag in ("profile", "max_traced_msg_len")
        if flag in options.unserved_flags
    ]
    return lines
