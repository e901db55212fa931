"""The list `remotes` of `leafnodes`: every key, and every refusal, without what must not be shown."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.leaf_remotes import parse_leaf_url
from jetlake.server.configuration.load import load_text
from jetlake.server.options import LeafRemote, LeafUrl, RemoteTls
from jetlake.server.options.leafnodes import LinkCompression

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"


def remotes_of(text, block=""):
    return load_text(f"leafnodes {{ {block} remotes: [ {text} ] }}\naccounts {{ EDGE {{}} }}").options.leaf.remotes


def remote_of(keys, block=""):
    (remote,) = remotes_of(f"{{ url: 'nats://hub', {keys} }}", block)
    return remote


def mistakes_of(text):
    with pytest.raises(ConfigurationError) as caught:
        load_text(f"leafnodes {{ remotes: [ {text} ] }}")
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("nats://hub", LeafUrl(scheme="nats", host="hub", port=7422)),
        ("nats-leaf://hub:1", LeafUrl(scheme="nats-leaf", host="hub", port=1)),
        ("leaf://[::1]:1/", LeafUrl(scheme="leaf", host="::1", port=1)),
        ("tls://hub", LeafUrl(scheme="tls", host="hub", port=7422)),
        # nats-server has one default for all schemes.
        ("wss://hub/path", LeafUrl(scheme="wss", host="hub", port=7422, path="/path")),
        ("ws://a%40b:p%3Aq@hub:80", LeafUrl(scheme="ws", host="hub", port=80, user="a@b", password="p:q")),
        ("nats://secret@hub", LeafUrl(scheme="nats", host="hub", port=7422, user="secret")),
        ("nats://user:@hub", LeafUrl(scheme="nats", host="hub", port=7422, user="user", password="")),
    ],
)
def test_url(text, url):
    assert parse_leaf_url(text) == url


@pytest.mark.parametrize("text", ["", "hub", "hub:7422", "nats://", "http://hub", "nats://hub:x", "nats://hub:65536"])
def test_what_is_not_a_url_is_refused_with_what_to_write(text):
    (mistake,) = mistakes_of(f"{{ url: '{text}' }}")

    assert mistake.partition(": ")[2].startswith("error parsing leafnode url number 1: ")
    assert mistake.endswith("write nats-leaf://host:7422, tls://host:7422 or wss://host:443")


def test_every_key_is_read():
    (remote,) = remotes_of(
        """
        {
          urls: ["tls://a", "tls://b:1"]
          account: EDGE
          credentials: "~/edge.creds"
          tls { ca_file: ca.pem, cert_file: c.pem, key_file: k.pem, insecure: true, first: true, timeout: 5 }
          hub: true
          deny_imports: ["a.>", "b"]
          deny_export: c
          compression: s2_best
          dont_randomize: true
          first_info_timeout: "4s"
          dial_timeout: "3s"
          ws_compression: true
          websocket_no_masking: true
          disabled: true
          isolate: true
          request_isolation: true
          ignore_discovered_servers: true
        }
        """
    )

    assert remote == LeafRemote(
        urls=(LeafUrl(scheme="tls", host="a", port=7422), LeafUrl(scheme="tls", host="b", port=1)),
        account="EDGE",
        credentials_file="~/edge.creds",
        tls=RemoteTls(
            authority_file="ca.pem",
            certificate_file="c.pem",
            key_file="k.pem",
            insecure=True,
            handshake_first=True,
            timeout_s=5.0,
        ),
        hub=True,
        deny_imports=("a.>", "b"),
        deny_exports=("c",),
        compression=LinkCompression(mode="s2_best", rtt_ms=()),
        no_randomize=True,
        first_info_timeout_s=4.0,
        dial_timeout_s=3.0,
        websocket_compress=True,
        websocket_no_masking=True,
        disabled=True,
        isolate=True,
        request_isolation=True,
        ignore_discovered_servers=True,
    )


def test_remote_that_says_nothing_else_has_the_defaults():
    assert remote_of("") == LeafRemote(urls=(LeafUrl(scheme="nats", host="hub", port=7422),))
    assert remote_of("dial_timeout: '-1s', first_info_timeout: '0s'") == remote_of("")
    assert remote_of("tls {}").tls == RemoteTls(timeout_s=2.0)


def test_time_to_connect_is_that_of_the_block_unless_a_remote_has_its_own():
    assert remote_of("", "dial_timeout: '5s',").dial_timeout_s == 5.0
    assert remote_of("dial_timeout: '2s'", "dial_timeout: '5s',").dial_timeout_s == 2.0


def test_seed_is_read_and_not_shown():
    remote = remote_of(f"nkey: {SEED}")

    assert remote.seed == SEED
    assert SEED not in repr(remote)
    assert remote.name == 'urls=["nats://hub:7422"], account="$G", nkey="[REDACTED]"'


def test_url_that_comes_twice_counts_once_with_a_warning():
    configuration = load_text("leafnodes { remotes: [{ urls: ['nats://a', 'nats://a'] }] }")

    assert len(configuration.options.leaf.remotes[0].urls) == 1
    assert "Duplicate leafnode entry detected" in configuration.warnings[0]


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ("nonsense: 1", 'unknown field "nonsense"'),
        ("nkey: SUX", "Remote leafnode nkey is not a valid seed of a user"),
        (f"seed: {SEED[:-1]}A", "Remote leafnode nkey is not a valid seed of a user"),
        (f"creds: c, nkey: {SEED}", "Remote leafnode can not have both creds and nkey defined"),
        ("deny_imports: 'a..b'", 'subject "a..b" is not a valid subject'),
        ("deny_exports: ['a b']", 'subject "a b" is not a valid subject'),
        ("hub: 'yes'", '"hub" must be true or false, not text'),
        ("compression: zip", 'unsupported compression mode "zip"'),
        ("tls { cert_file: c }", "missing 'key_file' in TLS configuration"),
        ("tls { key_file: k }", "missing 'cert_file' in TLS configuration"),
        ("tls { nonsense: 1 }", 'error parsing tls config, unknown field "nonsense"'),
        ("tls { min_version: '1.3' }", '"min_version" is not supported for a remote'),
        ("tls { cipher_suites: [a] }", '"cipher_suites" is not supported for a remote'),
        ("js_cluster_migrate: 3", "Expected boolean or map for jetstream_cluster_migrate, got an integer"),
    ],
)
def test_mistakes_are_named(keys, mistake):
    (found,) = mistakes_of(f"{{ url: 'nats://hub', {keys} }}")

    assert found.partition(": ")[2].startswith(mistake)


@pytest.mark.parametrize("text", ["{}", "{ urls: [] }"])
def test_remote_needs_a_url(text):
    (mistake,) = mistakes_of(text)

    assert "a leafnode remote needs a url" in mistake


def test_url_of_another_kind_is_reported_once():
    (mistake,) = mistakes_of("{ url: 1 }")

    assert mistake.endswith('"url" must be text or a list of texts, not an integer')


def test_proxy_is_refused_where_it_would_be_used():
    (mistake,) = mistakes_of("{ url: 'ws://hub', proxy { url: 'http://proxy:1' } }")

    assert '"proxy" of a leafnode remote is not supported yet' in mistake


def test_websocket_and_other_urls_cannot_be_mixed():
    (mistake,) = mistakes_of("{ urls: ['nats://u:hidden@a', 'wss://b'] }")

    assert 'websocket and non-websocket urls: ["nats://u:xxxxx@a:7422" "wss://b:7422"]' in mistake


def test_remotes_that_are_the_same_are_refused_without_their_passwords():
    (mistake,) = mistakes_of("{ url: 'nats://u:hidden@a' }, { url: 'nats://u:hidden@a' }")

    assert 'duplicate remote urls=["nats://u:xxxxx@a:7422"], account="$G"' in mistake
    assert "hidden" not in mistake


def test_same_hub_in_two_accounts_is_two_remotes():
    assert len(remotes_of("{ url: 'nats://a' }, { url: 'nats://a', account: EDGE }")) == 2
