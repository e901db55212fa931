"""The block `tls`: certificates and the rules of the handshake."""

import re

from jetlake.server.configuration import unsupported
from jetlake.server.configuration.document import kind_of
from jetlake.server.configuration.section import Section
from jetlake.server.options.tls import AUTO_HANDSHAKE_FIRST_MS, DEFAULT_TIMEOUT_S, TlsOptions
from jetlake.shared.durations import go_duration_ns

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

CURVES = ("X25519", "CurveP256", "CurveP384")
"""What the engine offers."""

OTHER_CURVES = ("CurveP521", "X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024")

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
    (certificate_file, key_file), *further_files = _read_files(inner)
    map_users = bool(inner.switch("verify_and_map"))
    if inner.switch("ocsp_peer"):
        inner.error(inner.node("ocsp_peer"), '"ocsp_peer" is not supported yet: revoke by removing users instead')
    tls = TlsOptions(
        certificate_file=certificate_file,
        key_file=key_file,
        authority_file=inner.path("ca_file") or "",
        verify_clients=bool(inner.switch("verify")) or map_users,
        map_users=map_users,
        allow_plain=allow_plain,
        timeout_s=inner.seconds("timeout") or DEFAULT_TIMEOUT_S,
        min_version=_read_min_version(inner),
        cipher_suites=_read_cipher_suites(inner),
        handshake_first_ms=read_handshake_first(inner),
        pinned_certificates=_read_fingerprints(inner),
        further_files=tuple(further_files),
        curves=_read_curves(inner),
        # Means no limit, as in nats-server.
        handshakes_per_second_max=max(0, inner.integer("connection_rate_limit") or 0),
    )
    # It says how a client of another server would behave.
    inner.accept("insecure")
    inner.refuse(unsupported.TLS)
    for key, entry in inner.entries():
        inner.error(entry, f'error parsing tls config, unknown field "{key}"')
    return tls


def _read_files(section: Section) -> list[tuple[str, str]]:
    """Return the files of every certificate and its key, at least one pair."""
    certificate_file = section.path("cert_file") or ""
    key_file = section.path("key_file") or ""
    pairs = section.sections("certs", "certificates")
    if pairs is not None and certificate_file:
        section.error(section.node("certs", "certificates"), "cannot combine 'cert_file' option with 'certs' option")
    files = [] if pairs else [(certificate_file, key_file)]
    for pair in pairs or []:
        files.append((pair.path("cert_file") or "", pair.path("key_file") or ""))
        pair.finish()
    if not all(certificate for certificate, _ in files):
        section.error(None, "missing 'cert_file' in TLS configuration")
    if not all(key for _, key in files):
        section.error(None, "missing 'key_file' in TLS configuration")
    return files


def _read_curves(section: Section) -> tuple[str, ...]:
    node = section.node("curve_preferences")
    names = section.texts("curve_preferences")
    if node is None or names is None:
        return ()
    if not names:
        section.error(node, "error parsing tls config, 'curve_preferences' cannot be empty")
        return ()
    unknown = [name for name in names if name not in CURVES + OTHER_CURVES]
    for name in unknown:
        section.error(node, f"unrecognized curve preference {name}")
    offered = tuple(name for name in names if name in CURVES)
    if not offered and not unknown:
        section.error(node, f'"curve_preferences" names none that this server offers: {", ".join(CURVES)}')
    return offered


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


def read_handshake_first(section: Section) -> int | None:
    """Return how long the handshake of a client is waited for; None = INFO comes first, 0 = it always does."""
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
            return max(0, go_duration_ns(node.data) // 1_000_000)
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
