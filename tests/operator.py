"""An operator with an account and a user: the configuration of a server that trusts it, and the credentials."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import nkeys

UNLIMITED = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1}
STORED_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Trusted:
    """What a server that trusts an operator is configured with, and a user who may come in."""

    config: str
    user_jwt: str
    user_key: str
    credentials: bytes


def trusted(user_seed: bytes) -> Trusted:
    """Return an operator's account with JetStream, and the user of a seed in it."""
    operator, account = key_of(nkeys.PREFIX_BYTE_OPERATOR, b"operator"), key_of(nkeys.PREFIX_BYTE_ACCOUNT, b"account")
    system = key_of(nkeys.PREFIX_BYTE_ACCOUNT, b"system")
    user = nkeys.from_seed(bytearray(user_seed))
    storage = {"mem_storage": STORED_BYTES_MAX, "disk_storage": STORED_BYTES_MAX, "streams": -1, "consumer": -1}
    accounts = {
        account: signed(operator, account, "account", limits={**UNLIMITED, **storage}),
        system: signed(operator, system, "account", limits=UNLIMITED),
    }
    preloaded = ", ".join(f"{key.public_key.decode()}: {jwt}" for key, jwt in accounts.items())
    user_jwt = signed(account, user, "user", subs=-1, data=-1, payload=-1, pub={}, sub={})
    return Trusted(
        config=(
            f"operator: {signed(operator, operator, 'operator')}\nsystem_account: {system.public_key.decode()}\n"
            f"resolver: MEMORY\nresolver_preload: {{ {preloaded} }}\n"
        ),
        user_jwt=user_jwt,
        user_key=user.public_key.decode(),
        credentials=(
            f"-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user_seed.decode()}\n------END USER NKEY SEED------\n"
        ).encode(),
    )


def write_credentials(path: Path, user: Trusted) -> Path:
    """Write the file that a user is given."""
    path.write_bytes(user.credentials)
    return path


def key_of(prefix: int, text: bytes) -> nkeys.KeyPair:
    """Return the key that a text makes, of an operator, an account or a user."""
    return nkeys.from_seed(bytearray(nkeys.encode_seed(hashlib.sha256(text).digest(), prefix)))


def signed(issuer: nkeys.KeyPair, subject: nkeys.KeyPair, kind: str, **claims: object) -> str:
    """Return a JWT as NATS has them."""
    body = {
        "iat": 1700000000,
        "iss": issuer.public_key.decode(),
        "name": kind,
        "sub": subject.public_key.decode(),
        "nats": {"type": kind, "version": 2, **claims},
    }
    body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
    parts = [encoded(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, body)]
    return ".".join([*parts, encoded(issuer.sign(".".join(parts).encode()))])


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
