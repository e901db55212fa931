"""A reload in operator mode, while accounts come by claims."""

import json
import threading

import msgspec

import jetlake
from tests.compatibility.claims import Operator, make_user
from tests.compatibility.wire import RawClient

LOGIN_S = 2.0
"""How long a login gets to be decided in the middle of a reload; afterwards the reload goes on without it."""

WAIT_S_MAX = 60.0


def test_account_of_a_first_login_keeps_its_mappings_though_a_reload_comes_meanwhile():
    operator = Operator()
    user = make_user(operator.add_account(name="N", mappings={"a": [{"subject": "b", "weight": 100}]}))
    with jetlake.Server(config=operator.configuration()) as server:
        options = server._options
        limits = msgspec.structs.replace(options.limits, ping_max=7)
        complete = server._access.completed

        def log_in():
            client = RawClient("127.0.0.1", server.port)
            presented = user.presented(client.info["nonce"])
            client.send(b"CONNECT " + json.dumps({**presented, "verbose": False}).encode() + b"\r\n")
            client.expect_pong()
            logged_in.append(client)

        def complete_beside_a_login(given):
            # What the reload is about to give the engine is decided; then the first user of the account comes.
            server._access.completed = complete
            completed = complete(given)
            login.start()
            login.join(LOGIN_S)
            return completed

        logged_in = []
        login = threading.Thread(target=log_in)
        server._access.completed = complete_beside_a_login

        server.reload(msgspec.structs.replace(options, limits=limits), lambda _log: None)

        login.join(WAIT_S_MAX)
        (client,) = logged_in
        with client:
            client.send(b"SUB a 1\r\nSUB b 2\r\nPUB a 1\r\nx\r\n")
            while not (frame := client.read_frame()).startswith(b"MSG "):
                assert frame, "the connection was closed"
            assert frame == b"MSG b 2 1\r\nx\r\n"
