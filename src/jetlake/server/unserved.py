"""Options this build accepts without serving them: one warning line each, so that no user is left to guess.

When a feature arrives, delete its entry here; nothing else in the server knows about it.
"""

from jetlake.server.options import ServerOptions
from jetlake.server.options.from_flags import CLUSTER_FLAGS

LEAF_KEYS = {
    "write_deadline": "leaf connections have the write_deadline of the server",
    "write_timeout": "leaf connections have the write_deadline of the server",
    "proxy": "it only applies to WebSocket URLs, ws:// or wss://",
    "jetstream_cluster_migrate": "a server that runs alone leads all its streams",
}
"""Keys of the block `leafnodes` and of its remotes without effect, and why."""


def warnings(options: ServerOptions) -> list[str]:
    """Return one line for each of these options that has no effect."""
    lines = []
    cluster = [flag for flag in options.unserved if flag in CLUSTER_FLAGS]
    if cluster:
        lines.append(
            f"Clustering is out of scope, the server runs standalone: --{', --'.join(cluster)} "
            "without effect; for a cluster point the same clients at nats-server"
        )
    if "syslog" in options.unserved or "remote_syslog" in options.unserved:
        lines.append("Syslog is not supported: the log goes to stderr, or to a file with -l")
    lines += [
        f"--{flag} is not supported and has no effect"
        for flag in ("profile", "max_traced_msg_len")
        if flag in options.unserved
    ]
    if options.leaf is not None:
        given = [options.leaf.without_effect, *(remote.without_effect for remote in options.leaf.remotes)]
        keys = dict.fromkeys(key for each in given for key in each)
        lines += [f'"{key}" of "leafnodes" has no effect: {LEAF_KEYS[key]}' for key in keys]
    return lines
