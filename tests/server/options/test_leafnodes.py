"""`LeafOptions`: what the engine is told, what decides about leaf nodes, and what is never shown."""

import msgspec
import pytest

from jetlake.config import EngineLeafUrl
from jetlake.errors import ConfigurationError
from jetlake.server.options import (
    AccessOptions,
    Credentials,
    LeafListenerOptions,
    LeafOptions,
    LeafRemote,
    LeafUrl,
    RemoteTls,
    ServerOptions,
    TlsOptions,
    User,
)
from jetlake.server.options.leafnodes import LeafAuthorization, LinkCompression
from tests.server.options.test_remotes import CREDENTIALS, SEED

HUB = LeafUrl(scheme="nats", host="hub", port=7422)
NOBODY = AccessOptions()
SHARED = AccessOptions(credentials=Credentials(user="ada", password="secret"), map_certificates=True)


def listener(**fields):
    return LeafListenerOptions(**{"port": 0, **fields})


def remote(**fields):
    return LeafRemote(**{"urls": (HUB,), **fields})


def test_engine_is_told_nothing_without_the_block():
    assert ServerOptions().engine_options("").leaf is None


def test_engine_is_told_about_the_listener():
    options = listener(
        host="10.0.0.1",
        port=7422,
        advertise="hub:1",
        no_advertise=True,
        auth_timeout_s=1.5,
        compression=LinkCompression(mode="s2_auto", rtt_ms=(5,)),
        isolate=True,
        min_version="2.10.0",
    )

    told = msgspec.to_builtins(LeafOptions(listener=options, reconnect_s=2.5).for_engine(NOBODY))

    assert told == {
        "listener": {
            "host": "10.0.0.1",
            "port": 7422,
            "tls": None,
            "auth_required": False,
            "auth_timeout_ms": 1500,
            "advertise": "hub:1",
            "no_advertise": True,
            "compression": "s2_auto",
            "compression_rtt_ms": (5,),
            "isolate": True,
            "min_version": "2.10.0",
        },
        "remotes": (),
        "reconnect_ms": 2500,
        "system_ca_pem": "",
    }


def test_engine_is_told_about_a_remote():
    told = remote(
        account="EDGE",
        seed=SEED,
        deny_imports=("a",),
        deny_exports=("b",),
        compression=LinkCompression(mode="off", rtt_ms=()),
        dial_timeout_s=0.0001,
        hub=True,
    ).for_engine()

    assert (told.account, told.seed, told.jwt, told.tls) == ("EDGE", SEED, "", None)
    assert (told.deny_imports, told.deny_exports, told.hub) == (("a",), ("b",), True)
    assert (told.compression, told.compression_rtt_ms) == ("off", ())
    assert (told.dial_timeout_ms, told.first_info_timeout_ms) == (1, 1000)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (HUB, EngineLeafUrl(host="hub", port=7422)),
        (
            LeafUrl(scheme="wss", host="hub", port=443, path="/x"),
            EngineLeafUrl(host="hub", port=443, websocket=True, tls=True, path="/x"),
        ),
        (LeafUrl(scheme="tls", host="hub", port=1), EngineLeafUrl(host="hub", port=1, tls=True)),
        (
            LeafUrl(scheme="nats", host="hub", port=1, user="u", password="p"),
            EngineLeafUrl(host="hub", port=1, user="u", password="p"),
        ),
        # As nats-server: a user alone may be a token.
        (
            LeafUrl(scheme="nats", host="hub", port=1, user="t"),
            EngineLeafUrl(host="hub", port=1, user="t", token="t"),
        ),
    ],
)
def test_engine_is_told_a_url_in_parts(url, told):
    assert url.for_engine() == told


def test_credentials_are_read_when_the_engine_is_told(tmp_path):
    path = tmp_path / "edge.creds"
    path.write_text(CREDENTIALS)
    told = remote(credentials_file=str(path)).for_engine()

    assert told.seed == SEED
    assert told.jwt.startswith("eyJ0eXAiOiJKV1QifQ.")
    path.unlink()
    with pytest.raises(ConfigurationError, match=f"the credentials of a remote cannot be read: open {path}"):
        remote(credentials_file=str(path)).for_engine()


def test_url_that_demands_tls_is_checked_by_the_authorities_of_this_machine(tmp_path, monkeypatch):
    (tmp_path / "system.pem").write_text("authorities")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.pem"))
    secure = remote(urls=(LeafUrl(scheme="tls", host="hub", port=7422),))

    told = LeafOptions(remotes=(remote(), secure)).for_engine(NOBODY)

    assert [each.tls and each.tls.ca_pem for each in told.remotes] == [None, "authorities"]
    assert told.system_ca_pem == "authorities"


def test_insecure_remote_needs_no_authorities(monkeypatch):
    monkeypatch.setattr("jetlake.server.options.remote_files.read_system_authorities", lambda: "")

    told = remote(tls=RemoteTls(insecure=True, timeout_s=1.5)).for_engine().tls

    assert (told.insecure, told.ca_pem, told.timeout_ms) == (True, "", 1500)
    with pytest.raises(ConfigurationError, match="name a ca_file"):
        remote(tls=RemoteTls()).for_engine()


def test_disabled_remote_is_not_connected_to_and_its_files_are_not_read():
    told = LeafOptions(remotes=(remote(disabled=True, credentials_file="nowhere.creds"),)).for_engine(NOBODY)

    assert (told.remotes, told.system_ca_pem) == ((), "")


@pytest.mark.parametrize(
    ("authorization", "access", "required"),
    [
        (LeafAuthorization(), NOBODY, False),
        (LeafAuthorization(), SHARED, True),
        (LeafAuthorization(users=(User(name="a"),)), NOBODY, True),
        # The engine knows only the global account by itself.
        (LeafAuthorization(default_account="A"), NOBODY, True),
    ],
)
def test_leaf_nodes_are_asked_who_they_are_if_anybody_knows(authorization, access, required):
    assert listener(authorization=authorization).for_engine(access).auth_required is required


def test_users_of_the_block_replace_those_of_the_server():
    own = (User(name="edge", password="p", account="A"),)

    access = listener(authorization=LeafAuthorization(users=own)).access(SHARED)

    assert access.users == own
    assert not access.credentials.required
    assert not access.map_certificates


def test_certificates_make_users_if_the_listener_says_so():
    tls = TlsOptions(certificate_file="c", key_file="k", map_users=True)

    assert listener(tls=tls).access(NOBODY).map_certificates
    assert not listener().access(SHARED).map_certificates


def test_nothing_shows_what_a_server_logs_in_with():
    secrets = remote(
        seed=SEED,
        urls=(
            LeafUrl(scheme="nats", host="a", port=1, user="u", password="hidden"),
            LeafUrl(scheme="nats", host="b", port=1, user="hidden"),
        ),
    )
    options = LeafOptions(
        remotes=(secrets,), listener=listener(authorization=LeafAuthorization(users=(User(name="a"),)))
    )

    for shown in (repr(options), secrets.name, repr(options.for_engine(NOBODY))):
        assert "hidden" not in shown
        assert SEED not in shown
    assert secrets.name.startswith('urls=["nats://u:xxxxx@a:1" "nats://xxxxx@b:1"], account="$G"')
