"""Governors as code: declared, planned, applied, exported; on both servers."""

from datetime import UTC, datetime

import pytest

from jetlake.errors import ConfigurationError
from jetlake.governor import GovernorSettings, catalog
from jetlake.iac.executor import carry_out
from jetlake.iac.export import export, write
from tests.iac.servers import actual_of, ask, declared, planned, request

DECLARED = """
project: fleet
governors:
  PUPPET: {capacity: 50, expires: 20m}
  BACKUP: {capacity: 2, expire: 1h, collective: eu}
"""


def make(server, declaration):
    plan = planned(declaration, actual_of(server))
    outcome = ask(server, lambda api: carry_out(api, plan, lambda _step: None, datetime.now(UTC)))
    assert outcome.is_complete, (outcome.reason, outcome.differs)


def test_a_declared_governor_is_one_for_everybody(server, tmp_path):
    make(server, declared(tmp_path, DECLARED))

    puppet = ask(server, lambda api: catalog.find(api, "PUPPET"))
    assert puppet == GovernorSettings(name="PUPPET", capacity=50, expires_ns=1200 * 10**9)
    assert ask(server, lambda api: catalog.names(api, "eu")) == ["BACKUP"]
    assert planned(declared(tmp_path, DECLARED), actual_of(server)).is_empty


def test_one_that_was_added_by_hand_is_as_declared(server, tmp_path):
    settings = GovernorSettings(name="PUPPET", capacity=50, expires_ns=1200 * 10**9)
    ask(server, lambda api: catalog.add(api, settings))

    plan = planned(declared(tmp_path, "governors: {PUPPET: {capacity: 50, expires: 20m}}"), actual_of(server))

    assert plan.is_empty


def test_a_lower_capacity_destroys_no_lease(server, tmp_path):
    make(server, declared(tmp_path, DECLARED))
    for _ in range(2):
        ask(server, lambda api: api.ask("eu.governor.BACKUP", b"holder"))

    lower = declared(tmp_path, DECLARED.replace("capacity: 2", "capacity: 1"))
    plan = planned(lower, actual_of(server))
    make(server, lower)

    assert not plan.destructive
    assert request(server, "STREAM.INFO.GOVERNOR_BACKUP")["state"]["messages"] == 2


@pytest.mark.parametrize("ending", ["yaml", "json", "toml"])
def test_what_is_exported_makes_the_same_again(server, tmp_path, ending):
    make(server, declared(tmp_path, DECLARED))

    document = export(actual_of(server), project="fleet")
    text = write(document, ending)

    assert document["governors"] == [
        {"name": "BACKUP", "capacity": 2, "expires": "1h", "collective": "eu"},
        {"name": "PUPPET", "capacity": 50, "expires": "20m"},
    ]
    assert planned(declared(tmp_path, text, f"exported.{ending}"), actual_of(server)).is_empty


def test_a_stream_that_only_looks_like_a_governor_is_exported_as_a_stream(server):
    config = {"name": "GOVERNOR_X", "subjects": ["mcollective.governor.X"], "max_msgs": 5, "discard": "new"}
    request(server, "STREAM.CREATE.GOVERNOR_X", {**config, "max_bytes": 4096})
    request(server, "STREAM.CREATE.GOVERNOR_Y", {"name": "GOVERNOR_Y", "subjects": ["y"]})

    document = export(actual_of(server))

    assert [stream["name"] for stream in document["streams"]] == ["GOVERNOR_X", "GOVERNOR_Y"]
    assert "governors" not in document


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("{expires: 20m}", "cannot have a capacity of 0"),
        ("{capacity: 5, expires: 1ms}", "at least 100ms"),
        ("{capacity: 5, replicas: 9}", "cannot have 9 replicas"),
        ("{capacity: 5, colective: eu}", "colective"),
    ],
)
def test_what_cannot_be_a_governor_is_refused_with_its_line(tmp_path, fields, reason):
    with pytest.raises(ConfigurationError, match=reason) as refused:
        declared(tmp_path, f"governors:\n  PUPPET: {fields}\n")

    assert ":2" in str(refused.value)
