"""The keys of a server: what they sign and seal can be checked and opened by others."""

import nkeys
import pytest

from jetlake.server.callout import identity as module
from jetlake.server.callout.identity import Identity, UnreadableAnswerError
from jetlake.server.nkeys import CURVE_PREFIX, encode_public_key, is_public_curve_key, is_public_server_key
from tests.compatibility.callout_service import CurveKey

# A server's key that the nkeys library has made.
PAIR = nkeys.from_seed(bytearray(nkeys.encode_seed(b"s" * 32, nkeys.PREFIX_BYTE_SERVER)))
SEED, PUBLIC = b"s" * 32, PAIR.public_key.decode()


def test_keys_are_those_of_a_server():
    identity = Identity(SEED)

    assert is_public_server_key(identity.server_key)
    assert is_public_curve_key(identity.curve_key)
    assert identity.curve_key == identity.curve_key
    assert identity.server_key == PUBLIC


def test_what_is_sealed_can_be_opened_by_the_recipient_alone():
    identity, recipient = Identity(SEED), CurveKey()

    sealed = identity.seal(b"hello", recipient.public)

    assert recipient.open(sealed, identity.curve_key) == b"hello"
    assert identity.seal(b"hello", recipient.public) != sealed
    assert sealed.startswith(module.SEAL_VERSION)


def test_what_others_seal_can_be_opened():
    identity, sender = Identity(SEED), CurveKey()

    assert identity.open(sender.seal(b"hello", identity.curve_key), sender.public) == b"hello"


def test_what_another_has_sealed_is_unreadable():
    identity, sender = Identity(SEED), CurveKey()
    sealed = sender.seal(b"hello", identity.curve_key)

    for text, key in ((sealed, CurveKey().public), (sealed[:-1], sender.public), (sealed, "XABC")):
        with pytest.raises(UnreadableAnswerError):
            identity.open(text, key)


@pytest.mark.parametrize("raw", [bytes(32), b"\x01" + bytes(31), b"\xec" + b"\xff" * 30 + b"\x7f"], ids=bytes.hex)
def test_nothing_is_sealed_for_a_key_by_which_everybody_could_read_it(raw):
    """Such a key is well-formed; the library refuses it with an error of its own."""
    identity, key = Identity(SEED), encode_public_key(CURVE_PREFIX, raw)
    assert is_public_curve_key(key)

    with pytest.raises(UnreadableAnswerError, match=key):
        identity.seal(b"hello", key)
    with pytest.raises(UnreadableAnswerError):
        identity.open(module.SEAL_VERSION + bytes(100), key)


@pytest.mark.parametrize("length", range(50))
def test_short_texts_are_unreadable(length):
    with pytest.raises(UnreadableAnswerError):
        Identity(SEED).open((module.SEAL_VERSION + bytes(100))[:length], CurveKey().public)
