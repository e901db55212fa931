"""A service that decides who may connect to a server: auth callout.

    python examples/auth_callout.py keys
    python examples/auth_callout.py serve nats://auth:pwd@127.0.0.1:4222 SAAL… [SXAB…]

`keys` prints a new pair of keys for `issuer`, and one for `xkey`, of the block `auth_callout` in the server's
configuration. `serve` logs in as one of its `auth_users` and answers with the seeds of these keys, until it is
interrupted; the second seed is needed if the configuration has `xkey`.

Replace `decide` by what your users are kept in: a database, LDAP, or the check of an OpenID Connect token.
"""

import asyncio
import base64
import binascii
import hmac
import json
import os
import sys
import time

import nacl.public
import nacl.signing
import nacl.utils
import nats

ACCOUNT, CURVE, SEED = 0, 23 << 3, 18 << 3

USERS = {
    "ada": {"password": "lovelace", "account": "APP", "publish": ["orders.>"], "valid_s": 3600},
    "grace": {"password": "hopper", "account": "APP", "publish": [">"], "valid_s": 3600},
}


def decide(connect, client):
    """Return what a user may do. Raises `PermissionError`; the server logs the text and tells the client nothing."""
    user = USERS.get(connect.get("user", ""))
    if user is None or not hmac.compare_digest(connect.get("pass", "").encode(), user["password"].encode()):
        raise PermissionError(f"wrong user or password, from {client['host']}")
    return user


def user_claims(user_key, name, user):
    """Return the claims of a user: `aud` is the account it comes into, and what they do not restrict is allowed."""
    permissions = {"pub": {"allow": user["publish"]}, "sub": {}}
    return {
        "sub": user_key,
        "aud": user["account"],
        "name": name,
        "exp": int(time.time()) + user["valid_s"],
        "nats": {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, **permissions},
    }


class Issuer:
    """The account key that signs users and answers."""

    def __init__(self, seed):
        self._key = nacl.signing.SigningKey(raw_seed(seed))
        self.public = encode_key(ACCOUNT, bytes(self._key.verify_key))

    def sign(self, claims):
        full = {**claims, "iss": self.public, "iat": int(time.time()), "jti": encode(os.urandom(20))}
        text = ".".join(encode(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, full))
        return f"{text}.{encode(self._key.sign(text.encode()).signature)}"


class Box:
    """The curve key that requests are encrypted for."""

    def __init__(self, seed):
        self._key = nacl.public.PrivateKey(raw_seed(seed))
        self.public = encode_key(CURVE, bytes(self._key.public_key))

    def open(self, sealed, sender):
        return self._box(sender).decrypt(sealed[28:], sealed[4:28])

    def seal(self, message, recipient):
        nonce = nacl.utils.random(24)
        return b"xkv1" + nonce + self._box(recipient).encrypt(message, nonce).ciphertext

    def _box(self, other):
        return nacl.public.Box(self._key, nacl.public.PublicKey(base64.b32decode(other)[1:-2]))


def read_request(token):
    """Return the claims of a request. Raises `nacl.exceptions.BadSignatureError` unless the server has signed them."""
    head, body, signature = token.split(".")
    claims = json.loads(decode(body))
    server_key = nacl.signing.VerifyKey(base64.b32decode(claims["iss"])[1:-2])
    server_key.verify(f"{head}.{body}".encode(), decode(signature))
    return claims["nats"]


def answer(request, issuer):
    """Return the answer to a request, signed."""
    connect, user_key = request["connect_opts"], request["user_nkey"]
    try:
        user = decide(connect, request["client_info"])
        decision = {"jwt": issuer.sign(user_claims(user_key, connect["user"], user))}
    except PermissionError as refusal:
        decision = {"error": str(refusal)}
    kind = {"type": "authorization_response", "version": 2}
    return issuer.sign({"sub": user_key, "aud": request["server_id"]["id"], "nats": {**kind, **decision}})


async def serve(url, seed, xkey_seed=""):
    issuer, box = Issuer(seed), Box(xkey_seed) if xkey_seed else None

    async def on_request(message):
        server_xkey = (message.headers or {}).get("Nats-Server-Xkey", "")
        payload = box.open(message.data, server_xkey) if box else message.data
        reply = answer(read_request(payload.decode()), issuer).encode()
        await message.respond(box.seal(reply, server_xkey) if box else reply)

    client = await nats.connect(url)
    # Several services share the work, and one can be restarted without refusing anybody.
    await client.subscribe("$SYS.REQ.USER.AUTH", queue="callout", cb=on_request)
    await client.flush()
    print(f"deciding about clients as {issuer.public}", flush=True)
    await asyncio.Event().wait()


def print_keys():
    for name, prefix, key in (("issuer", ACCOUNT, Issuer), ("xkey", CURVE, Box)):
        raw = bytes([SEED | prefix >> 5, (prefix & 31) << 3]) + os.urandom(32)
        seed = base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")
        print(f"{name}: {key(seed).public}    seed: {seed}")


def raw_seed(seed):
    return base64.b32decode(seed + "=" * (-len(seed) % 8))[2:34]


def encode_key(prefix, key):
    body = bytes([prefix]) + key
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode()


def encode(raw):
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


if __name__ == "__main__":
    if sys.argv[1:2] == ["keys"]:
        print_keys()
    elif sys.argv[1:2] == ["serve"] and len(sys.argv) in (4, 5):
        asyncio.run(serve(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
