"""How a leaf node proves who it is, in which accounts a link is, and how it is encrypted and compressed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.aio.client import Client

from tests.compatibility.certificates import Authority, Certificate
from tests.compatibility.claims import Key, Operator, make_user
from tests.compatibility.leaf_pairs import (
    KINDS,
    TIMEOUT,
    Site,
    hear,
    leaf_port,
    listen,
    settle,
    wait_for,
    wait_until_linked,
)
from tests.compatibility.server_process import ServerProcess

COMPRESSIONS = ["off", "accept", "s2_fast", "s2_better", "s2_best", "s2_auto"]

LARGE_BYTES = 200_000

WEBSOCKET_PORT = re.compile(r"Listening for websocket clients on \S+:(\d+)")

pytestmark = TIMEOUT


@pytest.fixture(params=KINDS)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path, request.param)
    yield made
    await made.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def tls_block(certificate: Certificate, authority: Authority, further: str = "") -> str:
    return (
        f'tls {{ cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}", '
        f'ca_file: "{authority.file}"\n{further}\n}}'
    )


async def expect_link(site: Site, hub: ServerProcess, leaf: ServerProcess, **login: str) -> tuple[Client, Client]:
    """Expect that messages pass, large ones as well, and return a client of each."""
    clients = await site.connect(hub, **login), await site.connect(leaf)
    await wait_until_linked(*clients)
    heard = await listen(clients[0], "large")
    await hear(clients[0], clients[1], "ready")
    body = b"abcdefg" * (LARGE_BYTES // 7)
    for _ in range(3):
        await clients[1].publish("large", body)
    await wait_for(lambda: [one.data for one in heard] == [body] * 3, "three large messages")
    return clients


async def expect_refusal(site: Site, leaf: ServerProcess) -> None:
    await wait_for(lambda: "Authorization Violation" in leaf.log(), "the leaf node is refused")
    await (await site.connect(leaf)).flush()


@pytest.mark.parametrize("theirs", ["off", "accept", "s2_auto", "s2_fast"])
@pytest.mark.parametrize("own", COMPRESSIONS)
async def test_every_compression_of_both_sides(site: Site, own: str, theirs: str) -> None:
    hub = site.start_hub(f"compression: {theirs}")
    leaf = site.start_leaf(leaf_port(hub), f"compression: {own}")

    await expect_link(site, hub, leaf)


async def test_tls_without_a_certificate_of_the_leaf_node(site: Site, authority: Authority) -> None:
    certificate = authority.server()
    hub = site.start_hub(f'tls {{ cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}" }}')
    leaf = site.start_leaf(0, f'tls {{ ca_file: "{authority.file}" }}', url=f"tls://127.0.0.1:{leaf_port(hub)}")

    await expect_link(site, hub, leaf)


@pytest.mark.parametrize("compression", ["off", "s2_fast"])
@pytest.mark.parametrize("first", [False, True])
async def test_tls_with_certificates_of_both(site: Site, authority: Authority, first: bool, compression: str) -> None:
    handshake = "handshake_first: true" if first else ""
    block = tls_block(authority.server(), authority, f"verify: true\n{handshake}")
    hub = site.start_hub(f"{block}\ncompression: {compression}")
    remote = f"{tls_block(authority.client(), authority, handshake)}\ncompression: {compression}"
    leaf = site.start_leaf(leaf_port(hub), remote, url=f"tls://localhost:{leaf_port(hub)}")

    await expect_link(site, hub, leaf)


async def test_hub_of_an_unknown_authority_is_not_trusted_unless_asked_to(
    site: Site, authority: Authority, tmp_path: Path
) -> None:
    strangers = Authority(tmp_path, "Strangers")
    hub = site.start_hub(tls_block(strangers.server("strange"), strangers))
    url = f"tls://127.0.0.1:{leaf_port(hub)}"
    wary = site.start_leaf(0, f'tls {{ ca_file: "{authority.file}" }}', url=url, name="wary")
    trusting = site.start_leaf(0, "tls { insecure: true }", url=url, name="trusting")

    await expect_link(site, hub, trusting)
    await wait_for(lambda: "TLS" in wary.log() and "ERR" in wary.log(), "the other one says why")
    at_wary = await listen(await site.connect(wary), "m")
    hub_client = await site.connect(hub)
    await hub_client.publish("m", b"x")
    await settle(hub_client)
    assert at_wary == []


async def test_password_in_the_url(site: Site) -> None:
    hub = site.start_hub('authorization { user: edge, password: "s3cr3t" }')
    port = leaf_port(hub)
    leaf = site.start_leaf(0, url=f"nats-leaf://edge:s3cr3t@127.0.0.1:{port}")
    wrong = site.start_leaf(0, url=f"nats-leaf://edge:wrong@127.0.0.1:{port}", name="wrong")

    await expect_link(site, hub, leaf)
    await expect_refusal(site, wrong)


async def test_accounts_of_both_ends_are_bound(site: Site) -> None:
    hub = site.start_hub(
        "authorization { users: [ {user: a, password: a, account: ONE}, {user: b, password: b, account: TWO} ] }",
        """accounts {
          ONE { users: [ {user: one, password: x} ] }
          TWO { users: [ {user: two, password: x} ] }
        }""",
    )
    port = leaf_port(hub)
    leaf = site.start(
        site.kinds[1],
        f"""server_name: edge
        leafnodes {{ remotes: [
          {{ url: "nats-leaf://a:a@127.0.0.1:{port}", account: LOCAL }}
          {{ url: "nats-leaf://b:b@127.0.0.1:{port}", account: OTHER }}
        ] }}
        accounts {{
          LOCAL {{ users: [ {{user: local, password: x}} ] }}
          OTHER {{ users: [ {{user: other, password: x}} ] }}
        }}""",
    )
    one = await site.connect(hub, user="one", password="x")
    local = await site.connect(leaf, user="local", password="x")
    other = await site.connect(leaf, user="other", password="x")
    await wait_until_linked(one, local)
    await wait_until_linked(await site.connect(hub, user="two", password="x"), other)
    at_local, at_other = await listen(local, "m"), await listen(other, "m")
    await hear(local, one, "ready")

    await one.publish("m", b"x")

    await wait_for(lambda: len(at_local) == 1, "in the account that is bound to it")
    await settle(one, local, other)
    assert at_other == []


async def test_user_without_an_account_of_its_own_is_in_that_of_the_user_list(site: Site) -> None:
    hub = site.start_hub("", "accounts { SHOP { users: [ {user: edge, password: p} ] } }")
    leaf = site.start_leaf(0, url=f"nats-leaf://edge:p@127.0.0.1:{leaf_port(hub)}")

    await expect_link(site, hub, leaf, user="edge", password="p")


async def test_nkey(site: Site) -> None:
    key = Key("user")
    hub = site.start_hub("", f"accounts {{ A {{ users: [ {{nkey: {key.public}}}, {{user: u, password: p}} ] }} }}")
    leaf = site.start_leaf(leaf_port(hub), f'nkey: "{key.seed}"')
    wrong = site.start_leaf(leaf_port(hub), f'nkey: "{Key("user").seed}"', name="wrong")

    await expect_link(site, hub, leaf, user="u", password="p")
    await expect_refusal(site, wrong)


async def test_credentials_file_in_operator_mode(site: Site, tmp_path: Path) -> None:
    operator = Operator()
    account = operator.add_account(name="shop")
    edge, client = make_user(account), make_user(account)
    file = edge.write(tmp_path / "edge.creds")
    hub = site.start_hub("", operator.configuration())
    leaf = site.start_leaf(leaf_port(hub), f'credentials: "{file}"')
    user_file = client.write(tmp_path / "client.creds")

    await expect_link(site, hub, leaf, user_credentials=str(user_file))


async def test_permissions_of_the_user_hold_for_what_passes(site: Site) -> None:
    hub = site.start_hub(
        "",
        """accounts { A { users: [
          {user: edge, password: p, permissions: {
            publish: ["up.>", "linked.>", "ready.>"], subscribe: {deny: "private.>"}
          }}
          {user: u, password: p}
        ] } }""",
    )
    leaf = site.start_leaf(0, url=f"nats-leaf://edge:p@127.0.0.1:{leaf_port(hub)}")
    at_hub, at_leaf = await site.connect(hub, user="u", password="p"), await site.connect(leaf)
    await wait_until_linked(at_hub, at_leaf)
    heard_hub, heard_leaf = await listen(at_hub, ">"), await listen(at_leaf, ">")
    await hear(at_hub, at_leaf, "ready.hub")
    await hear(at_leaf, at_hub, "ready.leaf")

    for subject in ("other.x", "up.x"):
        await at_leaf.publish(subject, b"leaf")
    for subject in ("private.x", "open.x"):
        await at_hub.publish(subject, b"hub")

    await wait_for(lambda: any(one.subject == "up.x" for one in heard_hub), "what may be published")
    await wait_for(lambda: any(one.subject == "open.x" for one in heard_leaf), "what may be subscribed")
    await settle(at_hub, at_leaf)
    assert not [one for one in heard_hub if one.subject == "other.x"]
    assert not [one for one in heard_leaf if one.subject == "private.x"]


async def test_version_that_is_too_old_is_refused(site: Site) -> None:
    hub = site.start_hub('min_version: "99.0.0"')
    leaf = site.start_leaf(leaf_port(hub))

    await wait_for(lambda: "minimum version" in leaf.log(), "the leaf node hears why")


def websocket_port(server: ServerProcess) -> int:
    found = WEBSOCKET_PORT.search(server.log())
    assert found is not None, server.log()
    return int(found[1])


@pytest.mark.parametrize("remote", ["", "ws_compression: true", "ws_no_masking: true"])
async def test_link_through_a_websocket_port(site: Site, remote: str) -> None:
    hub = site.start_hub("", 'websocket { listen: "127.0.0.1:-1", no_tls: true, compression: true }')
    leaf = site.start_leaf(0, remote, url=f"ws://127.0.0.1:{websocket_port(hub)}")

    await expect_link(site, hub, leaf)


async def test_link_through_a_websocket_port_with_tls(site: Site, authority: Authority) -> None:
    certificate = authority.server()
    hub = site.start_hub(
        "",
        f"""websocket {{ listen: "127.0.0.1:-1", tls {{
          cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}"
        }} }}""",
    )
    url = f"wss://localhost:{websocket_port(hub)}"
    leaf = site.start_leaf(0, f'tls {{ ca_file: "{authority.file}" }}', url=url)

    await expect_link(site, hub, leaf)


async def test_account_takes_so_many_leaf_nodes_and_no_more(site: Site) -> None:
    hub = site.start_hub(
        "", "accounts { A { users: [ {user: edge, password: p} ], limits { max_leafnodes: 1, max_connections: 5 } } }"
    )
    url = f"nats-leaf://edge:p@127.0.0.1:{leaf_port(hub)}"
    first = site.start_leaf(0, url=url, name="first")
    await expect_link(site, hub, first, user="edge", password="p")

    second = site.start_leaf(0, url=url, name="second")

    await wait_for(lambda: "maximum account active connections exceeded" in second.log(), "the second hears why")
