"""Plans that are kept."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.actual import Actual
from jetlake.iac.actual import ActualResource as Found
from jetlake.iac.plan_file import check_unchanged, is_plan, read_plan, write_plan
from tests.iac.servers import declared, planned


def server_with(**config):
    key = ("stream", "", "A")
    return Actual({key: Found(key, {"name": "A", "subjects": ["A"], **config}, created="2025-01-01T00:00:00Z")})


def test_a_plan_that_was_kept_is_the_same(tmp_path):
    plan = planned(declared(tmp_path, "streams: {A: {max_msgs: 5, consumers: {c: {ack_policy: none}}}}"), server_with())
    path = tmp_path / "plan"

    write_plan(path, plan)

    assert is_plan(path)
    assert read_plan(path) == plan
    assert not is_plan(tmp_path / "declaration.yaml")
    assert not is_plan(tmp_path / "absent")


def test_a_server_that_is_the_same_is_accepted(tmp_path):
    plan = planned(declared(tmp_path, "streams: {A: {max_msgs: 5}, B: {}}"), server_with())

    check_unchanged(plan, server_with())
    check_unchanged(plan, server_with(metadata={"_nats.ver": "2.99"}))

    assert len(plan.steps) == 2


@pytest.mark.parametrize("change", [{"max_msgs": 7}, {"metadata": {"a": "b"}}, {"metadata": {"jetlake.iac": "x"}}])
def test_a_server_that_has_changed_is_refused(tmp_path, change):
    plan = planned(declared(tmp_path, "streams: {A: {max_msgs: 5}}"), server_with())

    with pytest.raises(ConfigurationError, match="the server has changed since"):
        check_unchanged(plan, server_with(**change))


def test_a_stream_that_was_made_again_has_changed(tmp_path):
    plan = planned(declared(tmp_path, "streams: {A: {max_msgs: 5}}"), server_with())
    key = ("stream", "", "A")

    with pytest.raises(ConfigurationError, match="has changed"):
        check_unchanged(
            plan, Actual({key: Found(key, server_with().found[key].config, created="2026-01-01T00:00:00Z")})
        )
    with pytest.raises(ConfigurationError, match="has changed"):
        check_unchanged(plan, Actual())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not a plan that can be read"),
        (b'{"format":"jetlake.plan.v0","plan":{}}', "another version"),
        (b"[]", "not a plan"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path, content, message):
    path = tmp_path / "plan"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=message):
        read_plan(path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_plan(tmp_path / "absent" / "plan", planned(declared(tmp_path, "streams: {A: {}}"), Actual()))
