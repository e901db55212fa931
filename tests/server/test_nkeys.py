"""Keys as text, and signatures."""

import base64
import binascii

import nkeys
import pytest

from jetlake.server.nkeys import USER_PREFIX, decode_public_key, is_public_account_key, is_public_user_key, verify

SEED = b"SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
NONCE = "PXoWU7zWAMt75FY"


def sign(nonce: str, seed: bytes = SEED) -> bytes:
    return nkeys.from_seed(bytearray(seed)).sign(nonce.encode())


def test_known_key_is_a_user_key():
    assert nkeys.from_seed(bytearray(SEED)).public_key.decode() == PUBLIC
    assert is_public_user_key(PUBLIC)
    assert not is_public_account_key(PUBLIC)


@pytest.mark.parametrize(
    "text", ["", PUBLIC[:-1], PUBLIC + "A", PUBLIC.lower(), PUBLIC[:-1] + "5", "U" * 56, PUBLIC[:-1] + "é", "\0" * 56]
)
def test_what_is_no_key_is_refused(text):
    assert decode_public_key(text, 20 << 3) is None


@pytest.mark.parametrize(
    "encode",
    [
        lambda raw: base64.urlsafe_b64encode(raw).rstrip(b"="),
        base64.urlsafe_b64encode,
        base64.b64encode,
    ],
)
def test_signature_of_the_nonce_is_accepted_in_either_alphabet(encode):
    assert verify(PUBLIC, NONCE, encode(sign(NONCE)).decode())


@pytest.mark.parametrize("signature", ["", "x", "=", "é", "AAAA", base64.b64encode(bytes(64)).decode(), "A" * 5000])
def test_other_signatures_are_refused(signature):
    assert not verify(PUBLIC, NONCE, signature)


def test_known_answer_of_the_standard():
    """The second test vector of RFC 8032."""
    key = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    body = bytes([USER_PREFIX]) + key
    text = base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode()

    assert verify(text, "r", base64.b64encode(signature).decode())
    assert not verify(text, "s", base64.b64encode(signature).decode())


def test_signature_of_another_nonce_or_key_is_refused():
    signature = base64.urlsafe_b64encode(sign(NONCE)).decode()

    assert not verify(PUBLIC, "another-nonce-0", signature)
    assert not verify("UAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", NONCE, signature)


def test_signature_of_no_nonce_is_refused():
    signature = base64.urlsafe_b64encode(sign("")).decode()

    assert not verify(PUBLIC, "", signature)
