"""The agent of a node sends what is in its spool, on both servers."""

import pytest

from jetlake.agents.options import read_node_options
from jetlake.agents.submission import sender_options
from jetlake.choria.settings import ChoriaSettings
from jetlake.client.access import Access
from jetlake.errors import ConfigurationError
from jetlake.submission.submitting import submit
from tests.agents.conftest import wait_until


def test_an_agent_sends_the_messages_of_its_spool(stored, run_agent, name, tmp_path):
    spool = tmp_path / "spool"
    stored.create(name, f"{name}.submission.in.>")
    configuration = (
        f"identity: {name}\ncollectives: [{name}]\nlifecycle: {{enabled: false}}\nsubmission: {{spool: {spool}}}\n"
    )
    for number in range(3):
        submit(f"tasks.{number}", f"body {number}".encode(), spool=spool, reliable=True, sender="test")

    agent = run_agent(configuration, "node.yaml")
    wait_until(lambda: stored.count(name) == 3, agent.log)
    submit("tasks.late", b"late", spool=spool, reliable=True, sender="test")
    wait_until(lambda: stored.count(name) == 4, agent.log)
    assert agent.stop() == 0

    subjects = [stored.message(name, sequence)["subject"] for sequence in range(1, 5)]
    assert sorted(subjects[:3]) == [f"{name}.submission.in.tasks.{number}" for number in range(3)]
    assert stored.message(name, 4)["data"] == b"late"
    assert list(spool.rglob("*.msg")) == []
    assert f"submission: sending the messages of {spool}" in agent.log()


def options_of(**keys):
    return read_node_options(ChoriaSettings({key.replace("__", "."): value for key, value in keys.items()}))


def test_a_node_without_a_spool_has_no_sender():
    assert sender_options(options_of(), Access()) is None


def test_the_keys_of_choria_make_the_options():
    options = sender_options(
        options_of(
            collectives="ldn",
            plugin__choria__submission__spool="/var/spool/choria",
            plugin__choria__submission__max_spool_size="20",
        ),
        Access(),
    )

    assert options is not None
    assert (str(options.spool), options.collective, options.messages_max) == ("/var/spool/choria", "ldn", 20)
    with pytest.raises(ConfigurationError, match="at least 1"):
        sender_options(
            options_of(plugin__choria__submission__spool="x", plugin__choria__submission__max_spool_size="0"), Access()
        )
