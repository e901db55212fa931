"""A node that registers, on both servers: what it publishes, when, and what happens when it cannot."""

import base64
import gzip
import json
import os
import subprocess
import sys

from jetlake.choria.envelopes import parse
from jetlake.choria.registration import content_of
from jetlake.choria.signatures import Verifier
from jetlake.client.schemas import problems, read
from tests.agents.conftest import WAIT_S_MAX, wait_until
from tests.choria.keys import Authority, Issuer


def configuration(name, data, **keys):
    fields = {
        "identity": f"{name}.example.net",
        "registration": "file_content",
        "registerinterval": "1",
        "registration_splay": "false",
        "plugin.choria.registration.file_content.data": str(data),
        "plugin.choria.registration.file_content.target": f"{name}.discovery",
    }
    fields |= {key.replace("__", "."): value for key, value in keys.items()}
    return "".join(f"{key} = {value}\n" for key, value in fields.items())


def bodies(stored, name, kind="request"):
    state = stored.streams.state(name)
    return [
        json.loads(parse(stored.message(name, sequence)["data"], kind).data)
        for sequence in range(1, state.last_sequence + 1)
    ]


def test_a_file_is_published_in_every_interval(stored, run_agent, name, tmp_path):
    stored.create(name, f"{name}.discovery")
    data = tmp_path / "inventory.json"
    data.write_text('{"fqdn": "web1"}')
    os.utime(data, (1_000_000, 1_000_000))

    agent = run_agent(configuration(name, data))
    wait_until(lambda: stored.count(name) >= 2, agent.log)

    first, second = bodies(stored, name)[:2]
    assert list(problems(first, read("choria.registration.v1.filecontent"))) == []
    assert first["mtime"] == 1_000_000
    assert first["file"] == str(data)
    assert first["updated"] is second["updated"] is False
    assert gzip.decompress(base64.b64decode(first["zcontent"])) == b'{"fqdn": "web1"}'
    assert content_of(json.dumps(first)) == b'{"fqdn": "web1"}'
    received = parse(stored.message(name, 1)["data"], "request")
    assert received.sender == f"{name}.example.net"
    assert len(received.request_id) == 32


def test_a_file_that_changes_is_marked_once(stored, run_agent, name, tmp_path):
    stored.create(name, f"{name}.discovery")
    data = tmp_path / "inventory.json"
    data.write_text("old")
    os.utime(data, (1_000_000, 1_000_000))

    agent = run_agent(configuration(name, data, plugin__choria__registration__file_content__compression="false"))
    wait_until(lambda: stored.count(name) >= 1, agent.log)
    # In one step: the agent must not see the new text with the time of its writing.
    newer = tmp_path / "newer.json"
    newer.write_text("new")
    os.utime(newer, (2_000_000, 2_000_000))
    newer.replace(data)
    wait_until(lambda: any(body["mtime"] == 2_000_000 for body in bodies(stored, name)), agent.log)
    count = stored.count(name)
    wait_until(lambda: stored.count(name) > count, agent.log)

    changed = [body for body in bodies(stored, name) if body["mtime"] == 2_000_000]
    assert [body["updated"] for body in changed][:2] == [True, False]
    assert base64.b64decode(changed[0]["content"]) == b"new"


def test_a_file_that_grows_is_published_early(stored, run_agent, name, tmp_path):
    stored.create(name, f"{name}.discovery")
    data = tmp_path / "inventory.json"
    data.write_text("x")

    agent = run_agent(
        configuration(
            name,
            data,
            registerinterval="3600",
            plugin__choria__registration__file_content__compression="no",
            plugin__choria__registration__size_trigger="500",
            plugin__choria__registration__size_interval="0.1",
        )
    )
    wait_until(lambda: stored.count(name) == 1, agent.log)
    data.write_text("x" * 100)
    data.write_text("x" * 1_000)
    wait_until(lambda: stored.count(name) == 2, agent.log)

    assert len(base64.b64decode(bodies(stored, name)[1]["content"])) == 1_000


def test_a_file_that_is_missing_is_reported_and_published_when_it_is_there(stored, run_agent, name, tmp_path):
    stored.create(name, f"{name}.discovery")
    data = tmp_path / "inventory.json"

    agent = run_agent(configuration(name, data))
    wait_until(lambda: "cannot read" in agent.log(), agent.log)
    data.write_text("")
    wait_until(lambda: "is empty" in agent.log(), agent.log)
    data.write_text("{}")
    wait_until(lambda: stored.count(name) >= 1, agent.log)


def test_an_inventory_has_facts_classes_and_collectives(stored, run_agent, name, tmp_path):
    stored.create(name, f"{name}.discovery")
    (tmp_path / "facts.yaml").write_text("os: {family: RedHat}\nboot: 2026-01-01\n")
    (tmp_path / "classes.txt").write_text("role::web\nprofile::base\n")
    prefix = "plugin__choria__registration__inventory_content__"

    agent = run_agent(
        configuration(
            name,
            "",
            registration="inventory_content",
            collectives="mcollective,ldn",
            plugin__yaml=tmp_path / "facts.yaml",
            classesfile=tmp_path / "classes.txt",
            **{f"{prefix}target": f"{name}.discovery"},
        )
    )
    wait_until(lambda: stored.count(name) >= 1, agent.log)

    body = bodies(stored, name)[0]
    assert list(problems(body, read("choria.registration.v1.inventorycontent"))) == []
    inventory = json.loads(content_of(json.dumps(body)))
    assert inventory["facts"] == {"os": {"family": "RedHat"}, "boot": "2026-01-01"}
    assert inventory["classes"] == ["role::web", "profile::base"]
    assert inventory["collectives"] == ["mcollective", "ldn"]
    assert set(inventory) == {"agents", "classes", "facts", "status", "collectives", "build_info", "machines"}


def test_two_publishers_do_not_suppress_each_other(stored, run_agent, name, tmp_path):
    stored.create(name, f"{name}.>")
    (tmp_path / "a.json").write_text("{}")
    agent = run_agent(
        configuration(
            name,
            tmp_path / "a.json",
            registration="file_content,inventory_content",
            plugin__choria__registration__inventory_content__target=f"{name}.inventory",
        )
    )

    def subjects():
        last = stored.streams.state(name).last_sequence
        return [stored.message(name, sequence)["subject"] for sequence in range(1, last + 1)]

    wait_until(lambda: all(subjects().count(f"{name}.{each}") >= 2 for each in ("discovery", "inventory")), agent.log)


def test_requests_are_signed_by_certificate_or_token(stored, url, name, tmp_path):
    from cryptography.hazmat.primitives import serialization

    stored.create(name, f"{name}.discovery")
    authority, issuer = Authority(), Issuer()
    node = authority.node(f"{name}.example.net")
    (tmp_path / "cert.pem").write_text(node.proof)
    (tmp_path / "key.pem").write_bytes(
        node.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    token = issuer.node(f"{name}.example.net")
    (tmp_path / "token.jwt").write_text(token.proof)
    (tmp_path / "seed").write_text(token.key.private_bytes_raw().hex())
    (tmp_path / "data").write_text("{}")
    signed = {
        "plugin__security__file__certificate": tmp_path / "cert.pem",
        "plugin__security__file__key": tmp_path / "key.pem",
    }
    tokens = {
        "plugin__security__choria__token_file": tmp_path / "token.jwt",
        "plugin__security__choria__seed_file": tmp_path / "seed",
    }

    for keys in (signed, tokens):
        (tmp_path / "server.conf").write_text(configuration(name, tmp_path / "data", **keys))
        done = register(tmp_path / "server.conf", url)
        assert done.returncode == 0, done.stderr
    verifier = Verifier(authority_pem=authority.pem, issuers=(issuer.hex,))

    # The server has them, and stores them in its own time.
    wait_until(lambda: stored.count(name) == 2)
    for sequence in (1, 2):
        verifier.check(parse(stored.message(name, sequence)["data"], "request", keep_signature=True))


def register(config, url):
    return subprocess.run(
        [sys.executable, "-m", "jetlake", "agent", "register", "-c", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S_MAX,
        env=os.environ | {"NATS_URL": url},
    )


def test_register_says_what_it_did(stored, url, name, tmp_path):
    stored.create(name, f"{name}.discovery")
    (tmp_path / "data").write_text("{}")
    (tmp_path / "server.conf").write_text(configuration(name, tmp_path / "data"))

    done = register(tmp_path / "server.conf", url)

    assert done.stdout == f"Registered {name}.example.net on {name}.discovery\n"
    wait_until(lambda: stored.count(name) == 1)


def test_register_with_nothing_to_publish_fails(url, name, tmp_path):
    (tmp_path / "server.conf").write_text(configuration(name, tmp_path / "missing"))
    done = register(tmp_path / "server.conf", url)
    assert done.returncode == 1
    assert "no such file or directory" in done.stderr

    (tmp_path / "server.conf").write_text("identity = x\n")
    done = register(tmp_path / "server.conf", url)
    assert done.returncode == 1
    assert "configures no registration" in done.stderr
