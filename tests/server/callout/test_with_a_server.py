"""Auth callout with a server process, where it does otherwise than nats-server."""

import signal

import pytest

from tests.compatibility.callout_site import CalloutSite, information
from tests.compatibility.claims import Key
from tests.compatibility.operator_site import Site
from tests.compatibility.server_process import start_server_process
from tests.compatibility.test_auth_callout_operator import CalloutOperator

RELOADED = "Reloaded server configuration"


@pytest.fixture
def start_server(tmp_path):
    processes = []

    def start(flags=(), config=""):
        processes.append(start_server_process("jetlake", tmp_path, list(flags), config))
        return processes[-1]

    yield start
    for process in processes:
        process.stop()


@pytest.fixture
def start(start_server):
    sites = []

    def start(users="auth", timeout="60"):
        issuer = Key("account")
        config = f"""
        accounts {{ AUTH {{ users: [ {{ user: auth, password: pwd }} ] }}, APP {{ }} }}
        authorization {{
            timeout: {timeout}
            auth_callout {{ issuer: {issuer.public}, account: AUTH, auth_users: [ {users} ] }}
        }}
        """
        sites.append(CalloutSite(start_server, config, issuer, None))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


def test_client_is_refused_at_once_if_no_service_listens(start):
    site = start(timeout="60")
    site.service.client.send(b"UNSUB 1\r\n")
    site.service.client.expect_pong()
    client = site.client()

    client.send_connect(verbose=False, user="ada")

    # Within the ten seconds that a client of the tests waits.
    client.expect_error_and_closed("Authorization Violation")
    site.server.wait_for_log('Nobody listens to $SYS.REQ.USER.AUTH in account "AUTH": start the service')


def test_named_client_stays_while_it_is_asked_about_again(start):
    site = start()
    client = site.come_in("APP", name="ada")
    config = site.config.replace("APP { }", "APP { limits: { max_payload: 4 } }")

    (site.server.folder / "server.conf").write_text(config)
    site.server.signal(signal.SIGHUP)
    again = site.service.next()
    client.expect_pong()
    site.service.admit(again, "APP", name="ada")
    site.server.wait_for_log(RELOADED)

    assert again.connect["user"] == "ada"
    assert information(client)["account"] == "APP"


def test_users_that_are_not_there_are_logged(start):
    site = start(users="auth, nobody")

    site.server.wait_for_log('[ERR] Authorization callout user "nobody" not valid')


def test_clients_stay_through_a_reload_in_operator_mode(tmp_path):
    callout = CalloutOperator(lambda **options: Site("jetlake", tmp_path, **options))
    try:
        client = callout.come_in(name="ada")
        path = tmp_path / "server.conf"
        path.write_text(path.read_text() + "\nmax_connections: 1000\n")

        callout.site.server.signal(signal.SIGHUP)
        callout.site.server.wait_for_log(RELOADED)

        callout.service.nothing_asked()
        client.expect_pong()
    finally:
        callout.close()
        callout.site.close()
