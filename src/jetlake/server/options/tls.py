"""Certificates of a port, and the rules of its handshake.

The files are named here and read when the engine gets them: at the start, and again at every reload.
"""

import msgspec

from jetlake.config import EngineCertificate, EngineTls
from jetlake.errors import ConfigurationError, reason_of

DEFAULT_TIMEOUT_S = 2.0

AUTO_HANDSHAKE_FIRST_MS = 50
"""How long `handshake_first: auto` waits for a client to begin: as long as nats-server."""


class TlsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates of the client port.

    | `handshake_first_ms` | effect                                                                          |
    |----------------------|---------------------------------------------------------------------------------|
    | None                 | INFO comes first, in plain text, then the handshake                             |
    | 0                    | the handshake always comes first                                                |
    | more                 | the handshake comes first from clients that begin it in this time               |
    """

    certificate_file: str
    key_file: str
    authority_file: str = ""
    verify_clients: bool = False
    # Clients are users by what their certificates say.
    map_users: bool = False
    allow_plain: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    min_version: str = "1.2"
    # Empty = all that the engine knows, and these are all good.
    cipher_suites: tuple[str, ...] = ()
    handshake_first_ms: int | None = None
    # SHA-256 of the public keys that may come, in hexadecimal; empty = all.
    pinned_certificates: tuple[str, ...] = ()
    # Certificates besides the first, each with its key; a client gets the first that has the name it asks for.
    further_files: tuple[tuple[str, str], ...] = ()
    # Of the key exchange, by Go's names; empty = all that the engine knows.
    curves: tuple[str, ...] = ()
    # 0 = no limit.
    handshakes_per_second_max: int = 0

    def for_engine(self) -> EngineTls:
        """Read the files. Raises `ConfigurationError`."""
        return EngineTls(
            certificate_pem=_read(self.certificate_file, "certificate"),
            key_pem=_read(self.key_file, "private key"),
            ca_pem=_read(self.authority_file, "certificate authority") if self.authority_file else None,
            verify=self.verify_clients,
            min_version=self.min_version,
            cipher_suites=self.cipher_suites,
            handshake_first_ms=self.handshake_first_ms,
            allow_non_tls=self.allow_plain,
            # However short, it is longer than none.
            timeout_ms=max(1, int(self.timeout_s * 1000)),
            pinned_certificates=self.pinned_certificates,
            further_certificates=tuple(
                EngineCertificate(
                    certificate_pem=_read(certificate_file, "certificate"), key_pem=_read(key_file, "private key")
                )
                for certificate_file, key_file in self.further_files
            ),
            curves=self.curves,
            handshakes_per_second_max=self.handshakes_per_second_max,
        )


def _read(path: str, what: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        raise ConfigurationError(f"the TLS {what} cannot be read: open {path}: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigurationError(f"the TLS {what} in {path} is not in PEM format; convert it with openssl") from error
