"""Operator mode in a configuration file: whom it trusts, and what it says about mistakes."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_text
from jetlake.server.reload import plan_reload
from tests.compatibility.claims import Key, Operator, make_user

OPERATOR = Operator()
SIGNING_KEY = Key("operator")


def trust_of(text):
    return load_text(text).options.access.trust


def test_operator_and_its_signing_keys_are_trusted():
    operator = Operator(signing_keys=[SIGNING_KEY.public])

    trust = trust_of(operator.configuration())

    assert set(trust.keys) == {operator.key.public, SIGNING_KEY.public}
    assert not trust.strict_keys


def test_strict_operator_trusts_its_signing_keys_only():
    operator = Operator(signing_keys=[SIGNING_KEY.public], strict_signing_key_usage=True)

    trust = trust_of(operator.configuration())

    assert trust.keys == (SIGNING_KEY.public,)
    assert trust.strict_keys == {SIGNING_KEY.public}


def test_several_operators_are_trusted():
    other = Operator()
    text = OPERATOR.configuration().replace(OPERATOR.jwt(), "").split("\n", 1)[1]

    trust = trust_of(f"operators: [{OPERATOR.jwt()}, {other.jwt()}]\n{text}")

    assert set(trust.keys) == {OPERATOR.key.public, other.key.public}


def test_clients_must_sign_and_nobody_comes_in_without():
    options = load_text(OPERATOR.configuration()).options

    assert options.access.required
    assert options.access.signs_nonce
    assert not options.access.admits_strangers
    assert options.access.system_account == OPERATOR.system.public


def test_resolver_block_is_read_as_a_whole(tmp_path):
    block = f'{{ type: full, dir: "{tmp_path}", allow_delete: true, hard_delete: true, limit: 7, timeout: "500ms" }}'

    resolver = trust_of(OPERATOR.configuration(block)).resolver

    assert (resolver.kind, resolver.directory, resolver.accounts_max) == ("full", str(tmp_path), 7)
    assert resolver.allow_delete
    assert resolver.hard_delete
    assert resolver.timeout_s == 0.5


def test_address_of_the_operator_is_the_resolver_if_there_is_no_other():
    operator = Operator(account_server_url="https://accounts.example/jwt/v1/", system_account=OPERATOR.system.public)

    trust = trust_of(f"operator: {operator.jwt()}")

    assert (trust.resolver.kind, trust.resolver.url) == ("url", "https://accounts.example/jwt/v1/accounts")


def test_pinned_accounts_include_the_system_account():
    account = OPERATOR.add_account()

    trust = trust_of(OPERATOR.configuration(further=f"resolver_pinned_accounts: {account.public}"))

    assert trust.pinned_accounts == {account.public, OPERATOR.system.public}


def test_resolver_without_an_operator_has_no_effect():
    assert trust_of("resolver: MEMORY") is None


def test_mistakes_name_their_line():
    text = f"port: 4222\noperator: {OPERATOR.jwt()}\nsystem_account: {OPERATOR.system.public}\nresolver: nonsense"

    with pytest.raises(ConfigurationError, match=r":4:1: error parsing account resolver"):
        load_text(text)


@pytest.mark.parametrize("url", ["ftp://host/", "file:///etc/passwd", "host/jwt", ""])
def test_only_web_addresses_are_asked(url):
    with pytest.raises(ConfigurationError, match="account resolver"):
        load_text(OPERATOR.configuration(f'"URL({url})"', preload=""))


def test_system_account_must_be_a_key():
    with pytest.raises(ConfigurationError, match="not the public key of an account"):
        load_text(f"operator: {OPERATOR.jwt()}\nresolver: MEMORY\nsystem_account: SYS")


def test_sentinel_of_a_user_that_must_sign_is_refused():
    with pytest.raises(ConfigurationError, match="must be a bearer token"):
        load_text(OPERATOR.configuration(further=f"default_sentinel: {make_user(OPERATOR.system).jwt}"))


def with_another_resolver(text):
    return text.replace("resolver: MEMORY", "resolver: { type: cache, dir: jwt }")


def without_trust(_text):
    return "port: 4222"


def with_keys_only(text):
    return f"trusted: {OPERATOR.key.public}\n" + text.split("\n", 1)[1]


@pytest.mark.parametrize(
    ("change", "name"),
    [(with_another_resolver, "AccountResolver"), (without_trust, "System"), (with_keys_only, "TrustedOperators")],
)
def test_trust_cannot_change_while_the_server_runs(change, name):
    text = OPERATOR.configuration()

    with pytest.raises(ConfigurationError, match=name):
        plan_reload(load_text(text).options, load_text(change(text)).options)


def test_preloaded_claims_may_change_while_the_server_runs():
    before = load_text(OPERATOR.configuration()).options
    OPERATOR.add_account()
    text = OPERATOR.configuration().splitlines()
    text[0] = f"operator: {before.access.trust.operators[0]}"

    lines = plan_reload(before, load_text("\n".join(text)).options)

    assert lines == ["Reloaded: accounts"]
