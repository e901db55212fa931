"""What a client shows of itself in CONNECT: a user with password, a token, a key, or a credentials file.

Invariant: at most one way of authenticating is in a `ClientCredentials`; two of them are refused when it is made.
"""

from pathlib import Path

import msgspec

from jetlake.client.user_keys import UserKey, read_jwt, read_seed
from jetlake.errors import ConfigurationError

__all__ = ["ClientCredentials"]


class ClientCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """How to authenticate; everything empty is a client without a name.

    `nkey_seed` is the seed itself or a file with it, `credentials_file` what `nsc` and its relatives write.
    """

    user: str = ""
    password: str = ""
    token: str = ""
    nkey_seed: str = ""
    credentials_file: str = ""

    def __post_init__(self) -> None:
        given = [
            name
            for name, value in (
                ("user", self.user),
                ("token", self.token),
                ("nkeySeed", self.nkey_seed),
                ("credentialsFile", self.credentials_file),
            )
            if value
        ]
        if len(given) > 1:
            raise ConfigurationError(f"{' and '.join(given)} are both given: authenticate in one way")

    def connect_fields(self, nonce: str) -> dict[str, str]:
        """Return the fields of CONNECT, with the nonce signed where there is a key. Raises `ConfigurationError`."""
        if self.token:
            return {"auth_token": self.token}
        if self.user:
            return {"user": self.user, "pass": self.password}
        if self.credentials_file:
            path = Path(self.credentials_file)
            return {"jwt": read_jwt(path), "sig": UserKey(read_seed(path), f"the seed in {path}").sign(nonce)}
        if self.nkey_seed:
            key = UserKey(self._seed())
            return {"nkey": key.public_text, "sig": key.sign(nonce)}
        return {}

    def _seed(self) -> str:
        text = self.nkey_seed.strip()
        is_seed = text.startswith("SU") and "/" not in text and "." not in text
        return text if is_seed else read_seed(Path(text))
