"""The block `tls`: certificates and the rules of the handshake."""

import re

from jetlake.server.configuration import unsupported
from jetlake.server.configuration.document import kind_of
from jetlake.server.configuration.quantities import duration_ns
from jetlake.server.configuration.section import Section
from jetlake.server.options.tls import AUTO_HANDSHAKE_FIRST_MS, DEFAULT_TIMEOUT_S, TlsOptions

CIPHER_SUITES = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    }
)
"""What the engine offers. nats-server knows more, all of them older; a list with none of these is refused."""

OTHER_CIPHER_SUITES = re.compile("TLS_(RSA|ECDHE_RSA|ECDHE_ECDSA)_WITH_[A-Z0-9_]+")

MIN_VERSIONS = ("1.2", "1.3")

HANDSHAKE_FIRST_WORDS = {
    "true": 0,
    "on": 0,
    "false": None,
    "off": None,
    "auto": AUTO_HANDSHAKE_FIRST_MS,
    "auto_fallback": AUTO_HANDSHAKE_FIRST_MS,
}

FINGERPRINT = re.compile("[0-9a-f]{64}")


def read_tls(section: Section, *, allow_plain: bool) -> TlsOptions | None:
    """Return the certificates of the client port; None = it speaks plain text."""
    inner = section.section("tls")
    if inner is None:
        return None
    certificate_file, key_file = _read_files(inner)
    map_users = bool(inner.switch("verify_and_map"))
    if inner.switch("ocsp_peer"):
        inner.error(inner.node("ocsp_peer"), '"ocsp_peer" is not supported yet: revoke by removing users instead')
    tls = TlsOptions(
        certificate_file=certificate_file,
        key_file=key_file,
        authority_file=inner.text("ca_file") or "",
        verify_clients=bool(inner.switch("verify")) or map_users,
        map_users=map_users,
        allow_plain=allow_plain,
        timeout_s=inner.seconds("timeout") or DEFAULT_TIMEOUT_S,
        min_version=_read_min_version(inner),
        cipher_suites=_read_cipher_suites(inner),
        handshake_first_ms=_read_handshake_first(inner),
        pinned_certificates=_read_fingerprints(inner),
    )
    # It says how a client of another server would behave.
    inner.accept("insecure")
    inner.refuse(unsupported.TLS)
    for key, entry in inner.entries():
        inner.error(entry, f'error parsing tls config, unknown field "{key}"')
    return tls


def _read_files(section: Section) -> tuple[str, str]:
    certificate_file = section.text("cert_file") or ""
    key_file = section.text("key_file") or ""
    pairs = section.sections("certs", "certificates")
    if pairs is not None:
        if certificate_file:
            section.error(
                section.node("certs", "certificates"), "cannot combine 'cert_file' option with 'certs' option"
            )
        if len(pairs) != 1:
            section.error(
                section.node("certs", "certificates"),
                "several certificates are not supported yet: make one certificate that has all the names",
            )
        for pair in pairs:
            certificate_file, key_file = pair.text("cert_file") or "", pair.text("key_file") or ""
            pair.finish()
    if not certificate_file:
        section.error(None, "missing 'cert_file' in TLS configuration")
    if not key_file:
        section.error(None, "missing 'key_file' in TLS configuration")
    return certificate_file, key_file


def _read_min_version(section: Section) -> str:
    version = section.text("min_version")
    if version is not None and version not in MIN_VERSIONS:
        section.error(section.node("min_version"), '"min_version" must be "1.2" or "1.3"')
    return version or MIN_VERSIONS[0]


def _read_cipher_suites(section: Section) -> tuple[str, ...]:
    node = section.node("cipher_suites")
    names = section.texts("cipher_suites")
    section.accept("allow_insecure_cipher_suites")
    if node is None or names is None:
        return ()
    for name in names:
        if name not in CIPHER_SUITES and not OTHER_CIPHER_SUITES.fullmatch(name):
            section.error(node, f"unrecognized cipher {name}")
    offered = tuple(name for name in names if name in CIPHER_SUITES)
    if not offered:
        section.error(node, f'"cipher_suites" names none that this server offers: {", ".join(sorted(CIPHER_SUITES))}')
    return offered


def _read_handshake_first(section: Section) -> int | None:
    node = section.node("handshake_first", "first", "immediate")
    if node is None or node.data is False:
        return None
    if node.data is True:
        return 0
    if isinstance(node.data, str):
        word = node.data.lower()
        if word in HANDSHAKE_FIRST_WORDS:
            return HANDSHAKE_FIRST_WORDS[word]
        try:
            return max(0, duration_ns(node.data) // 1_000_000)
        except ValueError as error:
            section.error(node, f'"handshake_first": {node.data!r} {error}, or true, false, auto')
            return None
    section.error(node, f'"handshake_first" must be true, false, auto or a duration, not {kind_of(node.data)}')
    return None


def _read_fingerprints(section: Section) -> tuple[str, ...]:
    node = section.node("pinned_certs")
    fingerprints = tuple(text.lower() for text in section.texts("pinned_certs") or ())
    for fingerprint in fingerprints:
        if not FINGERPRINT.fullmatch(fingerprint):
            section.error(
                node,
                f"error parsing tls config, 'pinned_certs' key {fingerprint} does not look like hex-encoded sha256 of "
                "DER encoded SubjectPublicKeyInfo",
            )
    return fingerprints
