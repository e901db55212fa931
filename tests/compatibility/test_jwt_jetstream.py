"""Operator mode: what accounts may store, by their claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.claims import STORING, Account, Operator, make_user
from tests.compatibility.operator_site import Admin, Site

NOT_ENABLED = 10039
NO_LIMITS = 10120
TOO_MANY_STREAMS = 10027


@pytest.fixture
def site(start_site: Callable[..., Site], tmp_path: Path) -> Site:
    return start_site(flags=("-js", "-sd", str(tmp_path / "store")))


def api(site: Site, account: Account) -> Admin:
    """Return a client of the account that asks its API."""
    return Admin(site.client(make_user(account)))


def create(asking: Admin, name: str, **config: Any) -> dict[str, Any]:
    body = {"name": name, "subjects": [f"{name}.>"], "num_replicas": 1, **config}
    return json.loads(asking.ask_raw(f"$JS.API.STREAM.CREATE.{name}", json.dumps(body)))


def information(asking: Admin) -> dict[str, Any]:
    return json.loads(asking.ask_raw("$JS.API.INFO"))


def test_account_without_storage_may_not_store(site: Site) -> None:
    account = site.operator.add_account()
    site.admin().push(account)

    assert information(api(site, account))["error"]["err_code"] == NOT_ENABLED


def test_limits_of_the_claims_are_those_of_the_account(site: Site) -> None:
    limits = {
        "mem_storage": 1024,
        "disk_storage": 1_000_000,
        "streams": 2,
        "consumer": 5,
        "disk_max_stream_bytes": 4096,
    }
    account = site.operator.add_account(limits=limits)
    site.admin().push(account)

    shown = information(api(site, account))["limits"]

    assert shown["max_memory"] == 1024
    assert shown["max_storage"] == 1_000_000
    assert shown["max_streams"] == 2
    assert shown["max_consumers"] == 5
    assert shown["store_max_stream_bytes" if "store_max_stream_bytes" in shown else "storage_max_stream_bytes"] == 4096
    assert shown["memory_max_stream_bytes"] == -1


def test_number_of_streams_is_limited_until_more_are_pushed(site: Site) -> None:
    account = site.operator.add_account(limits={**STORING, "streams": 1})
    admin = site.admin()
    admin.push(account)
    asking = api(site, account)

    assert "error" not in create(asking, "one")
    assert create(asking, "two")["error"]["err_code"] == TOO_MANY_STREAMS
    admin.push(account, limits=account.limits(streams=2))
    assert "error" not in create(asking, "two")


def test_storage_can_be_granted_later(site: Site) -> None:
    account = site.operator.add_account()
    admin = site.admin()
    admin.push(account)
    asking = api(site, account)
    assert create(asking, "orders")["error"]["err_code"] == NOT_ENABLED

    admin.push(account, limits=account.limits(**STORING))

    assert "error" not in create(asking, "orders")


def test_tier_without_replicas_counts(site: Site) -> None:
    tiers = {"R1": {**STORING, "streams": 1}, "R3": {**STORING, "streams": 5}}
    account = site.operator.add_account(limits={"tiered_limits": tiers})
    site.admin().push(account)
    asking = api(site, account)

    assert "error" not in create(asking, "one")
    assert create(asking, "two")["error"]["err_code"] == TOO_MANY_STREAMS


def test_account_with_tiers_is_told_what_it_uses_of_each(site: Site) -> None:
    tiers = {"R1": {**STORING, "streams": 3}, "R3": {**STORING, "streams": 5}}
    account = site.operator.add_account(limits={"tiered_limits": tiers})
    site.admin().push(account)
    asking = api(site, account)
    create(asking, "one")

    info = json.loads(asking.ask_raw("$JS.API.INFO"))

    assert not any(info["limits"].values())
    assert (info["streams"], sorted(info["tiers"])) == (1, ["R1", "R3"])
    assert (info["tiers"]["R1"]["streams"], info["tiers"]["R3"]["streams"]) == (1, 0)
    assert info["tiers"]["R1"]["limits"]["max_streams"] == 3
    assert info["tiers"]["R3"]["limits"]["max_streams"] == 5
    assert list(info["tiers"]["R3"]) == list(info["tiers"]["R1"])


def test_account_with_tiers_of_replicas_only_stores_nothing(site: Site) -> None:
    account = site.operator.add_account(limits={"tiered_limits": {"R3": STORING}})
    site.admin().push(account)
    asking = api(site, account)

    assert create(asking, "one")["error"]["err_code"] == NO_LIMITS
    assert "R1" not in json.loads(asking.ask_raw("$JS.API.INFO"))["tiers"]


def test_streams_of_an_account_are_there_after_a_restart(site: Site) -> None:
    account = site.operator.add_account(limits=STORING)
    site.admin().push(account)
    asking = api(site, account)
    create(asking, "orders")
    asking.ask_raw("orders.new", "1")
    site.server.stop()

    site.start()

    state = json.loads(api(site, account).ask_raw("$JS.API.STREAM.INFO.orders"))["state"]
    assert state["messages"] == 1


def test_accounts_have_streams_of_the_same_name(site: Site) -> None:
    one, other = (site.operator.add_account(limits=STORING) for _ in range(2))
    for account in (one, other):
        site.admin().push(account)
    asking_one, asking_other = api(site, one), api(site, other)

    create(asking_one, "orders")
    asking_one.ask_raw("orders.new", "1")
    create(asking_other, "orders")

    state = json.loads(asking_other.ask_raw("$JS.API.STREAM.INFO.orders"))["state"]
    assert state["messages"] == 0


def test_system_account_must_not_store(start_site: Callable[..., Site], tmp_path: Path) -> None:
    operator = Operator()
    operator.system.nats["limits"].update(STORING)

    with pytest.raises(RuntimeError, match="Not allowed to enable JetStream on the system account"):
        start_site(operator=operator, flags=("-js", "-sd", str(tmp_path / "store")))
