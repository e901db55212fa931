"""Claims of strangers: whatever they say, they are refused, and nothing breaks."""

import json
import random

import pytest

import jetlake
from jetlake._engine import Engine
from jetlake.config import EngineOptions
from jetlake.server.authentication.presented import Login
from jetlake.server.claims.accounts import UnknownAccountError
from jetlake.server.claims.operator_mode import OperatorMode
from jetlake.server.configuration.load import load_text
from jetlake.server.python_log import PythonLog
from tests.compatibility.claims import ANY_USER, STORING, UNLIMITED, Account, Key, Operator, User, make_user, scoped

NONCE = "PXoWU7zWAMt75FY"
NUMBERS = [0, -1, -5, 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**63) - 1, 10**30, 1.5, -1e300]
ODD = [
    *(None, True, False, *NUMBERS),
    *("", " ", ".", "..", ">", "*", "a b", "{{name()}}", "\x00", "é", "x" * 500, "../../etc/passwd", "::/0"),
    *([], {}, [[]], [None], [1], [""], {"": ""}, {"a": {"a": {}}}, ["*"] * 50, {"allow": [">"]}, {"start": "1"}),
]
FIELDS = [
    *("aud", "exp", "iat", "nbf", "name", "sub", "jti", "type", "tags", "nats"),
    *("subs", "data", "payload", "pub", "sub", "resp", "src", "times", "times_location", "bearer_token"),
    *("proxy_required", "allowed_connection_types", "issuer_account", "version", "type", "tags"),
]


@pytest.fixture(scope="module")
def operator():
    return Operator()


@pytest.fixture(scope="module")
def known(operator):
    key = Key("account")
    template = {"pub": {"allow": ["{{name()}}.{{tag(a)}}"], "deny": ["{{tag(b)}}"]}, "subs": -1, "payload": -1}
    account = operator.add_account(signing_keys=[scoped(key, **template)], limits=STORING)
    account.scope = key
    return account


@pytest.fixture(scope="module")
def engine():
    """What reads verdicts. No client ever came to it, so it reads one and then has nobody to let in."""
    engine = Engine(EngineOptions(host="127.0.0.1", port=0).to_json())
    yield engine
    engine.shutdown()


@pytest.fixture(scope="module")
def mode(operator, known):
    mode = OperatorMode(load_text(operator.configuration()).options.access, PythonLog(), on_change=lambda _: None)
    mode.open()
    assert decide(mode, make_user(known)) is not None
    return mode


def decide(mode, user, **fields):
    presented = {**user.presented(NONCE), **fields}
    connect = json.dumps(presented, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return mode.decide(Login(connect=connect, nonce=NONCE, remote_address="127.0.0.1:1"))


def strange(generator, issuer, key):
    """Return claims of a user in which some fields are odd."""
    nats = {"type": "user", "version": 2, **ANY_USER}
    body = {"iss": issuer.public, "sub": key.public, "iat": 1_700_000_000, "name": "ada"}
    for _ in range(generator.randint(1, 4)):
        target = generator.choice([nats, nats, body])
        target[generator.choice(FIELDS)] = generator.choice(ODD)
    return issuer.token({**body, "nats": body.get("nats", nats)})


@pytest.mark.parametrize("seed", range(4))
def test_strange_claims_of_a_stranger_are_refused(mode, seed):
    generator = random.Random(seed)
    for _ in range(150):
        issuer, key = Key("account"), Key("user")

        assert decide(mode, User(key, strange(generator, issuer, key))) is None


@pytest.mark.parametrize("seed", range(4))
def test_strange_claims_of_a_known_account_break_nothing(mode, known, engine, seed):
    """The holder of an account's key is let in or refused; what the engine is told fits its numbers."""
    generator = random.Random(seed)
    for _ in range(150):
        key = Key("user")
        verdict = decide(mode, User(key, strange(generator, known.key, key)))
        if verdict is not None:
            told = json.loads(verdict.to_json())
            assert told["account"] == known.public
            assert all(0 <= value < 2**63 for value in told.values() if isinstance(value, int))
            assert engine.admit(1, verdict.to_json()) is False


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "field", ["exp", "iat", "nbf", "subs", "data", "payload", "resp.max", "resp.ttl", "version", "type"]
)
def test_engine_reads_the_verdict_on_claims_with_any_number(mode, known, engine, field, number):
    name, _, inner = field.partition(".")
    claimed = {name: {inner: number} if inner else number}
    beside = {name: claimed.pop(name) for name in ("exp", "iat", "nbf") if name in claimed}

    verdict = decide(mode, make_user(known, **claimed, **beside))

    if verdict is not None:
        assert engine.admit(1, verdict.to_json()) is False


@pytest.mark.parametrize("name", [*(value for value in ODD if isinstance(value, str)), "*.x", "a.>"])
def test_names_of_users_fill_templates_with_subjects_or_nothing(mode, known, name):
    for tags in ([f"a:{name}", "b:x"], ["a:x", f"b:{name}"]):
        user = make_user(known, issuer=known.scope, claimed={}, name=name, tags=tags)

        verdict = decide(mode, user)

        if verdict is not None:
            for subject in (*(verdict.permissions.publish.allow or ()), *verdict.permissions.publish.deny):
                assert all(token and not any(letter.isspace() for letter in token) for token in subject.split("."))


@pytest.mark.parametrize(
    "connect", [b"", b"{", b"[]", b"null", b"\xff", b'{"jwt": 1}', b'{"jwt": null}', b'{"jwt": []}']
)
def test_unreadable_connects_are_refused(mode, connect):
    assert mode.decide(Login(connect=connect, nonce=NONCE, remote_address="")) is None


SUBJECTS = [
    *("", "a", "a.*", "a.>", "s.a", "t.*.x", "t.$1.x", "lat", ">", "..", "a b", "\x00", "é", "\ud800"),
    *(f"${'9' * 5000}", f"$-{2**63}", f"{{{{wildcard({'9' * 5000})}}}}", f"{{{{partition({2**31 - 1},1)}}}}"),
    "a." * 3000 + "b",
]
STORED = [*STORING, "max_ack_pending", "mem_max_stream_bytes", "disk_max_stream_bytes"]


def strange_account(generator, exporter):
    """Return what an operator says of an account, with odd numbers and subjects in a few places."""

    def number():
        return generator.choice([100, 255, 256, 2**62, *NUMBERS])

    def subject():
        return generator.choice(SUBJECTS)

    def kind():
        return generator.choice(["stream", "service"])

    limits = {"wildcards": True, **UNLIMITED, **STORING}
    for _ in range(generator.randint(0, 2)):
        limits[generator.choice([*UNLIMITED, *STORED])] = number()
    parts = {
        "exports": lambda: [
            {
                "subject": subject(),
                "type": kind(),
                "response_threshold": number(),
                "account_token_position": number(),
                "service_latency": generator.choice([None, {"sampling": number(), "results": subject()}]),
                "revocations": {subject(): number()},
            }
        ],
        "imports": lambda: [
            {
                "subject": subject(),
                "account": exporter.public,
                "type": kind(),
                "to": generator.choice(["", subject()]),
                "local_subject": generator.choice(["t.$1.y", subject(), subject()]),
            }
        ],
        "mappings": lambda: {subject(): [{"subject": subject(), "weight": number()}]},
        "trace": lambda: {"dest": subject(), "sampling": number()},
        "revocations": lambda: {"*": number()},
        "default_permissions": lambda: {"resp": {"max": number(), "ttl": number()}, "sub": {"deny": [subject()]}},
        "authorization": lambda: {"auth_users": [Key("user").public], "xkey": subject()},
        "limits": lambda: {**limits, "tiered_limits": {"R1": {generator.choice(STORED): number(), "disk_storage": 1}}},
    }
    chosen = generator.sample(sorted(parts), generator.randint(0, 3))
    beside = {name: number() for name in ("exp", "nbf", "iat") if generator.random() < 0.1}
    return {"limits": limits, **{name: parts[name]() for name in chosen}}, beside


def test_strange_claims_of_an_account_break_nothing():
    """What an operator signs counts or is refused; whatever counts, the engine and the streams accept."""
    generator, operator = random.Random(0), Operator()
    exports = [
        {"subject": "s.>", "type": "service", "service_latency": {"sampling": 100, "results": "lat"}},
        {"subject": "t.*.x", "type": "stream"},
    ]
    exporter = operator.add_account(limits=STORING, exports=exports)
    adopted_count = 0
    with jetlake.Server(config=f"jetstream {{}}\n{operator.configuration()}") as server:
        mode = server._access.mode
        mode.look_up([exporter.public])
        for _ in range(600):
            key = Key("account")
            nats, beside = strange_account(generator, exporter)
            # As if an account that is known imported from it: then its claims are taken in at once.
            mode._is_awaited = key.public.__eq__
            try:
                mode.update(key.public, operator.key.claims(key, "account", nats, **beside))
            except UnknownAccountError:
                continue
            adopted_count += 1
            verdict = decide(mode, make_user(Account(key, operator, nats)))
            if hasattr(verdict, "to_json"):
                assert server._engine.admit(1, verdict.to_json()) is False
            server.facts()
            mode._accounts.forget(key.public)

        assert server.running
    assert adopted_count > 100
