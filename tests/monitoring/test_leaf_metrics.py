"""The figures of leaf connections for Prometheus, from recorded readings."""

from jetlake.monitoring import leaf_metrics, metrics
from jetlake.monitoring.facts import LeafFacts
from tests.monitoring.recorded import leaf_link, leaf_remote, recorded
from tests.monitoring.test_metrics import read


def values_of(**readings):
    values, _ = read(metrics.page(recorded({"leaf": LeafFacts()}, **readings)))
    return {key: value for key, value in values.items() if key[0].startswith("jetlake_leaf_")}


def test_server_without_the_block_has_no_such_figures():
    assert "jetlake_leaf" not in metrics.page(recorded())


def test_state_of_each_hub():
    values = values_of(leaf_remotes=[leaf_remote(), leaf_remote(is_connected=True, attempts=0, urls=["a:1", "b:2"])])

    first, second = 'account="$G",remote="hub:7422",number="1"', 'account="$G",remote="a:1,b:2",number="2"'
    assert [values["jetlake_leaf_remote_connected", each] for each in (first, second)] == [0, 1]
    assert [values["jetlake_leaf_remote_attempts_total", each] for each in (first, second)] == [3, 0]


def test_traffic_of_each_link():
    figures = {"in_messages": 1, "in_bytes": 2, "out_messages": 3, "out_bytes": 4, "pending_bytes": 9}
    link = leaf_link(6, account="B", name="hub", is_spoke=True, **figures)

    values = values_of(leaf_links=[link])

    labels = 'account="B",server="hub",role="spoke",id="6"'
    names = ["received_messages_total", "received_bytes_total", "sent_messages_total", "sent_bytes_total"]
    assert [values[f"jetlake_leaf_{name}", labels] for name in names] == [1, 2, 3, 4]
    assert (values["jetlake_leaf_subscriptions", labels], values["jetlake_leaf_pending_bytes", labels]) == (2, 9)
    assert values["jetlake_leaf_round_trip_seconds", labels] == 0.000508


def test_links_beyond_a_bound_are_only_counted(monkeypatch):
    monkeypatch.setattr(leaf_metrics, "LINKS_MAX", 2)

    values = values_of(leaf_links=[leaf_link(number) for number in (3, 1, 2)])

    assert values["jetlake_leaf_links", ""] == 3
    assert values["jetlake_leaf_links_left_out", ""] == 1
    named = [labels for name, labels in values if name == "jetlake_leaf_sent_bytes_total"]
    assert [label.rpartition("id=")[2] for label in named] == ['"1"', '"2"']
