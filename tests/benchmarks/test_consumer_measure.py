"""Each kind of measurement of consumers, in small, at our server alone. What it takes is nobody's business here."""

import pytest

from benchmarks import consumer_measure
from benchmarks.consumer_measure import ConsumerBench, compared, whole_batches
from benchmarks.consumer_workloads import CONSUMER_WORKLOADS, named
from benchmarks.servers import JETLAKE, commands
from benchmarks.workloads import CPU, CPU_GROWTH, KEPT, RATE


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(consumer_measure, "CREATED_CONSUMERS", 3)
    monkeypatch.setattr(consumer_measure, "IDLE_CONSUMERS", 3)
    monkeypatch.setattr(consumer_measure, "WIDE_SUBJECTS", 100)
    own = {JETLAKE: commands()[JETLAKE]}
    with ConsumerBench(own, tmp_path, seconds=0.01, messages=10_000, wide_messages=5_000, rare_every=5_000) as small:
        yield small


def test_every_workload_is_measured_again_and_again(bench):
    for workload in CONSUMER_WORKLOADS:
        for _ in range(2):
            metrics = bench.measure(workload, JETLAKE)

            assert set(workload.metrics) <= set(metrics), workload.name
            assert all(value > 0 for value in metrics.values()), workload.name


def test_folder_is_gone_afterwards(tmp_path):
    (replay,) = named(["replay"])
    with ConsumerBench({JETLAKE: commands()[JETLAKE]}, tmp_path, seconds=0.01, messages=100, rare_every=100) as small:
        small.measure(replay, JETLAKE)

    assert not list(tmp_path.iterdir())


def test_messages_are_rounded_up_to_batches_and_down_to_what_there_is():
    assert whole_batches(1, batch=100, most=1_000) == 100
    assert whole_batches(101, batch=100, most=1_000) == 200
    assert whole_batches(9_999, batch=100, most=1_050) == 1_000


def test_those_are_compared_with_the_others():
    those = [{RATE: 50.0, CPU: 3.0}, {RATE: 50.0, CPU: 1.0}]
    others = [{RATE: 100.0, CPU: 1.0}, {RATE: 100.0, CPU: 1.0}]

    assert compared(those, others) == {RATE: 50.0, CPU: 2.0, KEPT: 0.5, CPU_GROWTH: 2.0}
