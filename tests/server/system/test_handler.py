"""The system account of a real server: what goes wrong, what is never done, what is not loaded."""

import asyncio
import json
import subprocess
import sys

import nats
import nats.errors
import pytest

import jetlake
from jetlake.server.system import handler as handler_module

CONFIG = """
accounts {
  $SYS { users: [
    {user: admin, password: admin}
    {user: limited, password: limited, permissions: {publish: "$SYS.REQ.SERVER.PING.VARZ", subscribe: "_INBOX.>"}}
  ] }
  A { users: [ {user: a, password: a} ] }
}
"""


@pytest.fixture
async def server():
    async with jetlake.Server(config=CONFIG, name="") as server:
        yield server


def connect(server, user, **options):
    return nats.connect(server.url, user=user, password=user, allow_reconnect=False, **options)


async def ask(client, subject, payload=b""):
    return json.loads((await client.request(subject, payload, timeout=60)).data)


async def test_a_bug_is_answered_and_logged_and_the_next_request_works(server, monkeypatch, caplog):
    def fail(*_arguments):
        raise ZeroDivisionError("on purpose")

    client = await connect(server, "admin")
    monkeypatch.setattr(handler_module, "build_data", fail)
    broken = await ask(client, "$SYS.REQ.SERVER.PING.VARZ")
    monkeypatch.undo()
    whole = await ask(client, "$SYS.REQ.SERVER.PING.VARZ")

    assert broken["error"] == {"code": 500, "description": handler_module.BROKEN}
    assert whole["data"]["connections"] == 1
    assert "on purpose" in caplog.text
    await client.close()


async def test_a_reply_subject_is_no_way_to_give_commands(server):
    limited = await connect(server, "limited")
    reloads = []
    server.reload_by(lambda: reloads.append(1) or "")

    # The reply to VARZ would be a message of the server itself to RELOAD.
    await limited.publish("$SYS.REQ.SERVER.PING.VARZ", reply=f"$SYS.REQ.SERVER.{server.server_id}.RELOAD")
    await ask(limited, "$SYS.REQ.SERVER.PING.VARZ")
    await ask(limited, "$SYS.REQ.SERVER.PING.VARZ")

    assert reloads == []
    await limited.close()


async def test_a_command_needs_no_reply(server):
    admin = await connect(server, "admin")
    reloaded = asyncio.Event()
    loop = asyncio.get_running_loop()
    server.reload_by(lambda: loop.call_soon_threadsafe(reloaded.set) and "")

    await admin.publish(f"$SYS.REQ.SERVER.{server.server_id}.RELOAD")

    await asyncio.wait_for(reloaded.wait(), 60)
    await admin.close()


async def test_why_a_reload_failed_is_answered(server):
    admin = await connect(server, "admin")

    answer = await ask(admin, f"$SYS.REQ.SERVER.{server.server_id}.RELOAD")

    assert answer["error"]["code"] == 500
    assert "-c or --config" in answer["error"]["description"]
    await admin.close()


async def test_wild_replies_and_payloads_harm_nobody(server, caplog):
    admin = await connect(server, "admin")
    subjects = ["$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.ACCOUNT.A.SUBSZ", f"$SYS.REQ.SERVER.{server.server_id}.KICK"]
    for subject in subjects:
        for payload in (b"\xff\xfe", b"{" * 50_000, b'{"x":' + b"[" * 50_000, b'{"cid":1e400}', b'{"cid":-1}', b"null"):
            assert "server" in await ask(admin, subject, payload)
        await admin.publish(subject, reply="a.*")
        await admin.publish(subject, reply="..")

    assert (await ask(admin, "$SYS.REQ.SERVER.PING.IDZ"))["id"] == server.server_id
    assert "bug" not in caplog.text
    await admin.close()


async def test_without_a_system_account_nobody_answers():
    async with jetlake.Server(config="no_system_account: true") as server:
        client = await nats.connect(server.url)

        with pytest.raises(nats.errors.NoRespondersError):
            await client.request("$SYS.REQ.USER.INFO", timeout=60)
        await client.close()


async def test_server_can_be_stopped_while_it_answers(server):
    clients = [await connect(server, "a") for _ in range(5)]
    for client in clients:
        for _ in range(200):
            await client.publish("$SYS.REQ.SERVER.PING.CONNZ", reply="nobody")
        await client.flush()

    await asyncio.to_thread(server.stop)

    for client in clients:
        await client.close()


def test_answers_are_loaded_when_somebody_asks():
    program = (
        "import sys, jetlake\n"
        "with jetlake.Server(jetstream=False): pass\n"
        "print([name for name in sys.modules if name.startswith('jetlake.monitoring') or name.endswith('handler')])"
    )

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert "jetlake" not in loaded.stdout
