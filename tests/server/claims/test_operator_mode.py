"""Claims of one server, from its start to its end."""

import http.server
import json
import ssl
import threading
import time

import pytest

from jetlake.errors import StartError
from jetlake.server.authentication.presented import Login
from jetlake.server.authentication.verdict import Refusal
from jetlake.server.claims.accounts import UnknownAccountError
from jetlake.server.claims.operator_mode import OperatorMode
from jetlake.server.claims.shown import ShownClaims
from jetlake.server.configuration.load import load_text
from jetlake.server.python_log import PythonLog
from tests.compatibility.certificates import Authority
from tests.compatibility.claims import STORING, Key, Operator, User, make_user, scoped, user_claims

NONCE = "PXoWU7zWAMt75FY"


class Modes:
    """Operator mode by a configuration, with what it has told of changes."""

    def __init__(self, config, clock=time.time):
        self.changes = []
        self.options = load_text(config).options
        self.mode = OperatorMode(self.options.access, PythonLog(debug=True), on_change=self.changes.append, clock=clock)
        self.mode.open()

    def decide(self, user, **fields):
        return self.mode.decide(login(user, **fields))


def login(user, address="127.0.0.1:4711", **fields):
    connect = json.dumps({**user.presented(NONCE), **fields}).encode()
    return Login(connect=connect, nonce=NONCE, remote_address=address)


@pytest.fixture
def operator():
    return Operator()


def test_account_is_known_after_its_first_user(operator):
    account = operator.add_account(limits={"conn": 5, **STORING})
    modes = Modes(operator.configuration())
    assert modes.mode.find(account.public) is None

    modes.decide(make_user(account))

    (known,) = [each for each in modes.mode.complete(modes.options).access.accounts if each.name == account.public]
    assert known.max_connections == 5
    assert known.jetstream is not None
    # Of the system account, and of this one; nobody had to be asked about again.
    assert modes.changes == [frozenset(), frozenset()]


def test_options_are_made_once_for_each_change(operator):
    account = operator.add_account()
    modes = Modes(operator.configuration())
    first = modes.mode.complete(modes.options)

    assert modes.mode.complete(modes.options) is first
    modes.decide(make_user(account))
    assert modes.mode.complete(modes.options) is not first


def test_user_is_what_the_verdict_says(operator):
    account = operator.add_account(limits={"subs": 10, "payload": 100, "conn": 3})
    user = make_user(account, subs=20, payload=50, pub={"allow": ["a"]}, exp=int(time.time()) + 100)

    verdict = Modes(operator.configuration()).decide(user)

    assert (verdict.account, verdict.user) == (account.public, user.key.public)
    assert (verdict.max_subscriptions, verdict.max_payload_bytes, verdict.max_account_connections) == (10, 50, 3)
    assert verdict.permissions.publish.allow == ("a",)
    assert 90_000 < verdict.expires_unix_ms - time.time() * 1000 <= 100_000


def test_clients_of_an_account_are_asked_about_again_when_it_expires(operator):
    # Late enough that it is known before, also on a machine that is busy.
    account = operator.add_account(exp=int(time.time()) + 5)
    modes = Modes(operator.configuration())
    modes.decide(make_user(account))
    # As when the accounts are served.
    modes.mode.complete(modes.options)

    deadline = time.monotonic() + 60
    while modes.changes[-1] != {account.public} and time.monotonic() < deadline:
        time.sleep(0.01)

    modes.mode.close()
    assert modes.changes[-1] == {account.public}
    assert modes.decide(make_user(account)) == Refusal("account expired")


@pytest.mark.parametrize("expiry", [-5, 1_700_000_000])
def test_nobody_waits_for_an_activation_that_has_expired(operator, expiry):
    """What all accounts may import needs none; an old one must not have them made anew all the time."""
    exporter = operator.add_account(exports=[{"name": "x", "subject": "a", "type": "stream"}])
    importer = operator.add_account()
    said = {"subject": "a", "kind": "stream"}
    token = exporter.key.claims(importer.key, "activation", said, exp=expiry)
    importer.nats["imports"] = [
        {"name": "x", "subject": "a", "type": "stream", "account": exporter.public, "token": token}
    ]
    modes = Modes(operator.configuration())
    assert modes.decide(make_user(importer)) is not None
    before = len(modes.changes)

    completed = modes.mode.complete(modes.options)

    assert [account.imports != () for account in completed.access.accounts].count(True) == 1
    time.sleep(0.3)
    modes.mode.close()
    assert len(modes.changes) == before


@pytest.mark.parametrize("kind", ["account", "operator"])
def test_subject_that_is_not_a_user_is_refused(operator, kind):
    account, key = operator.add_account(), Key(kind)

    assert Modes(operator.configuration()).decide(User(key, user_claims(account, key, bearer_token=True))) is None


def test_why_somebody_is_refused_is_in_the_log_and_not_in_the_verdict(operator, caplog):
    caplog.set_level("DEBUG")
    modes = Modes(operator.configuration())

    assert modes.decide(make_user(operator.add_account())) is None
    assert "127.0.0.1:4711 - Account A" in caplog.text
    assert "account claims not found" in caplog.text


def test_service_of_an_account_decides_about_everybody_but_itself(operator):
    service = Key("user")
    account = operator.add_account(authorization={"auth_users": [service.public]})
    modes = Modes(operator.configuration())

    delegation, own = modes.decide(make_user(account)), modes.decide(User(service, user_claims(account, service)))

    assert (delegation.account, delegation.issuer) == (account.public, account.public)
    assert own.permissions.publish.deny == ("$SYS.REQ.USER.AUTH",)


def test_update_is_told_with_the_account(operator):
    account = operator.add_account()
    modes = Modes(operator.configuration())
    modes.decide(make_user(account))

    modes.mode.update(account.public, account.jwt(limits=account.limits(conn=1)))

    assert modes.changes[-1] == {account.public}
    assert modes.mode.find(account.public).options.max_connections == 1


def test_same_claims_again_change_nothing(operator):
    account = operator.add_account()
    text = account.jwt()
    modes = Modes(
        operator.configuration(
            preload=f"resolver_preload {{ {operator.system.public}: {operator.system.jwt()}\n"
            f"{account.public}: {text} }}\n"
        )
    )
    modes.decide(make_user(account))
    count = len(modes.changes)

    modes.mode.update(account.public, text)

    assert len(modes.changes) == count


def test_claims_of_a_stranger_change_nothing(operator):
    account = operator.add_account()
    modes = Modes(operator.configuration())
    modes.decide(make_user(account))

    with pytest.raises(UnknownAccountError, match="not signed by a trusted operator"):
        modes.mode.update(account.public, account.jwt(issuer=Key("operator")))

    assert modes.decide(make_user(account)) is not None


def test_account_that_expired_is_looked_up_again(operator, tmp_path):
    now = [time.time()]
    account = operator.add_account(exp=int(now[0]) + 60)
    resolver = f'{{ type: full, dir: "{tmp_path}" }}'
    modes = Modes(operator.configuration(resolver), clock=lambda: now[0])
    assert modes.decide(make_user(account)) is not None

    now[0] += 120
    assert modes.decide(make_user(account)) == Refusal("account expired")
    (tmp_path / f"{account.public}.jwt").write_text(account.jwt(exp=int(now[0]) + 60))

    assert modes.decide(make_user(account)) is not None


def test_system_account_that_is_missing_is_an_error_with_what_to_do(operator):
    with pytest.raises(StartError, match="add its claims to resolver_preload"):
        Modes(operator.configuration(preload=""))


def test_file_that_changed_in_the_folder_is_read_at_a_reload(operator, tmp_path):
    account = operator.add_account()
    config = operator.configuration(f'{{ type: full, dir: "{tmp_path}" }}', preload=operator.preload(operator.system))
    modes = Modes(config)
    (tmp_path / f"{account.public}.jwt").write_text(account.jwt())
    modes.decide(make_user(account))
    (tmp_path / f"{account.public}.jwt").write_text(account.jwt(limits=account.limits(conn=7)))

    modes.mode.reload(modes.options.access)

    assert modes.mode.find(account.public).options.max_connections == 7


def test_file_that_is_gone_at_a_reload_takes_its_account_with_it(operator, tmp_path):
    account = operator.add_account()
    config = operator.configuration(f'{{ type: full, dir: "{tmp_path}" }}', preload=operator.preload(operator.system))
    modes = Modes(config)
    (tmp_path / f"{account.public}.jwt").write_text(account.jwt())
    modes.decide(make_user(account))
    (tmp_path / f"{account.public}.jwt").unlink()

    lines = modes.mode.reload(modes.options.access)

    assert lines == [f'Reloaded: deleting account [removed]: "{account.public}"']
    assert modes.decide(make_user(account)) is None


def test_account_whose_file_is_put_back_lets_its_users_in_again(operator, tmp_path):
    now = [time.time()]
    account = operator.add_account()
    config = operator.configuration(f'{{ type: full, dir: "{tmp_path}" }}', preload=operator.preload(operator.system))
    modes = Modes(config, clock=lambda: now[0])
    path = tmp_path / f"{account.public}.jwt"
    path.write_text(account.jwt())
    modes.decide(make_user(account))
    path.rename(f"{path}.deleted")
    modes.mode.disable(account.public)
    assert modes.decide(make_user(account)) == Refusal("account expired")

    (tmp_path / f"{account.public}.jwt.deleted").rename(path)
    now[0] += 2

    assert modes.decide(make_user(account)).account == account.public


def test_accounts_of_streams_bring_those_they_import_from(operator):
    exporter = operator.add_account(exports=[{"name": "n", "subject": "n.>", "type": "stream"}])
    wanted = {"name": "n", "subject": "n.>", "account": exporter.public, "type": "stream"}
    importer = operator.add_account(imports=[wanted])
    modes = Modes(operator.configuration())

    modes.mode.look_up([importer.public])

    accounts = {each.name: each for each in modes.mode.complete(modes.options).access.accounts}
    assert [each.subject for each in accounts[importer.public].imports] == ["n.>"]


def test_mappings_that_make_no_sense_have_no_effect(operator, caplog):
    mappings = {"orders.*": [{"subject": "shop.$1"}], "bad.*": [{"subject": "x.$7"}]}
    account = operator.add_account(mappings=mappings)
    modes = Modes(operator.configuration())

    modes.decide(make_user(account))

    assert [each.source for each in modes.mode.find(account.public).options.mappings] == ["orders.*"]
    assert any('the mapping of "bad.*" is not valid' in message for message in caplog.messages)


class Accounts(http.server.BaseHTTPRequestHandler):
    """Serves claims as nats-account-server does."""

    claims: dict[str, str] = {}  # noqa: RUF012 - one server for each test

    def do_GET(self):
        body = self.claims.get(self.path.removeprefix("/jwt/v1/accounts/"))
        self.send_response(200 if body is not None else 404)
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def account_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Accounts)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_claims_are_fetched_from_a_web_address(operator, account_server):
    account = operator.add_account()
    Accounts.claims = {"": "ok", **{each.public: each.jwt() for each in (operator.system, account)}}
    url = f"http://127.0.0.1:{account_server.server_port}/jwt/v1/accounts/"
    modes = Modes(operator.configuration(f"URL({url})", preload=""))

    assert modes.mode.is_slow
    assert modes.mode.decide_quickly(login(make_user(account))) is None
    assert modes.decide(make_user(account)).account == account.public
    assert modes.mode.decide_quickly(login(make_user(account))).account == account.public
    assert modes.decide(make_user(operator.add_account())) is None


@pytest.fixture
def secure_account_server(account_server, tmp_path):
    authority = Authority(tmp_path)
    certificate = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate_file, certificate.key_file)
    account_server.socket = context.wrap_socket(account_server.socket, server_side=True)
    return f"https://localhost:{account_server.server_port}/jwt/v1/accounts/", authority.file


def test_claims_are_fetched_with_the_authority_of_the_file(operator, secure_account_server):
    url, authority = secure_account_server
    account = operator.add_account()
    Accounts.claims = {"": "ok", **{each.public: each.jwt() for each in (operator.system, account)}}
    tls = f'resolver_tls {{ ca_file: "{authority}" }}'

    modes = Modes(operator.configuration(f"URL({url})", tls, preload=""))

    assert modes.decide(make_user(account)).account == account.public


def test_certificate_of_an_unknown_authority_stops_the_start(operator, secure_account_server):
    with pytest.raises(StartError, match="CERTIFICATE_VERIFY_FAILED"):
        Modes(operator.configuration(f"URL({secure_account_server[0]})", preload=""))


def test_authority_that_cannot_be_read_is_an_error_with_what_to_do(operator):
    tls = 'resolver_tls { ca_file: "/nowhere.pem" }'

    with pytest.raises(StartError, match="check its files"):
        Modes(operator.configuration("URL(https://localhost:1/)", tls, preload=""))


def test_web_address_where_nobody_is_stops_the_start(operator):
    with pytest.raises(StartError, match="check the address"):
        Modes(operator.configuration("URL(http://127.0.0.1:1/accounts/)", preload=""))


def test_bearer_tokens_are_not_shown(operator):
    key = Key("account")
    account = operator.add_account(signing_keys=[scoped(key, subs=-1, payload=-1, bearer_token=True)], name="shop")
    modes = Modes(operator.configuration())
    shown = ShownClaims(modes.mode)
    plain, bearer = make_user(account, name="ada"), make_user(account, bearer_token=True)
    scoped_bearer = make_user(account, issuer=key, claimed={})
    of_plain, of_bearer, of_scoped = (modes.decide(user).details for user in (plain, bearer, scoped_bearer))

    assert shown.user(of_plain).jwt == of_plain == plain.jwt
    assert (shown.user(of_plain).name, shown.user(of_plain).issuer_key) == ("ada", account.public)
    assert shown.user(of_bearer).jwt == shown.user(of_scoped).jwt == ""
    assert shown.user(of_scoped).issuer_key == key.public
    assert shown.user("") is None
    assert shown.account_name(account.public) == "shop"
