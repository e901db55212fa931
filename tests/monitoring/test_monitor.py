"""Whole servers with their pages: in this process and as a process of its own."""

import json
import re
import socket
import sys
import time
import urllib.error
import urllib.request
from datetime import datetime

import nats
import pytest

import jetlake
from jetlake.shared.listener_urls import WILDCARD_HOSTS
from tests.compatibility.certificates import Authority

TIMEOUT_S = 60.0
PAGES = [
    *["/", "/varz", "/connz", "/routez", "/gatewayz", "/leafz", "/subsz", "/subscriptionsz", "/accountz", "/accstatz"],
    *["/jsz", "/healthz", "/stacksz", "/ipqueuesz", "/raftz", "/debug/vars", "/metrics"],
]
EVERYTHING = [
    *PAGES,
    *["/connz?auth=1&subs=detail&state=all", "/connz?auth=1&state=closed&subs=1", "/subsz?subs=1", "/accountz?acc=$G"],
    *["/accstatz?unused=1", "/jsz?accounts=1&streams=1&consumers=1&config=1", "/healthz?details=1", "/ipqueuesz?all=1"],
]


def get(url):
    """Return status and body."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def get_json(url):
    return json.loads(get(url)[1])


def monitor_port_of(process):
    found = re.search(r"Starting https? monitor on \S+:(\d+)", process.log())
    assert found, process.log()
    return int(found[1])


@pytest.fixture
def monitored():
    """A server in this process with its pages."""
    with jetlake.Server(monitor_port=0, name="watched") as server:
        yield server


def test_every_page_answers(monitored):
    for path in PAGES:
        status, body = get(monitored.monitor_url + path)
        assert status == (404 if path == "/raftz" else 200), path
        assert body


async def test_pages_show_what_clients_do(monitored):
    connection = await nats.connect(monitored.url, name="one")
    await connection.subscribe("x.*")
    await connection.publish("x.1", b"hello")
    await connection.flush()

    varz = get_json(f"{monitored.monitor_url}/varz")
    connz = get_json(f"{monitored.monitor_url}/connz?subs=1")

    assert (varz["server_name"], varz["server_id"]) == ("watched", monitored.server_id)
    assert (varz["connections"], varz["in_msgs"], varz["out_bytes"]) == (1, 1, 5)
    # The server has subscriptions of its own.
    assert varz["subscriptions"] > connz["connections"][0]["subscriptions"] == 1
    assert (varz["port"], varz["http_port"]) == (monitored.port, int(monitored.monitor_url.rpartition(":")[2]))
    assert connz["connections"][0]["name"] == "one"
    assert connz["connections"][0]["subscriptions_list"] == ["x.*"]
    await connection.close()


def test_a_server_without_pages_has_no_url(jetlake_server):
    assert jetlake_server.monitor_url == ""


def test_a_configuration_opens_pages_too():
    with jetlake.Server(config='http: "127.0.0.1:-1"\nhttp_base_path: "/nats"') as server:
        assert server.monitor_url.endswith("/nats")
        varz = get_json(f"{server.monitor_url}/varz")
        assert (varz["http_host"], varz["http_base_path"]) == ("127.0.0.1", "/nats")
        assert get(server.monitor_url.removesuffix("/nats") + "/varz")[0] == 404


def test_a_stream_that_is_offline_is_told_to_who_asks_for_the_health_of_all(tmp_path):
    file = tmp_path / "server.conf"
    file.write_text(f'port: -1\njetstream {{ store_dir: "{tmp_path}", key: secret }}')
    with jetlake.Server(config=file) as server, jetlake.connect_sync(server) as client:
        client.streams.create("ORDERS", subjects=["orders.>"])

    # The key is missing.
    with jetlake.Server(store_directory=tmp_path, monitor_port=0) as server:
        status, body = get(f"{server.monitor_url}/healthz")
        live, _ = get(f"{server.monitor_url}/healthz?js-enabled-only=true")
        ready, _ = get(f"{server.monitor_url}/healthz?js-server-only=true")

    assert (status, live, ready) == (503, 200, 200)
    assert json.loads(body) == {
        "status": "unavailable",
        "error": "JetStream stream '$G > ORDERS' could not be recovered",
    }


def test_the_port_is_free_after_the_stop(monitored):
    url = monitored.monitor_url
    monitored.stop()

    with pytest.raises(urllib.error.URLError):
        get(f"{url}/varz")


def test_a_taken_port_is_a_start_error_that_frees_the_client_port(monitored):
    port = int(monitored.monitor_url.rpartition(":")[2])
    server = jetlake.Server(monitor_port=port)

    with pytest.raises(jetlake.StartError) as refusal:
        server.start()

    assert str(refusal.value) == (
        f"Can't start monitoring: can't listen to the monitor port: listen tcp 127.0.0.1:{port}: "
        "bind: address already in use"
    )


def test_https_needs_a_certificate():
    with pytest.raises(jetlake.StartError, match=r"^Can't start monitoring: TLS cert and key required for HTTPS$"):
        jetlake.Server(config="https_port: -1").start()


def test_http_and_https_together_are_refused():
    with pytest.raises(jetlake.StartError, match=r"can't specify both HTTP \(8222\) and HTTPs \(8443\) ports"):
        jetlake.Server(config="http_port: 8222, https_port: 8443").start()


def test_https_pages_of_a_server(tmp_path):
    authority = Authority(tmp_path)
    certificate = authority.server()
    config = f"""
      https: "127.0.0.1:-1"
      tls {{ cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}" }}
    """
    with jetlake.Server(config=config) as server:
        assert server.monitor_url.startswith("https://")
        with urllib.request.urlopen(
            f"{server.monitor_url}/varz", timeout=TIMEOUT_S, context=authority.context()
        ) as page:
            varz = json.loads(page.read())

    assert (varz["tls_required"], varz["http_port"]) == (True, 0)
    assert time.time() < datetime.fromisoformat(varz["tls_cert_not_after"]).timestamp() < time.time() + 2 * 86_400
    assert varz["https_port"] == int(server.monitor_url.rpartition(":")[2])


def test_jetstream_shows_its_folder(tmp_path):
    with jetlake.Server(monitor_port=0, jetstream=True, store_directory=tmp_path) as server:
        jsz = get_json(f"{server.monitor_url}/jsz?accounts=1")

    assert jsz["config"]["store_dir"] == str(tmp_path / "jetstream")
    assert [detail["name"] for detail in jsz["account_details"]] == ["$G"]


def test_the_line_comes_before_the_one_of_clients_and_the_ports_file_names_the_pages(start_process, tmp_path):
    process = start_process("-m", "-1", "--ports_file_dir", str(tmp_path))

    log = process.log()
    assert log.index("Starting http monitor on 127.0.0.1:") < log.index("Listening for client connections on")
    ports = json.loads(next(tmp_path.glob("*.ports")).read_text())
    assert ports["monitoring"] == [f"http://127.0.0.1:{monitor_port_of(process)}"]
    assert get(f"{ports['monitoring'][0]}/healthz") == (200, b'{"status":"ok"}')


def test_a_server_that_fails_to_open_its_pages_ends_with_1(start_process, monitored):
    port = monitored.monitor_url.rpartition(":")[2]

    process = start_process("-m", port, wait=False)

    assert process.wait() == 1
    assert (
        f"[FTL] Can't start monitoring: can't listen to the monitor port: listen tcp 127.0.0.1:{port}" in process.log()
    )


def test_health_ends_when_the_server_is_leaving(start_process):
    import signal

    process = start_process("-m", "-1")
    url = f"http://127.0.0.1:{monitor_port_of(process)}/healthz"
    with socket.create_connection(("127.0.0.1", process.port), timeout=TIMEOUT_S) as client:
        client.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
        client.recv(1)

        process.send(signal.SIGUSR2)
        process.wait_for_line("Entering lame duck mode")
        deadline = time.monotonic() + TIMEOUT_S
        while (answer := get(url))[0] == 200:
            assert time.monotonic() < deadline

    assert answer == (500, b'{"status":"error","error":"failed to be ready for connections after 1ms: server"}')


def test_a_server_with_pages_starts_without_loading_them(start_process):
    program = (
        "import sys, threading, jetlake.server.server as s, jetlake.server.log as l\n"
        "from jetlake.server.options import LogOptions, MonitoringOptions, ServerOptions\n"
        "o = ServerOptions(host='127.0.0.1', port=0, monitoring=MonitoringOptions(http_port=0))\n"
        "server = s.Server.from_options(o, l.StreamLog(LogOptions()), lambda: None).start()\n"
        "heavy = {'asyncio', 'http', 'logging', 'ssl', 'email', 'urllib', 'jetlake.monitoring.pages'}\n"
        "heavy &= set(sys.modules)\n"
        "server.stop()\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )

    process = start_process(command=[sys.executable, "-c", program])

    assert process.wait() == 0, process.log()


SECRETS = {
    "user": (["--user", "ada", "--pass", "s3cr3t-password"], {"user": "ada", "pass": "s3cr3t-password"}),
    "token": (["--auth", "s3cr3t-token"], {"auth_token": "s3cr3t-token"}),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_no_page_shows_a_secret(start_process, kind):
    flags, credentials = SECRETS[kind]
    process = start_process("-m", "-1", *flags)
    url = f"http://127.0.0.1:{monitor_port_of(process)}"
    wrong = {name: f"wrong-s3cr3t-{value}" for name, value in credentials.items()}
    with log_in(process.port, credentials) as client, log_in(process.port, wrong) as stranger:
        assert b"PONG" in client.recv(65_536)
        assert b"Authorization Violation" in stranger.recv(65_536)

        bodies = b"".join(get(url + path)[1] for path in EVERYTHING)

    assert b"s3cr3t" not in bodies
    assert (b'"ada"' in bodies) == (kind == "user")


def log_in(port, credentials):
    client = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    while not client.recv(65_536).endswith(b"\r\n"):
        pass
    client.sendall(b"CONNECT " + json.dumps({"verbose": False, **credentials}).encode() + b"\r\nPING\r\n")
    return client


def test_no_page_shows_a_secret_of_a_configuration(tmp_path):
    authority = Authority(tmp_path)
    certificate = authority.server()
    config = f"""
      https: "127.0.0.1:-1"
      tls {{ cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}" }}
      accounts {{ A {{ users [ {{ user: ada, password: s3cr3t-password }} ] }} }}
    """
    with jetlake.Server(config=config) as server:
        bodies = b""
        for path in [*EVERYTHING, "/accountz?acc=A"]:
            try:
                with urllib.request.urlopen(
                    server.monitor_url + path, timeout=TIMEOUT_S, context=authority.context()
                ) as page:
                    bodies += page.read()
            except urllib.error.HTTPError as error:
                with error:
                    bodies += error.read()

    key = certificate.key_file.read_text().splitlines()[1].encode()
    assert b"s3cr3t" not in bodies
    assert key not in bodies
    assert str(certificate.key_file).encode() not in bodies


async def test_a_poller_like_nats_top_finds_what_it_reads(monitored):
    connection = await nats.connect(monitored.url, name="top")
    for _ in range(3):
        varz = get_json(f"{monitored.monitor_url}/varz")
        connz = get_json(f"{monitored.monitor_url}/connz?limit=1024&sort=bytes_to&subs=1")

        for key in ("cpu", "mem", "slow_consumers", "in_msgs", "out_msgs", "in_bytes", "out_bytes"):
            assert isinstance(varz[key], int | float), key
        assert isinstance(varz["uptime"], str)
        assert isinstance(varz["version"], str)
        assert connz["num_connections"] == 1
        entry = connz["connections"][0]
        for key in (
            "cid",
            "ip",
            "port",
            "subscriptions",
            "pending_bytes",
            "out_msgs",
            "in_msgs",
            "out_bytes",
            "in_bytes",
        ):
            assert key in entry, key
        for key in ("uptime", "last_activity", "lang", "version", "name", "rtt", "idle"):
            assert isinstance(entry[key], str), key
    await connection.close()


def test_a_poller_like_the_prometheus_exporter_finds_numbers(monitored):
    for page in ("varz", "subsz", "routez", "connz", "leafz"):
        numbers = [
            key for key, value in get_json(f"{monitored.monitor_url}/{page}").items() if isinstance(value, int | float)
        ]
        assert numbers, page
    for path in (
        "/jsz?accounts=true",
        "/jsz?consumers=true&config=true",
        "/jsz?streams=true",
        "/healthz?js-enabled-only=true",
        "/healthz?js-server-only=true",
        "/accstatz?unused=1",
        "/gatewayz",
    ):
        assert get(monitored.monitor_url + path)[0] == 200, path


def test_pages_on_all_addresses_are_found_on_the_loopback_address():
    with jetlake.Server(host=min(WILDCARD_HOSTS), monitor_port=0) as server:
        assert server.monitor_url.startswith("http://127.0.0.1:")
        assert get(f"{server.monitor_url}/healthz")[0] == 200
