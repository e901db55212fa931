"""From a server's options to its facts."""

import msgspec

from jetlake.config import Limits
from jetlake.monitoring.facts import JetStreamFacts, LeafFacts, LeafRemoteFacts, ServerFacts, TlsFacts
from jetlake.server.monitoring.facts import Running, facts_of
from jetlake.server.options import (
    AccessOptions,
    Account,
    Credentials,
    JetStreamAccountLimits,
    JetStreamOptions,
    LeafListenerOptions,
    LeafOptions,
    LeafRemote,
    LeafUrl,
    MonitoringOptions,
    RemoteTls,
    ServerOptions,
    TlsOptions,
    User,
)

RUNNING = Running(
    server_id="NAID",
    git_commit="jetlake-0",
    port=4222,
    config_loaded_unix_ns=7,
    config_digest="sha256:x",
    monitor_port=8222,
    store_directory="store",
    memory_bytes_max=1,
    storage_bytes_max=2,
)


def test_hub_and_leaf_node_show_addresses_and_times_and_nothing_secret():
    hub = LeafUrl(scheme="tls", host="hub", port=7422, user="u", password="hidden")
    remote = LeafRemote(urls=(hub,), account="A", seed="hidden", tls=RemoteTls(timeout_s=2.0), deny_imports=("x",))
    leaf = LeafOptions(listener=LeafListenerOptions(port=0), remotes=(remote,))

    facts = facts_of(ServerOptions(leaf=leaf), msgspec.structs.replace(RUNNING, leaf_port=7422))

    assert facts.leaf == LeafFacts(
        host="0.0.0.0",
        port=7422,
        auth_timeout_s=2.0,
        tls_timeout_s=2.0,
        remotes=(LeafRemoteFacts(account="A", addresses=("hub:7422",), tls_timeout_s=2.0, deny_imports=("x",)),),
    )
    assert facts_of(ServerOptions(), RUNNING).leaf is None


def test_times_become_nanoseconds_and_seconds():
    limits = Limits(ping_interval_ms=1_500, write_deadline_ms=250, auth_timeout_ms=1_500)

    facts = facts_of(ServerOptions(limits=limits), RUNNING)

    assert (facts.ping_interval_ns, facts.write_deadline_ns) == (1_500_000_000, 250_000_000)
    assert facts.auth_timeout_s == 1.5


def test_a_server_without_a_name_is_called_by_its_id():
    assert facts_of(ServerOptions(), RUNNING).server_name == "NAID"
    assert facts_of(ServerOptions(server_name="here"), RUNNING).server_name == "here"


def test_the_advertised_address_is_the_one_shown():
    assert address(ServerOptions(host="0.0.0.0")) == ("0.0.0.0", 4222)
    assert address(ServerOptions(client_advertise="example.com")) == ("example.com", 4222)
    assert address(ServerOptions(client_advertise="example.com:5222")) == ("example.com", 5222)


def address(options):
    facts = facts_of(options, RUNNING)
    return facts.host, facts.port


def test_only_the_port_that_is_served_is_shown():
    http = facts_of(ServerOptions(monitoring=MonitoringOptions(http_port=0, host="127.0.0.1")), RUNNING)
    https = facts_of(ServerOptions(monitoring=MonitoringOptions(https_port=0)), RUNNING)

    assert (http.http_host, http.http_port, http.https_port) == ("127.0.0.1", 8222, 0)
    assert (https.http_host, https.http_port, https.https_port) == ("0.0.0.0", 0, 8222)


def test_jetstream_is_for_everybody_where_no_accounts_are_configured():
    options = ServerOptions(
        jetstream=JetStreamOptions(
            enabled=True, domain="hub", sync_interval_s=0.5, max_acknowledgements_pending=7, duplicate_window_s=1.5
        )
    )

    facts = facts_of(options, RUNNING)

    assert facts.jetstream == JetStreamFacts(
        max_memory_bytes=1,
        max_storage_bytes=2,
        store_directory="store",
        sync_interval_ns=500_000_000,
        domain="hub",
        limits={"max_ack_pending": 7, "max_duplicate_window": 1_500_000_000, "default_max_consumers": 1_000},
        accounts=("$G",),
    )
    assert facts_of(ServerOptions(), RUNNING).jetstream is None


def test_jetstream_is_for_the_accounts_that_have_it():
    accounts = (Account(name="A", jetstream=JetStreamAccountLimits()), Account(name="B"))

    facts = facts_of(
        ServerOptions(jetstream=JetStreamOptions(enabled=True), access=AccessOptions(accounts=accounts)), RUNNING
    )

    assert facts.jetstream is not None
    assert facts.jetstream.accounts == ("A",)
    assert facts.accounts == ("$G", "A", "B", "$SYS")


def test_tls_is_required_unless_plain_text_is_allowed():
    tls = TlsOptions(certificate_file="c", key_file="k", verify_clients=True, timeout_s=5.0)

    required = facts_of(ServerOptions(tls=tls), RUNNING).tls
    allowed = facts_of(ServerOptions(tls=msgspec.structs.replace(tls, allow_plain=True)), RUNNING).tls

    assert required == TlsFacts(required=True, verify=True, timeout_s=5.0)
    assert not allowed.required


def test_no_secret_of_the_options_reaches_the_facts():
    options = ServerOptions(
        access=AccessOptions(
            credentials=Credentials(user="ada", password="s3cr3t-1", token="s3cr3t-2"),
            users=(User(name="bob", password="s3cr3t-3"),),
        ),
        tls=TlsOptions(certificate_file="s3cr3t-4", key_file="s3cr3t-5"),
        monitoring=MonitoringOptions(http_port=0),
        jetstream=JetStreamOptions(enabled=True),
    )

    facts = facts_of(options, RUNNING)

    assert b"s3cr3t" not in msgspec.json.encode(facts)
    assert facts.auth_required


def test_nothing_is_required_where_strangers_become_a_user():
    access = AccessOptions(users=(User(name="bob", password="p"),), no_auth_user="bob")

    assert not facts_of(ServerOptions(access=access), RUNNING).auth_required


def test_there_is_no_field_for_a_secret():
    forbidden = ("password", "pass", "token", "key", "secret", "nkey", "jwt", "seed", "command", "argv")

    for struct in (ServerFacts, JetStreamFacts, TlsFacts):
        for field in msgspec.structs.fields(struct):
            assert not [word for word in forbidden if word in field.name.split("_")], field.name
