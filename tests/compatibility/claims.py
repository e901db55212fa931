"""Operator mode for tests: an operator, an account with JetStream and a user, each with its key and signed claims."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import nkeys

PREFIXES = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
SEED_PREFIX = 18 << 3

UNLIMITED: dict[str, Any] = dict.fromkeys(["subs", "data", "payload", "imports", "exports", "conn", "leaf"], -1)
STORING: dict[str, Any] = dict.fromkeys(["mem_storage", "disk_storage", "streams", "consumer"], -1)


class Key:
    """A key pair of one kind."""

    def __init__(self, kind: str) -> None:
        prefix = PREFIXES[kind]
        raw = bytes([SEED_PREFIX | prefix >> 5, (prefix & 31) << 3]) + os.urandom(32)
        self.seed = _encoded(raw)
        self._pair = nkeys.from_seed(bytearray(self.seed.encode()))
        self.public = self._pair.public_key.decode()

    def claims(self, subject: Key, kind: str, nats: dict[str, Any]) -> str:
        """Return what this key says about another, signed."""
        body: dict[str, Any] = {"iat": int(time.time()), "iss": self.public, "name": kind, "sub": subject.public}
        body["nats"] = {"type": kind, "version": 2, **nats}
        digest = hashlib.sha256(json.dumps(body).encode()).digest()
        body["jti"] = base64.b32encode(digest).decode().rstrip("=")
        text = f"{_part({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_part(body)}"
        return f"{text}.{_unpadded(self._pair.sign(text.encode()))}"


def operator_mode(credentials_file: Path) -> str:
    """Write a user's credentials, and return the configuration of a server that lets that user in."""
    operator, account, system, user = Key("operator"), Key("account"), Key("account"), Key("user")
    limits = {"wildcards": True, **UNLIMITED}
    accounts = {
        each.public: operator.claims(each, "account", {"limits": {**limits, **storing}})
        for each, storing in ((account, STORING), (system, {}))
    }
    user_claims = account.claims(user, "user", {"subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}})
    credentials_file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{user_claims}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
    preload = "\n".join(f"{public}: {claims}" for public, claims in accounts.items())
    return (
        f"operator: {operator.claims(operator, 'operator', {})}\nsystem_account: {system.public}\n"
        f"resolver: MEMORY\nresolver_preload {{\n{preload}\n}}\n"
    )


def _encoded(raw: bytes) -> str:
    checksum = 0
    for byte in raw:
        checksum ^= byte << 8
        for _ in range(8):
            checksum = (checksum << 1 ^ 0x1021 if checksum & 0x8000 else checksum << 1) & 0xFFFF
    return base64.b32encode(raw + checksum.to_bytes(2, "little")).decode().rstrip("=")


def _part(value: dict[str, Any]) -> str:
    return _unpadded(json.dumps(value).encode())


def _unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
