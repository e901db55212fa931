"""Whom a server trusts."""

from jetlake.server.options.trust import TrustOptions, without_credentials


def test_bearer_token_for_everybody_is_not_shown():
    trust = TrustOptions(keys=("OKEY",), default_sentinel="eyJsecret", preloaded={"A": "eyJ"})

    assert "OKEY" in repr(trust)
    assert "secret" not in repr(trust)


def test_credentials_in_an_address_are_not_shown():
    assert without_credentials("https://ada:pw@host/jwt") == "https://[REDACTED]@host/jwt"
    assert without_credentials("https://host/a@b") == "https://host/a@b"
