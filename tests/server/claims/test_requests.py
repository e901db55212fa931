"""Requests about claims: what is looked at first."""

import json
from types import SimpleNamespace

import pytest

from jetlake.server.claims.operator_mode import OperatorMode
from jetlake.server.claims.requests import UPDATE, ClaimsRequests
from jetlake.server.configuration.load import load_text
from jetlake.server.python_log import PythonLog
from tests.compatibility.claims import Key, Operator


@pytest.fixture
def operator():
    return Operator()


@pytest.fixture
def push(operator, tmp_path):
    """A function that pushes claims, and returns what is answered."""
    config = operator.configuration(f'{{ type: full, dir: "{tmp_path}/jwt" }}')
    mode = OperatorMode(load_text(config).options.access, PythonLog(), on_change=lambda _: None)
    mode.open()
    requests = ClaimsRequests(mode, PythonLog())

    def push(token):
        request = SimpleNamespace(subject=UPDATE, payload=token.encode())
        (answer,) = requests.answer(request, lambda: None)
        return json.loads(answer)

    yield push
    mode.close()


INVALID = {"exports": [{"subject": ".a"}]}


def test_claims_of_an_operator_are_looked_through(operator, push):
    assert "data" in push(operator.add_account().jwt())
    assert "validation errors" in push(operator.add_account(**INVALID).jwt())["error"]["description"]


def test_claims_of_a_stranger_are_refused_unseen(operator, push):
    """To look through claims of a megabyte takes minutes, which nobody gets for a signature of their own."""
    stranger = Key("operator")

    for claims in ({}, INVALID):
        description = push(operator.add_account(**claims).jwt(stranger))["error"]["description"]

        assert description.endswith("account claims are not signed by a trusted operator")
