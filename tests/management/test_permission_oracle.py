"""The rights of every request agree with a model, and the comparison would notice if they did not.

More of it: `python -m tests.management.permission_oracle --decisions 1000000`, and the same on real servers,
`python -m tests.management.live_permission_oracle --messages 20000`.
"""

import os

import pytest

from jetlake.management import dispatch
from jetlake.management.archives import endpoints as archives
from jetlake.management.endpoints import consumers, scans, streams
from jetlake.management.requests import rights as subject_rights
from jetlake.management.requests.calls import Call
from tests.management import live_permission_oracle, permission_oracle
from tests.management.permission_model import covers, matches, meet

DECISIONS = 1_000_000 if os.environ.get("JETLAKE_LONG") else 20_000
MESSAGES = 20_000 if os.environ.get("JETLAKE_LONG") else 1_000


@pytest.mark.timeout(7_200 if os.environ.get("JETLAKE_LONG") else 60)
def test_every_decision_agrees_with_the_model():
    tally = permission_oracle.run(DECISIONS, seed=1)

    assert tally.disagreements == []
    assert tally.decisions >= DECISIONS
    assert {"effect: deliver", "effect: republish", "effect: chunks"} <= tally.kinds.keys()


@pytest.mark.timeout(7_200 if os.environ.get("JETLAKE_LONG") else 60)
def test_whatever_reaches_a_subject_of_a_real_server_is_allowed():
    outcome = live_permission_oracle.run(MESSAGES, seed=1)

    assert outcome.violations == []
    assert outcome.kinds["sent by the server"] > MESSAGES // 20


@pytest.mark.parametrize(
    ("module", "check"),
    [
        (consumers, "check_consumer_targets"),
        (streams, "check_stream_targets"),
        (archives, "check_stream_targets"),
        (archives, "check_target"),
        (scans, "check_target"),
        (dispatch, "check_equivalents"),
        (subject_rights, "_check_reading"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_check_that_is_missing_is_noticed(monkeypatch, module, check):
    def allow(_call: Call, *_arguments: object) -> None:
        return

    monkeypatch.setattr(module, check, allow)

    tally = permission_oracle.run(200_000, seed=2, until_disagreement=True)

    assert tally.disagreements


@pytest.mark.parametrize(
    ("one", "other", "covered", "met"),
    [
        (">", "a.b", True, True),
        ("a.*", "a.b", True, True),
        ("a.*", "a.>", False, True),
        ("a.>", "a.*", True, True),
        ("a.>", "a", False, False),
        ("*.b", "a.*", False, True),
        ("*.b", "a.c", False, False),
        ("a", ">", False, True),
        ("a.*.c", "a.b.>", False, True),
    ],
)
def test_the_model_knows_patterns(one, other, covered, met):
    assert (covers(one, other), meet(one, other), meet(other, one)) == (covered, met, met)
    assert matches("a.*.c", "a.b.c")
    assert not matches("a.*", "a.b.c")
