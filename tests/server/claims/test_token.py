"""A JWT: its parts, its signature."""

import base64
import json
import random
import string

import pytest

from jetlake.server.claims.model import read_account, read_activation, read_operator, read_user
from jetlake.server.claims.token import TOKEN_BYTES_MAX, InvalidTokenError, open_token
from jetlake.server.claims.validation import account_issues, blocks
from tests.compatibility.claims import Key, Operator, make_user
from tests.server.claims import vectors


def changed(token, **fields):
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    part = base64.urlsafe_b64encode(json.dumps({**claims, **fields}).encode()).decode().rstrip("=")
    return f"{head}.{part}.{signature}"


def test_token_names_kind_version_and_issuer():
    operator = Operator()

    token = open_token(operator.system.jwt())

    assert (token.kind, token.version, token.issuer) == ("account", 2, operator.key.public)


def test_tokens_of_the_go_library_are_read():
    operator, account = read_operator(vectors.OPERATOR), read_account(vectors.ACCOUNT)
    activation = read_activation(vectors.ACTIVATION)

    assert account.iss in operator.issuers()
    assert read_account(vectors.SYSTEM_ACCOUNT).iss in operator.issuers()
    assert not blocks(account_issues(account, now_unix_s=0), with_times=False)
    assert (activation.nats.subject, activation.nats.kind) == ("foo", "service")


def test_white_space_around_a_token_does_not_matter():
    operator = Operator()

    assert read_operator(f"\n{operator.jwt()}\n").sub == operator.key.public


def test_token_of_version_1_is_signed_without_its_header():
    operator, user = Operator(), Key("user")
    token = operator.system.key.claims_of_version_1(user, "user", {}, tags=["old"])

    claims = read_user(token)

    assert claims.sub == user.public
    assert (claims.nats.subs, claims.nats.payload, claims.nats.tags) == (-1, -1, ("old",))


def test_account_of_version_1_stores_nothing():
    operator = Operator()
    nats = {"limits": {"subs": -1, "conn": 5, "disk_storage": 10}}

    claims = read_account(operator.key.claims_of_version_1(operator.system.key, "account", nats))

    assert claims.nats.limits.conn == 5
    assert not claims.nats.limits.enabled


def test_version_2_does_not_count_with_a_signature_of_version_1():
    """Whoever may sign one must not be able to make the other of it."""
    operator = Operator()
    body = {"iss": operator.key.public, "sub": operator.system.public, "nats": {"type": "account", "version": 2}}
    old = operator.key.claims_of_version_1(operator.system.key, "account", {"limits": {}})
    head = old.split(".")[0]
    part = base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")

    with pytest.raises(InvalidTokenError, match="V2 signature"):
        open_token(f"{head}.{part}.{operator.key.sign(part)}")


@pytest.mark.parametrize("field", ["iss", "sub", "exp", "nats", "name"])
def test_no_field_can_be_changed(field):
    token = Operator().system.jwt()

    with pytest.raises(InvalidTokenError, match="signature"):
        open_token(
            changed(token, **{field: {"type": "account", "version": 2} if field == "nats" else Key("user").public})
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c.d",
        "eyJ.eyJ.eyJ",
        "é.é.é",
        "\x00.\x00.\x00",
        vectors.ACCOUNT[:-2],
        vectors.ACCOUNT.rpartition(".")[0],
        "a" * (TOKEN_BYTES_MAX + 1),
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_is_no_token_is_refused(text):
    with pytest.raises(InvalidTokenError):
        open_token(text)


@pytest.mark.parametrize("payload", ["null", "[]", "1", '"x"', "{}", '{"nats": 1}', '{"nats": {"version": "2"}}', "{"])
def test_payload_that_is_no_claims_is_refused(payload):
    key = Key("account")
    head = base64.urlsafe_b64encode(b'{"typ":"JWT","alg":"ed25519-nkey"}').decode().rstrip("=")
    part = base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")

    with pytest.raises(InvalidTokenError):
        open_token(f"{head}.{part}.{key.sign(f'{head}.{part}')}")


def test_nested_payload_is_refused_and_does_not_use_up_the_stack():
    key = Key("account")
    head = base64.urlsafe_b64encode(b'{"typ":"JWT","alg":"ed25519-nkey"}').decode().rstrip("=")
    part = base64.urlsafe_b64encode(('{"a":' * 50_000 + "1" + "}" * 50_000).encode()).decode().rstrip("=")

    with pytest.raises(InvalidTokenError):
        open_token(f"{head}.{part}.{key.sign(f'{head}.{part}')}")


def test_nested_header_is_refused_and_does_not_use_up_the_stack():
    head = base64.urlsafe_b64encode(
        ('{"typ":"JWT","alg":"ed25519-nkey","x":' + "[" * 1_200 + "]" * 1_200 + "}").encode()
    )

    with pytest.raises(InvalidTokenError, match="the header cannot be read"):
        open_token(f"{head.decode().rstrip('=')}.e30.AAAA")


@pytest.mark.parametrize("nats", [5, "x", [1]])
def test_claims_of_version_1_that_are_not_an_object_are_refused(nats):
    account, user = Key("account"), Key("user")
    body = {"type": "user", "iss": account.public, "sub": user.public, "nats": nats}
    head = base64.urlsafe_b64encode(b'{"typ":"jwt","alg":"ed25519"}').decode().rstrip("=")
    part = base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")

    with pytest.raises(InvalidTokenError, match="must be an object"):
        read_user(f"{head}.{part}.{account.sign(part)}")


def test_damaged_tokens_never_open():
    """Any character replaced by any other: nothing but `InvalidTokenError`, and never an opened token."""
    token = make_user(Operator().system).jwt
    generator = random.Random(23)
    letters = string.ascii_letters + string.digits + "-_.=+/ é"
    for _ in range(500):
        position = generator.randrange(len(token))
        letter = generator.choice(letters)
        damaged = token[:position] + letter + token[position + 1 :]
        same_end = position == len(token) - 1 and letter not in ".=+/ é"
        if damaged == token or same_end:
            # The last letter of base64 has bits that mean nothing.
            continue
        with pytest.raises(InvalidTokenError):
            open_token(damaged)


def test_null_counts_as_left_out():
    operator = Operator()
    body = {"iss": operator.key.public, "sub": operator.system.public, "exp": None}
    nats = {"type": "account", "version": 2, "limits": {"subs": None, "conn": 3}, "imports": None, "tags": None}

    claims = read_account(operator.key.token({**body, "nats": nats}))

    assert (claims.exp, claims.nats.limits.conn, claims.nats.imports) == (0, 3, ())


@pytest.mark.parametrize(("kind", "issuer"), [("operator", "account"), ("account", "user"), ("user", "operator")])
def test_key_of_the_wrong_kind_issues_nothing(kind, issuer):
    key = Key(issuer)

    with pytest.raises(InvalidTokenError, match="must not issue"):
        open_token(key.claims(Key("user"), kind, {}))


def test_tiers_replace_other_limits():
    operator = Operator()
    limits = {"disk_storage": 7, "streams": 7, "tiered_limits": {"R1": {"disk_storage": 5}}}

    claims = read_account(operator.add_account(limits=limits).jwt())

    assert (claims.nats.limits.disk_storage, claims.nats.limits.streams) == (0, 0)
    assert claims.nats.limits.tiered_limits["R1"].disk_storage == 5
