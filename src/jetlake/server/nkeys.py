"""NKEYs: ed25519 keys as text, and the check of a signature.

A public key as text is base32, without padding, of a prefix byte, the 32 bytes of the key and a checksum of two bytes;
the prefix makes the first letter: U for users, A for accounts, O for operators, N for servers, X for curve keys, which
encrypt and do not sign. A seed never leaves its owner.
"""

import base64
import binascii

USER_PREFIX = 20 << 3
ACCOUNT_PREFIX = 0
OPERATOR_PREFIX = 14 << 3
SERVER_PREFIX = 13 << 3
CURVE_PREFIX = 23 << 3
PREFIXES = (USER_PREFIX, ACCOUNT_PREFIX, OPERATOR_PREFIX)
"""Of the keys that may sign claims."""

ENCODED_LENGTH = 56
SEED_LENGTH = 58
SEED_PREFIX = 18 << 3
KEY_BYTES = 32
SIGNATURE_BYTES = 64


def is_public_user_key(text: str) -> bool:
    return decode_public_key(text, USER_PREFIX) is not None


def is_public_account_key(text: str) -> bool:
    return decode_public_key(text, ACCOUNT_PREFIX) is not None


def is_public_operator_key(text: str) -> bool:
    return decode_public_key(text, OPERATOR_PREFIX) is not None


def is_public_server_key(text: str) -> bool:
    return decode_public_key(text, SERVER_PREFIX) is not None


def is_public_curve_key(text: str) -> bool:
    return decode_public_key(text, CURVE_PREFIX) is not None


def is_user_seed(text: str) -> bool:
    """Tell whether this is the seed of a user's key: two prefixes in its first bytes, and a checksum in its last."""
    if len(text) != SEED_LENGTH or not text.isascii():
        return False
    try:
        # 58 letters are 36 bytes and two bits that say nothing.
        raw = base64.b32decode(text + "=" * (-SEED_LENGTH % 8))
    except binascii.Error:
        return False
    body, checksum = raw[:-2], int.from_bytes(raw[-2:], "little")
    kinds = body[0] & 0xF8, (body[0] & 0x07) << 5 | body[1] >> 3
    return kinds == (SEED_PREFIX, USER_PREFIX) and binascii.crc_hqx(body, 0) == checksum


def encode_public_key(prefix: int, key: bytes) -> str:
    """Return the text of a public key of 32 bytes."""
    assert len(key) == KEY_BYTES, len(key)
    body = bytes([prefix]) + key
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode()


def decode_public_key(text: str, prefix: int) -> bytes | None:
    """Return the 32 bytes of a public key; None = this is not a key of that kind."""
    if len(text) != ENCODED_LENGTH or not text.isascii():
        return None
    try:
        # 56 letters are 35 bytes exactly: there is nothing to pad.
        raw = base64.b32decode(text)
    except binascii.Error:
        return None
    body, checksum = raw[:-2], int.from_bytes(raw[-2:], "little")
    if body[0] != prefix or len(body) != 1 + KEY_BYTES or binascii.crc_hqx(body, 0) != checksum:
        return None
    return body[1:]


def verify(public_key: str, nonce: str, signature: str) -> bool:
    """Tell whether the holder of this user key signed the nonce. The signature is base64, either alphabet."""
    raw_signature = _decode_signature(signature)
    if raw_signature is None or not nonce or not is_public_user_key(public_key):
        return False
    return verify_bytes(public_key, nonce.encode(), raw_signature)


def verify_bytes(public_key: str, message: bytes, signature: bytes) -> bool:
    """Tell whether the holder of this key, of a user, account or operator, signed the message."""
    key = next((key for prefix in PREFIXES if (key := decode_public_key(public_key, prefix)) is not None), None)
    if key is None or len(signature) != SIGNATURE_BYTES:
        return False
    # Only servers with keys pay for loading the library.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        # A text may be well-formed and its 32 bytes not be a point on the curve.
        return False
    return True


def _decode_signature(text: str) -> bytes | None:
    if not text.isascii():
        return None
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        raw = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error:
        return None
    return raw if len(raw) == SIGNATURE_BYTES else None
