"""A service that decides about clients, step by step: a test reads each request and answers it.

It shares nothing with the server's code: tokens are opened and written here, boxes are PyNaCl's own.

    service = CalloutService(client, issuer)
    with server.client() as guest:
        guest.send_connect(user="ada", **{"pass": "secret"})
        asked = service.next()
        service.admit(asked, "APP", name="ada")
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import nacl.public
import nacl.signing
import nacl.utils

from tests.compatibility.claims import ANY_USER, Key
from tests.compatibility.wire import RawClient

SUBJECT = "$SYS.REQ.USER.AUTH"
XKEY_HEADER = b"Nats-Server-Xkey: "
CURVE_PREFIX, SERVER_PREFIX = 23 << 3, 13 << 3


@dataclass(frozen=True)
class Named:
    """A key of which only the public half is known."""

    public: str


@dataclass(frozen=True)
class Asked:
    """A request: its claims, where the answer goes, and the curve key in its header."""

    claims: dict[str, Any]
    reply: str
    server_xkey: str = ""

    @property
    def user_key(self) -> str:
        return str(self.claims["nats"]["user_nkey"])

    @property
    def server_id(self) -> str:
        return str(self.claims["nats"]["server_id"]["id"])

    @property
    def connect(self) -> dict[str, Any]:
        return dict(self.claims["nats"]["connect_opts"])

    @property
    def client(self) -> dict[str, Any]:
        return dict(self.claims["nats"]["client_info"])


class CurveKey:
    """A pair of curve keys, as nkeys write them."""

    def __init__(self) -> None:
        self._private = nacl.public.PrivateKey.generate()
        self.public = encode_key(CURVE_PREFIX, bytes(self._private.public_key))

    def seal(self, message: bytes, recipient: str) -> bytes:
        nonce = nacl.utils.random(24)
        box = nacl.public.Box(self._private, nacl.public.PublicKey(decode_key(recipient, CURVE_PREFIX)))
        return b"xkv1" + nonce + box.encrypt(message, nonce).ciphertext

    def open(self, sealed: bytes, sender: str) -> bytes:
        assert sealed[:4] == b"xkv1", sealed[:20]
        box = nacl.public.Box(self._private, nacl.public.PublicKey(decode_key(sender, CURVE_PREFIX)))
        return box.decrypt(sealed[28:], sealed[4:28])


class CalloutService:
    """Answers requests of a server as the user of a client; `issuer` signs what it answers."""

    def __init__(self, client: RawClient, issuer: Key, xkey: CurveKey | None = None) -> None:
        self.client = client
        self.issuer = issuer
        self.xkey = xkey
        client.send(f"SUB {SUBJECT} 1\r\n".encode())
        client.expect_pong()

    def next(self) -> Asked:
        """Return the next request, which must be signed by the server it names."""
        frame = self.client.read_line()
        line, _, rest = frame.partition(b"\r\n")
        words = line.decode().split(" ")
        assert words[1] == SUBJECT, frame
        header_length = int(words[-2]) if words[0] == "HMSG" else 0
        header, payload = rest[:header_length], rest[header_length:-2]
        server_xkey = ""
        if self.xkey is not None:
            server_xkey = header.partition(XKEY_HEADER)[2].partition(b"\r\n")[0].decode()
            payload = self.xkey.open(payload, server_xkey)
        return Asked(read_token(payload.decode()), words[3], server_xkey)

    def nothing_asked(self) -> None:
        """Expect no request up to here."""
        self.client.expect_pong()

    def answer(self, asked: Asked, payload: bytes | str) -> None:
        """Send an answer as it is."""
        body = payload.encode() if isinstance(payload, str) else payload
        self.client.send(b"PUB %s %d\r\n%s\r\n" % (asked.reply.encode(), len(body), body))

    def admit(self, asked: Asked, account: str = "", **claimed: Any) -> str:
        """Let a client in, and return the claims of the user; see `user_token`."""
        token = self.user_token(asked, account, **claimed)
        self.answer(asked, self.sealed(asked, self.response(asked, jwt=token)))
        return token

    def refuse(self, asked: Asked, error: str) -> None:
        self.answer(asked, self.sealed(asked, self.response(asked, error=error)))

    def user_token(
        self, asked: Asked, account: str = "", *, signer: Key | None = None, key: str = "", **claimed: Any
    ) -> str:
        """Return the claims of a user who may do everything, or what is claimed besides."""
        fields = {name: claimed.pop(name) for name in ("exp", "nbf", "iat") if name in claimed}
        fields["name"] = claimed.pop("name", "")
        if account:
            fields["aud"] = account
        nats = {**(ANY_USER if claimed.pop("unlimited", True) else {}), **claimed}
        return (signer or self.issuer).claims(named(key or asked.user_key), "user", nats, **fields)

    def response(self, asked: Asked, *, signer: Key | None = None, **claimed: Any) -> str:
        """Return an answer with these claims, about the client and for the server that asked."""
        fields = {name: claimed.pop(name) for name in ("aud", "exp", "nbf", "sub") if name in claimed}
        fields = {"aud": asked.server_id, **fields}
        kind = "authorization_response"
        return (signer or self.issuer).claims(named(asked.user_key), kind, claimed, **fields)

    def sealed(self, asked: Asked, token: str) -> bytes:
        return token.encode() if self.xkey is None else self.xkey.seal(token.encode(), asked.server_xkey)


def named(public: str) -> Any:
    return Named(public)


def read_token(text: str) -> dict[str, Any]:
    """Return the claims of a server, whose signature must fit."""
    head, body, signature = text.split(".")
    claims: dict[str, Any] = json.loads(unpadded(body))
    key = nacl.signing.VerifyKey(decode_key(claims["iss"], SERVER_PREFIX))
    key.verify(f"{head}.{body}".encode(), unpadded(signature))
    assert json.loads(unpadded(head)) == {"typ": "JWT", "alg": "ed25519-nkey"}
    return claims


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def decode_key(text: str, prefix: int) -> bytes:
    raw = base64.b32decode(text)
    assert raw[0] == prefix, text
    return raw[1:-2]


def encode_key(prefix: int, key: bytes) -> str:
    raw = bytes([prefix]) + key
    checksum = 0
    for byte in raw:
        checksum ^= byte << 8
        for _ in range(8):
            checksum = (checksum << 1 ^ 0x1021 if checksum & 0x8000 else checksum << 1) & 0xFFFF
    return base64.b32encode(raw + checksum.to_bytes(2, "little")).decode()
