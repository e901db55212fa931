"""Who signed a message: certificates of version 1, tokens of version 2."""

import pytest

from jetlake.choria.envelopes import EnvelopeError, make_request, parse
from jetlake.choria.signatures import Verifier
from jetlake.errors import ConfigurationError
from tests.choria.keys import Authority, Issuer

NODE = "web1.ldn.example.net"


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def issuer():
    return Issuer()


def received(sign=None, sender=NODE, version=1):
    payload = make_request(
        "hello", sender=sender, request_id="0" * 32, time_s=1_520_088_557, sign=sign, version=version
    )
    return parse(payload, "request", keep_signature=True)


def test_a_message_signed_by_its_sender_is_accepted(authority, issuer):
    Verifier(authority_pem=authority.pem).check(received(authority.node(NODE)))
    Verifier(issuers=(issuer.hex,)).check(received(issuer.node(NODE), version=2))


@pytest.mark.parametrize("version", [1, 2])
def test_a_message_without_a_signature_is_refused(authority, issuer, version):
    with pytest.raises(EnvelopeError):
        Verifier(authority_pem=authority.pem, issuers=(issuer.hex,)).check(received(version=version))


def test_a_node_cannot_speak_for_another_one(authority, issuer):
    with pytest.raises(EnvelopeError, match="not by 'web1"):
        Verifier(authority_pem=authority.pem).check(received(authority.node("other.example.net")))
    with pytest.raises(EnvelopeError, match="not by 'web1"):
        Verifier(issuers=(issuer.hex,)).check(received(issuer.node("other.example.net"), version=2))


def test_a_stranger_to_the_authority_is_refused(authority, issuer):
    with pytest.raises(EnvelopeError, match="not issued by a trusted authority"):
        Verifier(authority_pem=authority.pem).check(received(Authority("Evil CA").node(NODE)))
    with pytest.raises(EnvelopeError, match="not signed by a trusted issuer"):
        Verifier(issuers=(issuer.hex,)).check(received(Issuer().node(NODE), version=2))


def test_an_authority_of_the_same_name_is_still_a_stranger(authority):
    with pytest.raises(EnvelopeError, match="not issued by a trusted authority"):
        Verifier(authority_pem=authority.pem).check(received(Authority("Test CA").node(NODE)))


def test_what_has_expired_is_refused(authority, issuer):
    with pytest.raises(EnvelopeError, match="not valid at this time"):
        Verifier(authority_pem=authority.pem).check(received(authority.node(NODE, days=-1)))
    with pytest.raises(EnvelopeError, match="not valid at this time"):
        Verifier(issuers=(issuer.hex,)).check(received(issuer.node(NODE, seconds=-10), version=2))


def test_a_changed_message_is_refused(authority, issuer):
    class Forger:
        def __init__(self, signer):
            self.proof = signer.proof
            self._signer = signer

        def sign(self, content):
            return self._signer.sign(content.replace(b"registration", b"administration"))

    with pytest.raises(EnvelopeError, match="does not match"):
        Verifier(authority_pem=authority.pem).check(received(Forger(authority.node(NODE))))
    with pytest.raises(EnvelopeError, match="does not match"):
        Verifier(issuers=(issuer.hex,)).check(received(Forger(issuer.node(NODE)), version=2))


def test_a_token_for_something_else_is_refused(issuer):
    with pytest.raises(EnvelopeError, match="purpose 'choria_provisioning'"):
        Verifier(issuers=(issuer.hex,)).check(received(issuer.node(NODE, purpose="choria_provisioning"), version=2))


@pytest.mark.parametrize("proof", ["", "a.b", "a.b.c", "....", "e30.e30.e30", "not a certificate"])
def test_a_proof_that_cannot_be_read_is_refused(authority, issuer, proof):
    class Odd:
        def __init__(self):
            self.proof = proof or "x"

        def sign(self, content):
            return b"signature of %d bytes" % len(content)

    verifier = Verifier(authority_pem=authority.pem, issuers=(issuer.hex,))
    for version in (1, 2):
        with pytest.raises(EnvelopeError):
            verifier.check(received(Odd(), version=version))


def test_a_verifier_that_trusts_nobody_is_refused():
    with pytest.raises(ConfigurationError):
        Verifier()
    with pytest.raises(ConfigurationError):
        Verifier(authority_pem=b"nonsense")
    with pytest.raises(ConfigurationError):
        Verifier(issuers=("nonsense",))
