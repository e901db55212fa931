"""`jetlake account` and `jetlake rtt` against both servers."""

from tests.cli.conftest import asked_until


def test_account_says_who_and_how_much(done, read):
    text = asked_until(lambda: done("account", "info"), lambda text: "account: $G" in text)

    assert "account: $G" in text
    assert "version: 2.15.1" in text
    assert "streams: 0 of unlimited" in text
    facts = asked_until(lambda: read("account", "info"), lambda facts: bool(facts["user"]))
    assert facts["jetstream"]["streams"] == 0
    assert facts["user"]["account"] == "$G"


def test_account_without_jetstream_says_so(read, jetlake_server):
    facts = read("account", "info", "--server", jetlake_server.url)

    assert facts["jetstream"] is None
    assert "JetStream is off on this server" in facts["jetstream_problem"]


def test_round_trips_are_measured(done, read):
    assert "round trips: 3" in done("rtt", "3")
    figures = read("rtt", "4")
    assert len(figures["times_ns"]) == 4
    assert figures["fastest_ns"] <= figures["median_ns"] <= figures["slowest_ns"]


def test_processes_end_with_0(process):
    assert process("account", "info").returncode == 0
    assert process("rtt", "1").returncode == 0
