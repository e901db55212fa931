"""What this build accepts without serving it: one warning line each, so that nobody is left to guess.

A feature that arrives deletes its entry here; nothing else in the server knows about it.
"""

from jetlake.server.options import ServerOptions
from jetlake.server.options.from_flags import CLUSTER_FLAGS


def warnings(options: ServerOptions) -> list[str]:
    """Return one line for each thing these options ask for in vain."""
    lines = []
    cluster = [flag for flag in options.unserved if flag in CLUSTER_FLAGS]
    if cluster:
        lines.append(
            f"Clustering is out of scope, the server runs standalone: --{', --'.join(cluster)} "
            "without effect; for a cluster point the same clients at nats-server"
        )
    if "syslog" in options.unserved or "remote_syslog" in options.unserved:
        lines.append("Syslog is not supported: the log goes to stderr, or to a file with -l")
    if "leafnodes" in options.unserved:
        lines.append(
            "Leaf nodes are not served yet, and nothing listens for them: point clients at this server directly, "
            "or run nats-server"
        )
    lines += [
        f"--{flag} is not supported and has no effect"
        for flag in ("profile", "max_traced_msg_len")
        if flag in options.unserved
    ]
    return lines
