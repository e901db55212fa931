"""Operator mode for tests: an operator, accounts and users, each with its key and signed claims.

An encoder of its own: it shares nothing with the code that reads claims.

    operator = Operator()
    account = operator.add_account(name="shop")
    server = start_server(config=operator.configuration())
    ada = make_user(account)
    with server.client() as client:
        client.connect(**ada.presented(client.info["nonce"]))
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nkeys

PREFIXES = {"operator": 14 << 3, "account": 0, "user": 20 << 3}
SEED_PREFIX = 18 << 3

UNLIMITED: dict[str, Any] = dict.fromkeys(["subs", "data", "payload", "imports", "exports", "conn", "leaf"], -1)
STORING: dict[str, Any] = dict.fromkeys(["mem_storage", "disk_storage", "streams", "consumer"], -1)
ANY_USER: dict[str, Any] = {"subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}}

HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
HEADER_OF_VERSION_1 = {"typ": "jwt", "alg": "ed25519"}


class Key:
    """A key pair of one kind."""

    def __init__(self, kind: str) -> None:
        prefix = PREFIXES[kind]
        raw = bytes([SEED_PREFIX | prefix >> 5, (prefix & 31) << 3]) + os.urandom(32)
        self.seed = _encoded(raw)
        self._pair = nkeys.from_seed(bytearray(self.seed.encode()))
        self.public = self._pair.public_key.decode()

    def claims(self, subject: Key, kind: str, nats: dict[str, Any], **fields: Any) -> str:
        """Return what this key says about another, signed. `fields` are those beside `nats`, such as `exp`."""
        body: dict[str, Any] = {"iat": int(time.time()), "iss": self.public, "name": kind, "sub": subject.public}
        body["nats"] = {"type": kind, "version": 2, **nats}
        return self.token({**body, **fields})

    def claims_of_version_1(self, subject: Key, kind: str, nats: dict[str, Any], **fields: Any) -> str:
        """The same, as tools of 2019 wrote it: the kind at the top, and the header not signed."""
        body = {"iat": int(time.time()), "iss": self.public, "name": kind, "sub": subject.public, "type": kind}
        parts = [_part(part) for part in (HEADER_OF_VERSION_1, _identified({**body, **fields, "nats": nats}))]
        return ".".join([*parts, _unpadded(self._pair.sign(parts[1].encode()))])

    def token(self, body: dict[str, Any], header: dict[str, str] | None = None) -> str:
        """Return a token with this body, signed."""
        text = f"{_part(header or HEADER)}.{_part(_identified(body))}"
        return f"{text}.{_unpadded(self._pair.sign(text.encode()))}"

    def sign(self, nonce: str) -> str:
        return _unpadded(self._pair.sign(nonce.encode()))


@dataclass(frozen=True)
class User:
    """A user with its claims."""

    key: Key
    jwt: str

    def presented(self, nonce: str) -> dict[str, Any]:
        """Return what the user says in CONNECT."""
        return {"jwt": self.jwt, "sig": self.key.sign(nonce), "protocol": 1}

    def write(self, path: Path) -> Path:
        """Write the file that client libraries take."""
        path.write_text(
            f"-----BEGIN NATS USER JWT-----\n{self.jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{self.key.seed}\n------END USER NKEY SEED------\n"
        )
        return path


@dataclass
class Account:
    """An account with its claims; `signer` is a key that may sign its users."""

    key: Key
    operator: Operator
    nats: dict[str, Any]
    fields: dict[str, Any] = field(default_factory=dict)
    issuer: Key | None = None

    @property
    def public(self) -> str:
        return self.key.public

    def jwt(self, issuer: Key | None = None, **changes: Any) -> str:
        """Return its claims, with other fields of `nats` or beside it."""
        beside = {name: changes.pop(name) for name in ("name", "exp", "nbf", "iat") if name in changes}
        issuer = issuer or self.issuer or self.operator.key
        return issuer.claims(self.key, "account", {**self.nats, **changes}, **{**self.fields, **beside})

    def limits(self, **changes: Any) -> dict[str, Any]:
        """Return its limits with others among them."""
        return {**self.nats["limits"], **changes}


class Operator:
    """An operator with a system account and a user in that, and the accounts it has signed."""

    def __init__(self, **nats: Any) -> None:
        self.key = Key("operator")
        self.nats = nats
        self.accounts: list[Account] = []
        self.system = self.add_account(name="SYS")
        self.admin = make_user(self.system, name="admin")

    def jwt(self) -> str:
        return self.key.claims(self.key, "operator", self.nats, name="harbour")

    def add_account(self, *, limits: dict[str, Any] | None = None, issuer: Key | None = None, **given: Any) -> Account:
        """Return a new account without limits, except for those that are given."""
        fields = {name: given.pop(name) for name in ("name", "exp", "nbf", "iat") if name in given}
        nats = {"limits": {"wildcards": True, **UNLIMITED, **(limits or {})}, **given}
        account = Account(Key("account"), self, nats, fields, issuer)
        self.accounts.append(account)
        return account

    def preload(self, *accounts: Account) -> str:
        claims = "\n".join(f"{account.public}: {account.jwt()}" for account in accounts or self.accounts)
        return f"resolver_preload {{\n{claims}\n}}\n"

    def configuration(self, resolver: str = "MEMORY", further: str = "", *, preload: str | None = None) -> str:
        """Return the configuration of a server that trusts this operator.

        Its clients have more time to log in than by default, because a test may be late with it on a busy machine.
        """
        patience = "" if "authorization" in further else "authorization { timeout: 60 }\n"
        return (
            f"operator: {self.jwt()}\nsystem_account: {self.system.public}\nresolver: {resolver}\n"
            f"{self.preload() if preload is None else preload}{further}\n{patience}"
        )


EXPIRY_SECONDS = 6
"""When claims expire whose end a test waits for: what comes before it may be late on a busy machine."""


def make_user(
    account: Account, *, issuer: Key | None = None, claimed: dict[str, Any] | None = None, **given: Any
) -> User:
    """Return a user of an account that may do everything, or what `claimed` says instead.

    Signed by a signing key with `issuer`. Further fields are those of `nats`, or beside it.
    """
    key = Key("user")
    return User(key, user_claims(account, key, issuer=issuer, claimed=claimed, **given))


def user_claims(
    account: Account, key: Key, *, issuer: Key | None = None, claimed: dict[str, Any] | None = None, **given: Any
) -> str:
    """Return the claims of a user whose key is there."""
    fields = {name: given.pop(name) for name in ("name", "exp", "nbf", "iat") if name in given}
    nats = {**(ANY_USER if claimed is None else claimed), **given}
    if issuer is not None:
        nats.setdefault("issuer_account", account.public)
    return (issuer or account.key).claims(key, "user", nats, **fields)


def scoped(key: Key, **template: Any) -> dict[str, Any]:
    """Return a signing key with a template for its users."""
    return {"kind": "user_scope", "key": key.public, "role": "worker", "description": "", "template": template}


def operator_mode(credentials_file: Path) -> str:
    """Write a user's credentials, and return the configuration of a server that lets that user in."""
    operator = Operator()
    make_user(operator.add_account(limits=STORING)).write(credentials_file)
    return operator.configuration()


def _identified(body: dict[str, Any]) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(body).encode()).digest()
    return {**body, "jti": base64.b32encode(digest).decode().rstrip("=")}


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
