"""The list `remotes` of `leafnodes`: the hubs that this server connects to as a leaf node.

```text
remotes: [
  { url: "tls://hub.example.com:7422", credentials: "edge.creds", account: EDGE, deny_exports: ["local.>"] }
]
```

No mistake repeats a URL that may hold a password, and none repeats a seed.
"""

from jetlake.server.addresses import PORT_MAX
from jetlake.server.configuration.document import ConfigurationNode, kind_of
from jetlake.server.configuration.leaf_compression import read_compression
from jetlake.server.configuration.permissions import wrong_subject
from jetlake.server.configuration.section import Section
from jetlake.server.configuration.tls import read_handshake_first
from jetlake.server.nkeys import is_user_seed
from jetlake.server.options.leafnodes import (
    DEFAULT_LEAF_PORT,
    FIRST_INFO_TIMEOUT_S,
    LeafRemote,
    LeafUrl,
)
from jetlake.server.options.remote_files import RemoteTls
from jetlake.server.options.tls import DEFAULT_TIMEOUT_S
from jetlake.server.options.users import GLOBAL_ACCOUNT

SCHEMES = ("nats-leaf", "leaf", "nats", "tls", "ws", "wss")

URL_EXAMPLE = "write nats-leaf://host:7422, tls://host:7422 or wss://host:443"

TLS_REASON = "for a remote: the hub decides; set it in the tls block there"
TLS_KEYS = ("cipher_suites", "curve_preferences", "pinned_certs", "certs", "certificates")
"""Keys that only a listener has here."""


def read_leaf_remotes(section: Section, dial_timeout_s: float) -> tuple[LeafRemote, ...]:
    """Return the hubs of the block, each once. `dial_timeout_s` is that of remotes without one of their own."""
    node, entries = section.node("remotes"), section.sections("remotes")
    remotes: dict[tuple[object, ...], LeafRemote] = {}
    for entry in entries or []:
        remote = _read_remote(entry, dial_timeout_s)
        if remote is None:
            continue
        if remote.identity in remotes:
            section.error(node, f"duplicate remote {remote.name}; remove one of them")
        remotes[remote.identity] = remote
    return tuple(remotes.values())


def _read_remote(section: Section, dial_timeout_s: float) -> LeafRemote | None:
    urls = _read_urls(section)
    credentials_file, seed = section.path("creds", "credentials") or "", _read_seed(section)
    without_effect = _read_without_effect(section, urls)
    own_dial_timeout_s = section.duration_s("dial_timeout") or 0.0
    first_info_timeout_s = section.duration_s("first_info_timeout") or 0.0
    remote = LeafRemote(
        urls=urls,
        account=section.text("account", "local") or GLOBAL_ACCOUNT,
        credentials_file=credentials_file,
        seed=seed,
        tls=_read_tls(section),
        hub=bool(section.switch("hub")),
        deny_imports=section.texts("deny_imports", "deny_import") or (),
        deny_exports=section.texts("deny_exports", "deny_export") or (),
        compression=read_compression(section),
        no_randomize=bool(section.switch("no_randomize", "dont_randomize")),
        first_info_timeout_s=first_info_timeout_s if first_info_timeout_s > 0 else FIRST_INFO_TIMEOUT_S,
        dial_timeout_s=own_dial_timeout_s if own_dial_timeout_s > 0 else dial_timeout_s,
        websocket_compress=bool(
            section.switch("ws_compress", "ws_compression", "websocket_compress", "websocket_compression")
        ),
        websocket_no_masking=bool(section.switch("ws_no_masking", "websocket_no_masking")),
        disabled=bool(section.switch("disabled")),
        isolate=bool(section.switch("isolate_leafnode_interest", "isolate")),
        request_isolation=bool(section.switch("request_isolation")),
        ignore_discovered_servers=bool(section.switch("ignore_discovered_servers")),
        without_effect=without_effect,
    )
    section.finish()
    _check_subjects(section, section.node("deny_imports", "deny_import"), remote.deny_imports)
    _check_subjects(section, section.node("deny_exports", "deny_export"), remote.deny_exports)
    if credentials_file and seed:
        section.error(None, "Remote leafnode can not have both creds and nkey defined; remove one of them")
    if not urls:
        node = section.node("url", "urls")
        # What is wrong with those that are there has been said.
        if node is None or node.data == []:
            section.error(None, f"a leafnode remote needs a url: {URL_EXAMPLE}")
        return None
    if len({url.is_websocket for url in urls}) > 1:
        shown = " ".join(f'"{url}"' for url in urls)
        section.error(
            section.node("url", "urls"),
            "remote leaf node configuration cannot have a mix of websocket and non-websocket urls: "
            f"[{shown}]; make two remotes",
        )
    return remote


def _read_urls(section: Section) -> tuple[LeafUrl, ...]:
    """Return the URLs that are good, each once."""
    node, texts = section.node("url", "urls"), section.texts("url", "urls")
    urls: dict[LeafUrl, None] = {}
    for number, text in enumerate(texts or (), 1):
        url = parse_leaf_url(text.strip())
        if isinstance(url, str):
            section.error(node, f"error parsing leafnode url number {number}: {url}; {URL_EXAMPLE}")
        elif url in urls:
            assert node is not None
            section.problems.warning(node.position, f'invalid use of field "{url}": Duplicate leafnode entry detected')
        else:
            urls[url] = None
    return tuple(urls)


def parse_leaf_url(text: str) -> LeafUrl | str:
    """Return the URL, or what is wrong with it."""
    # Only servers with remotes wait for this import.
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return f"its host or port cannot be read, the port is a number up to {PORT_MAX}"
    if parts.scheme not in SCHEMES:
        return f"its scheme is not one of {', '.join(SCHEMES)}"
    if not parts.hostname:
        return "it has no host"
    return LeafUrl(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or DEFAULT_LEAF_PORT,
        path="" if parts.scheme not in ("ws", "wss") else parts.path,
        user=unquote(parts.username or ""),
        password=None if parts.password is None else unquote(parts.password),
    )


def _read_seed(section: Section) -> str:
    seed = section.text("nkey", "seed")
    if seed is None or is_user_seed(seed):
        return seed or ""
    section.error(
        section.node("nkey", "seed"),
        "Remote leafnode nkey is not a valid seed of a user: it has 58 letters and digits and begins with SU",
    )
    return ""


def _check_subjects(section: Section, node: ConfigurationNode | None, subjects: tuple[str, ...]) -> None:
    for subject in subjects:
        reason = wrong_subject(subject, queues=False)
        if reason:
            section.error(node, reason)


def _read_tls(section: Section) -> RemoteTls | None:
    inner = section.section("tls")
    if inner is None:
        return None
    tls = RemoteTls(
        authority_file=inner.path("ca_file") or "",
        certificate_file=inner.path("cert_file") or "",
        key_file=inner.path("key_file") or "",
        insecure=bool(inner.switch("insecure")),
        # Whatever time is given: it is for listeners, who wait for clients that may not know about it.
        handshake_first=read_handshake_first(inner) is not None,
        timeout_s=inner.seconds("timeout") or DEFAULT_TIMEOUT_S,
    )
    # They say how a listener treats those who come.
    inner.accept("verify", "verify_and_map", "connection_rate_limit", "allow_insecure_cipher_suites")
    version = inner.text("min_version")
    if version not in (None, "1.2"):
        inner.error(inner.node("min_version"), f'"min_version" is not supported {TLS_REASON}')
    inner.refuse(dict.fromkeys(TLS_KEYS, TLS_REASON))
    for key, entry in inner.entries():
        inner.error(entry, f'error parsing tls config, unknown field "{key}"')
    for given, missing, name in (
        (tls.certificate_file, tls.key_file, "key_file"),
        (tls.key_file, tls.certificate_file, "cert_file"),
    ):
        if given and not missing:
            section.error(section.node("tls"), f"missing '{name}' in TLS configuration")
    return tls


def _read_without_effect(section: Section, urls: tuple[LeafUrl, ...]) -> tuple[str, ...]:
    """Return the keys that are given and have no effect on a server that runs alone; report what is not served."""
    keys = []
    proxy, migrate = section.node("proxy"), section.node("jetstream_cluster_migrate", "js_cluster_migrate")
    if proxy is not None:
        if any(url.is_websocket for url in urls):
            section.error(
                proxy,
                '"proxy" of a leafnode remote is not supported yet: connect directly, or through a TCP proxy',
            )
        keys.append("proxy")
    if migrate is not None and not isinstance(migrate.data, bool | dict):
        section.error(migrate, f"Expected boolean or map for jetstream_cluster_migrate, got {kind_of(migrate.data)}")
    elif migrate is not None and migrate.data is not False:
        keys.append("jetstream_cluster_migrate")
    return tuple(keys)
