"""The request to a service: the client that wants to log in, and its credentials, as claims that the server signs.

The key in `user_nkey` is made up for one request and nobody holds its private half: an answer that names it is an
answer to this request and to no other.
"""

import base64
import hashlib
import secrets
from typing import Any

import msgspec

from jetlake.config import NATS_VERSION
from jetlake.server import nkeys
from jetlake.server.authentication.presented import Handshake, Login
from jetlake.server.callout.delegation import Delegation
from jetlake.server.callout.identity import Identity
from jetlake.server.options import ServerOptions
from jetlake.server.options.users import LEAF, LEAF_WEBSOCKET, STANDARD, WEBSOCKET
from jetlake.shared.engine_reports import CLIENT_TYPES, KINDS

AUDIENCE = "nats-authorization-request"
KIND = "authorization_request"
HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
XKEY_HEADER = "Nats-Server-Xkey"
"""The header in which the server names the curve key that answers are sealed for."""


class ServerDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The server as a service sees it, and the files its clients were verified against, by connection type."""

    name: str
    host: str
    version: str
    tags: tuple[str, ...] = ()
    authority_files: dict[str, str] = {}


def describe_server(options: ServerOptions, server_id: str) -> ServerDescription:
    """Return a server as a service sees it."""
    websocket_tls = options.websocket.tls if options.websocket else None
    leaf_listener = options.leaf.listener if options.leaf else None
    files = {
        STANDARD: options.tls,
        WEBSOCKET: websocket_tls,
        LEAF: leaf_listener.tls if leaf_listener else None,
        LEAF_WEBSOCKET: websocket_tls,
    }
    return ServerDescription(
        name=options.server_name or server_id,
        host=options.host,
        version=NATS_VERSION,
        tags=options.tags,
        authority_files={kind: tls.authority_file for kind, tls in files.items() if tls is not None},
    )


class AuthorizationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request, ready to be published. `user_key` is the key that the answer must be about."""

    user_key: str
    payload: bytes
    header: bytes | None = None


def make_request(
    login: Login,
    delegation: Delegation,
    server: ServerDescription,
    identity: Identity,
    *,
    now_unix_s: float,
    timeout_s: float,
) -> AuthorizationRequest:
    """Return the request about one client, encrypted if the service has a curve key."""
    user_key = nkeys.encode_public_key(nkeys.USER_PREFIX, secrets.token_bytes(nkeys.KEY_BYTES))
    claims = {
        "aud": AUDIENCE,
        "exp": int(now_unix_s + timeout_s),
        "iat": int(now_unix_s),
        "iss": identity.server_key,
        "sub": delegation.issuer,
        "nats": _body(login, delegation, server, identity) | {"user_nkey": user_key, "type": KIND, "version": 2},
    }
    payload = _signed(claims, identity).encode()
    if not delegation.xkey:
        return AuthorizationRequest(user_key=user_key, payload=payload)
    header = f"NATS/1.0\r\n{XKEY_HEADER}: {identity.curve_key}\r\n\r\n".encode()
    return AuthorizationRequest(user_key=user_key, payload=identity.seal(payload, delegation.xkey), header=header)


def _body(login: Login, delegation: Delegation, server: ServerDescription, identity: Identity) -> dict[str, Any]:
    presented = delegation.presented
    body: dict[str, Any] = {
        "server_id": {"name": server.name, "host": server.host, "id": identity.server_key}
        | _given(version=server.version, tags=server.tags, xkey=identity.curve_key if delegation.xkey else ""),
        "client_info": _given(
            host=login.host,
            id=login.connection_id,
            user=delegation.user,
            name=presented.name,
            tags=delegation.tags,
            name_tag=delegation.name,
            kind=KINDS[login.connection_type],
            type=CLIENT_TYPES[login.connection_type],
            # What the client has signed, if it has.
            nonce=login.nonce if presented.signature else "",
        ),
        "connect_opts": _given(
            jwt=presented.jwt,
            nkey=presented.nkey,
            sig=presented.signature,
            auth_token=presented.auth_token,
            user=presented.user,
            **{"pass": presented.password},
            name=presented.name,
            lang=presented.language,
            version=presented.version,
        )
        | {"protocol": presented.protocol},
    }
    if login.tls:
        body["client_tls"] = _handshake(login, server)
    return body


def _handshake(login: Login, server: ServerDescription) -> dict[str, Any]:
    handshake = msgspec.json.decode(login.tls, type=Handshake)
    chain: list[str] = []
    if handshake.certificates:
        # Only servers that ask for certificates pay for loading what reads them.
        from jetlake.server.callout.certificate_chain import verified_chain

        chain = verified_chain(handshake.certificates, server.authority_files.get(login.connection_type, ""))
    return _given(version=handshake.version, cipher=handshake.cipher, verified_chains=[chain] if chain else [])


def _signed(claims: dict[str, Any], identity: Identity) -> str:
    """Return claims as a token; its id is a digest of what it says."""
    digest = hashlib.sha256(msgspec.json.encode(claims)).digest()
    identified = {**claims, "jti": base64.b32encode(digest).decode().rstrip("=")}
    parts = f"{_encoded(msgspec.json.encode(HEADER))}.{_encoded(msgspec.json.encode(identified))}"
    return f"{parts}.{_encoded(identity.sign(parts.encode()))}"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that say something."""
    return {name: value for name, value in fields.items() if value}
