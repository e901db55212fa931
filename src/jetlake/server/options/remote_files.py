"""Files about another server that this one connects to: certificates, credentials, keys.

They are named in the options and read when the engine gets them. No error shows the contents of a file.
"""

import os

import msgspec

from jetlake.config import EngineRemoteTls
from jetlake.errors import ConfigurationError, reason_of
from jetlake.shared.credentials import find_seed, find_user_jwt

USER_SEED_PREFIX = "SU"


class RemoteTls(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates for a connection to another server."""

    # Empty = the authorities of this machine.
    authority_file: str = ""
    # What that server is shown; empty = nothing.
    certificate_file: str = ""
    key_file: str = ""
    # Its certificate is not checked.
    insecure: bool = False
    handshake_first: bool = False
    # 0 = the default.
    timeout_s: float = 0.0

    def for_engine(self) -> EngineRemoteTls:
        """Read the files. Raises `ConfigurationError`."""
        return EngineRemoteTls(
            ca_pem="" if self.insecure else self._read_authorities(),
            certificate_pem=read_remote_file(self.certificate_file, "certificate") if self.certificate_file else "",
            key_pem=read_remote_file(self.key_file, "private key") if self.key_file else "",
            insecure=self.insecure,
            handshake_first=self.handshake_first,
            # However short, it is longer than none.
            timeout_ms=max(1, int(self.timeout_s * 1000)) if self.timeout_s > 0 else 0,
        )

    def _read_authorities(self) -> str:
        if self.authority_file:
            return read_remote_file(self.authority_file, "certificate authority")
        authorities = read_system_authorities()
        if not authorities:
            raise ConfigurationError("this machine has no certificate authorities: name a ca_file in the remote's tls")
        return authorities


def read_system_authorities() -> str:
    """Return the certificate authorities of this machine as PEM; empty if it has none."""
    # Only servers with remotes pay for loading the library.
    import ssl

    path = ssl.get_default_verify_paths().cafile
    return "" if path is None else read_remote_file(path, "certificate authority")


def read_credentials(path: str) -> tuple[str, str]:
    """Return the JWT and the seed of a credentials file. Raises `ConfigurationError`."""
    text = read_remote_file(path, "credentials")
    jwt = find_user_jwt(text)
    if jwt is None:
        raise _is_missing(path, "user JWT between its two lines of dashes")
    return jwt, _seed_in(text, path)


def read_seed(path: str) -> str:
    """Return the seed of a file that holds the key of a user. Raises `ConfigurationError`."""
    return _seed_in(read_remote_file(path, "key"), path)


def read_remote_file(path: str, what: str) -> str:
    """Return the text of a file; `what` says in errors what it holds. Raises `ConfigurationError`."""
    try:
        # Bundles of authorities have comments in any language.
        with open(os.path.expanduser(path), encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ConfigurationError(f"the {what} of a remote cannot be read: open {path}: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigurationError(f"the {what} of a remote in {path} is not text; convert it to PEM") from error


def _seed_in(text: str, path: str) -> str:
    seed = find_seed(text, USER_SEED_PREFIX)
    if seed is None:
        raise _is_missing(path, "seed of a user's NKEY, SU…")
    return seed


def _is_missing(path: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"{path} has no {what}: make one with `nsc`, or name another file")
